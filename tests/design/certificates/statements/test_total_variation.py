"""The statement "no query within tol is shorter": the bound worked out by hand, and each defect refused."""

import math

import numpy as np
import pytest

from qkv.design.certificates.statements import total_variation
from qkv.design.certificates.statements.base import InvalidCertificate

GOOD = {
    "keys": [[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [3.0, 1.0]], "items": [3, 1], "wanted": [0.75, 0.25], "tol": 0.125,
    "multipliers": [3.0, 1.0], "others": [0, 3], "mix": [1.0, 3.0],
}  # fmt: skip


def test_the_bound_worked_out_by_hand():
    found = total_variation._measure(total_variation._parse(GOOD), False, {})["norm_at_least"]
    keys = np.array(GOOD["keys"])
    g = 3 * keys[3] + keys[1] - (keys[0] + 3 * keys[3])
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    b = 4 * entropy + 3 * math.log(0.75) + math.log(0.25) + math.log(0.5)
    assert float(found.mid()) == pytest.approx(b / np.linalg.norm(g), rel=1e-13)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"multipliers": [3.0]}, "items and multipliers do not fit"),
        ({"mix": [1.0]}, "others and mix do not fit"),
        ({"multipliers": [3.0, -1e-300]}, "must not be negative"),
        ({"mix": [1.0, -1e-300]}, "must not be negative"),
        ({"mix": [0.0, 0.0]}, "the mix is zero"),
        ({"items": [3, 4]}, "items must be"),
        ({"others": [0, 4]}, "others must be"),
        ({"wanted": [0.75, 0.2]}, "sum to 1"),
        ({"tol": 1.0}, "not between 0 and 1"),
    ],
)
def test_each_defect_is_refused_by_itself(changes, why):
    with pytest.raises(InvalidCertificate, match=why):
        total_variation._parse(GOOD | changes)
    assert total_variation._parse(GOOD | {"mix": [0.0, 1.0], "multipliers": [0.0, 1.0]})["others"] == [0, 3]


def test_statements_say_how_long_a_query_must_be():
    blend = "0.75 of item 3 + 0.25 of item 1"
    assert total_variation._describe(GOOD, {"norm_at_least": math.inf}) == (
        f"no query at all reads {blend} to within 0.125 in total variation"
    )
    assert total_variation._describe(GOOD | {"tol": 0.1234567}, {"norm_at_least": 0.7654321}) == (
        f"every query that reads {blend} to within 0.123456 in total variation has a norm of at least 0.765432"
    )
