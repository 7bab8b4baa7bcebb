"""Output in encodings that lack our signs."""

import os
import subprocess
import sys

import pytest
from marks import spread

from qkv.cli.plain_text import ascii_text


def test_signs_become_words_letters_or_question_marks():
    assert ascii_text("✓ α ≤ 1 → β… Łódź é ₁² Ω 語 \ud800") == "v alpha <= 1 -> beta... ?odz e 12 Omega ? ?"
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert ascii_text(everything[:0x3000]).isascii() and ascii_text(everything[0xD700:0xE100]).isascii()
    assert ascii_text("plain") == "plain"


COPY, CHECK, HELP = (
    ("design", "copy", "m.csv", "--item", "語"),
    ("check", "claims.md", "--show"),
    ("pretrain", "--help"),
)


@pytest.mark.parametrize(
    ("encoding", "words"),
    spread([("cp1252", COPY), ("cp1252:strict", CHECK), ("cp437", HELP), ("utf-16", HELP), ("ascii", HELP)], 3, 1),
)
def test_output_is_written_in_any_encoding(encoding, words, tmp_path):
    (tmp_path / "claims.md").write_text("```claim\nalpha_a -> 1/2 as t -> oo\nsays: αβγ ≤ ∞ ✓ 語\n```\n", "utf-8")
    (tmp_path / "m.csv").write_text("name,x,y\n語,1,0\nŁ,0,1\n", "utf-8")
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-m", "qkv", *words], cwd=tmp_path, env=env, capture_output=True)
    assert b"Traceback" not in done.stderr and b"Unicode" not in done.stderr and done.stdout
    if encoding != "ascii":  # Click writes UTF-8 in its place
        done.stdout.decode(encoding.partition(":")[0])
