"""MultiHead: multi-head attention, to and from torch.nn.MultiheadAttention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from qkv.core.attention import Reading, read
from qkv.core.display import Card, Displayable
from qkv.core.masks import allowed
from qkv.core.types import ArrayLike
from qkv.core.validation import booleans, check_range, same_length, tensor, whole
from qkv.errors import QkvError, kind_of

if TYPE_CHECKING:  # at run time `MultiHead.from_torch` refuses other types
    TorchHeads = nn.MultiheadAttention | Mapping[str, Tensor]
else:
    TorchHeads = Any

JOINT = ("in_proj_weight",)
SEPARATE = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
BIASES = ("in_proj_bias", "out_proj.bias")


def flip_mha_mask(mask: ArrayLike) -> Bool[Tensor, " ..."]:
    """Convert a boolean mask of nn.MultiheadAttention to one of qkv, or back.

    In qkv, as in scaled_dot_product_attention, True means "may be attended". In nn.MultiheadAttention's
    attn_mask and key_padding_mask True means "may NOT be attended". Flipping twice gives the mask back.
    A flipped key_padding_mask (b, n) needs a middle axis, mask[:, None], to broadcast over the queries.
    """
    return ~booleans("flipping a mask of nn.MultiheadAttention", mask)


def read_multihead(
    X: Float[Tensor, "*batch m d"],
    keys: Float[Tensor, "*#batch n dk"],
    values: Float[Tensor, "*#batch n dv"],
    Q: Float[Tensor, "h e d"],
    K: Float[Tensor, "h e dk"],
    V: Float[Tensor, "h f dv"],
    O: Float[Tensor, "h do f"],  # noqa: E741 (mathematics)
    q_bias: Float[Tensor, "h e"] | None = None,
    k_bias: Float[Tensor, "h e"] | None = None,
    v_bias: Float[Tensor, "h f"] | None = None,
    o_bias: Float[Tensor, " do"] | None = None,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> tuple[Float[Tensor, "*batch h m n"], Float[Tensor, "*batch m do"]]:
    """Each head's weights and the summed output of the heads; arguments are not checked, so that gradients pass."""
    q, k, v = _project(X, Q, q_bias), _project(keys, K, k_bias), _project(values, V, v_bias)
    each, out = read(q, k, v, q.shape[-1] ** -0.5, None if mask is None else mask.unsqueeze(-3))
    output = torch.einsum("...hmf,hof->...mo", out, O)
    return each, output if o_bias is None else output + o_bias


@dataclass(frozen=True, eq=False, init=False)
class MultiHead(Displayable):
    """Multi-head attention with its own Q, K, V and O per head.

    Head i computes q = Q[i] x, k = K[i] y and v = V[i] z (plus biases), scores q·k/√(head size), and adds
    O[i] Σ weight · v to the output.

    Args:
        Q: Query matrices, (h, e, d).
        K: Key matrices, (h, e, dk).
        V: Value matrices, (h, f, dv).
        O: Output matrices, (h, do, f).
        q_bias: Biases of the queries, (h, e), or None.
        k_bias: Biases of the keys, (h, e), or None.
        v_bias: Biases of the values, (h, f), or None.
        o_bias: Bias of the output, (do,), or None.

    Attributes:
        Q, K, V, O, q_bias, k_bias, v_bias, o_bias: As given, as float64 tensors.

    Raises:
        QkvError: If an array is empty or not finite, or if the sizes do not fit each other.

    Example:
        >>> from qkv.core import MultiHead
        >>> import torch
        >>> theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
        >>> heads = MultiHead.from_torch(theirs)
        >>> x = torch.ones(1, 3, 8, dtype=torch.float64)
        >>> torch.allclose(heads.attend(x).output, theirs(x, x, x)[0])
        True
    """

    Q: Float[Tensor, "h e d"]
    K: Float[Tensor, "h e dk"]
    V: Float[Tensor, "h f dv"]
    O: Float[Tensor, "h do f"]  # noqa: E741 (mathematics)
    q_bias: Float[Tensor, "h e"] | None
    k_bias: Float[Tensor, "h e"] | None
    v_bias: Float[Tensor, "h f"] | None
    o_bias: Float[Tensor, " do"] | None

    def __init__(
        self,
        Q: ArrayLike,
        K: ArrayLike,
        V: ArrayLike,
        O: ArrayLike,  # noqa: E741
        q_bias: ArrayLike | None = None,
        k_bias: ArrayLike | None = None,
        v_bias: ArrayLike | None = None,
        o_bias: ArrayLike | None = None,
    ) -> None:
        given: dict[str, tuple[ArrayLike | None, str]]
        given = {"Q": (Q, "h e d"), "K": (K, "h e dk"), "V": (V, "h f dv"), "O": (O, "h do f")}
        given |= {"q_bias": (q_bias, "h e"), "k_bias": (k_bias, "h e")}
        given |= {"v_bias": (v_bias, "h f"), "o_bias": (o_bias, "do")}
        sizes: dict[str, tuple[int, str]] = {}
        wrong = []
        for name, (value, dims) in given.items():
            # Cloned, so that training the module it came from does not change a frozen value.
            checked = None if value is None else tensor(name, value, dims).clone()
            object.__setattr__(self, name, checked)
            for dim, size in zip(dims.split(), () if checked is None else checked.shape, strict=False):
                first, where = sizes.setdefault(dim, (size, name))
                if size != first:
                    wrong.append(f"{dim} is {first} in {where} and {size} in {name}")
        if wrong:
            raise QkvError(
                "making multi-head attention of Q (h, e, d), K (h, e, dk), V (h, f, dv), O (h, do, f)",
                "; ".join(wrong),
                "Give one matrix for each head, of fitting sizes",
            )

    @classmethod
    def from_torch(cls, source: TorchHeads, heads: int | None = None) -> MultiHead:
        """The heads of an nn.MultiheadAttention, or of its state dict.

        Args:
            source: The module, or its state dict.
            heads: Number of heads; needed for a state dict, which does not hold it.

        Returns:
            The same heads, with copies of the weights in float64.

        Raises:
            QkvError: If the source is of another type, has add_zero_attn, or its weights do not fit.
        """
        request = "reading the heads of an nn.MultiheadAttention"
        if isinstance(source, nn.MultiheadAttention):
            if heads not in (None, source.num_heads):
                problem = f"it has {source.num_heads} heads and {heads} were requested"
                raise QkvError(request, problem, "Leave out heads")
            if source.add_zero_attn:
                raise QkvError(request, "it has add_zero_attn", "Add the row of zeros to the memory instead")
            heads = source.num_heads
        state = source.state_dict() if isinstance(source, nn.Module) else source
        if not isinstance(state, Mapping):
            raise QkvError(request, f"it is {kind_of(state)}", "Give the module or its state dict")
        return cls(**_from_state(request, state, whole(request, "heads", heads)))

    def to_state_dict(self) -> dict[str, Tensor]:
        """The state dict of the nn.MultiheadAttention that computes the same.

        Returns:
            Tensors by torch's parameter names, in float64.

        Raises:
            QkvError: If heads × head size is not the dimension of the input and of the output.
        """
        h, e, d = self.Q.shape
        dk, dv, f, do = self.K.shape[2], self.V.shape[2], self.V.shape[1], self.O.shape[1]
        if not (h * e == d == do and f == e):
            raise QkvError(
                "writing heads as an nn.MultiheadAttention",
                f"{h} heads of sizes {e} and {f} lead from dimension {d} to {do}",
                "It needs heads × head size = the dimension in and out",
            )
        q, k, v = (weight.reshape(d, -1) for weight in (self.Q, self.K, self.V))
        state = (
            {"in_proj_weight": torch.cat((q, k, v))} if dk == dv == d else dict(zip(SEPARATE, (q, k, v), strict=True))
        )
        biases = (self.q_bias, self.k_bias, self.v_bias, self.o_bias)
        if any(bias is not None for bias in biases):
            # torch has all four or none; a missing one is a zero one.
            filled = [torch.zeros(d, dtype=torch.float64) if b is None else b.reshape(d) for b in biases]
            state["in_proj_bias"] = torch.cat(filled[:3])
            state["out_proj.bias"] = filled[3]
        state["out_proj.weight"] = self.O.permute(1, 0, 2).reshape(d, d)
        # Cloned, since a reshaped weight may be a view, through which the frozen value could be changed.
        return {name: weight.clone() for name, weight in state.items()}

    @property
    def heads(self) -> int:
        """Number of heads."""
        return int(self.Q.shape[0])

    @property
    def scale(self) -> float:
        """Factor in front of every score, 1/√(head size)."""
        return float(self.Q.shape[1] ** -0.5)

    def attend(
        self,
        X: ArrayLike,
        memory: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        *,
        values: ArrayLike | None = None,
    ) -> Reading:
        """Attention of the tokens X over `memory`, or over themselves.

        Args:
            X: Tokens that attend, (..., m, d).
            memory: Tokens attended to, (..., n, dk); X if None.
            mask: Booleans that broadcast to (..., m, n), True where a token may be attended; None allows all.
            values: Inputs of the value matrices, (..., n, dv); `memory` if None.

        Returns:
            A `Reading` with the heads' summed output (..., m, do), their average weights (..., m, n), and as `heads`
            each head's weights (..., h, m, n).

        Raises:
            QkvError: If shapes do not fit, an array is not finite, or a row of the mask allows no item.
        """
        request = f"attending with {self.heads} heads"
        x = tensor("X", X)
        y = x if memory is None else tensor("memory", memory)
        z = y if values is None else tensor("values", values)
        for name, given, weight in (("X", x, self.Q), ("memory", y, self.K), ("values", z, self.V)):
            if given.dim() < 2 or given.shape[-1] != weight.shape[-1]:
                raise QkvError(
                    request,
                    f"{name} has shape {tuple(given.shape)}",
                    f"Give one row of dimension {weight.shape[-1]} for each token",
                )
        same_length(request, **{"items in memory": y.movedim(-2, 0), "values": z.movedim(-2, 0)})
        try:
            batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2], z.shape[:-2])
        except RuntimeError:
            shapes = ", ".join(str(tuple(t.shape)) for t in (x, y, z))
            raise QkvError(request, f"X, memory and values have shapes {shapes}", "Give batches of one shape") from None
        x = x.expand(*batch, *x.shape[-2:])
        seen = None if mask is None else allowed(request, mask, (*batch, x.shape[-2], y.shape[-2]))
        each, output = read_multihead(x, y, z, **vars(self), mask=seen)
        check_range(request, each, output)
        return Reading(each.mean(-3), output, heads=each)

    def card(self) -> Card:
        biased = [name for name in ("q", "k", "v", "o") if getattr(self, f"{name}_bias") is not None]
        return Card(
            title=f"{self.heads} head{'s' * (self.heads != 1)} of size {self.Q.shape[1]}",
            facts=(
                *((name, " × ".join(map(str, getattr(self, name).shape))) for name in "QKVO"),
                ("biases", ", ".join(biased) or "none"),
            ),
        )


def _project(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Every token times every head's matrix: (..., n, d) to (..., h, n, e)."""
    out = torch.einsum("...nd,hed->...hne", x, weight)
    return out if bias is None else out + bias[:, None, :]


def _from_state(request: str, state: Mapping[str, Any], heads: int) -> dict[str, Tensor]:
    """torch stacks the heads' rows of Q, K and V, and their columns of O."""
    form = SEPARATE if "in_proj_weight" not in state and any(name in state for name in SEPARATE) else JOINT
    biased = any(name in state for name in BIASES)
    wanted = (*form, "out_proj.weight", *(BIASES if biased else ()))
    missing = [name for name in wanted if name not in state]
    extra = sorted(str(name) for name in state if name not in wanted)
    if missing or extra:
        problems = [f"{what} {', '.join(names)}" for what, names in (("it lacks", missing), ("it has", extra)) if names]
        raise QkvError(request, " and ".join(problems), f"Give a state dict with {', '.join(wanted)} and nothing else")
    got = {name: tensor(name, state[name], "row" if name in BIASES else "row column") for name in wanted}

    size = int(got["out_proj.weight"].shape[0])
    if size % heads:
        raise QkvError(request, f"its dimension {size} is not a multiple of {heads} heads", "Check heads")
    k_size, v_size = (int(got[name].shape[1]) for name in SEPARATE[1:]) if form is SEPARATE else (size, size)
    shapes = {"in_proj_weight": (3 * size, size), "out_proj.weight": (size, size)}
    shapes |= dict(zip(SEPARATE, ((size, size), (size, k_size), (size, v_size)), strict=True))
    fitting = {**shapes, "in_proj_bias": (3 * size,), "out_proj.bias": (size,)}
    wrong = [f"{name} has shape {tuple(t.shape)}" for name, t in got.items() if tuple(t.shape) != fitting[name]]
    if wrong:
        should = ", ".join(f"{name} {fitting[name]}" for name in wanted)
        raise QkvError(request, "; ".join(wrong), f"Give {should}")

    q, k, v = got["in_proj_weight"].chunk(3) if form is JOINT else (got[name] for name in SEPARATE)
    out = {name: w.reshape(heads, -1, w.shape[1]) for name, w in (("Q", q), ("K", k), ("V", v))}
    out["O"] = got["out_proj.weight"].reshape(size, heads, -1).permute(1, 0, 2)
    if biased:
        each = got["in_proj_bias"].reshape(3, heads, -1)
        out |= {"q_bias": each[0], "k_bias": each[1], "v_bias": each[2], "o_bias": got["out_proj.bias"]}
    return out
