"""An independent judge of certificates about texts: every text that a statement covers is read, with 60 digits.

It is one-sided where the checker may be: what it calls false must be refused, but a true statement may be beyond what
the checker can show. Like oracle.py it takes plain lists, as they stand in a file, and shares no code with the checker.
"""

import itertools
from fractions import Fraction

import mpmath
import oracle
from mpmath import mp, mpf
from oracle import at_least, at_most, big, need, one_place, places, single, table, tolerance, vector


def truth(kind, data, claims):
    """Whether this certificate is to be believed, of any kind."""
    return oracle.truth(kind, data, claims, JUDGES if kind in JUDGES else oracle.JUDGES)


DIGITS, MORE_DIGITS = 60, 2500
"""Digits where scores are exact before they are subtracted, and for two layers with numbers of extreme sizes."""
ROOM = mpf(10) ** -9
"""The checker spreads a leak by weights with rounding errors, which prove a bound that differs a little."""
MOST_TEXTS = 4000


def every_text(data, claims):
    """The distance of the worst position of all texts of full length; shorter ones are their beginnings."""
    tokens, positions, rule = table(data["tokens"]), table(data["positions"]), data["rule"]
    need(rule in ("previous", "duplicate", "induction") and len(tokens[0]) <= len(positions[0]))
    layers = [_matrices(data, ("Q", "K"), len(positions[0]))]
    if rule == "induction":
        layers.insert(0, _matrices(data, ("Q1", "K1", "V1"), len(positions[0])))
        out = table(data["O1"])
        need(len(out) == len(positions[0]) and len(out[0]) == len(layers[0][2]))
        layers[0].append(out)
    else:
        need(not {"Q1", "K1", "V1", "O1"} & set(data))
    need(rule != "previous" or not {"sink", "excluded"} & set(data))
    sink = one_place(data["sink"], len(tokens)) if "sink" in data else None
    silent = set(places(data["excluded"], len(tokens))) if "excluded" in data else set()
    need(set(range(len(tokens))) - silent - {sink})
    claim = single(claims["distance"])
    ids = [u for u in range(len(tokens)) if u != sink]
    length = len(positions)
    need(len(ids) ** length <= MOST_TEXTS)
    texts = itertools.product(ids, repeat=length) if sink is None else (
        (sink, *rest) for rest in itertools.product(ids, repeat=length - 1)
    )  # fmt: skip
    matrices = itertools.chain((tokens, positions), *layers)
    entries = [abs(v) for m in matrices for row in m for v in row if v]
    tame = not entries or (max(entries) < 10**6 and min(entries) > Fraction(1, 10**30))
    with mp.workdps(DIGITS if tame or len(layers) == 1 else MORE_DIGITS):
        return all(_reads(text, tokens, positions, layers, rule, sink, silent, claim) for text in texts)


def _reads(text, tokens, positions, layers, rule, sink, silent, claim):
    x = _vectors(text, tokens, positions)
    if len(layers) == 2:
        q, k, v, o = layers[0]
        moved = [_times(o, _times(v, one)) for one in x]
        alpha = _weights(x, q, k)
        x = [[a + b for a, b in zip(one, _mean(alpha[i], moved), strict=True)] for i, one in enumerate(x)]
    alpha = _weights(x, *layers[-1])
    for i, read in _targets(rule, text, sink is not None):
        if text[i] not in silent and text[i] != sink and not at_most(_distance(alpha[i], read), claim):
            return False
    return True


def given_texts(data, claims):
    texts, rules = _parsed(data)
    holds = True
    with mp.workdps(DIGITS):
        if "distance" in claims:
            claim = single(claims["distance"])
            for (_, alpha, _), own in zip(texts, rules, strict=True):
                holds = holds and all(at_most(_distance(alpha[i], read), claim) for i, read in own)
        if "norm_at_least" in claims:
            need("multipliers" in data)
            holds = holds and _norm(data, texts, rules, single(claims["norm_at_least"]))
    return holds


def _parsed(data):
    """For each text its vectors, weights and scores; and the rules of all."""
    tokens, positions = table(data["tokens"]), table(data["positions"])
    need(len(tokens[0]) <= len(positions[0]))
    q, k = _matrices(data, ("Q", "K"), len(positions[0]))
    ids, lengths = vector(data["ids"]), vector(data["lengths"])
    need(all(v.denominator == 1 and 0 <= v < len(tokens) for v in ids))
    need(all(v.denominator == 1 and 0 < v <= len(positions) for v in lengths) and sum(lengths) == len(ids))
    starts = [0, *itertools.accumulate(int(v) for v in lengths)]
    each = [[int(v) for v in ids[a:b]] for a, b in itertools.pairwise(starts)]
    sink, rule = None, data["rule"]
    need(rule in ("previous", "duplicate", "induction", "listed") and (rule == "listed") == ("reads" in data))
    if "sink" in data:
        sink = one_place(data["sink"], len(tokens))
        need(rule not in ("previous", "listed"))
        need(all(text[0] == sink and sink not in text[1:] for text in each))
    if rule == "listed":
        rules = _listed(table(data["reads"]), each)
    else:
        rules = [list(_targets(rule, text, sink is not None)) for text in each]
    need(any(rules))
    if "multipliers" in data:
        tolerance(data)
    else:
        need("tol" not in data)
    with mp.workdps(DIGITS):
        texts = []
        for text in each:
            x = _vectors(text, tokens, positions)
            texts.append((x, _weights(x, q, k), _scores(x, q, k)))
    return texts, rules


def _listed(rows, texts):
    need(all(len(row) == 3 and all(v.denominator == 1 and v >= 0 for v in row) for row in rows))
    need(all(a < b for a, b in itertools.pairwise(rows)))
    rules = [{} for _ in texts]
    for text, i, j in ([int(v) for v in row] for row in rows):
        need(text < len(texts) and j <= i < len(texts[text]))
        rules[text].setdefault(i, []).append(j)
    return [list(own.items()) for own in rules]


def _norm(data, texts, rules, claim):
    """Whether the multipliers prove the bound: all of them, or those of rules with scores that float64 can hold.

    Equal parts: ν (s_c - s_a) = 0. A leak of at most tol: λ s_a - λ p·s >= λ (H(p) - log |A| - log(tol/(1-tol))). Any
    λ >= 0 make a bound, and the checker takes 0 where it cannot compute p.
    """
    flat, tol = vector(data["multipliers"]) if data["multipliers"] else [], tolerance(data)
    need(claim > 0 and len(flat) == sum(len(read) for own in rules for _, read in own))
    return any(_proved(flat, tol, texts, rules, claim, most) for most in (mpf("inf"), mpf(10) ** 150))


def _proved(flat, tol, texts, rules, claim, most):
    width = len(texts[0][0][0])
    g, b, at = [[mpf(0)] * width for _ in range(width)], mpf(0), 0
    edge = mpmath.log(big(tol / (1 - tol)))
    for (x, _, scores), own in zip(texts, rules, strict=True):
        for i, read in own:
            leak, ratios = big(flat[at]), [big(v) for v in flat[at + 1 : at + len(read)]]
            need(leak >= 0)
            at += len(read)
            rest = [j for j in range(i + 1) if j not in read]
            coefficient = [mpf(0)] * (i + 1)
            for c, nu in zip(read[1:], ratios, strict=True):
                coefficient[c] += nu
                coefficient[read[0]] -= nu
            if rest and leak and max(abs(big(scores[i][j])) for j in rest) <= most:
                top = max(scores[i][j] for j in rest)
                raw = {j: mpmath.exp(big(scores[i][j] - top)) for j in rest}
                total = mpmath.fsum(raw.values())
                for j, r in raw.items():
                    coefficient[j] -= leak * r / total
                    b -= leak * r / total * mpmath.log(r / total)
                coefficient[read[0]] += leak
                b -= leak * (mpmath.log(len(read)) + edge)
            way = [mpmath.fsum(v * big(x[j][t]) for j, v in enumerate(coefficient)) for t in range(width)]
            g = [[g[s][t] + big(x[i][s]) * way[t] for t in range(width)] for s in range(width)]
    size = mpmath.sqrt(mpmath.fsum(e * e for row in g for e in row))
    return b > 0 and mpmath.isfinite(big(claim)) and (size == 0 or at_least(b / size * (1 + ROOM), claim))


def _targets(rule, text, sink):
    """The positions that each position reads, written from the sentences of docs/certificates.md."""
    for i, token in enumerate(text):
        equal = [j for j in range(1 if sink else 0, i) if text[j] == token]
        if sink and i == 0:
            equal = []
        if rule == "previous":
            read = [i - 1] if i else []
        else:
            read = equal if rule == "duplicate" else [j + 1 for j in equal]
        if not read and sink:
            read = [0]
        if read:
            yield i, read


def _matrices(data, names, width):
    found = [table(data[name]) for name in names]
    need(all(len(m[0]) == width for m in found) and len(found[0]) == len(found[1]))
    return found


def _vectors(text, tokens, positions):
    """e_u + p_i, exactly."""
    return [
        [p + (tokens[u][t] if t < len(tokens[u]) else 0) for t, p in enumerate(positions[i])]
        for i, u in enumerate(text)
    ]


def _exact(x):
    return not any(isinstance(v, mpf) for v in x)


def _times(matrix, x):
    if _exact(x):
        return [sum(a * b for a, b in zip(row, x, strict=True)) for row in matrix]
    return [mpmath.fsum(big(a) * big(b) for a, b in zip(row, x, strict=True)) for row in matrix]


def _mean(weights, rows):
    return [
        mpmath.fsum(a * big(v) for a, v in zip(weights, column, strict=False)) for column in zip(*rows, strict=True)
    ]


def _scores(x, q, k):
    """The scores of each position for those up to its own; fractions where the vectors are."""
    queries, keys = [_times(q, one) for one in x], [_times(k, one) for one in x]
    return [[_times([query], key)[0] for key in keys[: i + 1]] for i, query in enumerate(queries)]


def _weights(x, q, k):
    out = []
    for row in _scores(x, q, k):
        top = max(row)
        raw = [mpmath.exp(big(s - top)) for s in row]
        total = mpmath.fsum(raw)
        out.append([r / total for r in raw])
    return out


def _distance(weights, read):
    wanted = mpf(1) / len(read)
    return mpmath.fsum(abs(a - (wanted if j in read else 0)) for j, a in enumerate(weights)) / 2


_TEXTS = ("tokens", "positions", "ids", "lengths", "rule", "reads", "sink", "Q", "K", "multipliers", "tol")
JUDGES = {
    "every text": (
        ("tokens", "positions", "rule", "Q", "K", "Q1", "K1", "V1", "O1", "sink", "excluded"), ("distance",), (),
        every_text,
    ),
    "given texts": (_TEXTS, ("distance",), ("norm_at_least",), given_texts),
    "no head for given texts": (_TEXTS, ("norm_at_least",), (), given_texts),
}  # fmt: skip
"""As in oracle.py."""
