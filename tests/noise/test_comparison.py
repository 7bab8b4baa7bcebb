"""compare: layouts of heads under the same noise."""

from __future__ import annotations

import pytest
import torch

import qkv
from qkv.errors import QkvError
from qkv.noise import Gaussian, compare, harden, reading_moments

MEMORY = qkv.Memory.orthonormal(10, 16, labels=["a", "b", *"cdefghij"])
MU = MEMORY.keys
NOISE = Gaussian(isotropic=1e-6, along={"a": 0.5})
HALF = {"a": 0.5, "b": 0.5}


def test_layouts_are_compared_on_the_same_noise_and_named_in_the_card():
    hardened = harden(MEMORY, HALF, NOISE, tol=1e-2)
    layouts = {
        "one head": 20 * (MU[0] + MU[1]),
        "two heads": [20 * MU[0], 20 * MU[1]],
        "two heads, mixed": (20 * MU[:2], [0.3, 0.7]),
        "hardened": hardened,
    }
    found = compare(MEMORY, layouts, NOISE, HALF)
    assert found.best == "hardened"
    assert found.heads == (1, 2, 2, 1)
    alone = reading_moments(MEMORY, 20 * MU[:2], NOISE, mix=[0.3, 0.7])
    assert torch.equal(found["two heads, mixed"].weights_var, alone.weights_var)
    assert [row[0] for row in found.card().rows] == list(layouts)
    target = MEMORY.values[:2].mean(0)
    assert found.errors[0] == pytest.approx(float(found["one head"].squared_error(target)))


def test_without_a_wanted_blend_layouts_are_measured_from_their_own_readings():
    q = MU[0] + MU[1]
    found = compare(MEMORY, {"short": 3 * q, "still": 0 * q}, Gaussian(isotropic=0.1))
    assert found.errors[1] < 1e-25
    s = reading_moments(MEMORY, 3 * q, Gaussian(isotropic=0.1))
    assert found.errors[0] == pytest.approx(float(s.squared_error(MEMORY.read(3 * q).output)))


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: compare(MEMORY, {}, NOISE), "none"),
        (lambda: compare(MEMORY, {"x": [1.0]}, NOISE), "'x'"),
        (lambda: compare(MEMORY, {"x": MU[0]}, NOISE)["y"], "'y'"),
    ],
)
def test_what_cannot_be_compared_is_refused(ask, says):
    with pytest.raises(QkvError, match=says):
        ask()


def test_names_that_read_the_same_are_refused():
    """1 and "1" used to become two layouts of one name, of which only the first could be looked up."""
    memory = qkv.Memory.orthonormal(4, 4)
    with pytest.raises(QkvError, match="'1'"):
        compare(memory, {1: memory.keys[0], "1": memory.keys[1]}, Gaussian(isotropic=0.1))
