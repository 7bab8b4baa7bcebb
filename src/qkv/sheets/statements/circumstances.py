"""What the words around a formula say: goals, hypotheses, negations, conditions; in English and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

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
    r"|(?:ignor|neglect|disregard|exclud|except|omit|discard)\w*(?: (?:all|the|those|any))?"
    r"(?: (?:cases?|samples?|draws?|situations?|events?))?(?: (?:where|when|in which|with|that|of))?"
    r"|supposing|were to set|setting|instead|with|worst case|extreme case)\s*(?:that|we|of|set|have|also)*\W*$"
    r"|\b(?:if|when)\b[^,.;$]{0,40}$|(?:如果|假设|假如|若|当|设|忽略|不考虑|排除|除了)[^，。,$]{0,8}$",
    re.I,
)
_FULL_CONDITION = re.compile(
    r"\b(?:if|when)\b[^,.;$]*(?:\$[^$]*\$)?[^,.;$]*\b(?:is|are|becomes?|gets?|grows?) (?:very |too |much |quite )*"
    r"(?:large|larger|big|bigger|small|smaller|tiny|long|short|longer|shorter|huge)\s*$",
    re.I,
)
_NEGATION = re.compile(
    r"\b(?:(?:is|are|does|do|will|would|can|was|be|did) not|never|cannot|can't|isn't|aren't|doesn't"
    r"|won't|no longer|rather than|instead of|fails? to)\b(?! only)[^.;,:$]{0,18}$|(?:不能|不是|无法|不会"
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
    r"|all|any|every|each|other|samples?|provided|assuming|suppose|that|letting|let|take|taking|say|example|instance"
    r"|until|only|sending|setting|at|long)\b|e\.g\.|i\.e\.|[(（]|当|若|如果|对|对于|其中|且|只要|只有|仅当|例如|比如|假设|假如|令|取|,|，|、|and)\s*$",
    re.I,
)
_AFTER_CONDITION = re.compile(
    r"^[\s,，(（]*(?:(?:still |also |must |will |which )*(?:holds?|is true)?\s*(?:only |exactly |just |again )?"
    r"(?:for|if|when|whenever"
    r"|where|with|as|given|provided|since|once|until|at|in|as long as|so long as|对|对于|其中|当|若|如果|只要|在)?"
    r"\s*(?:that|all|any|every|each|other|the other|the|those|some|其他|所有|任意|所有的|任意的)?\s*"
    r"(?:remaining |other )?(?:keys?|indices|items?|samples?|draws?|cases?)?"
    r"\s*(?:with|where|in which|for which|when|of)?)[\s,，(（]*\$([^$]*)\$",
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
        every: Whether all samples are spoken of.
        some: Whether only some samples are spoken of.
        by_choice: Whether "by setting" or the like follows, so that it is what a choice gives.
        denominator: Whether the denominator of a softmax is spoken of.
        likewise: Whether it is said of another case by likeness, as with "similarly".
        unreal: Whether it is said of what would be, not of what is.
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
    every: bool = False
    some: bool = False
    by_choice: bool = False
    denominator: bool = False
    likewise: bool = False
    unreal: bool = False


def circumstances(formula: Formula) -> Circumstances:
    """What is said around a formula, in its sentence."""
    before, after = formula.before, formula.after
    tail = re.sub(r"\$[^$]*\$", "", before)
    recent = _since_last_assertion(before)
    conditions = [*_both(_before(before), _after(after)), *_compared(before)]
    return Circumstances(
        goal=(_GOAL.search(recent) is not None and _CHOICE.search(recent) is None)
        or _GOAL_AFTER.search(after) is not None,
        perhaps_goal=_WEAK_GOAL.search(recent) is not None,
        hypothesis=_HYPOTHESIS.search(before) is not None and _FULL_CONDITION.search(before) is None,
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
        every=_EVERY.search(tail + after) is not None,
        some=_SOME.search(tail + after) is not None,
        by_choice=_BY_CHOICE.search(after) is not None,
        denominator=_DENOMINATOR.search(tail[-80:] + after[:40]) is not None,
        likewise=_LIKEWISE.search(recent) is not None,
        unreal=_UNREAL.search(tail[-80:]) is not None,
    )


_SOME = re.compile(
    r"\b(?:sometimes|(?:some|other|certain) (?:samples?|cases|draws?|times)|others|either|oscillat\w*"
    r"|fluctuat\w*|jumps?|flips?|swings?|alternat\w*)\b|有时|某些|另一些|时而|一会|来回|摆动|波动",
    re.I,
)
_EVERY = re.compile(
    r"\b(?:each|every|all|any|most) (?:of )?(?:the )?(?:samples?|draws?|times?)\b|\balways\b"
    r"|\bregardless\b|\bno matter\b"
    r"|所有样本|每个样本|每次|总是|始终|无论",
    re.I,
)
_BY_CHOICE = re.compile(
    r"^\W*(?:simply |just )?(?:by|through|if we|when we|with the choice)\s+(?:simply |just )?(?:setting|choosing|taking"
    r"|using|letting|picking|set|choose|take|use|let|pick)\b",
    re.I,
)
_LIKEWISE = re.compile(
    r"\b(?:same|similar(?:ly)?|likewise|analogous(?:ly)?|symmetric\w*|vice versa"
    r"|in the same way|respectively|conversely)\b"
    r"|同理|同样|类似|对称|反过来",
    re.I,
)
_UNREAL = re.compile(
    r"\b(?:would|could) (?:only|just|merely|not)\b|\bwouldn't\b"
    r"|\b(?:if|without|unless|otherwise|instead)\b[^.;]*\bwould\b"
    r"|\b(?:tempt\w+|na[iï]ve\w*|wrongly|mistaken\w*)\b|本来|原本|误以为|错误地",
    re.I,
)
_DENOMINATOR = re.compile(r"\b(?:denominator|normali[sz]\w+|partition)\b|分母|归一", re.I)


_IF = re.compile(
    r"\b(?:if|when|whenever|unless|suppose|assume|assuming|instead|without|otherwise|in case|were)\b"
    r"|如果|假设|假如|若|当|比如|的话",
    re.I,
)
_SIZE = re.compile(
    r"\s*(?:is|are|becomes?|gets?) (?:very |much |sufficiently |too )?(?:large|larger|big|bigger"
    r"|small|smaller|tiny)|很大|较大|变大|很小|较小",
    re.I,
)


_PLAIN_SIZE = re.compile(
    r"\s*[a-zA-Z] (?:is|are|becomes?|gets?) (?:very |much |sufficiently |too )?"
    r"(?:large|larger|big|small|smaller|tiny)",
    re.I,
)


def _unclear(before: str) -> bool:
    """Whether a word of supposition is followed by something else than a formula that is understood."""
    for found in _IF.finditer(re.sub(r"\$[^$]*\$", lambda m: "\x00" * len(m[0]), before)):
        if _PLAIN_SIZE.match(before, found.end()):
            continue
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


def _both(before: tuple[list[T.Condition], bool], after: list[T.Condition]) -> list[T.Condition]:
    """Conditions on indices and on numbers, from right before the formula, or else from after it.

    In "a step at $\\gamma = 1$: $c \\approx v_a$ for $\\gamma > 1$" the value before is no condition of the formula.
    """
    first, fresh = before
    own = {c.clause.sides[0] for c in after if c.clause is not None and c.clause.signs[0] != "="}
    out: list[T.Condition] = []
    for relation in (False, True):
        mine = [c for c in first if (c.kind == "relation") == relation]
        mine = [c for c in mine if not (_is_value(c) and c.clause is not None and c.clause.sides[0] in own)]
        later = [c for c in after if (c.kind == "relation") == relation]
        out += (mine or later) if fresh else (later or mine)
    return out


def _before(before: str) -> tuple[list[T.Condition], bool]:
    """The last condition before, "If $c_a > 1$, …", and whether nothing was asserted since."""
    out: list[T.Condition] = []
    fresh = False
    for found in _SPAN.finditer(before):
        head = before[: found.start()]
        if _belongs(head):
            continue  # the condition of the formula before it
        worded = _CONDITION_WORD.search(head) is not None or re.search(
            r"\b(?:if|when|for|If|When|For)\b[^$,.;]{0,40}$|当[^$，。]{0,10}$", head
        )
        if not worded and _THEN.match(before, found.end()) is None:
            continue
        conditions = _as_conditions(found[1])
        if conditions:
            asserted = _asserts(before[found.end() :])
            close = re.match(r"\s*[)）]", before[found.end() :])
            only = [c for c in conditions if c.kind != "index"] if close or asserted else conditions
            values = [c for c in out if c.kind == "relation" and _is_value(c)]  # "with λ = 10 and n = 4"
            out = [*values, *only] if only else [] if any(c.kind == "index" for c in conditions) else out
            fresh = not asserted
    return out, fresh


_THEN = re.compile(r"\s*(?:[:：|]|(?:[,，]?\s*(?:then\b|时|的时候|的话|，?则|，?那么))|⇒|⟹|→|=>)", re.I)
r"""What follows a condition that no word introduces: "$\gamma > 1$: $c \approx v_a$"."""
_BELONGS = re.compile(
    r"\$([^$]*)\$\s*(?:[(（]|[(（]?(?:for|where|with|when|whenever|if|in|provided|as long as|once|only|exactly"
    r"|at|若|当|如果))"
    r"(?:\s*\b(?:all|any|every|each|samples?|draws?|cases?|those|the|which|where|with|when|if|that|in|of)\b)*\s*$",
)


def _belongs(head: str) -> bool:
    """Whether what follows is the condition of the formula before it, as in "$c \\approx v_a$ when"."""
    found = _BELONGS.search(head)
    return found is not None and _asserts(f"${found[1]}$")


def _is_value(condition: T.Condition) -> bool:
    """Whether a condition gives a letter a number."""
    clause = condition.clause
    return clause is not None and clause.signs == ("=",) and isinstance(clause.sides[1], T.Number)


def _asserts(rest: str) -> bool:
    """Whether another assertion stands between a condition and the formula."""
    return any(c.sides and not _is_number_condition(c) for m in _SPAN.finditer(rest) for c in _clauses(m[1]))


def _said(before: str, words: str) -> list[str]:
    kept = before[_last_assertion(before) :]
    longer = "large" in words and re.search(rf"\b(?:longer|larger|bigger)\s+(?:{_A_KEY})", kept, re.I)
    shorter = "large" not in words and re.search(rf"\b(?:shorter|smaller)\s+(?:{_A_KEY})", kept, re.I)
    if longer or shorter:
        return ["k_a"]
    found = re.finditer(rf"(?:\$([^$]*)\$|(?<![\w$\\])([a-zA-Z]))\s*(?:{words})", before)
    return [(m[1] or m[2]).strip() for m in found]


_A_KEY = r"\$[^$]*k_\{?a[^$]*\$|one\b"


def _last_assertion(before: str) -> int:
    """Where the last formula before ends that asserts something."""
    ends = [
        m.end() for m in _SPAN.finditer(before)
        if any(c.sides and not _is_number_condition(c) for c in _clauses(m[1]))
    ]  # fmt: skip
    return max(ends, default=0)


_MORE = r"(?:larger|greater|bigger|more|longer|higher) than|exceed(?:s|ing)?|above|大于|超过|高于"
_LESS = r"(?:smaller|less|shorter|lower|fewer) than|below|小于|低于"
_COMPARED = re.compile(
    rf"\$([^$=<>]*)\$[^$.;,，。；]{{0,16}}?(?:(?P<more>{_MORE})|(?P<less>{_LESS}))\s*\$?\s*(\d+(?:\.\d+)?|one\b)", re.I
)


def _compared(before: str) -> list[T.Condition]:
    """A number compared in words, as in "if $\\gamma$ is larger than 1"."""
    found = list(_COMPARED.finditer(before))
    if not found or _asserts(before[found[-1].end() :]):
        return []
    last = found[-1]
    number = "1" if last[4] == "one" else last[4]
    clauses = _clauses(f"{last[1]} {'>' if last['more'] else '<'} {number}")
    return [T.Condition("relation", clause=c) for c in clauses if c.sides and _is_number_condition(c)]


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
