"""Import models of other libraries as runs: GPT-2 and Llama folders, minGPT and nanoGPT state dicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from qkv.core.files import read_arrays
from qkv.core.json_files import read_json
from qkv.core.validation import whole
from qkv.errors import QkvError, kind_of
from qkv.model.config import ModelConfig, shortened
from qkv.model.gpt import GPT
from qkv.model.numpy_gpt import shapes
from qkv.train import tokenizers
from qkv.train.checkpoint import check_shapes, load_weights
from qkv.train.convert.weight_names import FIRST_MIN_GPT, GPT2, LLAMA, NANO_GPT, WeightNames
from qkv.train.creation import remove_leftovers
from qkv.train.run_lock import run_lock
from qkv.train.runs import Run, check_no_run, create_run, load
from qkv.train.settings import TrainSettings


def import_model(source: str | Path, out: str | Path, *, n_head: int = 0, tokenizer: str | Path | None = None) -> Run:
    """Import the weights of another library's model as a run; code in its files is never executed.

    Args:
        source: Hugging Face folder of a GPT-2 or Llama model, or a file with a minGPT or nanoGPT state dict.
        out: Folder of the new run; it must hold no run and no other files of a run's names.
        n_head: Number of attention heads, which a bare state dict does not say; 0 if it is not given.
        tokenizer: tokenizer.json to go with it, or its folder; by default the one beside the model. Without any,
            texts are decimal token ids.

    Returns:
        The run, loaded.

    Raises:
        QkvError: If the files are damaged or hold a model that qkv's GPT cannot represent.

    Example:
        >>> import tempfile, qkv
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> config = qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16)
        >>> _ = qkv.train.pretrain(["Ada was born in London."], folder / "run", config, steps=1, batch_size=2)
        >>> _ = qkv.train.export_model(folder / "run", folder / "hf")
        >>> qkv.train.import_model(folder / "hf", folder / "back").config.d_model
        16
    """
    path, folder = Path(source), Path(out)
    n_head = whole(f"importing {path}", "n_head", n_head, 0)
    with run_lock(folder):
        remove_leftovers(folder)
        check_no_run(folder, "Give another folder")
    if path.is_dir():
        config, names = _read_config(path)
        state = _weights(path)
        tokenizer = tokenizer or (path if (path / "tokenizer.json").is_file() else None)
    else:
        state, arguments = _unwrapped(_file(path))
        stored = arguments.get("n_head")
        config, names = _infer_config(path, state, n_head or (stored if isinstance(stored, int) else 0))
    weights = names.to_ours(state, config, path)
    check_shapes(shapes(config), weights, path)  # before a model of any size is built
    with torch.random.fork_rng(devices=[]):
        model = GPT(config)  # whose random initial weights are replaced
    load_weights(model, weights, path)
    found = tokenizers.Numbers(config.vocab_size) if tokenizer is None else tokenizers.load(tokenizer, foreign=True)
    data = {"kind": "imported", "path": str(path.resolve()), "sha256": "", "dialect": names.name}
    create_run(folder, config, TrainSettings(), data, found, model)
    return load(folder)


def _read_config(folder: Path) -> tuple[ModelConfig, WeightNames]:
    """The configuration in a Hugging Face folder."""
    request = f"importing {folder}"
    c = _config_fields(folder, request)
    kind = c.get("model_type")
    try:
        if kind == "gpt2":
            activations = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
            config = _checked_config(
                attention="causal",
                n_layer=c["n_layer"],
                n_head=c["n_head"],
                d_model=c["n_embd"],
                context_length=c["n_positions"],
                d_ff=c.get("n_inner") or 4 * c["n_embd"],
                vocab_size=c["vocab_size"],
                activation=activations.get(c.get("activation_function", "gelu_new"), "unknown"),
                norm_eps=c.get("layer_norm_epsilon", 1e-5),
                tie_embeddings=c.get("tie_word_embeddings", True),
                latents=1,
            )
            refused = [n for n in ("scale_attn_by_inverse_layer_idx", "add_cross_attention") if c.get(n)]
            refused += [] if c.get("scale_attn_weights", True) else ["scale_attn_weights=false"]
            names = GPT2
        elif kind == "llama":
            rope = c.get("rope_parameters") or c.get("rope_scaling") or {}
            if not isinstance(rope, dict):
                raise TypeError(f"rope_parameters is {shortened(rope)}")
            config = _checked_config(
                attention="rope",
                n_layer=c["num_hidden_layers"],
                n_head=c["num_attention_heads"],
                n_kv_head=c.get("num_key_value_heads") or 0,
                d_model=c["hidden_size"],
                d_ff=c["intermediate_size"],
                context_length=c["max_position_embeddings"],
                vocab_size=c["vocab_size"],
                norm_eps=c.get("rms_norm_eps", 1e-6),
                rope_theta=rope.get("rope_theta") or c.get("rope_theta", 10_000.0),
                tie_embeddings=c.get("tie_word_embeddings", False),
                latents=1,
            )
            refused = [name for name in ("attention_bias", "mlp_bias") if c.get(name)]
            refused += [f"rope of type {t}"] if (t := rope.get("rope_type", "default")) != "default" else []
            if c.get("head_dim") not in (None, config.head_dim):
                refused.append(f"heads of size {c['head_dim']}")
            names = LLAMA
        else:
            raise QkvError(request, f"its model_type is {kind!r}", "Give a gpt2 or a llama model")
    except (KeyError, TypeError) as why:
        problem = f"lacks {why}" if isinstance(why, KeyError) else f"is damaged ({why})"
        raise QkvError(request, f"its config.json {problem}", "Give a complete folder") from None
    if refused:
        raise QkvError(request, f"it uses {', '.join(refused)}", "qkv's GPT has no such option")
    return config, names


def _config_fields(folder: Path, request: str) -> dict[str, Any]:
    """The fields of config.json."""
    path = folder / "config.json"
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is no file")
        found = read_json(path)
        if not isinstance(found, dict):
            raise ValueError(f"it holds {kind_of(found)}")
    except FileNotFoundError:
        raise QkvError(request, "there is no config.json in it", "Give a Hugging Face model's folder") from None
    except (OSError, ValueError) as why:
        problem = f"it has no readable config.json ({getattr(why, 'strerror', None) or why})"
        raise QkvError(request, problem, "Give a Hugging Face model's folder") from None
    return found


def _checked_config(**fields: Any) -> ModelConfig:
    """A configuration whose values come from a file: wrong types are refused."""
    return ModelConfig.from_json(fields)


def _weights(folder: Path) -> dict[str, Tensor]:
    """All weights of a folder, in one file or several; safetensors, or torch's format with tensors only."""
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
    if not files:
        raise QkvError(f"importing {folder}", "there are no weights in it", "Give model.safetensors beside config.json")
    state: dict[str, Tensor] = {}
    for file in files:
        state |= _file(file)
    if not any(name.startswith(("transformer.", "model.")) for name in state):
        state = {f"transformer.{name}": tensor for name, tensor in state.items()}  # saved without its head
    return state


def _file(path: Path) -> dict[str, Any]:
    if path.suffix == ".safetensors":
        return read_arrays(path)
    request = f"importing {path}"
    if not path.is_file():
        raise QkvError(request, "there is no such file", "Check the path")
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:
        # A damaged pickle can raise anything. torch's own message advises to run the code in the file.
        raise QkvError(
            request, "it is damaged, or holds more than weights", "Save the model's state_dict() alone"
        ) from None
    if not isinstance(found, Mapping):
        raise QkvError(request, f"it holds {kind_of(found)}", "Save the model's state_dict()")
    return dict(found)


def _unwrapped(found: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state dict inside nanoGPT's checkpoint, or the dict itself, without what compilation and DDP add to names."""
    arguments = found.get("model_args", {})
    state = found.get("model", found)
    clean = {n.removeprefix("_orig_mod.").removeprefix("module."): t for n, t in state.items() if isinstance(t, Tensor)}
    return clean, arguments if isinstance(arguments, Mapping) else {}  # type: ignore[return-value]


def _infer_config(path: Path, state: Mapping[str, Tensor], n_head: int) -> tuple[ModelConfig, WeightNames]:
    """The configuration that the names and shapes of a state dict imply."""
    request = f"importing {path}"
    if "transformer.wte.weight" in state:
        names, prefix, wide = NANO_GPT, "transformer.h.", "mlp.c_fc.weight"
        embedding, places, head = (
            state.get(n) for n in ("transformer.wte.weight", "transformer.wpe.weight", "lm_head.weight")
        )
    elif "tok_emb.weight" in state:
        names, prefix, wide = FIRST_MIN_GPT, "blocks.", "mlp.0.weight"
        embedding, places, head = (state.get(n) for n in ("tok_emb.weight", "pos_emb", "head.weight"))
    else:
        some = ", ".join(list(state)[:3]) or "none"
        raise QkvError(request, f"its names ({some}, …) are not GPT's", "Give a minGPT or nanoGPT state dict")
    if n_head < 1:
        raise QkvError(request, "a state dict does not say how many heads there are", "Give their number, n_head")
    numbers = {name.split(".")[prefix.count(".")] for name in state if name.startswith(prefix)}
    if embedding is None or places is None or f"{prefix}0.{wide}" not in state:
        raise QkvError(request, "embeddings or the first block are missing", "Give a complete state dict")
    matrices = embedding.dim() == 2 and state[f"{prefix}0.{wide}"].dim() == 2 and embedding.numel() > 0
    if not matrices or places.numel() % embedding.shape[1] or not all(number.isdecimal() for number in numbers):
        raise QkvError(request, "its embeddings or blocks have other shapes or names", "Give a minGPT or nanoGPT model")
    # nanoGPT ties the output layer to the embedding and uses the exact GELU, as the first minGPT does;
    # the later minGPT keeps masks in its state dict, and uses the tanh approximation.
    approximate = names is NANO_GPT and f"{prefix}0.attn.bias" in state and f"{prefix}0.attn.c_attn.bias" in state
    config = ModelConfig(
        attention="causal",
        n_layer=len(numbers),
        n_head=n_head,
        d_model=embedding.shape[1],
        vocab_size=embedding.shape[0],
        context_length=places.reshape(-1, embedding.shape[1]).shape[0],
        d_ff=state[f"{prefix}0.{wide}"].shape[0],
        tie_embeddings=head is None or torch.equal(head, embedding),
        latents=1,
        activation="gelu_tanh" if approximate else "gelu",
        bias=f"{prefix}0.{wide.replace('weight', 'bias')}" in state,
    )
    return config, names
