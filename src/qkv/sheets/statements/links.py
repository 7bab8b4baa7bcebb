"""One relation of a formula in one reading: the claims that would show it, and what became of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from qkv.claims.verdict import Step
from qkv.sheets.closeness import CLOSE
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.deciding import Budget, ClaimText, decide
from qkv.sheets.statements.notation import SPARE
from qkv.sheets.statements.reading_of import Reading, with_columns
from qkv.sheets.statements.writing import SCALAR, UNKNOWN, VECTOR, Term, Unwritable, addends

EXACT, LIMIT, WRONG, OPEN, UNREAD = "exact", "limit", "wrong", "open", "unread"
GOOD = ("proved", "holds")


@dataclass(frozen=True)
class Finding:
    """What became of one relation in one reading.

    Attributes:
        kind: "exact", "limit", "wrong", "open" if it was not decided, "unread" if it could not be written.
        claim: The claim that was decided.
        because: Why.
        derivation: The steps of the argument.
        verdict: What qkv.claims said.
        readings: Claims of other readings that were tried.
    """

    kind: str
    claim: str = ""
    because: str = ""
    derivation: tuple[Step, ...] = ()
    verdict: str = ""
    readings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What holds beside a relation: further limits, the index condition and conditions on numbers."""

    limits: tuple[str, ...] = ()
    stands_for: str = ""
    when: tuple[str, ...] = ()


def decide_link(left: T.Node, sign: str, right: T.Node, reading: Reading, setting: Setting, budget: Budget) -> Finding:
    """Decide left sign right."""
    try:
        return _decide(left, sign, right, reading, setting, budget)
    except Unwritable as why:
        return Finding(UNREAD, "", str(why))


def _decide(left: T.Node, sign: str, right: T.Node, reading: Reading, setting: Setting, budget: Budget) -> Finding:
    if sign == ":":
        return _distributed(left, right, reading, setting, budget)
    taken = frozenset(i for s in (*T.symbols(left), *T.symbols(right)) for i in s.index) | set("abjimn")
    writer = reading.writer(taken)
    if right == T.Symbol("oo") and sign in ("=", "~", "->"):
        return _far_above(writer.write(left), Term("0", SCALAR, True), reading, setting, budget)
    one, two = writer.write(with_columns(left)), writer.write(with_columns(right))
    if one.text == two.text and sign in (">>", "<<", "<", ">"):
        return Finding(WRONG, "", "both sides are the same expression")
    if not _fit(one, two):
        return _misfit(one, two, reading, setting)
    if sign == "perp":
        if one.shape != VECTOR:
            raise Unwritable("two matrices at right angles")
        return _try(f"{one.closed}'*{two.closed} = 0", "", reading, setting, budget)
    if sign in ("=", "~", "->"):
        found = _equal(one, two, sign, reading, setting, budget)
        miscounted = sign == "=" and found.kind == LIMIT and "alpha" in one.text and _counts_items(right)
        return _with_more_items(one, two, found, reading, setting, budget) if miscounted else found
    if sign == "!~":
        return _differ(one, two, reading, setting, budget)
    if sign in (">>", "<<"):
        big, small = (one, two) if sign == ">>" else (two, one)
        return _far_above(big, small, reading, setting, budget)
    if sign in ("<", ">", "<=", ">=", "!="):
        return _try(f"{one.text} {sign} {two.text}", "", reading, setting, budget)
    raise Unwritable(f"the relation {sign}")


def _fit(one: Term, two: Term) -> bool:
    if one.shape == two.shape or UNKNOWN in (one.shape, two.shape):
        return True
    return "0" in (one.text, two.text)


def _misfit(one: Term, two: Term, reading: Reading, setting: Setting) -> Finding:
    """A vector beside a number is wrong to the letter, unless a letter may mean something else."""
    claim = claim_of(reading, f"{one.text} = {two.text}{_tail(setting, '')}")
    length = reading.notation.length
    doubtful = reading.world.kind == "bases" or any(
        x.base in ("c", "C") for x in (*reading.letters, *([length] if length else []))
    )
    return Finding(
        UNREAD if doubtful else WRONG, claim.body, f"the shapes do not fit: a {one.shape} beside a {two.shape}"
    )


def claim_of(reading: Reading, then: str, more: tuple[str, ...] = ()) -> ClaimText:
    """The claim of a statement in a reading, with the definitions that it needs."""
    matrices = reading.matrices() if reading.world.kind in ("tokens", "bases") else ()
    lets = [*reading.world.let, *reading.lets(), *matrices]
    names = [one.split("=")[0].strip() for one in lets]
    kept = tuple(one for place, one in enumerate(lets) if names[place] not in names[place + 1 :])
    used = " ".join((*kept, then))
    positive = tuple(
        f"{name} > 0" for name in dict.fromkeys(reading.letters.values())
        if name[0].isalpha() and re.search(rf"\b{name}\b", used)
    )  # fmt: skip
    if reading.any_query:
        positive += tuple(f"{name} free" for name in reading.free_queries)
    given = tuple(g for g in reading.world.given if not g.startswith("gamma") or "gamma" in used)
    if re.search(r"\bwhen\b.*\bgamma (?:=|<=?) (?:0$|0 |-)", then):  # a key that has no length, or points backwards
        given = tuple("gamma real" if g == "gamma > 0" else g for g in given)
    if "gamma" not in used:
        kept = tuple(one for one in kept if "gamma" not in one)
    if reading.world.kind == "noise" and not re.search(r"\bk_|alpha_|\bc\b|\bc_|Var|Cov|E\[|\bq\b|\bq_", then):
        given = (*(g for g in given if "~" not in g), "eps > 0")  # nothing random is spoken of
        kept = ()
    return ClaimText((*given, *positive, *more), kept, then)


def limits_of(reading: Reading, text: str) -> tuple[str, ...]:
    """The limits that are meant: those of the world, then the author's scales."""
    used = " ".join((*reading.lets(), text))
    small = {reading.letters[s] for s in reading.small if s in reading.letters}
    names = [n for n in dict.fromkeys(reading.letters.values()) if n[0].isalpha() and re.search(rf"\b{n}\b", used)]
    return (*reading.world.limits, *(f"{name} -> {'0' if name in small else 'oo'}" for name in names))


def _tail(setting: Setting, limits: str) -> str:
    when = f" when {' and '.join(setting.when)}" if setting.when else ""
    return f"{limits}{setting.stands_for}{when}"


def _try(then: str, limits: str, reading: Reading, setting: Setting, budget: Budget) -> Finding:
    """The finding of one claim; a condition on a scale counts as a limit."""
    if len(then) > 560:
        raise Unwritable("a formula that is too long")
    claim = claim_of(reading, f"{then}{_tail(setting, limits)}")
    found = decide(claim, budget)
    if found is None:
        return Finding(OPEN, claim.body, "the time for this sheet is over")
    kind = OPEN
    if found.verdict in GOOD:
        kind = LIMIT if limits or reading.world.kind == "means" else EXACT
    elif found.verdict == "conditional" and any(
        re.search(rf"\b{re.escape(name)}\b", found.because) for name in reading.letters.values()
    ):
        kind = LIMIT
    elif found.verdict == "refuted":
        kind = WRONG
    elif found.verdict == "malformed":
        kind = UNREAD
    return Finding(kind, claim.body, reading.told(found.because), found.derivation, found.verdict)


def _equal(one: Term, two: Term, sign: str, reading: Reading, setting: Setting, budget: Budget) -> Finding:
    """left = right exactly, or in the limits that are meant."""
    text = f"{one.text} {two.text}"
    limits = tuple(dict.fromkeys((*limits_of(reading, text), *setting.limits)))
    if sign == "=" and re.search(r"\beps\b", text):  # the noise is kept, so that its vanishing is not meant
        limits = ()
    said = f" as {', '.join(limits)}" if limits else ""
    if sign == "=" or not limits:
        exact = _try(f"{one.text} = {two.text}", "", reading, setting, budget)
        if exact.kind in (EXACT, LIMIT) or not limits:
            if exact.kind == WRONG and sign != "=" and not limits:
                return _near(one, two, exact, reading, setting, budget)
            return exact
        if exact.kind == UNREAD:
            return exact
        if exact.kind == WRONG and _meant_exactly(one, two, reading):
            return exact
    found = _try(f"{one.text} -> {two.text}", said, reading, setting, budget)
    rounded = sign == "~" and one.shape == two.shape == SCALAR and re.search(r"\d\.\d", text) is not None
    if found.kind == WRONG and rounded and _share_scale(one, two, reading):
        return _by_ratio(one, two, said, found, reading, setting, budget)
    if found.kind in (OPEN, UNREAD):
        exact = _try(f"{one.text} = {two.text}", "", reading, setting, budget)
        if exact.kind in (EXACT, LIMIT):
            return exact
    return found


def _share_scale(one: Term, two: Term, reading: Reading) -> bool:
    """Whether both sides name the same scale."""
    return any(all(re.search(rf"\b{name}\b", term.text) for term in (one, two)) for name in reading.letters.values())


def _by_ratio(
    one: Term, two: Term, said: str, found: Finding, reading: Reading, setting: Setting, budget: Budget
) -> Finding:
    """An ≈ with a rounded number between sides that grow, as 0.71 t for t/√2: right if their ratio is nearly 1."""
    ratio = _try(f"{one.closed}/{two.closed} -> 1", said, reading, setting, budget)
    if ratio.kind == LIMIT:
        return ratio
    limit = re.match(r"the limit is (\S.*?) as ", ratio.because)
    try:
        near = limit is not None and abs(Fraction(limit[1].split(" = ")[-1]) - 1) <= CLOSE
    except (ValueError, ZeroDivisionError):  # an expression, or infinite
        near = False
    return replace(ratio, kind=LIMIT, because=f"the ratio of the sides: {ratio.because}") if near else found


def _meant_exactly(one: Term, two: Term, reading: Reading) -> bool:
    """Whether = means equal: a side names a scale and the number of items, so that nothing was left out of it.

    The other side must depend on the scale too; beside a number such as 1/2 the sign is written for ≈.
    """
    moving = [*reading.letters.values(), "alpha_\\w+", "alpha_{"]
    sides = [[bool(re.search(rf"\b{name}", term.text)) for name in moving] for term in (one, two)]
    counts = any(
        re.search(r"\bn\b", term.text) and any(found[: len(reading.letters)])
        for term, found in zip((one, two), sides, strict=True)
    )
    return counts and all(any(found) for found in sides)


def _counts_items(node: T.Node) -> bool:
    """Whether a fraction adds plain numbers to exponentials below, e^t/(2e^t + 1), as if it counted the other items."""
    if not (isinstance(node, T.Binary) and node.sign == "/") or any(
        isinstance(n, (T.Total, T.Dots)) or n in (T.Symbol("n"), T.Symbol("N")) for n in T.nodes(node)
    ):
        return False
    terms = addends(node.right)
    grows = any(isinstance(n, T.Call) and n.name == "exp" for t in terms for n in T.nodes(t))
    return grows and node.left != T.Number("1") and any(not T.symbols(t) and not _is_nothing(t) for t in terms)


def _is_nothing(node: T.Node) -> bool:
    return isinstance(node, T.Minus) or node == T.Number("0")


def _with_more_items(
    one: Term, two: Term, found: Finding, reading: Reading, setting: Setting, budget: Budget
) -> Finding:
    """An equation that counts items by a plain number: wrong if it fails for ten items, which no sheet fixes."""
    world = reading.world
    if any(re.match(r"n\s*=", g) for g in world.given):
        return found
    given = (*(g for g in world.given if not re.match(r"n\s*>", g)), "n = 10")
    reading.world = replace(world, given=given)
    try:
        exact = _try(f"{one.text} = {two.text}", "", reading, setting, budget)
    finally:
        reading.world = world
    return replace(exact, because=f"for n = 10, {exact.because}") if exact.kind == WRONG else found


MAX_PLAIN = 4.0  # numbers up to this size are no large scale


def _near(one: Term, two: Term, exact: Finding, reading: Reading, setting: Setting, budget: Budget) -> Finding:
    """An ≈ without any number that could be large: wrong if the sides differ by more than CLOSE for ten items."""
    numbers = [float(x) for x in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", " ".join(reading.lets()))]
    fixed = any(x > MAX_PLAIN for x in numbers)
    if one.shape != SCALAR:
        return _as_scale(one, two, exact, reading, setting, budget) if fixed else exact
    ten = tuple(g for g in reading.world.given if not re.match(r"n\s*>", g))
    said = any(re.match(r"n\s*=", g) for g in ten)
    world = reading.world
    count = reading.notation.items or "10"
    given = ten if said else (*ten, f"n = {count}")
    reading.world = replace(world, given=given)
    try:
        above = _try(f"{one.text} - {two.closed} <= {CLOSE}", "", reading, setting, budget)
        below = _try(f"{two.text} - {one.closed} <= {CLOSE}", "", reading, setting, budget)
    finally:
        reading.world = world
    if all(found.kind in (EXACT, LIMIT) for found in (above, below)):
        items = "" if said else f" for n = {count}"
        return Finding(LIMIT, below.claim, f"the sides differ by less than {float(CLOSE)}{items}")
    if (said or not fixed) and any(found.verdict in ("refuted", "conditional") for found in (above, below)):
        return exact
    return Finding(OPEN, exact.claim, exact.because)


def _as_scale(one: Term, two: Term, exact: Finding, reading: Reading, setting: Setting, budget: Budget) -> Finding:
    """An ≈ between vectors where queries have a fixed large scale: read as one that grows, unless n is stated."""
    if reading.notation.items:
        return Finding(OPEN, exact.claim, f"not decided for n = {reading.notation.items}: {exact.because}")
    name = next(x for x in SPARE if x not in reading.letters.values())
    fixed = dict(reading.used)

    def grown(text: str) -> str:
        return re.sub(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", lambda m: name if float(m[0]) > MAX_PLAIN else m[0], text)

    reading.used = {key: grown(value) for key, value in fixed.items()}
    reading.letters[T.Symbol("a fixed scale")] = name
    try:
        found = _try(f"{one.text} -> {two.text}", f" as {name} -> oo", reading, setting, budget)
    finally:
        reading.used = fixed
        del reading.letters[T.Symbol("a fixed scale")]
    if found.kind not in (LIMIT, WRONG):
        return Finding(OPEN, exact.claim, "a fixed scale")
    return replace(found, because=f"with the number of the query taken for a large one: {found.because}")


def _differ(one: Term, two: Term, reading: Reading, setting: Setting, budget: Budget) -> Finding:
    """left ≉ right: right if left ≈ right fails, for some values at least; never wrong, as it may speak of some."""
    found = _equal(one, two, "~", reading, setting, budget)
    sometimes = found.verdict == "conditional" or "speak against it" in found.because
    if found.kind == WRONG or (found.kind == OPEN and sometimes):
        return replace(found, kind=LIMIT)
    return replace(found, kind=OPEN) if found.kind in (EXACT, LIMIT) else found


def _far_above(big: Term, small: Term, reading: Reading, setting: Setting, budget: Budget) -> Finding:
    """left ≫ right: the difference grows without bound, or the ratio goes to 0."""
    text = f"{big.text} {small.text}"
    limits = tuple(dict.fromkeys((*limits_of(reading, text), *setting.limits)))
    if not limits:
        return Finding(OPEN, "", "nothing is said to be large")
    said = f" as {', '.join(limits)}"
    if reading.world.kind == "margin":
        if "alpha" in text:
            return _try(f"{small.closed}/{big.closed} -> 0", said, reading, setting, budget)
        if "q" not in f"{big.text} {small.text}":
            raise Unwritable("sizes of keys, which say nothing of scores")
        item = re.search(r"k_(\w)'q - k_i'q >= m", reading.world.text)
        name = item[1] if item else "j"
        return _try(f"alpha_{name} -> 1", said, reading, Setting(setting.limits), budget)
    if "alpha" in text:
        return _try(f"{small.closed}/{big.closed} -> 0", said, reading, setting, budget)
    return _try(f"1/({big.text} - {small.closed}) -> 0", said, reading, setting, budget)


def _distributed(left: T.Node, right: T.Node, reading: Reading, setting: Setting, budget: Budget) -> Finding:
    """x ~ N(mean, spread): compared with what is given."""
    if not (isinstance(right, T.Call) and right.name == "N" and len(right.arguments) == 2):
        raise Unwritable("a distribution")
    if reading.world.kind != "noise":
        raise Unwritable("random keys")
    writer = reading.writer(frozenset("abjimn"))
    term = writer.write(left)
    mean, spread = (writer.write(a) for a in right.arguments)
    statistic = "Cov" if term.shape == VECTOR else "Var"
    if term.shape == VECTOR:
        item = re.search(r"_(\w)", term.text)
        own = reading.spread(item[1] if item else "i")
        first = _try(f"E[{term.text}] = {mean.text}", "", reading, setting, budget)
        factor = reading.notation.noise_factor
        scaled = factor is not None and isinstance(left, T.Symbol) and left.base == reading.notation.noise_vector
        wanted = f"({writer.write(factor).text})^2*{spread.closed}" if scaled and factor is not None else spread.text
        second = _try(f"{own} = {wanted}", "", reading, setting, budget)
    else:
        if spread.shape != SCALAR:
            return Finding(WRONG, "", "the variance of a number is a number, not a matrix")
        first = _try(f"E[{term.text}] = {mean.text}", "", reading, setting, budget)
        sign = "=" if re.search(r"\beps\b", spread.text) else "~"  # a noise that is kept is not meant to vanish
        second = _equal(Term(f"{statistic}[{term.text}]", SCALAR, True), spread, sign, reading, setting, budget)
    if WRONG in (first.kind, second.kind):
        return first if first.kind == WRONG else second
    if first.kind in (EXACT, LIMIT) and second.kind in (EXACT, LIMIT):
        return second
    return Finding(OPEN, second.claim, second.because)


def worst(found: list[Finding]) -> Finding:
    order = {WRONG: 0, OPEN: 1, UNREAD: 1, LIMIT: 2, EXACT: 3}
    return min(found, key=lambda f: order[f.kind]) if found else Finding(UNREAD)
