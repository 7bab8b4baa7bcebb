"""What the words around a formula say: goals, hypotheses, negations, conditions; in English and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, parse

_GOAL = re.compile(
    r"\b(?:we|i|you|to)\s+(?:would\s+|also\s+|only\s+|just\s+|then\s+)?(?:want|wish|aim|desire)\b"
    r"|\bwe\s+(?:also\s+|only\s+|just\s+|then\s+)?need\b"
    r"|\b(?:in order to|so as to|to (?:have|get|obtain|achieve|make|ensure|guarantee|reach"
    r"|satisfy))\b|\bgoal\b|\bobjective\b"
    r"|\bwant(?:s|ed)?\b|想要|需要|要使|希望|目标|只需|为了",
    re.I,
)
_WEAK_GOAL = re.compile(
    r"\bsuch that\b|\bwe (?:must|should) (?:have|get|find)\b|\b(?:this|which|it|that) (?:requires"
    r"|needs|require)\b|\bdesired? (?:is|that|to)\b"
    r"|\bsatisf(?:y|ies)\b|\bneed(?:s|ed)? to (?:be|find|have)\b|\bindicates? that\b|\bshould (?:be"
    r"|have|hold)\b|使得|要求|应该|必须",
    re.I,
)
_GOAL_AFTER = re.compile(
    r"^\W*(?:is|are) (?:required|needed|desired|wanted)|^\W*indicates? that|^\W*,? we (?:need|want"
    r"|require)|^\W*(?:即可|成立即可)",
    re.I,
)
_HYPOTHESIS = re.compile(
    r"\b(?:if|when|whenever|suppose|assume|assuming|unless|in case|even if|provided|imagine|where"
    r"|ignore cases (?:where|when|in which)"
    r"|supposing|were to set|setting|instead|with|worst case|extreme case)\s*(?:that|we|of|set|have|also)*\W*$"
    r"|\b(?:if|when)\b[^,.;$]{0,40}$|(?:如果|假设|假如|若|当|设)[^，。,$]{0,8}$",
    re.I,
)
_NEGATION = re.compile(
    r"\b(?:(?:is|are|does|do|will|would|can|was|be|did) not|never|cannot|can't|isn't|aren't|doesn't"
    r"|won't|no longer|rather than|instead of|fails? to)\b(?! only)[^.;,$]{0,18}$|(?:不能|不是|无法|不会"
    r"|不可能)[^，。$]{0,8}$",
    re.I,
)
_NEGATED_AFTER = re.compile(
    r"^\W*(?:is|does|will|can|would)(?: not|n't)\b(?! only)|^\W*isn't\b|^\W*(?:不成立|是错)", re.I
)
_CHOICE = re.compile(
    r"\b(?:let|set|choose|pick|take|define|design|select|construct|consider|use|using|try|denote"
    r"|by setting|setting|namely|put|write)\b[^.;$]{0,40}$"
    r"|(?:令|设|取|选|构造|定义|记)[^，。$]{0,8}$",
    re.I,
)
_OTHERS = re.compile(
    r"\b(?:others?|remaining|rest|all the rest|everything else)\b[^.;$]{0,40}$|(?:其他|其余|剩下|别的)[^。$]{0,12}$",
    re.I,
)
_SPAN = re.compile(r"\$([^$]*)\$")
_CONDITION_WORD = re.compile(
    r"(?:\b(?:if|when|whenever|for|where|with|given|since|while|as|once|because|case|keys?|indices"
    r"|all|any|every|each|other|samples?)\b|[(（]|当|若|如果|对|对于|其中|且|,|，|、|and)\s*$",
    re.I,
)
_AFTER_CONDITION = re.compile(
    r"^[\s,，(（]*(?:(?:still |also |must |will |which )*(?:holds?|is true)?\s*(?:for|if|when|whenever"
    r"|where|with|as|given|provided|since|对|对于|其中|当)?"
    r"\s*(?:that|all|any|every|each|other|the other|some|其他|所有|任意)?\s*(?:keys?|indices|items?"
    r"|)?)[\s,，(（]*\$([^$]*)\$",
    re.I,
)
_OTHERWISE = re.compile(r"^[\s,，(（]*(?:otherwise|else|否则|其他情况)", re.I)
_SCORES = re.compile(
    r"\bscores?\b|dot[ -]products?|pre-?softmax|before (?:the )?softmax|logits?|注意力分数|内积|点积", re.I
)
_MUCH = re.compile(
    r"\b(?:much|significantly|far|large[rst]*|vastly|greatly|dominat\w*|sufficiently|hugely|very"
    r"|enough|extremely|maxim\w*|overwhelm\w*)\b|远|很大|足够|最大|非常",
    re.I,
)


@dataclass(frozen=True)
class Circumstances:
    """What the words around a formula say of it.

    Attributes:
        goal: Whether it is wanted and not asserted.
        perhaps_goal: Whether it may be wanted and not asserted.
        hypothesis: Whether it is supposed.
        negated: Whether it is denied.
        choice: Whether a word such as "let" stands before it.
        others: Whether it speaks of the items that are not named.
        otherwise: Whether it speaks of what an earlier condition leaves out.
        scores: Whether scores are spoken of.
        much: Whether words such as "much" or "large" stand near.
        conditions: Conditions on indices and numbers beside it.
        unclear: Whether a word such as "if" stands before it whose condition is not a formula that is understood.
        large: Vectors or letters that are said to be large under a condition.
        small: The same for small.
    """

    goal: bool = False
    perhaps_goal: bool = False
    hypothesis: bool = False
    negated: bool = False
    choice: bool = False
    others: bool = False
    otherwise: bool = False
    scores: bool = False
    much: bool = False
    conditions: tuple[T.Condition, ...] = ()
    unclear: bool = False
    large: tuple[str, ...] = ()
    small: tuple[str, ...] = ()


def circumstances(formula: Formula) -> Circumstances:
    """What is said around a formula, in its sentence."""
    before, after = formula.before, formula.after
    tail = re.sub(r"\$[^$]*\$", "", before)
    recent = _since_last_assertion(before)
    conditions = _both(_before(before), _after(after))
    return Circumstances(
        goal=(_GOAL.search(recent) is not None and _CHOICE.search(recent) is None)
        or _GOAL_AFTER.search(after) is not None,
        perhaps_goal=_WEAK_GOAL.search(recent) is not None,
        hypothesis=_HYPOTHESIS.search(before) is not None,
        negated=_NEGATION.search(before) is not None or _NEGATED_AFTER.search(after) is not None,
        choice=_CHOICE.search(before) is not None and formula.row == 0,
        others=_OTHERS.search(before) is not None,
        otherwise=_OTHERWISE.search(after) is not None,
        scores=_SCORES.search(tail + after) is not None,
        much=_MUCH.search(tail + after) is not None,
        conditions=tuple(conditions),
        unclear=_unclear(before),
        large=tuple(
            _said(
                before,
                r"(?:is|are|becomes?|gets?) (?:very |much |sufficiently |too )?(?:large|larger|big|bigger)|很大|较大"
                r"|变大",
            )
        ),
        small=tuple(
            _said(
                before,
                r"(?:is|are|becomes?|gets?) (?:very |much |sufficiently |too )?(?:small|smaller|tiny)|很小|较小|变小",
            )
        ),
    )


_IF = re.compile(
    r"\b(?:if|when|whenever|unless|suppose|assume|assuming|instead|would|otherwise|in case|were)\b"
    r"|如果|假设|假如|若|当",
    re.I,
)
_SIZE = re.compile(
    r"\s*(?:is|are|becomes?|gets?) (?:very |much |sufficiently |too )?(?:large|larger|big|bigger"
    r"|small|smaller|tiny)|很大|较大|变大|很小|较小",
    re.I,
)


def _unclear(before: str) -> bool:
    """Whether a word of supposition is followed by something else than a formula that is understood."""
    for found in _IF.finditer(re.sub(r"\$[^$]*\$", lambda m: "\x00" * len(m[0]), before)):
        span = _SPAN.search(before, found.end())
        if span is None or span.start() - found.end() > 40:
            return True
        clauses = _clauses(span[1])
        sized = _SIZE.match(before, span.end()) is not None
        if not sized and not any(not c.sides or _is_number_condition(c) or _is_definition(c) for c in clauses):
            return True
    return False


def _is_definition(clause: T.Clause) -> bool:
    head = clause.sides[0]
    return (
        isinstance(head, T.Symbol) and head.base in ("q", "g", "M", "V", "K", "Q", "x") and set(clause.signs) == {"="}
    )


def _since_last_assertion(before: str) -> str:
    """The words that bear on a formula: those after "then", "so" or a further main clause."""
    cut = max(
        (
            m.end()
            for m in re.finditer(
                r"\b(?:then|so|thus|hence|therefore|we (?:have|get|obtain|see)|gives?|by setting|yields?"
                r"|results? in|follows|which (?:means|gives)|justification|because|since)\b|于是|因此|所以|则|得",
                before,
                re.I,
            )
        ),
        default=0,
    )
    return before[cut:]


def _clauses(math: str) -> tuple[T.Clause, ...]:
    try:
        return parse(math)
    except Unreadable:
        return ()


def _as_conditions(math: str) -> list[T.Condition]:
    """A formula beside another one as conditions; empty if it is none."""
    out: list[T.Condition] = []
    for clause in _clauses(math):
        if not clause.sides:
            out += clause.conditions
        elif _is_number_condition(clause):
            out.append(T.Condition("relation", clause=clause))
            out += clause.conditions
        else:
            return []
    return out


def _is_number_condition(clause: T.Clause) -> bool:
    """Whether a clause compares one letter with a number, as γ > 1, λ ≫ 1 or γ → 1/2 do."""
    if len(clause.sides) == 2 and is_norm_of_key(clause.sides[0]):
        return not T.symbols(clause.sides[1]) or is_norm_of_key(clause.sides[1])
    if len(clause.sides) != 2 or not isinstance(clause.sides[0], T.Symbol):
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
    more = re.match(r"[\s,，]*(?:and|且|，|,)?\s*\$([^$]*)\$", rest)
    if conditions and more is not None:
        further = _as_conditions(more[1])
        if further and all(c.kind == "index" for c in further):
            conditions += further
    return conditions


def _both(before: tuple[list[T.Condition], bool], after: list[T.Condition]) -> list[T.Condition]:
    """Conditions on indices and on numbers, from right before the formula, or else from after it."""
    first, fresh = before
    out: list[T.Condition] = []
    for relation in (False, True):
        mine = [c for c in first if (c.kind == "relation") == relation]
        later = [c for c in after if (c.kind == "relation") == relation]
        out += (mine or later) if fresh else (later or mine)
    return out


def _before(before: str) -> tuple[list[T.Condition], bool]:
    """The last condition before, "If $c_a > 1$, …", and whether nothing was asserted since."""
    out: list[T.Condition] = []
    fresh = False
    for found in _SPAN.finditer(before):
        head = before[: found.start()]
        if _BELONGS.search(head) is not None:
            continue  # the condition of the formula before it
        if _CONDITION_WORD.search(head) is None and not re.search(
            r"\b(?:if|when|for|If|When|For)\b[^$,.;]{0,40}$|当[^$，。]{0,10}$", head
        ):
            continue
        conditions = _as_conditions(found[1])
        if conditions:
            asserted = _asserts(before[found.end() :])
            close = re.match(r"\s*[)）]", before[found.end() :])
            only = [c for c in conditions if c.kind != "index"] if close or asserted else conditions
            out = only or ([] if any(c.kind == "index" for c in conditions) else out)
            fresh = not asserted
    return out, fresh


_BELONGS = re.compile(r"\$[^$]*(?:[=≈<>~]|\\approx|\\to)[^$]*\$\s*(?:for|where|with|when|if)\s*(?:all|any|every)?\s*$")


def _asserts(rest: str) -> bool:
    """Whether another assertion stands between a condition and the formula."""
    return any(c.sides and not _is_number_condition(c) for m in _SPAN.finditer(rest) for c in _clauses(m[1]))


def _said(before: str, words: str) -> list[str]:
    return [m[1].strip() for m in re.finditer(rf"\$([^$]*)\$\s*(?:{words})", before)]
