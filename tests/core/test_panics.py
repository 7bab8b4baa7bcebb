"""Panics of Rust libraries come out as ValueError, and everything else as it is."""

from __future__ import annotations

import json

import pytest

from qkv.core.panics import panics_as_errors
from qkv.errors import QkvError
from qkv.train import tokenizers


class PanicException(BaseException):
    """As pyo3 names it."""


def test_a_panic_is_an_error_and_ctrl_c_is_none() -> None:
    with pytest.raises(ValueError, match="out of range"), panics_as_errors():
        raise PanicException("index 11 out of range")
    for other in (KeyboardInterrupt, SystemExit, KeyError):
        with pytest.raises(other), panics_as_errors():
            raise other


def test_a_tokenizer_file_at_which_the_library_panics_is_refused_in_a_sentence(tmp_path, monkeypatch) -> None:
    library = tokenizers._tokenizers()

    class Panics:
        @staticmethod
        def from_str(text: str) -> None:
            raise PanicException("range end index 11 out of range for slice of length 9")

    monkeypatch.setattr(library, "Tokenizer", Panics)
    path = tmp_path / "tokenizer.json"
    path.write_text(
        json.dumps(
            {
                "added_tokens": [],
                "pre_tokenizer": {"type": "ByteLevel"},
                "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
            }
        )
    )
    with pytest.raises(QkvError, match="range end index 11"):
        tokenizers.load(path, foreign=True)
