"""Statement "in every text over this vocabulary, each token reads by the rule", for one or two layers of attention."""

# What is bounded. Position i holds token u, x_i = e_u + p_i, and sees positions 0..i. With the tables T, A, B, C of
# score_tables.py the score of position j with token v is T[u,v] + A[u,j] + B[i,v] + C[i,j]. A text is any choice of
# tokens, so each bound takes the worst token for each term on its own: that covers every text, and loses nothing where
# the term does not depend on it, as in a head that was designed for every text.
#
# One target ("previous"): the weights outside of it are at most Σ_j exp(-Δ_j), with Δ_j the smallest difference of the
# scores of the target and of j. Several targets ("duplicate", "induction") in equal parts: the weights outside of them
# are at most Σ exp(-Δ), Δ taken for the weakest target; and if their scores differ by at most δ, the weights inside,
# divided by their sum, differ from equal ones by factors between exp(-δ) and exp(δ), so by at most (exp(δ) - 1)/2 in
# total variation. The sum of both bounds the total variation of all weights.
#
# Two layers ("induction"): y_i = x_i + O Σ_j α_ij V x_j with the weights α of the first layer, whose distance λ from
# "previous" is bounded as above. So y_i = e_u + p'_i + M e_r + η with M = O V, r the token before it, p'_i = p_i +
# M p_(i-1), and |Q M-part of η| <= 2 λ max |Q M x|. The token that the second layer looks for is compared with r: T is
# (Q e_u)·(K M e_r). All other products of tokens, and η, are bounded by lengths and counted as `disturbance`.

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core.display import upper_bound
from qkv.core.rounding_bounds import TINY, U
from qkv.core.types import BoolArray, FloatArray
from qkv.design.certificates.ball_arithmetic import above
from qkv.design.certificates.statements.base import (
    Bounds,
    Data,
    InvalidCertificate,
    Measured,
    Name,
    Statement,
    array,
    indices,
    matching,
    scalar,
)
from qkv.design.certificates.statements.score_tables import Rows, table_error, token_table
from qkv.design.certificates.statements.text_rules import RULES, SENTENCES, SINK_SENTENCE

ISSUE_SLACK = 4.0
"""Factor of rounding bounds when a certificate is issued: a machine that sums in another order confirms it with 1."""
MAX_NAMED = 4


def _parse(data: Data) -> dict[str, Any]:
    tokens, positions = array(data, "tokens", 2), array(data, "positions", 2)
    if tokens.shape[1] > positions.shape[1]:
        raise InvalidCertificate(f"the tokens are wider ({tokens.shape[1]}) than the positions ({positions.shape[1]})")
    rule = data["rule"]
    if rule not in RULES:
        raise InvalidCertificate(f"there is no rule {rule!r}; there are {', '.join(RULES)}")
    layers = [_layer(data, "", positions.shape[1])]
    if rule == "induction":
        layers.insert(0, _layer(data, "1", positions.shape[1]))
        layers[0] |= {"V": array(data, "V1", 2), "O": array(data, "O1", 2)}
        matching("the positions and V1", positions.shape[1], layers[0]["V"].shape[1], layers[0]["O"].shape[0])
        matching("V1 and O1", layers[0]["V"].shape[0], layers[0]["O"].shape[1])
    elif any(name in data for name in ("Q1", "K1", "V1", "O1")):
        raise InvalidCertificate(f"the rule {rule} has one layer, and the data a first layer besides")
    parsed: dict[str, Any] = {"tokens": tokens, "positions": positions, "rule": rule, "layers": layers, "sink": None}
    reading = np.ones(len(tokens), dtype=bool)
    if rule == "previous" and ("sink" in data or "excluded" in data):
        raise InvalidCertificate("the rule previous has neither a sink nor excluded tokens")
    if "sink" in data:
        scalar(data, "sink")
        (parsed["sink"],) = indices(data, "sink", len(tokens))
        reading[parsed["sink"]] = False
    if "excluded" in data:
        reading[indices(data, "excluded", len(tokens))] = False
    if not reading.any():
        raise InvalidCertificate("no token is left that reads")
    return parsed | {"reading": reading}


def _layer(data: Data, number: str, width: int) -> dict[str, FloatArray]:
    q, k = array(data, f"Q{number}", 2), array(data, f"K{number}", 2)
    matching(f"the positions, Q{number} and K{number}", width, q.shape[1], k.shape[1])
    matching(f"the rows of Q{number} and K{number}", q.shape[0], k.shape[0])
    return {"Q": q, "K": k}


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    slack = 1.0 if claims.get("distance") else ISSUE_SLACK
    with np.errstate(all="ignore"):
        tokens, positions = Rows.exact(p["tokens"]), Rows.exact(p["positions"])
        first = p["layers"][0]
        if p["rule"] == "previous":
            worst = max(_previous(tokens, positions, first, slack), default=arb(0))
        elif p["rule"] == "duplicate":
            tables = _Tables.of(
                tokens.times(first["Q"]), positions.times(first["Q"]), tokens.times(first["K"]),
                positions.times(first["K"]), 0.0, slack, p,
            )  # fmt: skip
            worst = max(_matching_rows(tables, own_key=True, sink=p["sink"] is not None), default=arb(0))
        else:
            worst = max(_induction_rows(p, tokens, positions, slack), default=arb(0))
    return {"distance": worst}


def _previous(tokens: Rows, positions: Rows, layer: Mapping[str, FloatArray], slack: float) -> list[Any]:
    """Bounds on the distance of "each token reads the one before it", for every position from the second."""
    a, b = tokens.times(layer["Q"]), positions.times(layer["Q"])
    c, d = tokens.times(layer["K"]), positions.times(layer["K"])
    table = token_table(a, c, slack, np.zeros(len(a.values)), np.ones(len(a.values), dtype=bool))
    of_token = float((np.maximum(table.rival, table.own) - table.lowest).max())
    of_key = float(np.ptp(a.values @ d.values.T, axis=1).max())
    of_place = np.ptp(b.values @ c.values.T, axis=1)
    C = b.values @ d.values.T
    # Eight numbers of the tables enter each difference, and a few sums of them.
    error = slack * (10 * _error(a, b, c, d))
    out = []
    for i in range(1, len(C)):
        rivals = np.delete(C[i, : i + 1], i - 1)
        margins = C[i, i - 1] - rivals - of_token - of_key - of_place[i] - error
        out.append(_total(margins))
    return _checked(out)


def _error(a: Rows, b: Rows, c: Rows, d: Rows) -> float:
    """Bound on the error of every entry of the four tables, and of every sum of a few of them."""
    tables = float(np.max([table_error(x, y) for x in (a, b) for y in (c, d)]))  # NaN where one is NaN
    return tables + 64 * U * (a.size + b.size) * (c.size + d.size) + TINY


def _total(margins: FloatArray) -> Any:
    """A bound from above on Σ exp(-margin)."""
    return sum((arb(-float(m)).exp() for m in margins), arb(0))


def _checked(bounds: list[Any]) -> list[Any]:
    """The bounds as floats that are not below them; 1, which bounds every distance, where they are larger."""
    return [arb(min(1.0, above(bound))) if bound.is_finite() else arb(1) for bound in bounds]


@dataclasses.dataclass(frozen=True, eq=False)
class _Tables:
    """Extremes of the tables over all tokens that read, or over all tokens; `error` bounds what enters a difference.

    Attributes:
        C: Scores between positions, (L, L).
        margin: Smallest own - rival over the reading tokens, less the spread of A over the keys.
        key_spread: Largest spread of A[u, j] over the keys j.
        place: Lowest and highest B[i, v] over all tokens, for each position.
        over_first: Smallest difference, in terms of u, of a target from key 0 that may hold any token.
        over_sink: The same for key 0 that holds the sink; None without one.
        sink_over_rival: Smallest difference, in terms of u, of the sink from a key that holds another token.
        sink_over_own: The same from a key that holds u itself.
        sink_place: What position i adds to the score of the sink.
        error: Bound on the error of each difference of scores.
        disturbance: Bound on what else may be in each score.
    """

    C: FloatArray
    margin: float
    key_spread: float
    place: tuple[FloatArray, FloatArray]
    over_first: float
    over_sink: float
    sink_over_rival: float
    sink_over_own: float
    sink_place: FloatArray
    error: float
    disturbance: float

    @classmethod
    def of(cls, a: Rows, b: Rows, c: Rows, d: Rows, disturbance: float, slack: float, p: Mapping[str, Any]) -> _Tables:
        """The tables of queries a (tokens) and b (positions), and of keys c (tokens) and d (positions)."""
        reading: BoolArray = p["reading"]
        sink = p["sink"]
        A, B, C = a.values @ d.values.T, b.values @ c.values.T, b.values @ d.values.T
        # Key 0 is no target of "induction", nor with a sink: `_matching_rows` treats it on its own.
        keys = A[:, 1:] if p["rule"] == "induction" or sink is not None else A
        if not keys.size:
            keys = A
        low, high = keys.min(axis=1), keys.max(axis=1)
        of_sink = np.zeros(len(a.values)) if sink is None else a.values @ (c.values[sink] + d.values[0])
        table = token_table(a, c, slack, of_sink, reading)
        r = reading
        own, rival = table.own[r], table.rival[r]
        return cls(
            C=C,
            margin=float((own - rival - (high - low)[r]).min()),
            key_spread=float((high - low)[r].max()),
            place=(B.min(axis=1), B.max(axis=1)),
            over_first=float((np.minimum(0.0, own - rival) + (low - A[:, 0])[r]).min()),
            over_sink=float((own + low[r] - of_sink[r]).min()),
            sink_over_rival=float((of_sink[r] - rival - high[r]).min()),
            sink_over_own=float((of_sink[r] - own - high[r]).min()),
            sink_place=np.zeros(len(C)) if sink is None else b.values @ (c.values[sink] + d.values[0]),
            error=slack * 10 * (_error(a, b, c, d) + 8 * U * disturbance),
            disturbance=2 * disturbance,
        )


def _matching_rows(t: _Tables, own_key: bool, sink: bool) -> list[Any]:
    """Bounds for rules that read all keys with the token that is looked for.

    Args:
        t: The tables.
        own_key: Whether the position itself is no target, though it holds the token ("duplicate"): then the targets
            are among the keys before it; otherwise ("induction") among the keys from 1 to it, and key 0 is none.
        sink: Whether key 0 is a sink.

    Returns:
        For every position from the second, and for positions with and without a target, a bound on the distance.
    """
    low, high = t.place
    lost = t.error + t.disturbance
    out = []
    for i in range(1, len(t.C)):
        first = 0 if own_key and not sink else 1
        keys = t.C[i, first : i if own_key else i + 1]
        own = [] if not own_key else [float(t.C[i, i])]
        if len(keys):
            weakest, strongest = float(keys.min()), float(keys.max())
            margins = [t.margin - (high[i] - low[i]) + weakest - strongest - lost] * (len(keys) - 1)
            margins += [weakest - t.key_spread - c - lost for c in own]
            if sink:
                margins.append(t.over_sink + low[i] + weakest - t.sink_place[i] - lost)
            elif not own_key:
                margins.append(t.over_first - (high[i] - low[i]) + weakest - float(t.C[i, 0]) - lost)
            spread = t.key_spread + strongest - weakest + lost if len(keys) > 1 else 0.0
            out.append(_total(np.array(margins)) + arb(spread).expm1() / 2)
        if sink:
            best = t.sink_place[i] - high[i] - lost
            without = [t.sink_over_rival + best - float(c) for c in keys]
            without += [t.sink_over_own + best - c for c in own]
            out.append(_total(np.array(without)))
    return _checked(out)


def _induction_rows(p: dict[str, Any], tokens: Rows, positions: Rows, slack: float) -> list[Any]:
    """The bounds of the second layer, with those of the first counted as a disturbance of its scores."""
    one, two = p["layers"]
    leak = max((float(x) for x in _previous(tokens, positions, one, slack)), default=0.0)
    copied, moved = (rows.times(one["V"]).times(one["O"]) for rows in (tokens, positions))
    before = np.maximum(np.arange(len(positions.values)) - 1, 0)
    places = positions.plus(dataclasses.replace(moved, values=moved.values[before]))
    sides = []
    for matrix in (two["Q"], two["K"]):
        own, read, place = tokens.times(matrix), copied.times(matrix), places.times(matrix)
        shift = 2 * leak * (read.size + moved.times(matrix).size)  # |x_k - x_(i-1)| is at most twice the longest
        sides.append((own, read, place, shift))
    (q_own, q_read, b, q_shift), (k_own, k_read, d, k_shift) = sides
    q_size, k_size = q_own.size + q_read.size + b.size, k_own.size + k_read.size + d.size
    disturbance = (
        q_own.size * k_own.size + q_read.size * (k_own.size + k_read.size + d.size) + b.size * k_own.size
        + q_size * k_shift + q_shift * k_size + q_shift * k_shift
    )  # fmt: skip
    tables = _Tables.of(q_own, b, k_read, d, disturbance * (1 + 32 * U), slack, p)
    return _matching_rows(tables, own_key=False, sink=p["sink"] is not None)


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    n, length = np.shape(data["tokens"])[0], np.shape(data["positions"])[0]
    rule = str(data["rule"])
    which = f"in every text of at most {length} tokens over this vocabulary of {n}"
    what = SENTENCES.get(rule, rule)
    if "sink" in data:
        which += f" that begins with token {name(int(data['sink']))} and holds it nowhere else"
        what += f", and {SINK_SENTENCE}"
    by = "by two layers of causal attention" if rule == "induction" else "by one head of causal attention"
    text = f"{which}, {what}, to within {upper_bound(float(claims['distance']), 6)} in total variation, {by}"
    if "excluded" in data:
        left = [name(int(u)) for u in np.atleast_1d(data["excluded"])]
        shown = ", ".join(left[:MAX_NAMED]) + (f" and {len(left) - MAX_NAMED} more" if len(left) > MAX_NAMED else "")
        text += f"; what the tokens {shown} read is not covered"
    return text


EVERY_TEXT = Statement(
    fields=("tokens", "positions", "rule", "Q", "K", "Q1", "K1", "V1", "O1", "sink", "excluded"),
    parse=_parse,
    measure=_measure,
    describe=_describe,
    senses={"distance": "<="},
    required=("distance",),
    claim_names={"distance": "distance of the weights of every rule of every text"},
    float64_first=lambda data: True,
)
