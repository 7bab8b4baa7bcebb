import pytest
import torch
from families import CONFIGS, ENCODERS, VOCABULARY, tiny, tokenizer

from qkv.errors import QkvError
from qkv.heads.ablation import head_effects, token_losses
from qkv.heads.attention_model import from_transformers

IDS = torch.randint(3, VOCABULARY, (2, 16), generator=torch.Generator().manual_seed(2))


def nothing(done, total):
    pass


@pytest.mark.parametrize("family", sorted(set(CONFIGS) - ENCODERS))
def test_all_effects_at_once_are_those_of_one_removal_after_the_other(family):
    model = from_transformers(tiny(family), tokenizer())
    found = head_effects(model, list(IDS), nothing)
    base = token_losses(model, IDS).double().mean()
    for layer, head in ((0, 0), (1, 2), (2, 3)):
        alone = token_losses(model, IDS, [(layer, head)]).double().mean() - base
        assert float(found[layer, head]) == pytest.approx(float(alone), abs=2e-5)


def test_removing_a_head_is_zeroing_its_columns_of_the_output_projection():
    model = from_transformers(tiny("llama"), tokenizer())
    found = token_losses(model, IDS, [(1, 2)])
    weights = model.model.model.layers[1].self_attn.o_proj.weight
    with torch.no_grad():
        weights[:, 16:24] = 0
        logits = model.model(input_ids=IDS).logits
    own = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), IDS[:, 1:], reduction="none")
    assert torch.allclose(found, own, atol=1e-5)


def test_a_model_without_logits_tells_how_far_its_states_move():
    model = from_transformers(tiny("bert"), tokenizer())
    found = head_effects(model, list(IDS), nothing)
    base = model.run(IDS).last_hidden_state

    def without(layer, output):
        return output if layer != 1 else output.index_fill(2, torch.tensor([2]), 0.0)

    moved = model.run(IDS, output=without).last_hidden_state - base
    assert float(found[1, 2]) == pytest.approx(float((moved.norm(dim=-1) / base.norm(dim=-1)).mean()), abs=1e-5)
    assert not any("forward" in vars(m) for m in model.model.modules())  # the blocks are as they were


@pytest.mark.parametrize("removed", [(9, 0), (-1, 0), (0, 9), (0, -1), (0.5, 0)])
def test_heads_that_are_not_there_cannot_be_removed(removed):
    with pytest.raises(QkvError, match="taking head"):
        token_losses(from_transformers(tiny("llama"), tokenizer()), IDS, [removed])


@pytest.mark.parametrize("family", sorted(set(CONFIGS) - ENCODERS))
def test_effects_on_the_last_tokens_are_those_of_their_losses(family):
    model = from_transformers(tiny(family), tokenizer())
    found = head_effects(model, list(IDS), nothing, last=5)
    base = token_losses(model, IDS)[:, -5:].double().mean()
    alone = token_losses(model, IDS, [(1, 2)])[:, -5:].double().mean() - base
    assert float(found[1, 2]) == pytest.approx(float(alone), abs=2e-5)


def test_an_interrupted_measurement_leaves_the_model_as_it_was():
    model = from_transformers(tiny("llama"), tokenizer())
    base = model.run(IDS).logits

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        head_effects(model, list(IDS), stop)
    assert not any("forward" in vars(m) for m in model.model.modules())
    assert model.model.config._attn_implementation == "eager" and model.adapter.change_output is None
    assert torch.equal(model.run(IDS).logits, base)
