"""docs/certificates.md lists every sentence that a certificate can print, by kind, with what its checker checks."""

import re
from pathlib import Path

import numpy as np
import pytest

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import KINDS

DOCUMENT = Path(qkv.__file__).parents[2] / "docs" / "certificates.md"


def rows():
    """The rows of the table as (kind, sentence, check, claims); continued rows take the kind of the row above."""
    kind, out = "", []
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[1].startswith('"'):
            kind = cells[0].strip("`") or kind
            out.append((kind, cells[1], cells[2], set(re.findall(r"`(\w+)`", cells[3]))))
    return out


def test_every_kind_and_every_claim_stands_in_the_table():
    listed = {kind: set() for kind, *_ in rows()}
    for kind, _, check, claims in rows():
        listed[kind] |= claims
        assert check, kind
    assert set(listed) == set(KINDS)
    assert {kind: set(spec.senses) for kind, spec in KINDS.items()} == listed


def examples():
    """One certificate for every form of every sentence."""
    rng = np.random.default_rng(0)
    memory = qkv.Memory.orthonormal(4, 5)
    blended = qkv.design.blend(memory, {0: 0.25, 1: 0.75}, tol=1e-2)
    line = qkv.design.blend(np.array([[0.0, 0], [1, 1], [2, 2], [5, 1]]), {0: 0.25, 1: 0.5, 2: 0.25}, tol=1e-2)
    twin = qkv.design.copy([[0.0], [1.0], [1.0]], 1, tol=0.1)
    answers = qkv.design.copyable(rng.normal(size=(12, 2)))
    apart = {"keys": [[0.0], [1.0], [2.0]], "items": [1], "wanted": [1.0], "multipliers": [0.0], "tol": 0.01}
    a, _, _, d = 3 * np.eye(4)
    tokens = np.array([[1.0, 0], [0, 1], [0, 1], [1, 1]])
    blocks = {"X": tokens, "rules": [0], "wanted": [[0.0, 1, 0, 0]], "tol": 0.01}
    yield from (blended.certificate, blended.within_bound, line.obstacle, twin.distance_bound)
    yield Certificate.issue("no query", apart | {"others": [0, 2], "mix": [0.5, 0.6]})
    yield answers[int(answers.vertices[0])].certificate
    yield answers[int(answers.interior[0])].certificate
    looked_up = {"keys": np.eye(3), "queries": [[0, 2.0, 1]], "items": [1], "first": [0], "last": [2]}
    yield Certificate.issue("top item", looked_up)
    yield Certificate.issue("top item", {n: v if n == "keys" else v * 3 for n, v in looked_up.items()})
    yield qkv.design.copy([[0.0, 0], [4, 0], [0, 4], [1, 1]], 3).obstacle
    yield answers.certificate
    yield qkv.design.project(rng.normal(size=(4, 2)), rng.normal(size=(4, 1))).certificate
    yield qkv.design.project([[1.0, 0], [0, 1], [0, 0]], [[1.0, 0], [1, 0], [0, 1]]).certificate
    yield Certificate.issue("intersection", {"A": [[1.0], [0]], "B": [[1.0], [1e-9]], "x": [1.0], "y": [1.0]}, "gap")
    yield qkv.design.wire(np.eye(3), {0: 2}, {0: [1.0]}).certificate
    yield Certificate.issue("no wiring", blocks | {"multipliers": np.zeros((1, 4)), "mix": [[0.0, 0, 1, 0]]})
    yield Certificate.issue("no wiring", blocks | {"multipliers": np.zeros((1, 4)), "mix": [[0.0, 0, 1, 0.1]]})
    lam = [[0.0, 1, 0, 0]]
    yield Certificate.issue("no wiring within tol", blocks | {"multipliers": lam, "mix": [[0.0, 1, 1, 0]]})
    yield Certificate.issue("no wiring within tol", blocks | {"multipliers": lam, "mix": [[0.0, 1, 1, 0.1]]})
    words = qkv.design.Vocabulary.side_by_side([[1.0, 0], [0, 1], [1, 1], [1, 1]], length=4)
    for rule in (qkv.design.previous(), qkv.design.duplicate(), qkv.design.induction(sink=0)):
        yield qkv.design.wire_texts(words, rule).certificate
        yield qkv.design.wire_texts(qkv.design.Sequences(words, [[0, 1, 1]]), rule).certificate
    yield qkv.design.wire_texts(qkv.design.Sequences(words, [[0, 1, 1]]), [{2: [0, 1]}]).certificate
    unplaced = qkv.design.Vocabulary(np.eye(3), np.zeros((6, 3)))
    texts = qkv.design.Sequences(unplaced, [[0, 1, 0, 1, 2, 1], [0, 1]])
    yield qkv.design.wire_texts(texts, qkv.design.previous()).certificate
    yield qkv.design.reach(np.stack([d, a, d + a]), 1, along=d, target=3 * np.eye(4)[1]).certificate


NUMBER = r"(1/X|≈?[0-9][0-9.e+-]*|…|\b[A-Z]\b|\b[inmpr]\b)"


def skeleton(text):
    """A sentence without its numbers, names and blends."""
    text = text.replace("\\|", "|")
    text = re.sub(r"reads (≈?[0-9.e-]+ of item \w+( \+ )?)+ (to|in) ", r"reads … \3 ", text)
    return re.sub(NUMBER, "#", text).replace("#", "")


@pytest.mark.parametrize("certificate", list(examples()), ids=lambda c: c.kind)
def test_every_part_of_every_sentence_stands_in_the_table(certificate):
    assert certificate.verify(), certificate.verify().why
    texts = [text for kind, text, *_ in rows() if kind == certificate.kind]
    sentences = [part for text in texts for part in re.findall(r'"([^"]*)"', text)]
    parts = sorted((skeleton(s) for s in sentences), key=len, reverse=True)
    left = skeleton(certificate.statement)
    for part in parts:
        left = left.replace(part, "")
    assert not left.strip(" ;,."), left
