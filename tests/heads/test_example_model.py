import pytest
import torch

from qkv.errors import QkvError
from qkv.heads.example_model import LENGTH, TEXT, example


def test_every_head_does_what_it_was_designed_for():
    """60 texts: each token's largest weight is where the rule says."""
    model, generator = example(), torch.Generator().manual_seed(0)
    for _ in range(60):
        n = int(torch.randint(2, 40, (1,), generator=generator))
        words = [f"w{i}" for i in torch.randint(0, 12, (n,), generator=generator).tolist()]
        ids = model.token_ids(" ".join(words))
        assert model.token_texts(ids)[1:] == tuple(words)
        calls = []
        model.run(ids[None], calls.append)
        previous, duplicate, induction = calls[0].weights[0, 0], calls[0].weights[0, 1], calls[1].weights[0, 0]
        for i in range(1, n + 1):
            earlier = [j for j in range(1, i) if ids[j] == ids[i]]
            assert previous[i, i - 1] > 0.999
            assert duplicate[i, earlier or [0]].sum() > 0.998
            assert induction[i, [j + 1 for j in earlier] or [0]].sum() > 0.998
            assert torch.allclose(calls[1].weights[0, 1, i, : i + 1], torch.tensor(1 / (i + 1), dtype=torch.float64))


def test_it_is_surveyed_and_viewed_as_any_model():
    found = example().survey(TEXT)
    assert [one.kind for one in found.heads] == ["previous token", "duplicate", "induction", "broad"]
    view = example().head(1, 0).view(TEXT, harden=False)
    assert (view.looked_up[0].position, view.looked_up[0].token) == (3, "saw")
    memory, query = example().head(1, 0).memory(TEXT).at(11)
    assert int(memory.read(query).weights.argmax()) == 3


def test_a_tie_that_rounding_breaks_is_no_change_of_the_top_item():
    """Two copies of a word score the same, and which of them comes first after rounding says nothing."""
    for row in example().survey(TEXT).rounding(1, 0, (8, 4)):
        assert row.survives == 1 and row.measured < 1e-6


def test_what_it_cannot_do_is_refused():
    with pytest.raises(QkvError, match="63"):
        example().survey("word " * LENGTH)
    with pytest.raises(QkvError, match="example"):
        example().table(TEXT)
