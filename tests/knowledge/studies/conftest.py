"""A setup small enough for tests."""

from dataclasses import replace

import pytest


@pytest.fixture(scope="session")
def small_setup():
    """A function that makes a study setup small."""

    def make(setup):
        return replace(setup, people=24, exposures=4, d_model=16, n_head=2, vocab_size=500, batch_size=16)

    return make
