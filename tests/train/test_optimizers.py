"""AdamW and Muon: which weights each of them changes, by how much, and that a stopped run resumes with both."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT
from qkv.train import checkpoint, runs
from qkv.train.optimizers import Muon, make_optimizer
from qkv.train.settings import TrainSettings


def stepped(optimizer, scale=1.0):
    """A model before and after one step on gradients drawn at random, and the gradients, by name."""
    torch.manual_seed(3)
    model = GPT(ModelConfig(n_layer=1, n_head=2, d_model=16, context_length=8, vocab_size=20))
    names = {p: name for name, p in model.named_parameters()}
    before = {name: p.detach().clone() for p, name in names.items()}
    for p in names:
        p.grad = scale * torch.randn_like(p)
    grads = {name: p.grad.clone() for p, name in names.items()}
    made = make_optimizer(names, TrainSettings(lr=0.01, weight_decay=0.0, optimizer=optimizer))
    made.step()
    return before, {name: p.detach() for p, name in names.items()}, grads, made


def test_adamw_first_steps_by_the_learning_rate_along_the_sign():
    before, after, grads, _ = stepped("adamw")
    for name in before:
        torch.testing.assert_close(after[name], before[name] - 0.01 * grads[name].sign(), rtol=0, atol=1e-5)


def test_muon_steps_along_the_nearest_orthogonal_matrix_inside_blocks_and_adamw_elsewhere():
    before, after, grads, _ = stepped("muon", scale=0.1)
    inner = {name for name in before if name.startswith("blocks.") and before[name].dim() == 2}
    assert {"blocks.0.attention.qkv.weight", "blocks.0.mlp.out.weight"} <= inner and len(inner) == 4
    for name in before:
        step = before[name] - after[name]
        if name not in inner:
            torch.testing.assert_close(step, 0.01 * grads[name].sign(), rtol=0, atol=1e-5)
            continue
        left, _, right = torch.linalg.svd(grads[name], full_matrices=False)
        turned = left.T @ step @ right.T / (0.01 * 0.2 * max(step.shape) ** 0.5)
        # Five Newton-Schulz steps bring singular values to about 1, not to it.
        assert turned.diagonal().min() > 0.5 and turned.diagonal().max() < 1.4
        assert (turned - turned.diagonal().diag()).abs().max() < 0.1


def test_muon_takes_a_step_of_the_same_size_for_small_and_large_gradients():
    small, large = (stepped("muon", scale)[1]["blocks.0.mlp.wide.weight"] for scale in (1e-3, 10.0))
    torch.testing.assert_close(small, large, rtol=0, atol=2e-4)


def test_muon_takes_the_steps_of_torchs_own():
    torch.manual_seed(5)
    ours, theirs = ([torch.nn.Parameter(w.clone()) for w in start] for start in [torch.randn(3, 24, 8).unbind()] * 2)
    mine = Muon(ours, 0.01, 0.1)
    its = torch.optim.Muon(theirs, 0.01, 0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw")
    for _ in range(4):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn(24, 8)
            b.grad = a.grad.clone()
        mine.step()
        its.step()
    for a, b in zip(ours, theirs, strict=True):  # a step is about 0.002 an entry; theirs is in bfloat16
        torch.testing.assert_close(a, b, rtol=0, atol=4e-4)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_run_that_stopped_goes_on_to_the_same_bits(optimizer, text, config, settings, tmp_path):
    settings = replace(settings, optimizer=optimizer)

    def stop(step, steps, loss, speed):
        if step == 6:
            raise KeyboardInterrupt

    runs.pretrain(text, tmp_path / "whole", config, settings)
    with pytest.raises(KeyboardInterrupt):
        runs.pretrain(text, tmp_path / "again", config, settings, callback=stop)
    assert checkpoint.load(tmp_path / "again")[0] == 4
    runs.pretrain(text, tmp_path / "again", config, settings, resume=True)
    whole, again = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "again"))
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    kept = load_file(tmp_path / "whole" / "optimizer-12.safetensors")
    assert ("blocks.0.mlp.wide.weight/momentum" in kept) == (optimizer == "muon")
    assert "embedding.weight/exp_avg_sq" in kept


def test_the_state_of_another_optimizer_is_refused(tmp_path):
    _, _, _, made = stepped("muon")
    names = {p: f"weight-{i}" for i, p in enumerate(made.state)}
    state = checkpoint.optimizer_state(made, names)
    state.pop(next(name for name in state if name.endswith("/momentum")))
    with pytest.raises(QkvError, match="another model"):
        checkpoint.load_optimizer_state(made, names, state, tmp_path)
