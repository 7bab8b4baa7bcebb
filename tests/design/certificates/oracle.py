"""An independent judge of certificates: fractions where a statement is algebraic, 80 digits where it has exponentials.

Written from the mathematical statements; it shares no code with the checker and takes plain lists, as they stand
in a file. `truth(kind, data, claims)` is whether the certificate says something, and that something is true; where
a statement rests on evidence (multipliers, a mix, a hyperplane), whether the evidence proves it.
"""

import itertools
import math
from fractions import Fraction

import mpmath
from mpmath import mp, mpf

mp.dps = 80
TIE = mpf(10) ** -60
"""Two numbers this close, relatively, are equal: nothing random comes so near without being so."""


class Senseless(Exception):
    """The certificate does not state anything."""


def need(condition):
    if not condition:
        raise Senseless


def truth(kind, data, claims, judges=None):
    """Whether this certificate is to be believed."""
    judges = JUDGES if judges is None else judges
    try:
        need(kind in judges)
        fields, required, optional, judge = judges[kind]
        need(set(data) <= set(fields) and set(required) <= set(claims) <= {*required, *optional})
        return judge(data, {name: bounds(value) for name, value in claims.items()})
    except (Senseless, KeyError):
        return False


# Reading


def real(x):
    """A finite number as a fraction."""
    need(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x))
    return Fraction(x)


def bounds(value):
    listed = value if isinstance(value, list) else [value]
    out = []
    for x in listed:
        x = float(x) if x in ("inf", "-inf") else x
        need(isinstance(x, int | float) and not isinstance(x, bool) and not math.isnan(x))
        out.append(mpf(x) if math.isinf(x) else Fraction(x))
    return out if isinstance(value, list) else out[0]


def single(claim):
    need(not isinstance(claim, list))
    return claim


def vector(x):
    need(isinstance(x, list) and x and not any(isinstance(v, list) for v in x))
    return [real(v) for v in x]


def table(x):
    need(isinstance(x, list) and x)
    rows = [vector(row) for row in x]
    need(len({len(row) for row in rows}) == 1)
    return rows


def places(x, n):
    """Distinct whole numbers below n; one alone may stand without brackets."""
    found = vector(x if isinstance(x, list) else [x])
    need(all(v.denominator == 1 and 0 <= v < n for v in found) and len(set(found)) == len(found))
    return [int(v) for v in found]


def one_place(x, n):
    found = places(x, n)
    need(len(found) == 1)
    return found[0]


def sums_to_one(weights):
    return abs(sum(weights) - 1) <= Fraction(1e-9)


def tolerance(data):
    tol = real(data["tol"])
    need(0 < tol < 1)
    return tol


# Arithmetic


def dot(x, y):
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


def minus(x, y):
    return [a - b for a, b in zip(x, y, strict=True)]


def apply(matrix, x):
    return [dot(row, x) for row in matrix]


def columns(matrix):
    return [list(c) for c in zip(*matrix, strict=True)]


def big(x):
    return mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mpf(x)


def at_most(x, claim):
    x, claim = big(x), big(claim)
    return x <= claim or (mpmath.isfinite(claim) and abs(x - claim) <= TIE * abs(claim))


def at_least(x, claim):
    return at_most(-big(x), -big(claim))


def norm_at_most(squared, claim, scale=1):
    """Whether sqrt(squared)/scale <= claim, in fractions."""
    return claim == mpmath.inf or (claim >= 0 and squared <= (claim * scale) ** 2)


def length(entries):
    return mpmath.sqrt(mpmath.fsum(e * e for e in entries))


def rank(rows):
    """By elimination in fractions."""
    rows, found = [list(r) for r in rows], 0
    for c in range(len(rows[0])):
        pivot = next((r for r in range(found, len(rows)) if rows[r][c]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for r in range(found + 1, len(rows)):
            if rows[r][c]:
                factor = rows[r][c] / rows[found][c]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[found], strict=True)]
        found += 1
    return found


def solve(matrix, right):
    """The solution of a system with independent columns, or None where there is none."""
    rows, m = [[*row, b] for row, b in zip(matrix, right, strict=True)], len(matrix[0])
    for c in range(m):
        pivot = next((r for r in range(c, len(rows)) if rows[r][c]), None)
        if pivot is None:
            return None
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [a / rows[c][c] for a in rows[c]]
        for r in range(len(rows)):
            if r != c and rows[r][c]:
                rows[r] = [a - rows[r][c] * b for a, b in zip(rows[r], rows[c], strict=True)]
    return [rows[r][m] for r in range(m)] if not any(row[m] for row in rows[m:]) else None


class Softmax:
    """The weights of exactly known scores: equal scores share one exponential, so nothing cancels but what must.

    A weighted sum over the items, sum_i c_i alpha_i, becomes sum over distinct scores of (sum of their c_i) times one
    exponential: coefficients cancel in fractions, before 80 digits come into it.
    """

    def __init__(self, scores):
        distinct = sorted(set(scores), reverse=True)
        self.group = [distinct.index(s) for s in scores]
        self.exps = [mpmath.exp(big(s - distinct[0])) for s in distinct]
        self.counts = [self.group.count(g) for g in range(len(distinct))]
        self.total = mpmath.fsum(c * e for c, e in zip(self.counts, self.exps, strict=True))

    def mean(self, coefficients, less=Fraction(0)):
        """sum_i c_i alpha_i - less; `less` is taken off each coefficient, since the weights sum to 1."""
        per_group = [-less * c for c in self.counts]
        for g, c in zip(self.group, coefficients, strict=True):
            per_group[g] += c
        return mpmath.fsum(big(c) * e for c, e in zip(per_group, self.exps, strict=True)) / self.total

    def is_mean(self, coefficients, less=Fraction(0)):
        """Whether that vanishes identically: exponentials of distinct numbers are independent over fractions."""
        per_group = [-less * c for c in self.counts]
        for g, c in zip(self.group, coefficients, strict=True):
            per_group[g] += c
        return not any(per_group)

    def distance(self, wanted):
        """Total variation: half the sum of |alpha_i - w_i|."""
        n = len(wanted)
        return mpmath.fsum(abs(self.mean([int(j == i) for j in range(n)], less=wanted[i])) for i in range(n)) / 2

    def output_distance(self, values, target):
        return length([self.mean(c, less=t) for c, t in zip(columns(values), target, strict=True)])

    def entropy(self):
        alphas = [self.exps[g] / self.total for g in self.group]
        return -mpmath.fsum(a * mpmath.log(a) for a in alphas)


# The statements


def weights(data, claims):
    keys, values, query = table(data["keys"]), table(data["values"]), vector(data["query"])
    need(len(keys) == len(values) and len(keys[0]) == len(query))
    items, wish = places(data["items"], len(keys)), vector(data["wanted"])
    need(len(items) == len(wish) and min(wish) > 0 and sums_to_one(wish))
    scores = apply(keys, query)
    wanted = [Fraction(0)] * len(keys)
    for i, w in zip(items, wish, strict=True):
        wanted[i] = w
    reading = Softmax(scores)
    holds = at_most(reading.distance(wanted), single(claims["distance"]))
    if "output" in claims:
        target = [dot(wanted, c) for c in columns(values)]
        holds = at_most(reading.output_distance(values, target), single(claims["output"])) and holds
    if "multipliers" in data:
        nu, tol = vector(data["multipliers"]), tolerance(data)
        need(len(nu) == len(items))
    if "norm_at_least" in claims:
        need("multipliers" in data)
        rest = [i for i in range(len(keys)) if i not in items]
        mix = Softmax([scores[i] for i in rest]) if rest else None
        holds = _norm_is_at_least(keys, items, wish, nu, tol, rest, mix, claims) and holds
    return holds


def no_query(data, claims):
    keys = table(data["keys"])
    items, wish, nu = places(data["items"], len(keys)), vector(data["wanted"]), vector(data["multipliers"])
    need(len(items) == len(wish) == len(nu) and min(wish) > 0 and sums_to_one(wish))
    tol, others, mix = tolerance(data), [], None
    if data.get("others", []) != []:
        others, given = places(data["others"], len(keys)), vector(data["mix"])
        need(len(others) == len(given) and min(given) > 0 and not set(others) & set(items))
        mix = Given(given)
    return _norm_is_at_least(keys, items, wish, nu, tol, others, mix, claims)


class Given:
    """Weights that were written down, made to sum to 1."""

    def __init__(self, raw):
        self.weights = [w / sum(raw) for w in raw]

    def mean(self, coefficients, less=Fraction(0)):
        return big(dot(self.weights, coefficients) - less)

    def is_mean(self, coefficients, less=Fraction(0)):
        return dot(self.weights, coefficients) == less

    def entropy(self):
        return -mpmath.fsum(big(w) * mpmath.log(big(w)) for w in self.weights)


def _norm_is_at_least(keys, items, wish, nu, tol, rest, mix, claims):
    """Any q with scores s: the exact ratios say s_i - s_a = log(w_i/w_a); a leak of at most tol says that
    log sum_rest e^s <= log sum_items e^s + log(tol/(1-tol)), where sum_items e^s = e^(s_a) (sum w)/w_a.
    Jensen: the left side is at least p·s + H(p) for every distribution p. Added up: |g| |q| >= g·q >= b."""
    claim = single(claims["norm_at_least"])
    need(claim > 0)
    a = keys[items[0]]
    b = mpmath.fsum(big(v) * mpmath.log(big(w / wish[0])) for v, w in zip(nu, wish, strict=True))
    fixed = [sum((v * (keys[i][m] - a[m]) for v, i in zip(nu, items, strict=True)), Fraction(0)) for m in range(len(a))]
    if rest:
        b += mpmath.log(big(wish[0] / sum(wish))) + mix.entropy() - mpmath.log(big(tol / (1 - tol)))
        fixed = [f + x for f, x in zip(fixed, a, strict=True)]
        others = columns([keys[i] for i in rest])
        if all(mix.is_mean(c, less=f) for c, f in zip(others, fixed, strict=True)):
            return b > 0
        g = length([mix.mean(c, less=f) for c, f in zip(others, fixed, strict=True)])
    elif not any(fixed):
        return b > 0
    else:
        g = length([big(f) for f in fixed])
    return at_least(b, big(claim) * g) if mpmath.isfinite(big(claim)) else False


def selects(data, claims):
    keys, query = table(data["keys"]), vector(data["query"])
    item = one_place(data["item"], len(keys))
    need(len(query) == len(keys[0]) and any(query))
    return _selects(keys, item, query, single(claims["margin"]))


def _selects(keys, item, query, claim):
    need(claim > 0)
    scores = apply(keys, query)
    own = scores.pop(item)
    if not scores:
        return True
    margin = own - max(scores)
    return margin > 0 and claim != mpmath.inf and margin**2 >= claim**2 * dot(query, query)


def top_item(data, claims):
    keys, queries = table(data["keys"]), table(data["queries"])
    need(len(keys[0]) == len(queries[0]) and all(any(q) for q in queries))
    items, first, last = (vector(data[name]) for name in ("items", "first", "last"))
    need(len(queries) == len(items) == len(first) == len(last))
    need(all(v.denominator == 1 and 0 <= v < len(keys) for v in [*items, *first, *last]))
    need(all(a <= i <= b and a < b for a, i, b in zip(first, items, last, strict=True)))
    radii = claims["radius"] if isinstance(claims["radius"], list) else [claims["radius"]]
    radii = radii * len(queries) if len(radii) == 1 else radii
    need(len(radii) == len(queries) and all(r > 0 for r in radii))
    for query, item, a, b, radius in zip(queries, items, first, last, radii, strict=True):
        gap = min(dot(minus(keys[int(item)], keys[i]), query) for i in range(int(a), int(b) + 1) if i != item)
        if not (gap > 0 and radius != mpmath.inf and gap**2 >= 4 * radius**2 * dot(query, query)):
            return False
    return True


def inside(data, claims):
    keys = table(data["keys"])
    item, others, mix = one_place(data["item"], len(keys)), places(data["indices"], len(keys)), vector(data["weights"])
    need(len(others) == len(mix) and item not in others and min(mix) >= 0 and any(mix))
    holds = _inside(keys, item, others, mix, single(claims["margin_at_most"]))
    if "exact" in claims:
        need(claims["exact"] == 0)
        corners = [[*keys[i], Fraction(1)] for i in others]
        found = solve(columns(corners), [*keys[item], Fraction(1)]) if rank(corners) == len(corners) else None
        holds = holds and found is not None and min(found) >= 0
    return holds


def _inside(keys, item, others, mix, claim):
    shift = [dot(mix, [keys[i][m] - keys[item][m] for i in others]) for m in range(len(keys[0]))]
    return norm_at_most(dot(shift, shift), claim, scale=sum(mix))


def copyable(data, claims):
    keys, possible = table(data["keys"]), vector([int(p) if isinstance(p, bool) else p for p in data["possible"]])
    need(len(keys) == len(possible) and set(possible) <= {0, 1})
    yes, no = ([i for i, p in enumerate(possible) if p == v] for v in (1, 0))
    queries = table(data["queries"]) if data["queries"] else []
    need(len(queries) == len(yes) and all(len(q) == len(keys[0]) and any(q) for q in queries))
    which = vector(data["indices"]) if data["indices"] else []
    mix = vector(data["weights"]) if data["weights"] else []
    starts = vector(data["offsets"])
    need(all(v.denominator == 1 for v in [*which, *starts]))
    which, starts = [int(v) for v in which], [int(v) for v in starts]
    need(len(starts) == len(no) + 1 and starts[0] == 0 and starts[-1] == len(which) == len(mix))
    need(all(a < b for a, b in itertools.pairwise(starts)))
    need(all(0 <= i < len(keys) for i in which) and all(w >= 0 for w in mix))
    parts = [slice(a, b) for a, b in itertools.pairwise(starts)]
    need(all(any(mix[part]) and i not in which[part] for i, part in zip(no, parts, strict=True)))
    margins, residuals = claims["margin"], claims["margin_at_most"]
    margins, residuals = (c if isinstance(c, list) else [c] for c in (margins, residuals))
    need(len(margins) == len(yes) and len(residuals) == len(no) and all(m > 0 for m in margins))
    can = all(_selects(keys, i, q, c) for i, q, c in zip(yes, queries, margins, strict=True))
    cannot = all(_inside(keys, i, which[p], mix[p], c) for i, p, c in zip(no, parts, residuals, strict=True))
    return can and cannot


def projection(data, claims):
    a, b, m = table(data["A"]), table(data["B"]), table(data["M"])
    need(len(a) == len(b) == len(m) == len(m[0]))
    if "C" in data:
        c = table(data["C"])
        need(len(c) == len(a[0]) and len(c[0]) == len(a))
    need(set(claims) <= {"keeps", "removes"} or "C" in data)
    off = {
        "keeps": [x for col in columns(a) for x in minus(apply(m, col), col)],
        "removes": [x for col in columns(b) for x in apply(m, col)],
    }
    if "coordinates" in claims:
        unit = [[Fraction(int(i == j)) for j in range(len(c))] for i in range(len(c))]
        off["coordinates"] = [x for col, e in zip(columns(a), unit, strict=True) for x in minus(apply(c, col), e)]
        off["coordinates"] += [x for col in columns(b) for x in apply(c, col)]
    return all(norm_at_most(dot(off[name], off[name]), single(claim)) for name, claim in claims.items())


def intersection(data, claims):
    a, b, x, y = table(data["A"]), table(data["B"]), vector(data["x"]), vector(data["y"])
    need(len(a) == len(b) and len(a[0]) == len(x) and len(b[0]) == len(y))
    v, w = apply(a, x), apply(b, y)
    need(any(v))
    gap, claim = minus(v, w), single(claims["gap"])
    holds = claim == mpmath.inf or (claim >= 0 and dot(gap, gap) <= claim**2 * dot(v, v))
    if "exact" in claims:
        need(claims["exact"] == 0)
        both = [[*r, *s] for r, s in zip(a, b, strict=True)]
        holds = holds and rank(both) < rank(a) + rank(b)
    return holds


def _rules(data, tokens):
    rules, wanted = places(data["rules"], tokens), table(data["wanted"])
    need(len(rules) == len(wanted) and len(wanted[0]) == tokens)
    need(all(min(row) >= 0 and sums_to_one(row) for row in wanted))
    return rules, wanted


def _sees(data, tokens):
    """Which tokens each token sees."""
    mask = data.get("mask")
    if mask is None:
        return [[True] * tokens for _ in range(tokens)]
    if isinstance(mask, str):
        need(mask == "causal")
        return [[j <= i for j in range(tokens)] for i in range(tokens)]
    rows = table(mask)
    need(len(rows) == len(rows[0]) == tokens and all(v in (0, 1) for row in rows for v in row))
    return [[v == 1 for v in row] for row in rows]


def wiring(data, claims):
    x, q, k, v = (table(data[name]) for name in ("X", "Q", "K", "V"))
    need(len({len(m[0]) for m in (x, q, k, v)}) == 1 and len(q) == len(k))
    rules, wanted = _rules(data, len(x))
    sees = _sees(data, len(x))
    need(all(sees[i][j] or not w for i, row in zip(rules, wanted, strict=True) for j, w in enumerate(row)))
    if "writes" in data:
        writes = table(data["writes"])
        need(len(writes) == len(rules) and len(writes[0]) == len(v))
    need("writes" in data or set(claims) <= {"distance", "norm_at_least"})
    keys, values = [apply(k, t) for t in x], [apply(v, t) for t in x]
    seen = [[j for j in range(len(x)) if sees[i][j]] for i in rules]
    scores = [apply(keys, apply(q, x[i])) for i in rules]
    readings = [Softmax([row[j] for j in js]) for row, js in zip(scores, seen, strict=True)]
    holds = True
    if "multipliers" in data or "tol" in data:
        sizes = [sum(1 for w in row if w) for row in wanted]
        flat, tol = vector(data["multipliers"]), tolerance(data)
        need(len(flat) == sum(sizes))
        listed = [flat[sum(sizes[:r]) : sum(sizes[: r + 1])] for r in range(len(rules))]
        need(all(own[0] >= 0 for own in listed))
    for name, claim in claims.items():
        if name == "norm_at_least":
            need("multipliers" in data)
            holds = _wiring_norm(x, rules, wanted, seen, scores, listed, tol, single(claim)) and holds
            continue
        per_rule = claim if isinstance(claim, list) else [claim] * len(rules)
        per_rule = per_rule * len(rules) if len(per_rule) == 1 else per_rule
        need(len(per_rule) == len(rules))
        for row, (reading, c) in enumerate(zip(readings, per_rule, strict=True)):
            if name == "distance":
                holds = at_most(reading.distance([wanted[row][j] for j in seen[row]]), c) and holds
            elif name == "output":
                holds = at_most(reading.output_distance([values[j] for j in seen[row]], writes[row]), c) and holds
            else:  # what V would leave if the weights were just as wanted
                left = minus([dot(wanted[row], column) for column in columns(values)], writes[row])
                holds = norm_at_most(dot(left, left), c) and holds
    return holds


def _wiring_norm(x, rules, wanted, seen, scores, listed, tol, claim):
    """Every rule: Λ (s_a - p·s) >= Λ (log(w_a/sum w) + H(p) - log(tol/(1-tol))), and ν (s_c - s_a) = ν log(w_c/w_a)."""
    need(claim > 0)
    b, d = mpf(0), len(x[0])
    g = [[mpf(0)] * d for _ in range(d)]
    edge = mpmath.log(big(tol / (1 - tol)))
    for r, i in enumerate(rules):
        inside = [j for j in seen[r] if wanted[r][j] > 0]
        rest = [j for j in seen[r] if not wanted[r][j]]
        leak, a = (listed[r][0] if rest else Fraction(0)), inside[0]
        coefficient = {j: mpf(0) for j in seen[r]}
        coefficient[a] += big(leak)
        if leak:
            reading = Softmax([scores[r][j] for j in rest])
            for place, j in enumerate(rest):
                coefficient[j] -= big(leak) * reading.exps[reading.group[place]] / reading.total
            share = mpmath.log(big(wanted[r][a] / sum(wanted[r])))
            b += big(leak) * (share + reading.entropy() - edge)
        for c, nu in zip(inside[1:], listed[r][1:], strict=True):
            coefficient[c] += big(nu)
            coefficient[a] -= big(nu)
            b += big(nu) * mpmath.log(big(wanted[r][c] / wanted[r][a]))
        way = [mpmath.fsum(v * big(x[j][t]) for j, v in coefficient.items()) for t in range(d)]
        g = [[g[s][t] + big(x[i][s]) * way[t] for t in range(d)] for s in range(d)]
    size = length([e for row in g for e in row])
    return size > 0 and mpmath.isfinite(big(claim)) and at_least(b / size, claim)


def no_wiring(data, claims):
    """As for one query, but the unknown is W and the score of rule r for token j is x_r·W x_j = <x_r x_j^T, W>."""
    x, tol, claim = table(data["X"]), tolerance(data), single(claims["norm_at_least"])
    rules, wanted = _rules(data, len(x))
    mix, nu = table(data["mix"]), table(data["multipliers"])
    need(all(len(m) == len(rules) and len(m[0]) == len(x) for m in (mix, nu)) and claim > 0)
    b, d = mpf(0), len(x[0])
    g = [[Fraction(0)] * d for _ in range(d)]
    edge = mpmath.log(big(tol / (1 - tol)))
    for r, i in enumerate(rules):
        inside = [j for j in range(len(x)) if wanted[r][j] > 0]
        need(all(weight >= 0 for weight in mix[r]))  # all of them first: 1 and -1 have the sum 0
        a, factor = inside[0], sum(mix[r])
        coefficient = [Fraction(0)] * len(x)
        for j in range(len(x)):
            need(mix[r][j] == 0 if j in inside else nu[r][j] == 0)
            coefficient[j] += nu[r][j] - mix[r][j]
            coefficient[a] -= nu[r][j]
            if nu[r][j]:
                b += big(nu[r][j]) * mpmath.log(big(wanted[r][j] / wanted[r][a]))
            if mix[r][j]:
                b -= big(mix[r][j]) * mpmath.log(big(mix[r][j] / factor))
        coefficient[a] += factor
        b += big(factor) * (mpmath.log(big(wanted[r][a] / sum(wanted[r]))) - edge)
        direction = [dot(coefficient, c) for c in columns(x)]
        g = [[g[s][t] + x[i][s] * direction[t] for t in range(d)] for s in range(d)]
    entries = [e for row in g for e in row]
    if not any(entries):
        return b > 0
    return mpmath.isfinite(big(claim)) and at_least(b, big(claim) * length([big(e) for e in entries]))


def no_query_within_tol(data, claims):
    """A weight of one item can fall short of the wanted one by T at most, and all together by no more than T."""
    keys, tol, claim = table(data["keys"]), tolerance(data), single(claims["norm_at_least"])
    items, wish = places(data["items"], len(keys)), vector(data["wanted"])
    others, mix, lam = places(data["others"], len(keys)), vector(data["mix"]), vector(data["multipliers"])
    need(len(items) == len(wish) == len(lam) and len(others) == len(mix) and min(wish) > 0 and sums_to_one(wish))
    need(min(lam) >= 0 and min(mix) >= 0 and any(mix) and claim > 0)
    whole_wish, whole_lam, whole_mix = ([Fraction(0)] * len(keys) for _ in range(3))
    for i, w, v in zip(items, wish, lam, strict=True):
        whole_wish[i], whole_lam[i] = w, v
    for j, m in zip(others, mix, strict=True):
        whole_mix[j] = m
    g, b = _within(keys, whole_wish, whole_lam, whole_mix, tol)
    if not any(g):
        return b > 0
    return mpmath.isfinite(big(claim)) and at_least(b, big(claim) * length([big(e) for e in g]))


def _within(rows, wish, lam, mix, tol):
    """g and b of the inequality that every reading within tol meets: the worst of the corners of the shortfalls."""
    short = tol + (sum(wish) - 1) / 2
    need(all(w > short for w, v in zip(wish, lam, strict=True) if v))
    m, v = sum(mix), sum(lam)
    g = [dot([m * a - v * c for a, c in zip(lam, mix, strict=True)], column) for column in columns(rows)]
    entropy = mpmath.fsum(-big(c) * mpmath.log(big(c / m)) for c in mix if c)
    corners = []
    for whole in [j for j, a in enumerate(lam) if a]:
        left = [w - (short if j == whole else 0) for j, w in enumerate(wish)]
        corners.append(mpmath.fsum(big(a) * mpmath.log(big(w)) for a, w in zip(lam, left, strict=True) if a))
    return g, big(v) * entropy + big(m) * min(corners, default=mpf(0))


def no_wiring_within_tol(data, claims):
    x, tol, claim = table(data["X"]), tolerance(data), single(claims["norm_at_least"])
    rules, wanted = _rules(data, len(x))
    mix, lam = table(data["mix"]), table(data["multipliers"])
    need(all(len(m) == len(rules) and len(m[0]) == len(x) for m in (mix, lam)) and claim > 0)
    need(all(min(row) >= 0 for row in [*mix, *lam]))
    d, b = len(x[0]), mpf(0)
    total = [[Fraction(0)] * d for _ in range(d)]
    for r, i in enumerate(rules):
        need(all(w > 0 or not a for w, a in zip(wanted[r], lam[r], strict=True)))
        if any(lam[r]):
            need(any(mix[r]))
            g, gain = _within(x, wanted[r], lam[r], mix[r], tol)
            b += gain
            total = [[total[s][t] + x[i][s] * g[t] for t in range(d)] for s in range(d)]
    entries = [e for row in total for e in row]
    if not any(entries):
        return b > 0
    return mpmath.isfinite(big(claim)) and at_least(b, big(claim) * length([big(e) for e in entries]))


def unreachable(data, claims):
    """Token i becomes x_i + r u. Its score for itself minus that for token j is c2 r² + c1 r + c0; where all
    of these are bounded below, so is its weight on itself. Seen along the normal h the output is then at least
    the lowest corner, less what its own moving value can take off (|r| <= range); beyond the range, along Vu,
    that value outweighs everything."""
    x, q, k, v = (table(data[name]) for name in ("X", "Q", "K", "V"))
    u, y, h = (vector(data[name]) for name in ("along", "target", "normal"))
    need(len({len(x[0]), len(q[0]), len(k[0]), len(v[0]), len(u)}) == 1 and len(q) == len(k))
    need(len(v) == len(y) == len(h) and any(h))
    i, reach, claim = one_place(data["token"], len(x)), real(data["range"]), single(claims["distance"])
    need(reach > 0 and claim > 0)
    qx, qu, ku, vu = apply(q, x[i]), apply(q, u), apply(k, u), apply(v, u)
    keys, values = [apply(k, t) for t in x], [apply(v, t) for t in x]
    others = [j for j in range(len(x)) if j != i]
    c2, lowest = dot(qu, ku), []
    for j in others:
        c1 = dot(qx, ku) + dot(qu, minus(keys[i], keys[j]))
        c0 = dot(qx, minus(keys[i], keys[j]))
        if c2 > 0:
            lowest.append(c0 - c1 * c1 / (4 * c2))
        else:
            lowest.append(c0 if c2 == 0 and c1 == 0 else None)
    rivals = None if None in lowest else mpmath.fsum(mpmath.exp(-big(m)) for m in lowest)
    share, left = (mpf(0), mpf(1)) if rivals is None else (1 / (1 + rivals), rivals / (1 + rivals))
    sides = [dot(h, minus(value, y)) for value in values]
    near = min([big(sides[i])] + [left * big(sides[j]) + share * big(sides[i]) for j in others])
    drift, size = dot(h, vu), length([big(e) for e in h])
    if drift == 0:
        return at_least(near / size, claim)
    near -= big(reach * abs(drift))
    own = reach * dot(vu, vu) - abs(dot(vu, values[i]))
    rest = max([abs(dot(vu, values[j])) for j in others], default=Fraction(0)) + abs(dot(vu, y))
    far = (share * big(own) - big(rest)) / length([big(e) for e in vu])
    return at_least(near / size, claim) and at_least(far, claim)


JUDGES = {
    "weights": (
        ("keys", "values", "query", "items", "wanted", "multipliers", "tol"),
        ("distance",), ("output", "norm_at_least"), weights,
    ),
    "no query": (
        ("keys", "items", "wanted", "multipliers", "tol", "others", "mix"), ("norm_at_least",), (), no_query,
    ),
    "no query within tol": (
        ("keys", "items", "wanted", "multipliers", "tol", "others", "mix"), ("norm_at_least",), (), no_query_within_tol,
    ),
    "no wiring within tol": (
        ("X", "rules", "wanted", "mix", "multipliers", "tol"), ("norm_at_least",), (), no_wiring_within_tol,
    ),
    "selects": (("keys", "item", "query"), ("margin",), (), selects),
    "top item": (("keys", "queries", "items", "first", "last"), ("radius",), (), top_item),
    "inside": (("keys", "item", "indices", "weights"), ("margin_at_most",), ("exact",), inside),
    "copyable": (
        ("keys", "possible", "queries", "offsets", "indices", "weights"), ("margin", "margin_at_most"), (), copyable,
    ),
    "projection": (("A", "B", "M", "C"), ("keeps", "removes"), ("coordinates",), projection),
    "intersection": (("A", "B", "x", "y"), ("gap",), ("exact",), intersection),
    "wiring": (
        ("X", "Q", "K", "V", "rules", "wanted", "writes", "mask", "multipliers", "tol"), ("distance",),
        ("output", "residual", "norm_at_least"), wiring,
    ),
    "no wiring": (("X", "rules", "wanted", "mix", "multipliers", "tol"), ("norm_at_least",), (), no_wiring),
    "unreachable": (
        ("X", "Q", "K", "V", "along", "target", "token", "normal", "range"), ("distance",), (), unreachable,
    ),
}  # fmt: skip
"""By kind: the names that data may have, the claims that it must and may make, and who judges it."""
