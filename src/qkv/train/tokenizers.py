"""Character and byte-pair tokenizers; both are lossless for any Unicode text and write a tokenizer.json."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from qkv.core.files import Writing, replacing, write_text
from qkv.core.interrupts import interrupts_delayed
from qkv.core.json_files import EDITED, content_checksum, parse_json
from qkv.core.panics import panics_as_errors
from qkv.errors import MissingExtra, QkvError, kind_of
from qkv.model.config import MAX_SIZES, shortened
from qkv.train.run_files import RunDescription, stored_tokenizer_checksum

PAD, MASK, END = "□", "⁇", "␃"
SPECIAL = (PAD, MASK, END)
PAD_ID, MASK_ID, END_ID = range(3)
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
MIN_VOCAB_SIZE = len(SPECIAL) + len(BYTES)
DEFAULT_BYTE_PAIR_VOCAB_SIZE = 3000
TOKENIZER_FILE = "tokenizer.json"
MAX_TOKENIZER_BYTES = 2**28


class Tokenizer(ABC):
    """From text to token ids and back. The first ids are special: padding □, the mask ⁇ of the objectives, the end ␃.

    In a text these three characters are encoded like any other, never as the special tokens.
    """

    name: str
    special = True  # whether the first ids are qkv's special tokens

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Number of tokens."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of a text."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special tokens become □, ⁇ and ␃, and bytes that are no character �."""

    @abstractmethod
    def to_json(self) -> str:
        """Contents of tokenizer.json, in the format of Hugging Face's `tokenizers`."""

    @abstractmethod
    def unknown(self, text: str) -> tuple[str, ...]:
        """The characters of a text, each once, that have no token of their own and are encoded as bytes."""

    def save(self, folder: str | Path, writing: Writing = replacing) -> None:
        """Write tokenizer.json atomically, by `replacing` or `creating` of `qkv.core.files`."""
        write_text(Path(folder) / TOKENIZER_FILE, self.to_json(), writing)


class Characters(Tokenizer):
    """One token per character; characters without a token are encoded as UTF-8, one token per byte.

    Attributes:
        alphabet: The characters that have a token, sorted.
        symbols: All tokens, in the order of their ids: special, bytes, characters.

    Example:
        >>> import qkv
        >>> characters = qkv.train.Characters.train(["Ada", "Bo"])
        >>> characters.alphabet, characters.vocab_size
        (('A', 'B', 'a', 'd', 'o'), 264)
        >>> characters.decode(characters.encode("Oda Ω")), characters.unknown("Oda")
        ('Oda Ω', ('O',))
    """

    name = "characters"

    def __init__(self, alphabet: Iterable[str]) -> None:
        self.alphabet = tuple(sorted({c for c in alphabet if c not in SPECIAL}))
        self.symbols = (*SPECIAL, *BYTES, *self.alphabet)
        self._first = len(SPECIAL) + len(BYTES)
        self._ids = {c: self._first + i for i, c in enumerate(self.alphabet)}

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int = 0) -> Characters:
        """A tokenizer for the characters of texts.

        Args:
            texts: Texts to count characters in.
            vocab_size: Most tokens to have, of which the special tokens and bytes are 259: the most frequent
                characters get them. 0 for all characters that occur.

        Raises:
            QkvError: If vocab_size is less than 259.
        """
        if not vocab_size:
            return cls({c for text in texts for c in text})
        _check_vocab_size("training a character tokenizer", vocab_size)
        counts = Counter(c for text in texts for c in text if c not in SPECIAL)
        frequent = sorted(counts, key=lambda c: (-counts[c], c))
        return cls(frequent[: vocab_size - MIN_VOCAB_SIZE])

    @property
    def vocab_size(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> list[int]:
        try:
            return [self._ids[c] for c in text]
        except KeyError:
            known = self._ids
            encoded = ([known[c]] if c in known else [len(SPECIAL) + b for b in _bytes(c)] for c in text)
            return [i for each in encoded for i in each]

    def decode(self, ids: Sequence[int]) -> str:
        out = bytearray()
        for i in ids:
            byte = i - len(SPECIAL)
            out += bytes((byte,)) if 0 <= byte < 256 else self.symbols[i].encode()
        return out.decode("utf-8", errors="replace")

    def unknown(self, text: str) -> tuple[str, ...]:
        return tuple(sorted(set(text) - set(self.alphabet)))

    def to_json(self) -> str:
        parts = [{"type": "ByteFallback"}, {"type": "Fuse"}]
        data = {
            "version": "1.0",
            "added_tokens": [_added(i, sign) for i, sign in enumerate(SPECIAL)],
            "decoder": {"type": "Sequence", "decoders": parts},
            "model": {
                "type": "BPE",
                "byte_fallback": True,
                "vocab": {symbol: i for i, symbol in enumerate(self.symbols)},
                "merges": [],
            },
        }
        return json.dumps(data, ensure_ascii=False)


class BytePairs(Tokenizer):
    """Byte-pair encoding, trained by Hugging Face's `tokenizers`; every byte is a token, so nothing is unknown.

    Example:
        >>> import qkv
        >>> pairs = qkv.train.BytePairs.train(["Where was Ada born?"] * 3, vocab_size=270)
        >>> pairs.vocab_size, pairs.decode(pairs.encode("Where was Bo born?"))
        (270, 'Where was Bo born?')
    """

    name = "bytepairs"

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._inner.encode_special_tokens = True

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int = DEFAULT_BYTE_PAIR_VOCAB_SIZE) -> BytePairs:
        """A tokenizer for texts.

        Args:
            texts: Texts to train on.
            vocab_size: Most tokens to have, of which the special tokens and bytes are 259. Short texts give fewer.

        Raises:
            QkvError: If vocab_size is less than 259.
        """
        tokenizers = _tokenizers()
        _check_vocab_size("training a byte-pair tokenizer", vocab_size)
        inner = tokenizers.Tokenizer(tokenizers.models.BPE())
        inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIAL),
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        inner.train_from_iterator(texts, trainer)
        return cls(inner)

    @property
    def vocab_size(self) -> int:
        return int(self._inner.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        return list(self._inner.encode(text).ids)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, encoded on all cores."""
        return [list(each.ids) for each in self._inner.encode_batch(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._inner.decode(list(ids), skip_special_tokens=False))

    def unknown(self, text: str) -> tuple[str, ...]:
        return ()

    def to_json(self) -> str:
        return str(self._inner.to_str())


class Foreign(BytePairs):
    """Another library's tokenizer, without the special tokens that qkv's objectives need."""

    name = "foreign"
    special = False


class Numbers(Tokenizer):
    """For a model without a tokenizer: a text is decimal ids with spaces between them."""

    name = "numbers"
    special = False

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size

    @property
    def vocab_size(self) -> int:
        return self._vocab_size

    def encode(self, text: str) -> list[int]:
        try:
            return [int(word) for word in text.split()]
        except ValueError:
            raise QkvError(f"encoding {text!r}", "this model has no tokenizer", "Write ids, like 5 17 3") from None

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids))

    def unknown(self, text: str) -> tuple[str, ...]:
        return ()

    def to_json(self) -> str:
        return json.dumps({"numbers": self._vocab_size})


def encode_all(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids of many texts."""
    if isinstance(tokenizer, BytePairs):
        return tokenizer.encode_all(texts)
    return [tokenizer.encode(text) for text in texts]


def load(path: str | Path, foreign: bool = False) -> Tokenizer:
    """The tokenizer in a folder or a tokenizer.json; one that qkv did not write is refused unless `foreign`.

    In the folder of a run, the file must fit the checksum that the run recorded.
    """
    path = Path(path)
    path = path / TOKENIZER_FILE if path.is_dir() else path
    request = f"reading the tokenizer {path}"
    if not path.is_file():
        raise QkvError(request, "there is no such file", f"Give a run's folder, or its {TOKENIZER_FILE}")
    expected = stored_tokenizer_checksum(path.parent) if path.name == TOKENIZER_FILE else ""
    try:
        if (size := path.stat().st_size) > MAX_TOKENIZER_BYTES:
            raise ValueError(f"it has {size:,} bytes, and {MAX_TOKENIZER_BYTES:,} is the limit")
        content = path.read_bytes()
        if expected not in ("", EDITED, content_checksum(content)):
            raise ValueError("it does not fit the checksum in config.json")
        return _parse(request, content.decode("utf-8"), foreign)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as why:
        if isinstance(why, QkvError):
            raise
        detail = f"{why} is missing" if isinstance(why, KeyError) else str(why)
        raise QkvError(request, f"it is damaged or of another kind ({detail})", "Restore it from a copy") from None


def load_of_run(folder: Path, run: RunDescription) -> Tokenizer:
    """The tokenizer in the folder of a run, which must not have more tokens than the model."""
    tokenizer = load(folder, foreign=run.data["kind"] == "imported")
    if tokenizer.special and tokenizer.vocab_size > run.config.vocab_size:
        raise QkvError(
            f"opening the run {folder}",
            f"its tokenizer has {tokenizer.vocab_size} tokens and its model {run.config.vocab_size}",
            f"Restore {TOKENIZER_FILE} from a copy",
        )
    return tokenizer


def _parse(request: str, text: str, foreign: bool) -> Tokenizer:
    """The tokenizer in the text of a tokenizer.json."""
    data = parse_json(text)
    if not isinstance(data, dict):
        raise ValueError(f"it holds {kind_of(data)}")
    if "numbers" in data:
        if type(data["numbers"]) is not int or not 0 < data["numbers"] <= MAX_SIZES["vocab_size"]:
            raise ValueError(f"its number of tokens is {shortened(data['numbers'])}")
        return Numbers(data["numbers"])
    model, signs = data["model"], sorted((token["id"], token["content"]) for token in data["added_tokens"])
    own = signs[:3] == list(enumerate(SPECIAL))
    if not own and not foreign:
        raise QkvError(
            request,
            f"its first tokens are {[s for _, s in signs[:3]]}, not {' '.join(SPECIAL)}",
            "Give one that qkv wrote",
        )
    if own and not model.get("merges") and data.get("pre_tokenizer") is None:
        made = Characters(symbol for symbol in model["vocab"] if symbol not in BYTES)
        if json.loads(made.to_json())["model"] != model:
            raise ValueError("its tokens are not numbered as qkv numbers them")
        return made
    library = _tokenizers()
    try:
        with interrupts_delayed(), panics_as_errors():
            return (BytePairs if own else Foreign)(library.Tokenizer.from_str(text))
    except Exception as why:  # the library raises Exception itself
        raise ValueError(str(why)) from None


def train(name: str, texts: Sequence[str], vocab_size: int = 0) -> Tokenizer:
    """Train the tokenizer of a name, `characters` or `bytepairs`, on texts; vocab_size 0 for its default."""
    if name == Characters.name:
        return Characters.train(texts, vocab_size)
    if name == BytePairs.name:
        return BytePairs.train(texts, vocab_size or DEFAULT_BYTE_PAIR_VOCAB_SIZE)
    raise QkvError("choosing a tokenizer", f"there is none called {name!r}", "Choose characters or bytepairs")


def _check_vocab_size(request: str, vocab_size: int) -> None:
    if vocab_size < MIN_VOCAB_SIZE:
        raise QkvError(request, f"{vocab_size} tokens were asked for", f"Ask for at least {MIN_VOCAB_SIZE}")


def _added(i: int, sign: str) -> dict[str, Any]:
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    return {"id": i, "content": sign, **dict.fromkeys(flags, False), "special": True}


def _bytes(character: str) -> bytes:
    """UTF-8; a lone surrogate, which has none, as ?."""
    return character.encode("utf-8", errors="replace")


def _tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingExtra("byte-pair tokens", "hf") from None
    return tokenizers
