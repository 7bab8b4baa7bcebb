"""Parameter names and layouts of GPT-2, Llama, nanoGPT and both versions of minGPT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.errors import QkvError
from qkv.model.config import ModelConfig

# Our name: their name; {i} is the number of the block, and several names joined by + are stacked into one matrix.
_GPT = {
    "embedding.weight": "transformer.wte.weight",
    "places.weight": "transformer.wpe.weight",
    "norm.weight": "transformer.ln_f.weight",
    "norm.bias": "transformer.ln_f.bias",
    "head.weight": "lm_head.weight",
    **{
        f"blocks.{{i}}.{ours}.{kind}": f"transformer.h.{{i}}.{theirs}.{kind}"
        for ours, theirs in (("norm1", "ln_1"), ("attention.qkv", "attn.c_attn"), ("attention.out", "attn.c_proj"),
                             ("norm2", "ln_2"), ("mlp.wide", "mlp.c_fc"), ("mlp.out", "mlp.c_proj"))
        for kind in ("weight", "bias")
    },
}  # fmt: skip
_TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
_LLAMA = {
    "embedding.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "head.weight": "lm_head.weight",
    "blocks.{i}.norm1.weight": "model.layers.{i}.input_layernorm.weight",
    "blocks.{i}.attention.qkv.weight": "+".join(f"model.layers.{{i}}.self_attn.{n}_proj.weight" for n in "qkv"),
    "blocks.{i}.attention.out.weight": "model.layers.{i}.self_attn.o_proj.weight",
    "blocks.{i}.norm2.weight": "model.layers.{i}.post_attention_layernorm.weight",
    "blocks.{i}.mlp.wide.weight": "model.layers.{i}.mlp.gate_proj.weight+model.layers.{i}.mlp.up_proj.weight",
    "blocks.{i}.mlp.out.weight": "model.layers.{i}.mlp.down_proj.weight",
}
_FIRST_MIN_GPT = {
    "embedding.weight": "tok_emb.weight",
    "places.weight": "pos_emb",
    "norm.weight": "ln_f.weight",
    "norm.bias": "ln_f.bias",
    "head.weight": "head.weight",
    **{
        f"blocks.{{i}}.{ours}.{kind}": "+".join(f"blocks.{{i}}.{name}.{kind}" for name in theirs.split())
        for ours, theirs in (("norm1", "ln1"), ("attention.qkv", "attn.query attn.key attn.value"),
                             ("attention.out", "attn.proj"), ("norm2", "ln2"),
                             ("mlp.wide", "mlp.0"), ("mlp.out", "mlp.2"))
        for kind in ("weight", "bias")
    },
}  # fmt: skip


@dataclass(frozen=True)
class WeightNames:
    """Parameter names of one library.

    Attributes:
        name: The library or architecture.
        table: From our names to theirs.
        transposed: Endings of their names whose matrices are stored transposed.
    """

    name: str
    table: Mapping[str, str]
    transposed: tuple[str, ...] = ()

    def to_theirs(self, weights: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """Our weights under their names; biases that we do not have are zeros."""
        out: dict[str, Tensor] = {}
        for ours, names in self._pairs(config):
            if ours == "head.weight" and config.tie_embeddings:
                continue
            value = weights.get(ours)
            if value is None:
                value = torch.zeros_like(weights[ours.replace("bias", "weight")][..., 0])
                if ours.endswith(("norm.bias", "norm1.bias", "norm2.bias")):
                    value = torch.zeros_like(weights["norm.weight"])
            for name, part in zip(names, value.split(self._split_sizes(names, value, config)), strict=True):
                out[name] = (
                    (part.T if name.endswith(self.transposed) and self.transposed else part).contiguous().clone()
                )
        return out

    def to_ours(self, state: Mapping[str, Tensor], config: ModelConfig, source: object) -> dict[str, Tensor]:
        """Their weights under our names."""
        out: dict[str, Tensor] = {}
        for ours, names in self._pairs(config):
            if (ours == "head.weight" and config.tie_embeddings) or (ours.endswith("bias") and not config.bias):
                continue
            missing = [name for name in names if name not in state]
            if missing:
                raise QkvError(
                    f"importing {source} as {self.name}", f"it lacks {', '.join(missing)}", "Give a complete state dict"
                )
            parts = [state[n].T if n.endswith(self.transposed) and self.transposed else state[n] for n in names]
            if len({tuple(part.shape[1:]) for part in parts}) > 1 or any(part.dim() == 0 for part in parts):
                shapes = ", ".join(str(tuple(part.shape)) for part in parts)
                raise QkvError(
                    f"importing {source} as {self.name}",
                    f"{', '.join(names)} have shapes {shapes}, which do not fit together",
                    "Give a complete state dict",
                )
            out[ours] = (torch.cat(parts) if len(parts) > 1 else parts[0]).contiguous().clone()
        places = out.get("places.weight")
        if places is not None and places.numel() % config.d_model == 0:  # else `check_shapes` says what is wrong
            out["places.weight"] = places.reshape(-1, config.d_model)
        return out

    def _pairs(self, config: ModelConfig) -> list[tuple[str, list[str]]]:
        return [
            (ours.replace("{i}", str(i)), theirs.replace("{i}", str(i)).split("+"))
            for ours, theirs in self.table.items()
            for i in range(config.n_layer if "{i}" in ours else 1)
        ]

    @staticmethod
    def _split_sizes(names: list[str], value: Tensor, config: ModelConfig) -> list[int]:
        if len(names) == 3:
            return [config.n_head * config.head_dim, *[config.n_kv_head_effective * config.head_dim] * 2]
        return [len(value) // len(names)] * len(names)


GPT2 = WeightNames("GPT-2", _GPT, _TRANSPOSED)
NANO_GPT = WeightNames("nanoGPT or minGPT", _GPT)
LLAMA = WeightNames("Llama", _LLAMA)
FIRST_MIN_GPT = WeightNames("the first minGPT", _FIRST_MIN_GPT)
