import pytest
import torch
from families import CONFIGS, ENCODERS, VOCABULARY, tiny, tokenizer
from marks import spread

from qkv.errors import QkvError
from qkv.heads.ablation import head_effects, mean_outputs, token_losses
from qkv.heads.attention_model import from_transformers

IDS = torch.randint(3, VOCABULARY, (2, 16), generator=torch.Generator().manual_seed(2))


def nothing(done, total):
    pass


@pytest.mark.parametrize("by", ["mean", "zero"])
@pytest.mark.parametrize("family", spread(sorted(set(CONFIGS) - ENCODERS), 4))
def test_all_effects_at_once_are_those_of_one_removal_after_the_other(family, by):
    model = from_transformers(tiny(family), tokenizer())
    found = head_effects(model, list(IDS), nothing, by=by)
    base = token_losses(model, IDS).double().mean()
    for layer, head in ((0, 0), (1, 2), (2, 3)):
        alone = token_losses(model, IDS, [(layer, head)], by=by).double().mean() - base
        assert float(found[layer, head]) == pytest.approx(float(alone), abs=2e-5)


def test_the_mean_is_that_of_the_heads_own_outputs_on_other_texts():
    model = from_transformers(tiny("llama"), tokenizer())
    other = torch.randint(3, VOCABULARY, (3, 11), generator=torch.Generator().manual_seed(5))
    outputs = []
    model.run(other, output=lambda layer, output: outputs.append(output) or output)
    mean = outputs[1][:, :, 2].double().mean((0, 1)).float()

    def replaced(layer, output):
        output = output.clone()
        if layer == 1:
            output[:, :, 2] = mean
        return output

    logits = model.run(IDS, output=replaced).logits
    own = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), IDS[:, 1:], reduction="none")
    means = mean_outputs(model, other)
    assert torch.allclose(token_losses(model, IDS, [(1, 2)], means=means), own, atol=1e-5)
    effects = head_effects(model, list(IDS), nothing, means=means)
    assert float(effects[1, 2]) == pytest.approx(float((own - token_losses(model, IDS)).mean()), abs=2e-5)


def test_a_head_that_tells_all_tokens_the_same_has_no_effect():
    model = from_transformers(tiny("gpt2"), tokenizer())
    size = 8
    with torch.no_grad():  # the value of head 1.2 is a constant, whatever it looks at
        projection = model.model.transformer.h[1].attn.c_attn
        width = projection.weight.shape[0]
        columns = slice(2 * width + 2 * size, 2 * width + 3 * size)
        projection.weight[:, columns], projection.bias[columns] = 0, 3.0
    found = {by: head_effects(model, list(IDS), nothing, by=by) for by in ("mean", "zero")}
    assert abs(float(found["mean"][1, 2])) < 1e-5 < abs(float(found["zero"][1, 2]))


@pytest.mark.parametrize("by", ["none", None, 0])
def test_there_are_two_kinds_of_removal(by):
    model = from_transformers(tiny("llama"), tokenizer())
    for call in (lambda: token_losses(model, IDS, [(0, 0)], by=by), lambda: head_effects(model, IDS, nothing, by=by)):
        with pytest.raises(QkvError, match="Choose mean or zero"):
            call()


def test_zero_is_that_of_the_columns_of_the_output_projection():
    model = from_transformers(tiny("llama"), tokenizer())
    found = token_losses(model, IDS, [(1, 2)], by="zero")
    weights = model.model.model.layers[1].self_attn.o_proj.weight
    with torch.no_grad():
        weights[:, 16:24] = 0
        logits = model.model(input_ids=IDS).logits
    own = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), IDS[:, 1:], reduction="none")
    assert torch.allclose(found, own, atol=1e-5)


def test_a_model_without_logits_tells_how_far_its_states_move():
    model = from_transformers(tiny("bert"), tokenizer())
    found = head_effects(model, list(IDS), nothing, by="zero")
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
