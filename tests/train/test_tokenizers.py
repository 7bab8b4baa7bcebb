"""Text survives every tokenizer, and tokenizer.json is what Hugging Face's library reads."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Theirs

from qkv.errors import QkvError
from qkv.train import tokenizers
from qkv.train.tokenizers import END_ID, MASK, MASK_ID, PAD_ID, BytePairs, Characters

TEXTS = ["Ada Lovelace was born in London.", "Émile Zola, né à Paris", "Where was Blaise Pascal born?"] * 3
EVERY = pytest.mark.parametrize(
    "tokenizer", [Characters.train(TEXTS), BytePairs.train(TEXTS, 300)], ids=lambda t: t.name
)


@EVERY
@given(text=st.text())
def test_any_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@EVERY
def test_special_signs_in_a_text_are_not_special(tokenizer):
    ids = tokenizer.encode("a□b⁇c␃")
    assert not {PAD_ID, MASK_ID, END_ID} & set(ids)
    assert tokenizer.decode(ids) == "a□b⁇c␃"
    assert tokenizer.decode([MASK_ID]) == MASK


@EVERY
def test_a_saved_tokenizer_is_the_same_again(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    again = tokenizers.load(tmp_path)
    assert type(again) is type(tokenizer) and again.vocab_size == tokenizer.vocab_size
    assert [again.encode(t) for t in TEXTS] == [tokenizer.encode(t) for t in TEXTS]


@EVERY
@given(text=st.text(alphabet=st.characters(exclude_characters="□⁇␃", exclude_categories=["Cs"])))
def test_the_file_means_the_same_to_hugging_face(tokenizer, text):
    theirs = Theirs.from_str(tokenizer.to_json())
    assert theirs.encode(text).ids == tokenizer.encode(text)
    assert theirs.decode(tokenizer.encode(text)) == text
    assert theirs.get_vocab_size() == tokenizer.vocab_size


def test_characters_that_training_never_showed_are_spelled_and_reported():
    characters = Characters.train(["abc"])
    assert characters.encode("aΩ") == [characters.encode("a")[0], 3 + 0xCE, 3 + 0xA9]
    assert characters.unknown("abΩcé") == ("é", "Ω")
    assert characters.decode([3 + 0xCE]) == "�"


def test_byte_pairs_shorten_what_they_were_trained_on():
    pairs = BytePairs.train(TEXTS, 320)
    assert pairs.vocab_size <= 320
    assert len(pairs.encode(TEXTS[0])) < len(TEXTS[0]) / 2
    assert pairs.encode_all(TEXTS) == [pairs.encode(t) for t in TEXTS]


def test_impossible_and_foreign_tokenizers_are_refused(tmp_path):
    with pytest.raises(QkvError, match="at least 259"):
        BytePairs.train(TEXTS, 100)
    with pytest.raises(QkvError, match="none called 'words'"):
        tokenizers.train("words", TEXTS)
    with pytest.raises(QkvError, match="no such file"):
        tokenizers.load(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text("{")
    with pytest.raises(QkvError, match="damaged"):
        tokenizers.load(path)
    data = json.loads(Characters.train(TEXTS).to_json())
    data["added_tokens"] = []
    path.write_text(json.dumps(data))
    with pytest.raises(QkvError, match="its first tokens are"):
        tokenizers.load(path)


def test_characters_of_a_limited_vocabulary_are_the_most_frequent_ones():
    few = Characters.train(["aabbbc⁇⁇⁇⁇", "cd"], vocab_size=261)
    assert few.alphabet == ("a", "b") and few.vocab_size == 261  # a and c are as frequent: the first one is taken
    assert few.decode(few.encode("abcd")) == "abcd" and few.unknown("abcd") == ("c", "d")
    assert Characters.train(["ab"], vocab_size=5000).vocab_size == 261
    with pytest.raises(QkvError, match="at least 259"):
        Characters.train(["ab"], vocab_size=258)


def test_a_vocabulary_of_size_0_is_the_tokenizers_default():
    long = [" ".join(f"{a}{b}{a}" for b in range(40)) for a in range(200)]
    assert tokenizers.train("bytepairs", long).vocab_size == 3000
    assert tokenizers.train("bytepairs", long, 400).vocab_size == 400
    assert tokenizers.train("characters", long).vocab_size == 259 + 11
    assert tokenizers.train("characters", long, 262).vocab_size == 262
