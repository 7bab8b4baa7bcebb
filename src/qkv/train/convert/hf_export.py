"""Export a run to a Hugging Face folder that transformers loads as GPT-2 or Llama, without remote code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as tensor_file

from qkv.core.display import Card, Displayable
from qkv.core.files import write_tensors, write_text
from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.train.checkpoint import weights_of
from qkv.train.convert.model_card import is_trained_on_questions, model_card
from qkv.train.convert.weight_names import GPT2, LLAMA
from qkv.train.creation import Creation, check_names_free, creation, remove_leftovers
from qkv.train.run_files import CONFIG_FILE, WEIGHTS_FILE, write_json
from qkv.train.run_lock import run_lock
from qkv.train.runs import Run, RunOrFolder, as_run, folder_of
from qkv.train.tokenizers import END, END_ID, MASK_ID, PAD, PAD_ID, TOKENIZER_FILE

README_FILE, TOKENIZER_CONFIG_FILE, GENERATION_FILE = "README.md", "tokenizer_config.json", "generation_config.json"
EXPORTED_FILES = (
    CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE, TOKENIZER_CONFIG_FILE, GENERATION_FILE, README_FILE,
)  # fmt: skip


@dataclass(frozen=True)
class Exported(Displayable):
    """Where a model was exported to.

    Attributes:
        folder: The Hugging Face folder.
        architecture: `GPT-2` or `Llama`.
        parameters: Number of parameters of the model.
    """

    folder: str
    architecture: str
    parameters: int

    def card(self) -> Card:
        facts = (("folder", self.folder), ("parameters", f"{self.parameters:,}"))
        return Card(f"Exported as {self.architecture}", facts, note="AutoModelForCausalLM.from_pretrained loads it")


def export_model(run: RunOrFolder, out: str | Path, to: str = "hf") -> Exported:
    """Write a run's model for Hugging Face's transformers: config.json, model.safetensors, tokenizer.json, README.md.

    README.md says how the model is asked, with a snippet that runs.

    Args:
        run: A run, or its folder, with `causal` or `rope` attention.
        out: Folder to write; it must not hold a model, nor other files of these names.
        to: Format; `hf` is the only one.

    Returns:
        The folder and the architecture; `AutoModelForCausalLM.from_pretrained` loads it.

    Raises:
        QkvError: If transformers has no model of this kind, or the folder cannot be written.

    Example:
        >>> import tempfile, qkv
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> config = qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16)
        >>> _ = qkv.train.pretrain(["Ada was born in London."], folder / "run", config, steps=1, batch_size=2)
        >>> qkv.train.export_model(folder / "run", folder / "hf").architecture
        'GPT-2'
    """
    if to != "hf":
        raise QkvError(f"exporting {folder_of(run)}", f"there is no format {to!r}", "Use hf")
    found, folder = as_run(run), Path(out)
    config = found.config
    if config.attention not in ("causal", "rope"):
        raise QkvError(
            f"exporting {found.folder}",
            f"transformers has no model with {config.attention} attention",
            "Export a causal or a rope model",
        )
    names, facts = (GPT2, gpt2_config(config)) if config.attention == "causal" else (LLAMA, llama_config(config))
    weights = names.to_theirs(weights_of(found.model), config)
    try:
        with run_lock(folder), _creating(folder) as made:
            with made.writing(folder / WEIGHTS_FILE) as temporary:
                write_tensors(temporary, tensor_file(weights, metadata={"format": "pt"}))
            if found.tokenizer.special:
                signs = {"pad_token": PAD, "eos_token": END, "tokenizer_class": "PreTrainedTokenizerFast"}
                write_json(folder / TOKENIZER_CONFIG_FILE, signs, made.writing)
                found.tokenizer.save(folder, made.writing)
                write_json(folder / GENERATION_FILE, generation_config(found), made.writing)
            write_text(folder / README_FILE, model_card(found, names.name), made.writing)
            write_json(folder / CONFIG_FILE, facts, made.writing)
    except OSError as why:
        raise QkvError(f"exporting to {folder}", str(why), "Give a folder that can be written") from None
    return Exported(str(folder), names.name, sum(p.numel() for p in found.model.parameters()))


@contextmanager
def _creating(folder: Path) -> Iterator[Creation]:
    """Create the files of an export in a folder that holds none of these names, and no model."""
    remove_leftovers(folder)
    if (folder / CONFIG_FILE).exists():
        raise QkvError(f"exporting to {folder}", "there is a model already", "Give another --out")
    check_names_free(folder, EXPORTED_FILES, f"exporting to {folder}")
    with creation(folder) as made:
        yield made


def _common(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": config.tie_embeddings,
        "pad_token_id": PAD_ID,
        "bos_token_id": END_ID,
        "eos_token_id": END_ID,
        "dtype": str(torch.float32).removeprefix("torch."),
    }


def generation_config(run: Run) -> dict[str, Any]:
    """How transformers generates unless it is told otherwise: an answer ends at ⁇, a text at its end token."""
    end = MASK_ID if is_trained_on_questions(run) or run.settings.objective != "next" else END_ID
    return {"eos_token_id": end, "pad_token_id": PAD_ID, "bos_token_id": END_ID, "do_sample": False}


def gpt2_config(config: ModelConfig) -> dict[str, Any]:
    """config.json of transformers for a model with causal attention."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_positions": config.context_length,
        "n_embd": config.d_model,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_inner": config.d_ff_effective,
        "activation_function": "gelu_new" if config.activation == "gelu_tanh" else "gelu",
        "layer_norm_epsilon": config.norm_eps,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": 0.0,
        **_common(config),
    }


def llama_config(config: ModelConfig) -> dict[str, Any]:
    """config.json of transformers for a model with rope attention."""
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "max_position_embeddings": config.context_length,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff_effective,
        "num_hidden_layers": config.n_layer,
        "num_attention_heads": config.n_head,
        "num_key_value_heads": config.n_kv_head_effective,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "rms_norm_eps": config.norm_eps,
        # transformers 4 reads the first, 5 the second.
        "rope_theta": config.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_theta},
        **_common(config),
    }
