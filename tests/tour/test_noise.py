"""The chapters on noise: comparisons are stated as the numbers have them."""

import pytest

from qkv.tour.noise import times_less


@pytest.mark.parametrize(
    ("variance", "other", "text"),
    [
        (1e-5, 0.2, "20,000 times less than"), (0.1, 0.26, "3 times less than"), (0.1, 0.1, "not less than"),
        (0.3, 0.1, "not less than"), (0.0, 0.1, "less than"), (0.09, 0.1, "less than"),
    ],
)  # fmt: skip
def test_a_ratio_is_stated_only_where_there_is_one(variance, other, text):
    assert times_less(variance, other) == text
