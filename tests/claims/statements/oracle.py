"""Check the tags of the statement files without qkv.

The script has its own parser and evaluates both sides of a statement with mpmath at random and extreme instances (300 digits;
limits at far scales; Gaussian moments in closed form, statistics of weights by quadrature). A true tag needs every instance to agree, a
false tag needs one instance that disagrees. A comment that begins with `@ s=1/7, n=2` gives the instance.

Run: python tests/claims/statements/oracle.py [FILE…]
"""

from __future__ import annotations

import itertools
import random
import re
import sys
from pathlib import Path

import mpmath as mp
import numpy as np

HERE = Path(__file__).parent
TOKEN = re.compile(
    r"\s*(?:(?P<stat>(?:Var|Cov|Corr|E|P)(?=\s*\[))|(?P<fun>(?:exp|log|sqrt|norm|Phi|R)(?=\s*\())"
    r"|(?P<sum>sum(?:_\{[^{}]*\}|_[A-Za-z])(?:\s*\^\s*(?:[nmp](?![A-Za-z0-9_])|\{\s*[nmp]\s*\}))?)"
    r"|(?P<num>\d+(?:\.(?!\.)\d+)?)|(?P<name>[A-Za-z]+(?:_(?:[A-Za-z0-9]+|\{[A-Za-z0-9, ]+\}))?)"
    r"|(?P<op>-/->|->|<=|>=|!=|~=|\.\.|[-+*/^()\[\]{}',=<>~]))"
)


class Undefined(Exception):
    pass


# ---------------------------------------------------------------- polynomials and exponentials of Gaussians
class G:
    """Sum of coefficient * product of g^power * exp(linear form of g) over independent standard normal g."""

    def __init__(self, terms):
        self.terms = {k: c for k, c in terms.items() if c != 0}

    @staticmethod
    def of(x):
        return x if isinstance(x, G) else G({((), ()): mp.mpf(x)})

    @staticmethod
    def var(name):
        return G({(((name, 1),), ()): mp.mpf(1)})

    def __add__(self, o):
        o = G.of(o)
        out = dict(self.terms)
        for k, c in o.terms.items():
            out[k] = out.get(k, 0) + c
        return G(out)

    __radd__ = __add__

    def __neg__(self):
        return G({k: -c for k, c in self.terms.items()})

    def __sub__(self, o):
        return self + (-G.of(o))

    def __rsub__(self, o):
        return G.of(o) - self

    def __mul__(self, o):
        if isinstance(o, np.ndarray):
            return NotImplemented
        o = G.of(o)
        out = {}
        for (p1, e1), c1 in self.terms.items():
            for (p2, e2), c2 in o.terms.items():
                p = dict(p1)
                for v, k in p2:
                    p[v] = p.get(v, 0) + k
                e = dict(e1)
                for v, k in e2:
                    e[v] = e.get(v, 0) + k
                key = (tuple(sorted(p.items())), tuple(sorted((v, k) for v, k in e.items() if k != 0)))
                out[key] = out.get(key, 0) + c1 * c2
        return G(out)

    __rmul__ = __mul__

    def __truediv__(self, o):
        if isinstance(o, G):
            o = o.constant()
        return self * (1 / mp.mpf(o))

    def __rtruediv__(self, o):
        return o / self.constant()

    def constant(self):
        if any(k != ((), ()) for k in self.terms):
            raise NotImplementedError("random")
        return self.terms.get(((), ()), mp.mpf(0))

    def __pow__(self, k):
        k = int(k)
        if k < 0:
            return 1 / (self.constant() ** -k)
        out = G.of(1)
        for _ in range(k):
            out = out * self
        return out

    def linear(self):
        """Constant and coefficients of an affine form."""
        const, coef = mp.mpf(0), {}
        for (p, e), c in self.terms.items():
            if e or sum(k for _, k in p) > 1:
                raise NotImplementedError("not linear")
            if p:
                coef[p[0][0]] = c
            else:
                const = c
        return const, coef

    def exp(self):
        const, coef = self.linear()
        return G({((), tuple(sorted(coef.items()))): mp.exp(const)})

    def mean(self):
        total = mp.mpf(0)
        for (p, e), c in self.terms.items():
            powers, slopes = dict(p), dict(e)
            for v in set(powers) | set(slopes):
                k, s = powers.get(v, 0), slopes.get(v, mp.mpf(0))
                c = c * mp.exp(s * s / 2) * sum(
                    mp.binomial(k, j) * s ** (k - j) * (mp.fac2(j - 1) if j else 1) for j in range(0, k + 1, 2)
                )
            total += c
        return total


# ---------------------------------------------------------------- parser
class Parser:
    def __init__(self, text):
        self.text, self.tokens, at = text, [], 0
        text = text.rstrip()
        while at < len(text):
            m = TOKEN.match(text, at)
            if not m or m.end() == at:
                raise SyntaxError(f"{text!r} at {at}")
            self.tokens.append((m.lastgroup, m.group(m.lastgroup)))
            at = m.end()
        self.i = 0

    def peek(self, k=0):
        return self.tokens[self.i + k] if self.i + k < len(self.tokens) else ("end", "")

    def take(self, value=None):
        kind, text = self.peek()
        if value is not None and text != value:
            raise SyntaxError(f"{self.text!r}: expected {value} got {text}")
        self.i += 1
        return kind, text

    def expr(self):
        left = self.addend()
        while self.peek()[1] in ("+", "-") and self.peek()[0] == "op":
            op = self.take()[1]
            left = (op, left, self.addend())
        return left

    def addend(self):
        if self.peek()[0] == "sum":
            s = self.take()[1]
            return ("sum", s, self.addend())
        left = self.signed()
        while True:
            kind, text = self.peek()
            if text in ("*", "/") and kind == "op":
                self.take()
                if self.peek()[0] == "sum":
                    s = self.take()[1]
                    return (text, left, ("sum", s, self.addend()))
                left = (text, left, self.signed())
            elif kind == "sum":
                s = self.take()[1]
                return ("*", left, ("sum", s, self.addend()))
            elif (kind in ("num", "fun", "stat") or text == "(" or (kind == "name" and text not in WORDS)):
                left = ("*", left, self.factor())
            else:
                return left

    def signed(self):
        if self.peek()[1] == "-":
            self.take()
            return ("neg", self.signed())
        return self.factor()

    def factor(self):
        base = self.base()
        if self.peek()[1] == "^":
            self.take()
            kind, text = self.peek()
            if text in ("(", "{"):
                self.take()
                e = self.expr()
                self.take()
            elif text == "-":
                self.take()
                e = ("neg", ("num", self.take()[1]))
            else:
                e = (kind, self.take()[1])
                if e == ("name", "T"):
                    return ("'", base)
            return ("^", base, e)
        return base

    def base(self):
        node = self.atom()
        while self.peek()[1] == "'":
            self.take()
            node = ("'", node)
        return node

    def atom(self):
        kind, text = self.take()
        if kind == "num":
            return ("num", text)
        if kind == "name":
            return ("name", text)
        if kind == "fun":
            self.take("(")
            e = self.expr()
            self.take(")")
            return ("fun", text, e)
        if kind == "stat":
            self.take("[")
            if text == "P":
                rel = self.relation()
                self.take("]")
                return ("P", rel)
            args = [self.expr()]
            while self.peek()[1] == ",":
                self.take()
                args.append(self.expr())
            self.take("]")
            return ("stat", text, args)
        if text == "(":
            e = self.expr()
            self.take(")")
            return e
        raise SyntaxError(f"{self.text!r}: unexpected {text!r}")

    def relation(self):
        parts = [self.expr()]
        ops = []
        while self.peek()[1] in ("=", "!=", "<", "<=", ">", ">="):
            ops.append(self.take()[1])
            parts.append(self.expr())
        if not ops:
            raise SyntaxError(self.text)
        return ("rel", parts, ops)


WORDS = {"for", "as", "when", "within", "of", "with", "makes", "is", "and", "in", "not", "all", "no"}


def parse_tail(p, out):
    while p.peek()[0] != "end":
        word = p.take()[1]
        if word == "as":
            out["limits"] = []
            while True:
                name = p.take()[1]
                p.take("->")
                out["limits"].append((name, p.expr()))
                if p.peek()[1] != ",":
                    break
                p.take()
        elif word == "for":
            if p.peek()[1] == "all":
                p.take()
                out["quantifier"] = (p.take()[1], [])
            else:
                name = p.take()[1]
                if p.peek()[1] == "not":
                    p.take()
                    p.take("in")
                    p.take("{")
                else:
                    p.take("!=")
                out["quantifier"] = (name, [p.take()[1]])
                while p.peek()[1] == ",":
                    p.take()
                    out["quantifier"][1].append(p.take()[1])
                if p.peek()[1] == "}":
                    p.take()
        elif word == "when":
            out["when"] = [p.relation()]
            while p.peek()[1] == "and":
                p.take()
                out["when"].append(p.relation())
        else:
            raise SyntaxError(f"{p.text!r}: tail {word}")
    return out


def parse_then(text):
    m = re.match(r"no (real|query) (\w+) makes (.*)", text)
    if m:
        inner = parse_then(m[3])
        return {"kind": "never", "what": m[1], "name": m[2], "inner": inner, "limits": inner.get("limits", []),
                "when": inner.pop("when", [])}
    m = re.match(r"(\w+) is a (probability )?distribution$", text)
    if m:
        return {"kind": "distribution", "name": m[1], "limits": []}
    if text.endswith("is permutation equivariant"):
        return {"kind": "equivariant", "limits": []}
    p = Parser(text)
    out = {"limits": [], "when": [], "quantifier": None}
    start = p.expr()
    op = p.peek()[1]
    if op == "within":
        p.take()
        radius = p.expr()
        p.take("of")
        target = p.expr()
        p.take("with")
        p.take("probability")
        rel = p.take()[1]
        out.update(kind="within", left=start, radius=radius, right=target, rel=rel, chance=p.expr())
    elif op in ("->", "~=", "-/->"):
        p.take()
        out.update(kind="limit", left=start, right=p.expr(), negated=op == "-/->")
    else:
        p.i = 0
        out.update(kind="relation", rel=p.relation())
    return parse_tail(p, out)


def split_commas(text):
    depth, out, cur = 0, [], ""
    for ch in text:
        depth += ch in "([{"
        depth -= ch in ")]}"
        if ch == "," and depth == 0:
            out.append(cur.strip())
            cur = ""
        else:
            cur += ch
    return [*out, cur.strip()]


# ---------------------------------------------------------------- the world of one header
class World:
    def __init__(self, givens, lets):
        self.families, self.vectors, self.bases, self.numbers = [], {}, [], {}
        self.facts, self.gauss, self.limits, self.spaces, self.right = [], {}, [], {}, False
        self.lets = {}
        for line in givens:
            self._given(line)
        for line in lets:
            for part in split_commas(line):
                name, expr = part.split("=", 1)
                p = Parser(expr)
                self.lets[name.strip()] = p.expr()
                assert p.peek()[0] == "end", part
        self.tokens = sorted(n for n in self.lets if re.match(r"x_\d+$", n))

    def _given(self, line):
        pending = []
        for part in split_commas(line):
            m = re.match(r"(.*?)\b(orthonormal bas[ie]s(?: at right angles)?|orthonormal|orthogonal|free|real)\b(?: of norm (.*))?$", part)
            sp = re.match(r"(\w+) in R\^([mp])$", part)
            ga = re.match(r"([\w]+) ~ N\((.*)\)$", part)
            li = re.match(r"(\w+) -> (.*)$", part)
            if sp:
                self.spaces[sp[1]] = sp[2]
            elif ga:
                mean, var = split_commas(ga[2])
                self.gauss[ga[1]] = (Parser(mean).expr(), Parser(var).expr())
            elif li:
                self.limits.append((li[1], Parser(li[2]).expr()))
            elif m:
                items = [*pending, m[1].strip()]
                pending = []
                kind = m[2]
                if kind.startswith("orthonormal bas"):
                    self.bases += items
                    self.right = self.right or "right" in kind
                elif kind == "real":
                    for x in items:
                        self.numbers[x] = None
                else:
                    norm = Parser(m[3]).expr() if m[3] else None
                    self.families.append((items, kind, norm))
                    if norm and norm[0] == "name":
                        self.facts.append((("rel", [norm, ("num", "0")], [">"]), None))
            elif re.search(r"[<>=]", part):
                assert not pending, part
                p = Parser(part)
                rel = p.relation()
                tail = parse_tail(p, {"quantifier": None})
                self.facts.append((rel, tail["quantifier"]))
            else:
                pending.append(part)
        assert not pending, line


def names_in(node, out):
    if isinstance(node, tuple) and node and node[0] == "name":
        out.add(node[1])
    elif isinstance(node, tuple) and node and node[0] == "sum":
        out.add("sum:" + node[1])
        names_in(node[2], out)
    elif isinstance(node, (tuple, list)):
        for x in node:
            names_in(x, out)
    elif isinstance(node, dict):
        for x in node.values():
            names_in(x, out)
    return out


VECTORISH = ("k", "v", "alpha", "mu", "x", "c", "q")


class Eye:
    def __init__(self, s=1):
        self.s = s


class Instance:
    """Numbers, vectors and items of one instance; `ev` evaluates an expression."""

    def __init__(self, world, statement, rng, forced=None, multiplicity=False):
        self.w, self.rng, self.st = world, rng, statement
        self.forced = dict(forced or {})
        self.nums, self.index, self.cache, self.draw = {}, {}, {}, None
        self.multiplicity = multiplicity
        names = set()
        for part in (world.lets, world.facts, world.gauss, world.families, statement):
            names_in(part, names)
        names |= set(world.lets) | set(world.gauss)
        for items, _, _ in world.families:
            names |= {i for i in items if ".." not in i}
        bound = {"i"}
        q = statement.get("quantifier") or (statement.get("inner") or {}).get("quantifier")
        if q:
            bound.add(q[0])
        for _, qq in world.facts:
            if qq:
                bound.add(qq[0])
        for n in names:
            if n.startswith("sum:"):
                bound.add(re.match(r"sum:sum_\{?([A-Za-z])", n)[1])
        self.bound = bound
        letters = set()
        self.fam = {}
        for items, kind, norm in world.families:
            for it in items:
                m = re.match(r"(\w+)_1\.\.(\w+)_(\w+)$", it)
                if m:
                    self.fam[m[1]] = (kind, norm, m[3])
        fambases = set(self.fam) | {"k", "v", "alpha", "mu"}
        self.numnames = set()
        listed = {it for items, _, _ in world.families for it in items}
        for n in names:
            if n.startswith("sum:"):
                continue
            base, _, sub = n.partition("_")
            for s in re.findall(r"[A-Za-z]+|\d", sub):
                if base in fambases and s.isalpha() and s not in bound and len(s) == 1 and n not in listed:
                    letters.add(s)
        exclusions = [n.split("!=")[1] for n in names if n.startswith("sum:") and "!=" in n]
        exclusions += [",".join(qq[1]) for qq in [q, *(f[1] for f in world.facts)] if qq]
        for text in exclusions:
            letters |= {s for s in re.findall(r"[A-Za-z]+", text) if s not in bound}
        if world.bases:
            letters -= {"a", "b"} if not self.fam else set()
        self.letters = sorted(letters)
        if world.tokens:
            self.letters = []
        self.item_of = {s: j for j, s in enumerate(self.letters)}
        for n in names:
            base, _, sub = n.partition("_")
            if n.startswith("sum:") or n in world.lets or n in listed or n in world.bases or n in world.spaces:
                continue
            if base in fambases or n in ("c", "q", "I", "Q", "K", "V", "M", "oo", "n") or base in ("c", "q", "x") and sub:
                continue
            if world.bases and base in [b.lower() for b in world.bases] and sub:
                continue
            if n in world.gauss:
                continue
            self.numnames.add(n)
        self.numnames |= set(world.numbers)
        self.numnames -= {i for i, _ in [(x, 0) for x in listed]}

    # ---- sampling
    CANDIDATES = ["0", "1", "-1", "2", "-2", "1/2", "1/7", "3", "10", "1/100", "1/1000000", "30", "-1/3", "5/2"]

    def frac(self, s):
        if isinstance(s, str) and "/" in s:
            a, b = s.split("/")
            return mp.mpf(a) / mp.mpf(b)
        return mp.mpf(s)

    def sample(self, limits=(), extra=()):
        facts = [*self.w.facts, *[(r, None) for r in extra]]
        numeric = [f for f in facts if not (names_in(f[0], set()) - self.numnames - {"n"})]
        vector = [f for f in facts if f not in numeric]
        lim = dict(limits)
        numeric = [f for f in numeric if not (names_in(f[0], set()) == {"eps"} and "eps" in lim)]
        minimum = max(len(self.letters), 1)
        for _ in range(4000):
            self.nums = {}
            self.cache = {}
            for rel, _q in numeric:  # equalities fix numbers
                parts, ops = rel[1], rel[2]
                if ops == ["="] and parts[0][0] == "name" and len(names_in(parts[1], set())) == 0:
                    self.nums[parts[0][1]] = self.ev(parts[1])
            for k, val in self.forced.items():
                if k == "scale":
                    continue
                self.nums[k] = self.frac(val)
            for k, val in lim.items():
                self.nums[k] = val
            if "n" not in self.nums:
                self.nums["n"] = mp.mpf(self.rng.choice([minimum, minimum + 1, minimum + 2, 2, 3, 4, 5, 7]))
            if self.nums["n"] < minimum or (self.w.tokens and False):
                continue
            order = sorted(self.numnames - set(self.nums))
            self.rng.shuffle(order)
            for name in order:
                r = self.rng.random()
                if lim:
                    val = self.frac(self.rng.choice(["0", "1", "-1", "2", "1/2", "1/7", "3", "5/2", "-1/3", "6/5", "4/5"]))
                elif r < 0.5:
                    val = self.frac(self.rng.choice(self.CANDIDATES))
                elif r < 0.75:
                    val = mp.mpf(self.rng.gauss(0, 3))
                else:
                    val = mp.exp(self.rng.gauss(0, 2))
                self.nums[name] = min(val, mp.mpf(5 if name == "beta" else 30))
            for name in order:  # near or at a bound
                if self.rng.random() < (0.5 if not lim or _ < 60 else 0):
                    continue
                for rel, _q in numeric:
                    for a, b, op in [(x, y, o) for x, y, o in zip(rel[1], rel[1][1:], rel[2], strict=False)]:
                        if a == ("name", name) or b == ("name", name):
                            other = b if a == ("name", name) else a
                            if ("name", name) != other and name not in names_in(other, set()):
                                up = (op in (">", ">=")) == (a == ("name", name))
                                try:
                                    edge = self.ev(other)
                                except (Undefined, NotImplementedError):
                                    continue
                                off = self.rng.choice([0, mp.mpf("1e-20"), mp.mpf("1e-3"), min(mp.exp(self.rng.gauss(0, 2)), mp.mpf(5))])
                                if lim:
                                    off = self.rng.choice([0, mp.mpf("0.5"), mp.mpf(1), mp.mpf("0.2")])
                                    if off == 0 and "=" not in op:
                                        off = mp.mpf("0.1")
                                if off == 0 and "=" not in op:
                                    off = mp.mpf("1e-25")
                                self.nums[name] = edge + (off if up else -off)
            try:
                if all(self.holds(rel) for rel, _q in numeric):
                    self.build(vector)
                    return True
            except Undefined:
                continue
        return False

    def build(self, vector_facts):
        rng = self.rng
        n = int(min(self.nums["n"], 9)) if not self.multiplicity else len(self.letters) + 1
        if self.w.tokens:
            n = len(self.w.tokens)
        self.n_items = n
        fixed = [f for f in self.fam.values() if f[2].isdigit()]
        for f in fixed:
            self.n_items = n = int(f[2])
            self.nums["n"] = mp.mpf(n)
        listed = [it for items, kind, _ in self.w.families for it in items if ".." not in it and kind != "free"]
        self.dim = D = max(n * max(1, len([f for f in self.fam.values() if f[0] != "free"])) + len(listed), 6 if self.w.bases else 4) + (2 if rng.random() < 0.5 else 0)
        if D % 2:
            self.dim = D = D + 1
        self.vec, at, self.mats = {}, 0, {}
        for items, kind, norm in self.w.families:
            for it in items:
                m = re.match(r"(\w+)_1\.\.(\w+)_(\w+)$", it)
                scale = self.ev(norm) if norm else mp.mpf(1)
                count = n if m else 1
                for j in range(count):
                    key = (m[1], j) if m else it
                    if kind == "free":
                        self.vec[key] = self.free(D)
                    else:
                        self.vec[key] = self.unit(D, at) * scale
                        at += 1
        self.vals = [self.free(D) for _ in range(n)]
        sizes = {"m": rng.choice([2, 3]), "p": 2}
        self.sizes = sizes
        if self.w.bases:
            big = np.array([[mp.mpf(rng.gauss(0, 1)) for _ in range(D)] for _ in range(D)], dtype=object)
            cols = gram(big)
            sub = 0
            for b, size in zip(self.w.bases, (sizes["m"], sizes["p"]), strict=False):
                if not self.w.right and sub:
                    big = np.array([[mp.mpf(rng.gauss(0, 1)) for _ in range(D)] for _ in range(D)], dtype=object)
                    cols2 = gram(big)
                    self.mats[b] = np.array(cols2[:size], dtype=object).T
                else:
                    self.mats[b] = np.array(cols[sub : sub + size], dtype=object).T
                sub += size
            for name, mpp in self.w.spaces.items():
                self.vec[name] = self.free(sizes[mpp])
        # conditions on scores of free keys: shift keys along the query
        if vector_facts:
            self.meet(vector_facts)

    def meet(self, facts):
        qname = next((x for x in ("q", "p", "w") if x in self.vec), None)
        for _ in range(300):
            self.cache = {}
            if all(self.fact_true(f) for f in facts):
                return
            q = self.vec[qname]
            qq = (q.T @ q)[0, 0]
            if qq == 0:
                self.vec[qname] = q = self.free(self.dim) + self.unit(self.dim, 0)
                continue
            for rel, quant in facts:
                if self.fact_true((rel, quant)):
                    continue
                names = [x for x in names_in(rel, set()) if x.startswith("k_") and x[2:] not in self.bound]
                gaps = []
                for env in self.range_over(quant):
                    vals = [self.ev(x, env) for x in rel[1]]
                    gaps.append(vals[1] - vals[0] if rel[2][0] in (">", ">=", "=") else vals[0] - vals[1])
                need = max(gaps) if rel[2][0] != "=" else gaps[0]
                if rel[2][0] in (">", "<"):
                    need = need + self.rng.choice([mp.mpf("1e-20") if not self.st.get("limits") else mp.mpf(1), mp.mpf("0.1"), mp.exp(self.rng.gauss(0, 1))])
                elif rel[2][0] != "=":
                    need = need + self.rng.choice([0, 0, mp.exp(self.rng.gauss(0, 1))])
                first = sorted(names, key=lambda x: str(rel).find(f"'{x}'"))[0]
                sign = 1
                key = ("k", self.item_of[first[2:]])
                if rel[2][0] in ("<", "<="):
                    sign = -1
                self.vec[key] = self.vec[key] + q * (sign * need / qq)
        raise Undefined

    def fact_true(self, fact):
        rel, quant = fact
        return all(self.holds(rel, env) for env in self.range_over(quant))

    def free(self, d):
        r = self.rng.random()
        if r < 0.08:
            return np.array([[mp.mpf(0)]] * d, dtype=object)
        if r < 0.3:
            return np.array([[mp.mpf(self.rng.choice([-1, 0, 1, 2]))] for _ in range(d)], dtype=object)
        return np.array([[mp.mpf(self.rng.gauss(0, 1))] for _ in range(d)], dtype=object)

    def unit(self, d, j):
        v = np.array([[mp.mpf(0)]] * d, dtype=object)
        v[j, 0] = mp.mpf(1)
        return v

    # ---- items
    def items(self):
        if self.multiplicity:
            rest = self.nums["n"] - len(self.letters)
            return [(j, mp.mpf(1)) for j in range(len(self.letters))] + [(len(self.letters), rest)]
        return [(j, mp.mpf(1)) for j in range(self.n_items)]

    def range_over(self, quant, count=None):
        if quant is None:
            return [{}]
        name, out = quant
        excluded = {self.sub(s, {}) for s in out if self.sub(s, {}) is not None}
        others = [s for s in out if self.sub(s, {}) is None]  # another free index
        total = count or (self.n_items)
        if others:
            return [{name: i, others[0]: j} for i in range(total) for j in range(total) if i != j]
        return [{name: i} for i in range(total) if i not in excluded]

    def sub(self, s, env):
        if s in env:
            return env[s]
        if s in self.item_of:
            return self.item_of[s]
        if s.isdigit():
            return int(s) - 1
        return None

    # ---- names
    def name(self, text, env):
        key = (text, tuple(sorted(env.items())))
        if key in self.cache:
            return self.cache[key]
        val = self._name(text, env)
        self.cache[key] = val
        return val

    def _name(self, text, env):
        w = self.w
        base, _, sub = text.partition("_")
        sub = sub.strip("{}").replace(" ", "")
        parts = sub.split(",") if "," in sub else ([sub[0], sub[1]] if base == "alpha" and len(sub) == 2 else ([sub] if sub else []))
        if text in self.nums:
            return self.nums[text]
        if text in w.lets:
            return self.ev(w.lets[text], env)
        if text in w.gauss and not sub or (text in w.gauss and base not in ("k",)):
            return self.gaussian(text, *w.gauss[text], env, scalar=base not in self.fam and base != "k")
        if text == "I":
            return Eye()
        if text in self.mats:
            return self.mats[text]
        if text in self.vec:
            return self.vec[text]
        if base.upper() in self.mats and base.islower() and sub:
            j = self.sub(sub, env)
            mat = self.mats[base.upper()]
            if j is None or j >= mat.shape[1]:
                raise Undefined
            return mat[:, [j]]
        if text in ("Q", "K", "V"):
            return Eye()
        if base in ("k", "v", "mu") or (base in self.fam) or base == "x":
            j = self.sub(sub, env)
            if j is None:
                raise KeyError(text)
            letter = next((s for s, idx in self.item_of.items() if idx == j), None)
            for cand in (f"{base}_{letter}", f"{base}_{j + 1}"):
                if cand in w.lets and (letter is not None or cand[-1].isdigit()):
                    return self.ev(w.lets[cand], {})
            if f"{base}_i" in w.lets:
                return self.ev(w.lets[f"{base}_i"], {"i": j})
            for cand, envv in ((f"{base}_{letter}", {}), (f"{base}_i", {"i": j})):
                if cand in w.gauss:
                    return self.gaussian(f"{base}#{j}", *w.gauss[cand], envv)
            if w.tokens and base in ("k", "v"):
                return self.mul(self.name(base.upper(), {}), self.name(f"x_{j + 1}", {}))
            if (base, j) in self.vec:
                return self.vec[(base, j)]
            if base == "v":
                return self.vals[j]
        if base == "q" and w.tokens and sub:
            return self.mul(self.name("Q", {}), self.name(f"x_{self.sub(sub, env) + 1}", {}))
        if base == "alpha":
            if len(parts) == 2:
                head = f"q_{parts[0]}" if parts[0] not in env else f"q_{env[parts[0]] + 1}"
                return self.weights(head)[self.sub(parts[1], env)]
            return self.weights("q")[self.sub(parts[0], env)]
        if base == "c":
            heads = [sub] if sub else []
            if sub and sub in env:
                heads = [str(env[sub] + 1)]
            if not sub and "q" not in w.lets and "q" not in self.vec:
                heads = [h.split("_")[1] for h in w.lets if re.match(r"q_\d+$", h)]
                if w.tokens:
                    heads = []
            total = 0
            for h in heads or [None]:
                ws = self.weights(f"q_{h}" if h else "q")
                for j, mult in self.items():
                    total = total + self.mul(ws[j] * mult, self.name(f"v_{j + 1}", {}))
            return total * (mp.mpf(1) / len(heads or [0]))
        raise KeyError(text)

    def gaussian(self, tag, mean, var, env, scalar=None):
        mu = self.ev(mean, env)
        if scalar is None:
            scalar = not isinstance(mu, np.ndarray)
        if scalar:
            s = mp.sqrt(self.ev(var, env))
            return mu + s * self.g((tag, 0))
        out = mu + 0
        for coef, kind, vec in self.cov_terms(var, env):
            if coef < 0:
                raise Undefined
            if coef == 0:
                continue
            if kind == "I":
                noise = np.array([[mp.sqrt(coef) * self.g((tag, "I", r))] for r in range(self.dim)], dtype=object)
                out = out + noise
            else:
                out = out + vec * (mp.sqrt(coef) * self.g((tag, kind)))
        return out

    def g(self, name):
        name = repr(name)
        if self.draw is not None:
            return self.draw(name)
        return G.var(name)

    def cov_terms(self, node, env):
        """The terms w*I and w*u*u' of a covariance."""
        if node[0] == "+":
            return self.cov_terms(node[1], env) + [(c, (k, 2) if k != "I" else k, v) for c, k, v in self.cov_terms(node[2], env)]
        val = self.ev(node, env)
        if isinstance(val, Eye):
            return [(mp.mpf(val.s), "I", None)]
        if not isinstance(val, np.ndarray):
            return [(mp.mpf(val), "I", None)]
        for r in range(self.dim):  # w*u*u' has rank 1
            if val[r, r] != 0:
                u = val[:, [r]]
                return [(1 / val[r, r], "u", u)]
        return []

    def weights(self, head):
        key = ("w", head)
        if key not in self.cache:
            q = self.name(head, {})
            scores = {j: self.mul(transpose(self.name(f"k_{j + 1}", {})), q) for j, _ in self.items()}
            if any(isinstance(s, G) for s in scores.values()):
                raise NotImplementedError("random weights")
            top = max(scores.values())
            ex = {j: mp.exp(s - top) for j, s in scores.items()}
            total = sum(ex[j] * m for j, m in self.items())
            self.cache[key] = {j: e / total for j, e in ex.items()}
        return self.cache[key]

    # ---- arithmetic
    def mul(self, a, b):
        if isinstance(a, Eye) and isinstance(b, Eye):
            return Eye(a.s * b.s)
        if isinstance(a, Eye):
            return b * a.s if isinstance(b, np.ndarray) else Eye(a.s * b)
        if isinstance(b, Eye):
            return a * b.s if isinstance(a, np.ndarray) else Eye(a * b.s)
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            if a.shape[1] != b.shape[0]:
                raise TypeError(f"shapes {a.shape} {b.shape}")
            out = a.dot(b)
            return out[0, 0] if out.shape == (1, 1) else out
        return b * a if isinstance(b, np.ndarray) else a * b

    def add(self, a, b, sign=1):
        if isinstance(a, Eye) and isinstance(b, Eye):
            return Eye(a.s + sign * b.s)
        if isinstance(a, Eye):
            a = np.array(mp.eye(b.shape[0]).tolist(), dtype=object) * a.s if isinstance(b, np.ndarray) else a
        if isinstance(b, Eye):
            b = np.array(mp.eye(a.shape[0]).tolist(), dtype=object) * b.s if isinstance(a, np.ndarray) else b
        if isinstance(a, Eye) or isinstance(b, Eye):  # 1 x 1
            a, b = getattr(a, "s", a), getattr(b, "s", b)
        if isinstance(a, np.ndarray) != isinstance(b, np.ndarray):
            flat, arr = (b, a) if isinstance(a, np.ndarray) else (a, b)
            if not isinstance(flat, G) and flat == 0:
                return a if isinstance(a, np.ndarray) else b * sign
            raise TypeError("vector plus number")
        return a + b * sign if sign == 1 else a - b

    def ev(self, node, env=None):
        env = env or {}
        op = node[0]
        if op == "num":
            return mp.mpf(node[1])
        if op == "name":
            return self.name(node[1], env)
        if op in "+-":
            return self.add(self.ev(node[1], env), self.ev(node[2], env), 1 if op == "+" else -1)
        if op == "neg":
            x = self.ev(node[1], env)
            return Eye(-x.s) if isinstance(x, Eye) else x * -1
        if op == "*":
            return self.mul(self.ev(node[1], env), self.ev(node[2], env))
        if op == "/":
            a, b = self.ev(node[1], env), self.ev(node[2], env)
            if not isinstance(b, G) and b == 0:
                raise Undefined
            return Eye(a.s / b) if isinstance(a, Eye) else a / b
        if op == "'":
            return transpose(self.ev(node[1], env))
        if op == "^":
            a, b = self.ev(node[1], env), self.ev(node[2], env)
            if isinstance(b, G):
                raise NotImplementedError
            if isinstance(a, np.ndarray):
                out = Eye()
                for _ in range(int(b)):
                    out = self.mul(out, a)
                return out
            if isinstance(a, G):
                return a ** int(b)
            if a == 0 and b <= 0 and not (b == 0):
                raise Undefined
            if a < 0 and b != mp.floor(b):
                raise Undefined
            if a > 0 and abs(b * mp.log(a)) > mp.mpf(10) ** 45:
                raise Undefined
            return mp.power(a, int(b) if b == mp.floor(b) and abs(b) < 1000 else b)
        if op == "fun":
            return self.call(node[1], self.ev(node[2], env))
        if op == "sum":
            return self.total(node, env)
        if op == "stat":
            return self.stat(node[1], node[2], env)
        if op == "P":
            return self.chance(node[1], env)
        raise KeyError(op)

    def call(self, f, x):
        if f == "norm":
            if not isinstance(x, np.ndarray):
                raise TypeError("norm of a number")
            s = (x.T.dot(x))[0, 0]
            if isinstance(s, G):
                return NormG(s)
            return mp.sqrt(s)
        if f == "R":
            D = self.dim
            m = np.array(mp.zeros(D, D).tolist(), dtype=object)
            for b in range(D // 2):
                th = x * mp.mpf(3) ** -b
                m[2 * b, 2 * b] = m[2 * b + 1, 2 * b + 1] = mp.cos(th)
                m[2 * b, 2 * b + 1], m[2 * b + 1, 2 * b] = -mp.sin(th), mp.sin(th)
            return m
        if isinstance(x, G):
            if f == "exp":
                return x.exp()
            x = x.constant()
        if isinstance(x, np.ndarray):
            raise TypeError(f)
        if f == "exp":
            if abs(x) > mp.mpf(10) ** 45:
                raise Undefined
            return mp.exp(x)
        if f == "log":
            if x <= 0:
                raise Undefined
            return mp.log(x)
        if f == "sqrt":
            if x < 0:
                raise Undefined
            return mp.sqrt(x)
        if f == "Phi":
            return mp.ncdf(x) if x > -8 else mp.erfc(-x / mp.sqrt(2)) / 2
        raise KeyError(f)

    def total(self, node, env):
        m = re.match(r"sum_\{?\s*([A-Za-z])\s*(?:(!=)([^}]*)|=\s*1\s*)?\}?(?:\s*\^\s*\{?\s*([nmp])\s*\}?)?$", node[1])
        idx, out = m[1], set()
        if m[2]:
            out = {self.sub(s.strip(), env) for s in m[3].split(",")}
        total = 0
        if m[4] in ("m", "p"):
            rng = [(j, 1) for j in range(self.sizes[m[4]])]
        else:
            rng = self.items()
        for j, mult in rng:
            if j not in out:
                term = self.ev(node[2], {**env, idx: j})
                total = total + (term * mult if not isinstance(term, Eye) else term)
        return total

    # ---- statistics
    def stat(self, f, args, env):
        try:
            vals = [self.ev(a, env) for a in args]
            mean = lambda z: z.mean() if isinstance(z, G) else mp.mpf(z)  # noqa: E731
            if isinstance(vals[0], np.ndarray):
                lift = np.vectorize(mean, otypes=[object])
                if f == "E":
                    return lift(vals[0])
                x, y = vals[0], vals[-1]
                return lift(x.dot(y.T)) - lift(x).dot(lift(y).T)
        except NotImplementedError:
            return self.quadrature(f, args, env)
        if f == "E":
            return mean(vals[0])
        x, y = vals[0], vals[-1]
        cov = mean(x * y) - mean(x) * mean(y)
        if f == "Corr":
            vx, vy = mean(x * x) - mean(x) ** 2, mean(y * y) - mean(y) ** 2
            if vx <= mp.mpf(10) ** (100 - mp.mp.dps) or vy <= mp.mpf(10) ** (100 - mp.mp.dps):
                raise Undefined
            return cov / mp.sqrt(vx * vy)
        return cov

    def nodes(self, count=1201):
        """Deterministic nodes over the noise variables that occur, at most two."""
        seen = []

        def probe(name):
            if name not in seen:
                seen.append(name)
            return mp.mpf("0.1")

        return seen, probe, count

    def on_draws(self, fn):
        """Mean of fn over all noise variables by the trapezoid rule (at most two variables)."""
        seen = []

        def probe(name):
            if name not in seen:
                seen.append(name)
            return mp.mpf("0.1")

        self.draw, saved = probe, self.cache
        self.cache = {}
        old = mp.mp.dps
        try:
            fn()
            if len(seen) > 2:
                raise RuntimeError(f"{len(seen)} noises")
            mp.mp.dps = 20
            count = 801 if len(seen) == 1 else 61
            pts = np.linspace(-8, 8, count)
            wts = np.exp(-pts * pts / 2)
            wts /= wts.sum()
            total = None
            for combo in itertools.product(range(count), repeat=len(seen)):
                table = {s: mp.mpf(float(pts[c])) for s, c in zip(seen, combo, strict=True)}
                self.draw = lambda name, table=table: table[name]
                self.cache = {}
                wt = mp.mpf(float(np.prod([wts[c] for c in combo])))
                val = fn()
                total = val * wt if total is None else total + val * wt
            return total
        finally:
            mp.mp.dps = old
            self.draw, self.cache = None, saved

    def quadrature(self, f, args, env):
        if isinstance(self.on_draws_probe(args[0], env), np.ndarray):
            m = self.on_draws(lambda: self.ev(args[0], env))
            if f == "E":
                return m
            second = self.on_draws(lambda: (lambda z: z.dot(z.T))(self.ev(args[0], env)))
            return second - m.dot(m.T)

        def both():
            x = self.ev(args[0], env)
            y = self.ev(args[-1], env)
            return np.array([x, y, x * y, x * x, y * y], dtype=object)

        ex, ey, exy, exx, eyy = self.on_draws(both)
        if f == "E":
            return ex
        cov = exy - ex * ey
        if f == "Corr":
            vx, vy = exx - ex * ex, eyy - ey * ey
            if vx < 1e-12 or vy < 1e-12:
                raise Undefined
            return cov / mp.sqrt(vx * vy)
        return cov

    def on_draws_probe(self, node, env):
        self.draw, saved = (lambda name: mp.mpf("0.1")), self.cache
        self.cache = {}
        try:
            return self.ev(node, env)
        finally:
            self.draw, self.cache = None, saved

    def chance(self, rel, env):
        try:
            a, b = self.ev(rel[1][0], env), self.ev(rel[1][1], env)
            op = rel[2][0]
            diff = G.of(a) - G.of(b)
            const, coef = diff.linear()
        except NotImplementedError:
            return self.on_draws(lambda: mp.mpf(1 if self.holds(rel, env) else 0))
        if len(rel[2]) > 1:
            return self.on_draws(lambda: mp.mpf(1 if self.holds(rel, env) else 0))
        sd = mp.sqrt(sum(c * c for c in coef.values()))
        if op in ("<", "<="):
            const = -const
        if sd == 0:
            strict = op in ("<", ">")
            return mp.mpf(1 if const > 0 or (const == 0 and not strict) else 0)
        return mp.ncdf(const / sd)

    # ---- truth
    def same(self, a, b, tol):
        d = self.add(a, b, -1)
        if isinstance(d, NormG) or isinstance(d, G):
            return all(abs(c) < tol for c in d.terms.values())
        if isinstance(d, Eye):
            return abs(d.s) < tol
        if isinstance(d, np.ndarray):
            return all(self.same(x, 0, tol) for x in d.flat)
        return abs(d) <= tol * (1 + (abs(a) if not isinstance(a, np.ndarray) else 1))

    def holds(self, rel, env=None, tol=None):
        tol = tol if tol is not None else (mp.mpf(10) ** (100 - mp.mp.dps) if mp.mp.dps > 100 else mp.mpf("1e-12"))
        for a, b, op in zip(rel[1], rel[1][1:], rel[2], strict=False):
            x, y = self.ev(a, env), self.ev(b, env)
            eq = self.same(x, y, tol)
            if op == "=":
                ok = eq
            elif op == "!=":
                ok = not eq
            else:
                x = x.constant() if isinstance(x, G) else x
                y = y.constant() if isinstance(y, G) else y
                ok = {"<": not eq and x < y, ">": not eq and x > y, "<=": eq or x < y, ">=": eq or x > y}[op]
            if not ok:
                return False
        return True


class NormG(G):
    """The norm of a random vector: only its even powers are polynomials."""

    def __init__(self, square):
        self.square = square
        self.terms = {((("norm", id(self)), 1),): mp.mpf(1)}

    def __pow__(self, k):
        if int(k) % 2:
            raise NotImplementedError
        return self.square ** (int(k) // 2)


def transpose(x):
    return x.T if isinstance(x, np.ndarray) else x


def gram(rows):
    out = []
    for r in rows:
        for o in out:
            r = r - o * sum(o * r)
        out.append(r / mp.sqrt(sum(r * r)))
    return out


# ---------------------------------------------------------------- deciding a tag
SCALES = {"fast": [20, 60, 200, 650], "slow": [10**3, 10**6, 10**12, 10**40]}


def distance(inst, st, env):
    a, b = inst.ev(st["left"], env), inst.ev(st["right"], env)
    if isinstance(st["right"], tuple) and st["right"] == ("name", "oo"):
        return None
    d = inst.add(a, b, -1)
    if isinstance(d, Eye):
        return abs(d.s)
    if isinstance(d, np.ndarray):
        return mp.sqrt(sum((x if not isinstance(x, G) else sum(abs(c) for c in x.terms.values())) ** 2 for x in d.flat))
    if isinstance(d, G):
        return sum(abs(c) for c in d.terms.values())
    return abs(d)


def tends(seq):
    """Whether a sequence of distances goes to 0: True, False, or None if it still moves."""
    seq = [s for s in seq if s is not None]
    if not seq:
        return None
    last, first = seq[-1], seq[0]
    if last < mp.mpf("1e-12") or (len(seq) > 1 and last < mp.mpf("0.002") and last < first / 20):
        return True
    if len(seq) > 1 and last > seq[-2] * mp.mpf("0.97"):
        return False
    return None


def at_limits(world, st, rng_seed, limits, forced, scale, multi):
    """Distance of both sides with all limit parameters at one scale."""
    vals = {}
    names = [l[0] for l in limits]
    for pos, (name, to) in enumerate(limits):
        target = to[1] if to[0] in ("num", "name") else None
        far = mp.mpf(scale)
        if pos < len(limits) - 1 and name not in ("eps",):
            far = far**3 if far > 1000 else far * 6  # earlier limits go farther
        if name == "eps" and "('P'" in str(st) and "alpha" not in str(st):
            vals[name] = mp.mpf(10) ** -30
        elif name == "eps" and "'eps'" not in str([st.get(x) for x in ("left", "right", "rel")]):
            vals[name] = mp.mpf(0)
        elif target == "oo":
            vals[name] = far if name != "n" else mp.floor(far)
        elif to[0] == "neg":
            vals[name] = -far
        else:
            vals[name] = mp.mpf(target) + (0 if name == "eps" and not multi else 1 / far)
            if name == "eps":
                vals[name] = mp.mpf(target) + mp.mpf(10) ** -30 / far
    return vals


def check(world, st, tag, forced, trials=40, seed=0):
    """`agrees` if the tag is consistent with all evidence; otherwise a message."""
    rng = random.Random(seed)
    kind = st["kind"]
    if not re.search(r"'(stat|P)'", str(st)):  # a statement about every value of a random number
        for name in [x for x in world.gauss if x.startswith("gamma")]:
            world.gauss.pop(name)
            world.numbers[name] = None
    if kind in ("never", "equivariant"):
        return manual(world, st, tag, forced, rng)
    limits = [*world.limits, *st.get("limits", [])]
    multiplicity = any(l[0] == "n" for l in limits)
    seen_false, tested = None, 0
    noisy = bool(world.gauss)
    if noisy and (limits or kind == "within"):
        trials = 2
    elif noisy or limits:
        trials = 14
    for k in range(trials):
        inst = Instance(world, st, rng, forced, multiplicity)
        verdict = None
        try:
            if not limits:
                if not inst.sample(extra=st.get("when", [])):
                    continue
                if kind == "distribution":
                    head = "q" + (st["name"][5:] if "_" in st["name"] else "")
                    ws = inst.weights(head)
                    verdict = abs(sum(ws.values()) - 1) < 1e-100 and all(x >= 0 for x in ws.values())
                elif kind == "within":
                    verdict = within(inst, st)
                else:
                    q = st.get("quantifier")
                    free = {x for x in names_in(st, set())}
                    if q is None and any(re.search(r"_\{?(?:\d,)?i\}?$", x) and not x.startswith("sum:") for x in bare(st, inst)):
                        q = ("i", [])
                    verdict = all(inst.holds(st["rel"], env) for env in inst.range_over(q, basis_count(inst, st, q)))
            else:
                verdict = limit_verdict(world, st, inst, limits, rng, multiplicity)
        except Undefined:
            continue
        if verdict is None:
            continue
        tested += 1
        if not verdict:
            seen_false = {k2: mp.nstr(v, 8) for k2, v in inst.nums.items()}
            break
    if tested == 0:
        return "no instance"
    if tag == "false" and seen_false is None:
        return f"tagged false, {tested} instances agree with the claim"
    if tag == "true" and seen_false is not None:
        return f"tagged true, fails at {seen_false}"
    return "agrees"


def bare(st, inst):
    """Names outside sums."""
    out = set()

    def walk(node):
        if isinstance(node, tuple) and node and node[0] == "sum":
            return
        if isinstance(node, tuple) and node and node[0] == "name":
            out.add(node[1])
        elif isinstance(node, (tuple, list)):
            for x in node:
                walk(x)
        elif isinstance(node, dict):
            for x in node.values():
                walk(x)

    walk(st)
    return out


def basis_count(inst, st, q):
    if not inst.w.bases or q is None or inst.fam:
        return None
    text = str(st)
    counts = []
    for b, s in zip(inst.w.bases, ("m", "p"), strict=False):
        if f"{b.lower()}_{q[0]}" in text or any(f"{b.lower()}_{x}" in text for x in q[1]):
            counts.append(inst.sizes[s])
    return min(counts) if counts else None


def within(inst, st):
    def inside():
        d = inst.add(inst.ev(st["left"]), inst.ev(st["right"]), -1)
        r = mp.sqrt(sum(x * x for x in d.flat)) if isinstance(d, np.ndarray) else abs(d)
        return mp.mpf(1 if r <= inst.ev(st["radius"]) else 0)

    p = inst.on_draws(inside)
    lim = inst.ev(st["chance"])
    return {">=": p >= lim - mp.mpf("1e-6"), ">": p > lim, "<=": p <= lim, "<": p < lim}[st["rel"]]


def limit_verdict(world, st, inst, limits, rng, multiplicity):
    state = rng.getstate()
    kind = st["kind"]
    results = []
    q = st.get("quantifier")
    if q is None and any(re.search(r"_\{?(?:\d,)?i\}?$", x) and not x.startswith("sum:") for x in bare(st, inst)):
        q = ("i", [])
    stats = bool(world.gauss)
    for group in ("fast", "slow"):
        seqs = {}
        for scale in SCALES[group][: 1 if stats else None]:
            scale = scale * inst.frac(inst.forced.get("scale", "1"))
            if stats:
                scale = mp.mpf(10) ** 5
            rng.setstate(state)
            one = Instance(world, st, rng, inst.forced, multiplicity)
            vals = at_limits(world, st, 0, limits, inst.forced, scale, len(limits) > 1)
            if not one.sample(limits=vals.items(), extra=st.get("when", [])):
                continue
            for env in one.range_over(q):
                key = tuple(sorted(env.items()))
                try:
                    if kind == "within":
                        seqs.setdefault(key, []).append(mp.mpf(0 if within(one, st) else 1))
                        continue
                    if kind == "relation":
                        seqs.setdefault(key, []).append(mp.mpf(0 if one.holds(st["rel"], env, mp.mpf("0.008") if stats and st["rel"][2] == ["="] else None) else 1))
                        continue
                    draws = None
                    if stats:
                        drawn = {}

                        def draw(name, drawn=drawn):
                            if name not in drawn:
                                drawn[name] = mp.mpf(random.Random(f"{name}{rng.random()}").gauss(0, 1))
                            return drawn[name]

                        try:
                            a = one.ev(st["left"], env)
                        except NotImplementedError:
                            draws = draw
                    one.draw = draws
                    if draws:
                        worst = mp.mpf(0)
                        for _ in range(25):
                            drawn.clear()
                            one.cache = {}
                            worst = max(worst, distance(one, st, env))
                        seqs.setdefault(key, []).append(worst)
                        continue
                    if st["right"] == ("name", "oo"):
                        a = one.ev(st["left"], env)
                        seqs.setdefault(key, []).append(1 / a if a > 0 else mp.mpf(1))
                    elif st["right"] == ("neg", ("name", "oo")):
                        a = one.ev(st["left"], env)
                        seqs.setdefault(key, []).append(-1 / a if a < 0 else mp.mpf(1))
                    else:
                        d = distance(one, st, env)
                        seqs.setdefault(key, []).append(d)
                except Undefined:
                    continue
        if stats:
            good = all(s[-1] < mp.mpf("0.012") for s in seqs.values()) if seqs else None
            return None if good is None else good != bool(st.get("negated"))
        verdicts = [tends(s) for s in seqs.values()]
        results.append(False if False in verdicts else None if None in verdicts or not verdicts else True)
        if results[-1] is not None:  # the slow scales lose digits of e^-t: look at them only if needed
            break
    good = results[-1]
    if good is None:  # slower than all scales: by the last distances
        if not seqs:
            return None
        good = all(s[-1] < mp.mpf("0.05") and s[-1] < s[0] / 2 for s in seqs.values())
    return (not good) if st.get("negated") else good


def manual(world, st, tag, forced, rng):
    """Impossibility: scan the free number; equivariance of self-attention always holds."""
    if st["kind"] == "equivariant":
        return "agrees" if tag == "true" else "equivariance holds"
    if st["what"] == "query":
        return "by hand"
    name = st["name"]
    inner = {**st["inner"], "when": st.get("when", [])}
    given = forced.get(name)
    grid = [given] if given is not None else [
        *(str(k) for k in range(-12, 13)), *(f"{k}/{d}" for d in (2, 3, 4, 7) for k in range(-9, 10)), "1/100", "-1/100", "30"
    ]
    limits = [*world.limits, *inner.get("limits", [])]
    found = None
    for trial in range(3 if given is None else 6):
        for r in grid:
            inst = Instance(world, inner, random.Random(trial), {**forced, name: r}, any(l[0] == "n" for l in limits))
            try:
                if not limits:
                    if not inst.sample(extra=inner["when"]):
                        continue
                    q = inner.get("quantifier")
                    if all(inst.holds(inner["rel"], env) for env in inst.range_over(q)):
                        found = {k: mp.nstr(v, 6) for k, v in inst.nums.items()}
                elif inner["kind"] == "relation":
                    continue
                else:
                    rr = random.Random(trial)
                    if limit_verdict(world, inner, inst, limits, rr, False):
                        found = {name: r}
            except (Undefined, NotImplementedError):
                continue
            if found:
                break
        if found:
            break
    if tag == "true":
        return "agrees" if not found else f"tagged true, but {found} does it"
    return "agrees" if found else "tagged false, no witness found"


def read(path):
    """The statements of a file: id, givens, lets, tag, claim, comment."""
    section, givens, lets, count, inside = "", [], [], 0, False
    fresh = True
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            section, givens, lets, count, fresh = line[3:].strip(), [], [], 0, True
        elif line.startswith("```"):
            inside = not inside
        elif inside and line.strip():
            word, _, rest = line.strip().partition(" ")
            rest = rest.strip()
            if word in ("given", "let"):
                if not fresh:
                    givens, lets, fresh = [], [], True
                (givens if word == "given" else lets).append(rest)
            else:
                fresh = False
                claim, _, why = rest.partition(" # ")
                count += 1
                yield f"{section}.{count}", list(givens), list(lets), word, claim.strip(), why.strip()


def main(paths):
    mp.mp.dps = 300 if "noise" in str(paths[0]) else 1600
    total = bad = 0
    for path in paths:
        for ident, givens, lets, word, claim, why in read(path):
            total += 1
            if word.startswith("M") or "!hand" in why:
                continue
            forced = {}
            if why.startswith("@"):
                for pair in re.findall(r"(\w+)=(-?[\d./]+)", why.split(";")[0]):
                    forced[pair[0]] = pair[1]
            tag = "false" if word.startswith("F") else "true"
            try:
                world = World(givens, lets)
                st = parse_then(claim)
                res = check(world, st, tag, forced)
            except Exception as error:  # noqa: BLE001
                res = f"ERROR {type(error).__name__}: {error}"
                if "-v" in sys.argv:
                    raise
            if res != "agrees":
                bad += 1
                print(f"{ident}: {word} {claim}   [{'; '.join(givens + lets)}]\n    {res}", flush=True)
    print(total, "statements,", bad, "to look at")


if __name__ == "__main__":
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    main([Path(a) for a in args] or sorted(HERE.glob("*.md")))
