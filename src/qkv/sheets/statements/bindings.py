"""Which conditions stand beside a formula: right after it, or before it and not after another formula."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, parse

SPAN = re.compile(r"\$([^$]*)\$")
_CONDITION_WORD = re.compile(
    r"(?:\b(?:if|when|whenever|for|where|with|given|since|while|as|once|because|case|keys?|indices"
    r"|all|any|every|each|other|samples?|provided|assuming|suppose|that|letting|let|take|taking|say|example|instance"
    r"|until|only|sending|setting|at|long|have|has|having|check|try|plug(?:ging)? in|insert(?:ing)?)\b"
    r"|e\.g\.|i\.e\.|[(（]|当|若|如果|对|对于|在|凡|其中|且"
    r"|只要|只有|仅当|例如|比如|假设|假如|令|取|,|，|、|and)\s*$",
    re.I,
)
_AFTER_CONDITION = re.compile(
    r"^[\s,，(（]*(?:(?:still |also |must |will |which )*(?:holds?|is true)?\s*(?:only |exactly |just |again )?"
    r"(?:for|if|when|whenever"
    r"|where|with|as|given|provided|since|once|until|at|in|as long as|as soon as|so long as"
    r"|对|对于|其中|当|若|如果|只要|在)?"
    r"\s*(?:that|all|any|every|each|other|the other|the|those|some|其他|所有|任意|所有的|任意的)?\s*"
    r"(?:remaining |other )?(?:keys?|indices|items?|samples?|draws?|cases?)?"
    r"\s*(?:with|where|in which|for which|when|of)?)[\s,，(（]*\$([^$]*)\$",
    re.I,
)


def clauses_of(math: str) -> tuple[T.Clause, ...]:
    """The clauses of a formula; none if it cannot be read."""
    try:
        return parse(math)
    except Unreadable:
        return ()


def _as_conditions(math: str) -> list[T.Condition]:
    """A formula beside another one as conditions; empty if it is none."""
    out: list[T.Condition] = []
    for clause in clauses_of(math):
        ends = between(clause)
        if not clause.sides:
            out += clause.conditions
        elif ends and all(map(is_number_condition, ends)):
            out += [T.Condition("relation", clause=one) for one in ends]
            out += clause.conditions
        elif is_number_condition(clause):
            out.append(T.Condition("relation", clause=clause))
            out += clause.conditions
        else:
            return []
    return out


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "<<": ">>", ">>": "<<"}


def between(clause: T.Clause) -> tuple[T.Clause, ...]:
    """A letter between two numbers as two clauses, γ > 0 and γ < 1 for 0 < γ < 1; none for anything else."""
    if len(clause.sides) != 3 or not isinstance(clause.sides[1], T.Symbol):
        return ()
    (low, letter, high), (first, second) = clause.sides, clause.signs
    if T.symbols(low) or T.symbols(high) or first not in _TURNED or second not in _TURNED:
        return ()
    return T.Clause((letter, low), (_TURNED[first],)), T.Clause((letter, high), (second,))


def is_number_condition(clause: T.Clause) -> bool:
    """Whether a clause compares one letter with a number, as γ > 1, λ ≫ 1 or γ → 1/2 do."""
    if compared_keys(clause):
        return True
    if len(clause.sides) == 2 and is_norm_of_key(clause.sides[0]):
        return not T.symbols(clause.sides[1]) or is_norm_of_key(clause.sides[1])
    if len(clause.sides) != 2 or not isinstance(clause.sides[0], T.Symbol):
        return False
    if clause.sides[0].base == "alpha" and clause.sides[0].index:
        return False
    if clause.sides[0].base in ("q", "k", "v", "x", "V", "K", "Q", "M", "c") and clause.sides[0].index != ("a",):
        return False
    return clause.signs[0] in (">", "<", ">=", "<=", ">>", "<<", "->", "=", "!=", "~") and not any(
        s.index for s in T.symbols(clause.sides[1])
    )


def is_norm_of_key(node: T.Node) -> bool:
    """Whether a node is the norm of a key."""
    if not isinstance(node, T.Call) or node.name not in ("norm", "abs"):
        return False
    inner = node.arguments[0]
    return isinstance(inner, T.Symbol) and inner.base in ("k", "K") and bool(inner.index)


def _after(after: str) -> list[T.Condition]:
    found = _AFTER_CONDITION.match(after)
    if found is None:
        return []
    head = after[: found.start(1)].strip(" $")
    conditions = _as_conditions(found[1])
    if not head and not conditions:
        return []
    if re.fullmatch(r"[,，\s]*(?:and|且)?", head) and any(c.kind == "relation" for c in conditions):
        return []
    rest = after[found.end() :]
    more = re.match(r"[\s,，]*(?:and|or|且|和|，|,)?\s*\$([^$]*)\$", rest)
    if conditions and more is not None:
        further = _as_conditions(more[1])
        if further and all(c.kind == "index" for c in further):
            conditions = _joined(conditions, further)
    return conditions


def _joined(first: list[T.Condition], second: list[T.Condition]) -> list[T.Condition]:
    """Conditions on one index together: i ≠ a and i ≠ b are i ≠ a, b."""
    last, more = first[-1], second[0]
    if last.kind == more.kind == "index" and last.index == more.index and last.inside == more.inside:
        return [*first[:-1], replace(last, members=(*last.members, *more.members)), *second[1:]]
    return [*first, *second]


@dataclass(frozen=True)
class Beside:
    """The conditions that stand beside a formula.

    Attributes:
        conditions: As they are most likely meant.
        others: Other ways to bind the conditions of the sentence; what they make true is not called wrong.
    """

    conditions: tuple[T.Condition, ...]
    others: tuple[tuple[T.Condition, ...], ...] = ()


def beside(before: str, after: str) -> Beside:
    r"""The conditions of a formula, by the words before and after it in its sentence.

    Example:
        >>> found = beside(r"$c \approx v_a$ in draws with $g > 1$ and", r" in draws with $g < 1$")
        >>> [c.clause.signs for c in found.conditions]
        [('<',)]
    """
    first, later = _before(before), _after(after)
    compared = _compared(before, after)
    others: list[list[T.Condition]] = []
    if first.taken and not later:
        others.append([*first.conditions, *first.taken])
    if later and opens_next(after):
        others.append(first.conditions)
    if first.doubtful and any(c.kind == "relation" for c in first.conditions):
        others.append([c for c in first.conditions if c.kind != "relation"])
    if _OTHERWISE_BEFORE.search(before[last_assertion(before) :]) or _OTHERWISE_AFTER.match(after):
        known = [c for c in (first.conditions or first.taken) if c.kind == "relation"]
        return Beside(tuple(n for c in known if (n := _negated(c)) is not None), (tuple(known),))
    main = _both(first, later) + compared
    return Beside(tuple(main), tuple(tuple(one) for one in others if one != main))


_OTHERWISE_BEFORE = re.compile(
    r"\b(?:otherwise|else|in the (?:other|remaining) (?:case|samples|draws)|in all other (?:cases|samples|draws)"
    r"|in the (?:others|rest)|if not)\b|否则|反之|不然|其余(?:情况|样本)|其他(?:情况|样本)",
    re.I,
)
_OTHERWISE_AFTER = re.compile(r"^[\s,，(（]*(?:if not\b|if it is not\b|否则)", re.I)
_OPPOSITE = {">": "<", "<": ">", ">=": "<", "<=": ">", ">>": "<", "<<": ">"}


def _negated(condition: T.Condition) -> T.Condition | None:
    """What is left over by a condition on a number; None of an equation."""
    clause = condition.clause
    if clause is None or len(clause.signs) != 1 or clause.signs[0] not in _OPPOSITE:
        return None
    return replace(condition, clause=replace(clause, signs=(_OPPOSITE[clause.signs[0]],)))


def opens_next(after: str) -> bool:
    """Whether the condition after a formula stands behind a comma or "and", and right before another statement."""
    found = re.match(r"\s*(?:[,，]|and\b|then\b|而|且)[^$,，;；]*\$[^$]*\$(?P<rest>.*)$", after, re.S)
    return found is not None and re.match(r"\s*(?:$|[,，;；.。)）]|(?:and|but|while|or)\b)", found["rest"]) is None


@dataclass(frozen=True)
class _Before:
    """Conditions before a formula: those that bear on it, and those that another formula has taken.

    Attributes:
        conditions: The last ones.
        fresh: Whether nothing was asserted since.
        taken: Conditions that stand right behind another formula.
        doubtful: Whether words since then may set another condition.
    """

    conditions: list[T.Condition]
    fresh: bool = False
    taken: tuple[T.Condition, ...] = ()
    doubtful: bool = False


def _both(before: _Before, after: list[T.Condition]) -> list[T.Condition]:
    """Conditions on indices and on numbers, from right before the formula, or else from after it.

    In "a step at $\\gamma = 1$: $c \\approx v_a$ for $\\gamma > 1$" the value before is no condition of the formula.
    """
    own = {c.clause.sides[0] for c in after if c.clause is not None and c.clause.signs[0] != "="}
    out: list[T.Condition] = []
    for relation in (False, True):
        mine = [c for c in before.conditions if (c.kind == "relation") == relation]
        mine = [c for c in mine if not (_is_value(c) and c.clause is not None and c.clause.sides[0] in own)]
        later = [c for c in after if (c.kind == "relation") == relation]
        out += (mine or later) if before.fresh else (later or mine)
    return out


def _before(before: str) -> _Before:
    """The last condition before, "If $c_a > 1$, …", and whether nothing was asserted since."""
    out: list[T.Condition] = []
    taken: list[T.Condition] = []
    fresh = False
    for found in SPAN.finditer(before):
        head = before[: found.start()]
        if belongs(head) and _THEN_NEXT.match(before, found.end()) is None:
            taken = [c for c in _as_conditions(found[1]) if c.kind == "relation"]
            continue  # the condition of the formula before it
        if _LEFT_OUT.search(head):
            continue
        worded = _CONDITION_WORD.search(head) is not None or re.search(
            r"\b(?:if|when|for|If|When|For)\b[^$,.;]{0,40}$|当[^$，。]{0,10}$", head
        )
        if not worded and _THEN.match(before, found.end()) is None:
            continue
        conditions = _as_conditions(found[1])
        if conditions:
            asserted = asserts(before[found.end() :])
            close = re.match(r"\s*[)）]", before[found.end() :])
            only = [c for c in conditions if c.kind != "index"] if close or asserted else conditions
            mine = {c.clause.sides[0] for c in conditions if c.clause is not None}
            values = [c for c in out if _is_equation(c, mine)]  # "with λ = 10 and n = 4"
            out = [*values, *only] if only else [] if any(c.kind == "index" for c in conditions) else out
            fresh = not asserted
    since = SPAN.sub(" ", before[last_assertion(before) :])
    moved = _ABOVE.search(since) if not fresh else None
    if moved is not None and any(_is_value(c) for c in out):
        return _Before([_beyond(c, ">" if moved["above"] else "<") if _is_value(c) else c for c in out])
    return _Before(out, fresh, tuple(taken), not fresh and _NEW_CASE.search(since) is not None)


_ABOVE = re.compile(
    r"\b(?:(?P<above>above|beyond|past)|(?P<below>below|under)) (?:it|that|this)\b|(?P<over>以上)|(?P<less>以下)", re.I
)
_NEW_CASE = re.compile(
    r"\b(?:above|below|beyond|elsewhere|other(?:s|wise)?|the rest|as soon as|once|if|when|whenever|unless"
    r"|larger|smaller"
    r"|shorter|longer|long|short|large|small)\b|否则|反之|以上|以下|若|当|如果|大于|小于|其余|其他|变[大小长短]",
    re.I,
)
"""Words that may set a new condition."""


def is_new_case(before: str) -> bool:
    """Whether words between the last assertion and the formula may set another condition than the one before."""
    cut = last_assertion(before)
    return cut > 0 and _NEW_CASE.search(SPAN.sub(" ", before[cut:])) is not None


def _beyond(condition: T.Condition, sign: str) -> T.Condition:
    """γ > 1 or γ < 1 for γ = 1."""
    assert condition.clause is not None
    return replace(condition, clause=replace(condition.clause, signs=(sign,)))


_THEN = re.compile(
    r"\s*(?:exactly|precisely|恰好)?\s*(?:[:：|]|(?:[,，]?\s*(?:then\b|时|的时候|的话|，?则|，?那么|的样本|的采样|的情况))|⇒|⟹|→|=>"
    r"|(?:gives?|yields?|means|implies|leads? to|makes?|results? in)\b)",
    re.I,
)
r"""What follows a condition that no word introduces: "$\gamma > 1$: $c \approx v_a$"."""
_LEFT_OUT = re.compile(
    r"\b(?:except|apart from|other than|unless|aside from)\b[^$]{0,20}$|(?:除了|除非|除)[^$]{0,6}$", re.I
)
_THEN_NEXT = re.compile(r"\s*(?:[,，]?\s*then\b|[:：])", re.I)
_BELONGS = re.compile(r"\$([^$]*)\$\s*(?:[(（]\s*$|[(（]?(?P<words>[^$,;:.，；、：。]{1,60})$)")
_BINDS = re.compile(
    r"\b(?:for|where|with|when|whenever|if|in|provided|as long as|as soon as|once|only|exactly|at"
    r"|until|unless|on|over)\b"
    r"|若|当|如果|在|只要|只在",
    re.I,
)
_JOINS = re.compile(
    r"\b(?:and|but|while|whereas|so|then|hence|thus|or|because|since|gives?|yields?|also|now|next|we|is|are|has|have)\b"
    r"|而|但|且|并|则|所以|因此|于是|又|或|和",
    re.I,
)


def belongs(head: str) -> bool:
    """Whether what follows is the condition of the formula before it, as in "$c \\approx v_a$ when"."""
    found = _BELONGS.search(head)
    if found is None or not asserts(f"${found[1]}$"):
        return False
    words = found["words"]
    if words is not None and re.match(r"\s*[A-Z]", words):
        return False  # the next sentence
    return words is None or (_BINDS.search(words) is not None and _JOINS.search(words) is None)


def _is_equation(condition: T.Condition, other_than: set[T.Node]) -> bool:
    """Whether a condition sets a letter, and none of these."""
    clause = condition.clause
    return clause is not None and clause.signs == ("=",) and clause.sides[0] not in other_than


def _is_value(condition: T.Condition) -> bool:
    """Whether a condition gives a letter a number."""
    clause = condition.clause
    return clause is not None and clause.signs == ("=",) and isinstance(clause.sides[1], T.Number)


def asserts(rest: str) -> bool:
    """Whether another assertion stands between a condition and the formula."""
    return any(c.sides and not is_number_condition(c) for m in SPAN.finditer(rest) for c in clauses_of(m[1]))


def last_assertion(before: str) -> int:
    """Where the last formula before ends that asserts something."""
    ends = [
        m.end() for m in SPAN.finditer(before)
        if any(c.sides and not is_number_condition(c) for c in clauses_of(m[1]))
    ]  # fmt: skip
    return max(ends, default=0)


_MORE = r"(?:larger|greater|bigger|more|longer|higher) than|exceed(?:s|ing)?|above|大于|超过|高于"
_LESS = r"(?:smaller|less|shorter|lower|fewer) than|(?:falls? |drops? )?below|小于|低于"
_COMPARED = re.compile(
    rf"\$([^$=<>]*)\$[^$.;,，。；]{{0,16}}?(?:(?P<more>{_MORE})|(?P<less>{_LESS}))\s*\$?\s*(\d+(?:\.\d+)?|one\b)", re.I
)


def _compared(before: str, after: str) -> list[T.Condition]:
    """A number compared in words, as in "if $\\gamma$ is larger than 1", before a formula or right after it."""
    found = [m for m in _COMPARED.finditer(before) if not belongs(before[: m.start()])]
    last = found[-1] if found and not asserts(before[found[-1].end() :]) else None
    if last is None:
        opened = _COMPARED.search(re.split(r"[,，;；]", after)[0])
        last = opened if opened is not None and belongs(f"$c = v$ {after[: opened.start()]}") else None
    if last is None:
        return []
    number = "1" if last[4] == "one" else last[4]
    clauses = clauses_of(f"{last[1]} {'>' if last['more'] else '<'} {number}")
    return [T.Condition("relation", clause=c) for c in clauses if c.sides and is_number_condition(c)]


def compared_keys(clause: T.Clause) -> str:
    """The sign between the scores, weights or lengths of a and b, as in k_a'q > k_b'q; empty for anything else."""
    if len(clause.sides) != 2 or clause.signs[0] not in (">", "<", ">>", "<<", ">=", "<="):
        return ""
    items = []
    for side in clause.sides:
        inside = [s for s in T.symbols(side) if s.index]
        single = len(inside) == 1 and inside[0].base in ("k", "K", "alpha") and inside[0].index in (("a",), ("b",))
        if not single or any(isinstance(n, T.Binary) and n.sign not in "*." for n in T.nodes(side)):
            return ""
        items.append(inside[0].index[0])
    sign = {">>": ">", "<<": "<", ">=": ">", "<=": "<"}.get(clause.signs[0], clause.signs[0])
    if items == ["a", "b"]:
        return sign
    return {">": "<", "<": ">"}[sign] if items == ["b", "a"] else ""
