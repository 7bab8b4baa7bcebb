"""Rules of a certificate: each form is parsed, and every defect of one is refused by itself."""

import numpy as np
import pytest

from qkv.design.certificates.statements.base import InvalidCertificate
from qkv.design.certificates.statements.rules import parse_rules

GOOD = {"rules": [0, 2], "items": [1, 0, 1], "offsets": [0, 1, 3], "weights": [1.0, 0.5, 0.5]}


def data(**changes):
    return {name: np.array(value) for name, value in {**GOOD, **changes}.items()}


def test_lists_of_items_are_a_table_of_wanted_weights():
    wanted = parse_rules(data(), 3).wanted(3)
    assert wanted.tolist() == [[0, 1, 0], [0.5, 0.5, 0]]


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets": [1, 1, 3]},
        {"offsets": [0, 1, 2]},
        {"offsets": [0, 0, 3]},
        {"offsets": [0, 2, 1]},
        {"weights": [1.0, 0.0, 1.0]},
        {"weights": [1.0, -0.5, 1.5]},
        {"weights": [0.0, 0.5, 0.5]},
        {"items": [1, 1, 1]},
        {"items": [1, 0, 3]},
        {"weights": [1.0, 1.0]},
        {"offsets": [0, 3]},
    ],
    ids=str,
)
def test_each_defect_is_refused(changes):
    with pytest.raises(InvalidCertificate):
        parse_rules(data(**changes), 3)
