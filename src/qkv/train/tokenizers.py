"""Text to tokens and back: characters, or byte pairs; any Unicode survives, and tokenizer.json holds it all."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from qkv.core.files import write_text
from qkv.errors import MissingExtra, QkvError

PAD, MASK, END = "□", "⁇", "␃"
SPECIAL = (PAD, MASK, END)
PAD_ID, MASK_ID, END_ID = range(3)
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))


class Tokenizer(ABC):
    """Text to ids and back. The first ids are special: padding, the mask of the objectives, the end of a text.

    The signs of special tokens mean nothing special inside a text: there they are spelled like any other.
    """

    name: str
    special = True  # whether the first ids are qkv's special tokens

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """How many tokens there are."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of a text."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special tokens show as their signs, and bytes that are no character as �."""

    @abstractmethod
    def to_json(self) -> str:
        """The file that Hugging Face's `tokenizers` reads too."""

    @abstractmethod
    def unknown(self, text: str) -> tuple[str, ...]:
        """The characters, each once, that training never showed and that are spelled in bytes instead."""

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json, whole or not at all."""
        write_text(Path(folder) / "tokenizer.json", self.to_json())


class Characters(Tokenizer):
    """One token a character; those that training never showed are spelled in UTF-8, one token a byte."""

    name = "characters"

    def __init__(self, alphabet: Iterable[str]) -> None:
        self.alphabet = tuple(sorted({c for c in alphabet if c not in SPECIAL}))
        self.symbols = (*SPECIAL, *BYTES, *self.alphabet)
        self._first = len(SPECIAL) + len(BYTES)
        self._ids = {c: self._first + i for i, c in enumerate(self.alphabet)}

    @classmethod
    def train(cls, texts: Iterable[str]) -> Characters:
        """The characters of some texts."""
        return cls({c for text in texts for c in text})

    @property
    def vocab_size(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> list[int]:
        try:
            return [self._ids[c] for c in text]
        except KeyError:
            known = self._ids
            spelled = ([known[c]] if c in known else [len(SPECIAL) + b for b in _bytes(c)] for c in text)
            return [i for each in spelled for i in each]

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
    """Frequent runs of bytes as tokens, by Hugging Face's `tokenizers`; every byte is one, so nothing is unknown."""

    name = "bytepairs"

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._inner.encode_special_tokens = True

    @classmethod
    def train(cls, texts: Iterable[str], vocab: int = 3000) -> BytePairs:
        """The most useful `vocab` tokens for some texts."""
        tokenizers = _tokenizers()
        least = len(SPECIAL) + 256
        if vocab < least:
            raise QkvError(
                "training a byte-pair tokenizer", f"{vocab} tokens were asked for", f"Ask for at least {least}"
            )
        inner = tokenizers.Tokenizer(tokenizers.models.BPE())
        inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocab,
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
        """Many texts at once, on all cores."""
        return [list(each.ids) for each in self._inner.encode_batch(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._inner.decode(list(ids), skip_special_tokens=False))

    def unknown(self, text: str) -> tuple[str, ...]:
        return ()

    def to_json(self) -> str:
        return str(self._inner.to_str())


class Foreign(BytePairs):
    """Another model's tokenizer, as it is: without the tokens that qkv's objectives need."""

    name = "foreign"
    special = False


class Numbers(Tokenizer):
    """For a model that came without a tokenizer: a text is ids, in decimal, with spaces between."""

    name = "numbers"
    special = False

    def __init__(self, vocab: int) -> None:
        self._vocab = vocab

    @property
    def vocab_size(self) -> int:
        return self._vocab

    def encode(self, text: str) -> list[int]:
        try:
            return [int(word) for word in text.split()]
        except ValueError:
            raise QkvError(
                f"reading {text!r}", "this model came without a tokenizer", "Write ids, like 5 17 3"
            ) from None

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids))

    def unknown(self, text: str) -> tuple[str, ...]:
        return ()

    def to_json(self) -> str:
        return json.dumps({"numbers": self._vocab})


def encode_all(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids of many texts."""
    if isinstance(tokenizer, BytePairs):
        return tokenizer.encode_all(texts)
    return [tokenizer.encode(text) for text in texts]


def load(path: str | Path, foreign: bool = False) -> Tokenizer:
    """The tokenizer in a folder, or in a tokenizer.json; one that qkv did not make only where `foreign` ones may be."""
    path = Path(path)
    path = path / "tokenizer.json" if path.is_dir() else path
    asked = f"reading the tokenizer {path}"
    if not path.is_file():
        raise QkvError(asked, "there is no such file", "Give a run's folder, or its tokenizer.json")
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
        if "numbers" in data:
            return Numbers(int(data["numbers"]))
        vocab: dict[str, int] = data["model"]["vocab"]
        signs = sorted((token["id"], token["content"]) for token in data["added_tokens"])
        merges, levels = data["model"].get("merges"), data.get("pre_tokenizer")
    except (OSError, ValueError, KeyError, TypeError) as why:
        raise QkvError(asked, f"it is damaged or of another kind ({why})", "Write the file again") from None
    own = signs[:3] == list(enumerate(SPECIAL))
    if not own and not foreign:
        raise QkvError(
            asked,
            f"its first tokens are {[s for _, s in signs[:3]]}, not {' '.join(SPECIAL)}",
            "Give one that qkv wrote",
        )
    if own and not merges and levels is None:
        return Characters(symbol for symbol in vocab if symbol not in BYTES)
    try:
        return (BytePairs if own else Foreign)(_tokenizers().Tokenizer.from_str(text))
    except MissingExtra:
        raise
    except Exception as why:
        raise QkvError(asked, f"it is damaged ({why})", "Write the file again") from None


def train(name: str, texts: Sequence[str], vocab: int = 3000) -> Tokenizer:
    """A tokenizer by name, `characters` or `bytepairs`, learned from texts."""
    if name == "characters":
        return Characters.train(texts)
    if name == "bytepairs":
        return BytePairs.train(texts, vocab)
    raise QkvError("choosing a tokenizer", f"there is none called {name!r}", "Choose characters or bytepairs")


def _added(i: int, sign: str) -> dict[str, Any]:
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    return {"id": i, "content": sign, **dict.fromkeys(flags, False), "special": True}


def _bytes(character: str) -> bytes:
    """UTF-8; half of a surrogate pair, which has none, as ?."""
    return character.encode("utf-8", errors="replace")


def _tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingExtra("byte-pair tokens", "hf") from None
    return tokenizers
