"""A trained run of each kind that transformers has, and its export."""

from dataclasses import replace

import pytest
import transformers

from qkv.train import runs
from qkv.train.convert.hf_export import export_model

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
VARIANTS = {
    "causal": {"attention": "causal"},
    "causal, untied and unbiased": {
        "attention": "causal",
        "tie_embeddings": False,
        "bias": False,
        "activation": "gelu_tanh",
    },
    "rope": {"attention": "rope"},
    "rope, grouped and untied": {"attention": "rope", "n_kv_head": 1, "tie_embeddings": False, "rope_theta": 500.0},
}


@pytest.fixture(params=VARIANTS)
def exported(request, text, config, settings, tmp_path):
    out = tmp_path / "run"
    runs.pretrain(text, out, replace(config, **VARIANTS[request.param]), replace(settings, lr=2e-2))
    export_model(out, tmp_path / "hf")
    return runs.load(out), tmp_path / "hf"
