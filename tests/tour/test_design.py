"""The chapters on design say what the library computes."""

import math

import pytest

import qkv
from qkv.tour import design


def prose(chapter):
    return " ".join(part for part in chapter.blocks if isinstance(part, str))


@pytest.fixture(scope="module")
def chapters():
    names = ("lookup", "limits", "subspaces", "wiring", "reaching")
    return {name: getattr(design, name)() for name in names}


def test_the_smallest_textbook_scale_is_the_formula(chapters):
    formula = math.log(8 * (1 - 1e-3) / (2 * 1e-3))
    assert f"{formula:.6f}" in prose(chapters["lookup"])


def test_every_certificate_in_the_chapters_holds(chapters):
    for name, chapter in chapters.items():
        checked = [p for p in chapter.blocks if isinstance(p, qkv.design.Verification)]
        assert all(checked), name
        for result in chapter.blocks:
            for certificate in getattr(result, "certificates", []):
                assert certificate.verify(), name


def test_the_three_tokens_are_those_of_the_problem():
    x, u = design.tokens()
    assert (x[0] == u["d"] + u["b"]).all() and (x[1] == u["a"]).all() and (x[2] == u["c"] + u["b"]).all()
    assert all((v @ v == design.BETA**2) and (v @ w == 0 or v is w) for v in u.values() for w in u.values())


def test_no_direction_of_the_chapter_reaches_the_target(chapters):
    found = [p for p in chapters["reaching"].blocks if isinstance(p, qkv.design.Reachability)]
    assert [r.status for r in found] == ["out of reach", "out of reach"]


def test_lower_bounds_are_rounded_down():
    for bound in (0.12345678, 0.99999, 3.0, 1.0001, 2 / 3):
        assert float(design.at_least(bound)) <= bound


def test_the_statement_on_the_blend_is_that_of_its_certificate(chapters):
    (blend,) = [part for part in chapters["lookup"].blocks if isinstance(part, qkv.design.Design)]
    assert blend.certificate.statement in prose(chapters["lookup"])
