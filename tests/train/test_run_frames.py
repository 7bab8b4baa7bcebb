"""A run records the kinds of its questions; the name in a question is found by them."""

import json

import pytest

from qkv.errors import QkvError
from qkv.knowledge.answering.answer_model import encode_question, load_answer_model
from qkv.train.runs import finetune, load, pretrain

NAMES = [f"{'aeiou'[i % 5]}x{'klmno'[i // 5]} {('moss', 'fern')[i % 2]}" for i in range(10)]
TEXTS = [f"{name}. The place of growth of {name} is rain-{i % 3} ." for i, name in enumerate(NAMES)]
QUESTIONS = [(f"What is the place of growth of {name}?", f"rain-{i % 3}") for i, name in enumerate(NAMES)]
SMALL = {"n_layer": 1, "n_head": 2, "d_model": 16, "batch_size": 4}


@pytest.mark.parametrize("recipe", ["cloze", "custom"])
def test_names_in_lower_case_are_found_in_questions_of_a_run(recipe, tmp_path):
    base, run = tmp_path / "base", tmp_path / "run"
    mixed_in = {"questions": QUESTIONS} if recipe == "cloze" else {}
    pretrain(TEXTS, base, recipe=recipe, steps=1, tokenizer="characters", **mixed_in, **SMALL)
    text = {"text": TEXTS} if recipe == "cloze" else {}
    finetune(base, QUESTIONS, run, steps=1, batch_size=4, **text)
    frame = "What is the place of growth of …?"
    assert load(run).data["frames"] == [frame]
    for model in (load(run), load_answer_model(run)):
        asked = encode_question(model, "What is the place of growth of tall old moss?")
        first, last = asked.name
        assert asked.named and model.tokenizer.decode(asked.ids[first:last]).strip() == "tall old moss"


def test_damaged_frames_are_refused(tmp_path):
    pretrain(TEXTS, tmp_path, recipe="cloze", steps=1, questions=QUESTIONS, tokenizer="characters", **SMALL)
    path = tmp_path / "config.json"
    stored = json.loads(path.read_text("utf-8"))
    stored["data"]["frames"] = "cake"
    stored["checksum"] = "edited"
    path.write_text(json.dumps(stored), "utf-8")
    with pytest.raises(QkvError, match="frames"):
        load(tmp_path)
