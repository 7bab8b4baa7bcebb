"""What the words around a formula say: goals, hypotheses, negations, conditions; in English and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.bindings import SPAN, belongs, beside, clauses_of, is_number_condition
from qkv.sheets.statements.changes import says_changed

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
    r"|\b(?:if|when)\b(?:(?!\bthen\b)[^,.;$]){0,40}$|(?:如果|假设|假如|若|当|设|忽略|不考虑|排除|除了)[^，。,$]{0,8}$",
    re.I,
)
_FULL_CONDITION = re.compile(
    r"\b(?:if|when)\b[^,.;$]*(?:\$[^$]*\$)?[^,.;$]*\b(?:is|are|becomes?|gets?|grows?) (?:very |too |much |quite )*"
    r"(?:large|larger|big|bigger|small|smaller|tiny|long|short|longer|shorter|huge)\s*$",
    re.I,
)
_NEGATION = re.compile(
    r"\b(?:wrong|false|incorrect|a mistake|an error) to (?:say|think|write|believe|claim|conclude|expect)\b"
    r"[^.;,:$]{0,18}$|"
    r"\b(?:(?:is|are|does|do|will|would|can|was|be|did) not|never|cannot|can't|isn't|aren't|doesn't"
    r"|won't|no longer|rather than|instead of|fails? to|far from|contrary to|anything but|short of)\b(?! only)"
    r"(?![^.;,:$]*\b(?:and|so|hence|thus|then)\s*$)[^.;,:$]{0,18}$|(?:不能|不是|无法|不会"
    r"|不可能)[^，。$]{0,8}$",
    re.I,
)
_FALSE = (
    r"(?:simply |just |plainly |clearly |of course |definitely )?(?:false|wrong|incorrect|untrue|impossible"
    r"|not\b(?! only)"
    r"|out of reach|unattainable|unreachable|hopeless|an? (?:common |frequent |typical )?"
    r"(?:mistake|error|misconception))"
)
_NEGATED_AFTER = re.compile(
    r"^\W*(?:does|will|can|would)(?: not|n't)\b(?! only)(?! (?:vanish|change|depend|matter|move|grow|shrink|disappear"
    r"|affect|fluctuate|vary|influence|involve|contain|go to)\b)|^\W*isn't\b|^\W*(?:cannot|can't)\b"
    rf"|^\W*(?:is|are|was|would be) {_FALSE}"
    rf"|^\W*(?:but |and )?(?:which|this|that|it) (?:is|was|would be) {_FALSE}"
    r"|^\W*(?:但|可)?(?:这|那)?(?:是|就是|显然)?(?:不成立|错|不对|不正确|不可能)",
    re.I,
)
_UNREAL_AFTER = re.compile(
    r"^\W*(?:would|could|might) (?:need|require|be|hold|follow|happen|only|have|mean|demand|result|take)\b", re.I
)
_ELSEWHERE = re.compile(
    r"\b(?:compared (?:to|with)|unlike|in contrast to|as opposed to|different from) (?:in )?[(（][a-h][)）]"
    r"|\bin \([a-h]\)[^.;]*\b(?:had|was|were|got|saw|found|used)\b|(?:与|和|不像|相比)\s*[(（][a-h][)）]|"
    r"\b(?:in|from|of|unlike|to|with) (?:the |our )?(?:(?:previous|earlier|last|preceding|first) )?"
    r"(?:sub)?(?:part|question|problem|exercise)s?\b[^.;]*\b(?:had|was|were|got|saw|found|used)\b|(?:上|前)一?(?:题|问|小题|部分)",
    re.I,
)
_ONE_HEAD = re.compile(
    r"\b(?:one|single|only one|the same)[ -](?:attention )?(?:head\w*|query)\b|\bsingle[- ]headed"
    r"|单头|单个头|一个头|单个查询",
    re.I,
)
_CHOICE = re.compile(
    r"\b(?:let(?! me\b| us (?:see|check|verify|compute|look|calculate))|set|choose|pick|take"
    r"|define|design|select|construct|consider|use|using|try|denote"
    r"|by setting|setting|namely|put|write)\b[^.;$]{0,40}$"
    r"|(?:令|设|取|选|构造|定义|记)[^，。$]{0,8}$",
    re.I,
)
_OTHERS = re.compile(
    r"\b(?:others?|remaining|rest|all the rest|everything else)\b[^.;$]{0,40}$|(?:其他|其余|剩下|别的)[^。$]{0,12}$",
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
        other_conditions: Other ways to bind conditions of its sentence.
        unclear: Whether a word such as "if" stands before it whose condition is not a formula that is understood.
        changed: Whether a change is told, as in "without the factor $t$".
        large: Vectors or letters that are said to be large under a condition.
        small: The same for small.
        every: Whether all samples are spoken of.
        some: Whether only some samples are spoken of.
        by_choice: Whether "by setting" or the like follows, so that it is what a choice gives.
        denominator: Whether the denominator of a softmax is spoken of.
        likewise: Whether it is said of another case by likeness, as with "similarly".
        unreal: Whether it is said of what would be, or of another part.
        one_head: Whether a single head or query is spoken of.
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
    other_conditions: tuple[tuple[T.Condition, ...], ...] = ()
    unclear: bool = False
    changed: bool = False
    large: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    every: bool = False
    some: bool = False
    by_choice: bool = False
    denominator: bool = False
    likewise: bool = False
    unreal: bool = False
    one_head: bool = False


def circumstances(formula: Formula) -> Circumstances:
    """What is said around a formula, in its sentence."""
    before, after = formula.before, formula.after
    tail = re.sub(r"\$[^$]*\$", "", before)
    recent = _since_last_assertion(before)
    bound = beside(before, after)
    large, small = _sizes(before, after)
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
        conditions=bound.conditions,
        other_conditions=bound.others,
        unclear=_unclear(before) or _unclear_after(after) or _unclear_lead(_lead(formula)),
        changed=says_changed(f"{_lead(formula)} {before}", _first_words(after)),
        large=large,
        small=small,
        every=_EVERY.search(f"{tail} {_first_words(after)}") is not None,
        some=_SOME.search(tail + after) is not None,
        by_choice=_BY_CHOICE.search(after) is not None,
        denominator=_DENOMINATOR.search(tail[-80:] + after[:40]) is not None,
        likewise=_LIKEWISE.search(recent) is not None,
        unreal=_UNREAL.search(tail[-80:]) is not None
        or _UNREAL_AFTER.match(after) is not None
        or _ELSEWHERE.search(recent) is not None,
        one_head=_ONE_HEAD.search(tail) is not None,
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
    r"\b(?:would|could) (?:only|just|merely|not)\b|\bwouldn't\b|\b(?:might|could)\b|\bmay (?:fail|happen|occur|end)\b"
    r"|\b(?:on average|in expectation|averaged over)\b|平均(?:来看|来说|而言|意义|下来)|期望上"
    r"|\b(?:if|without|unless|otherwise|instead)\b[^.;]*\bwould\b"
    r"|\b(?:tempt\w+|na[iï]ve\w*|wrongly|mistaken\w*)\b|本来|原本|误以为|错误地",
    re.I,
)
_DENOMINATOR = re.compile(r"\b(?:denominator|normali[sz]\w+|partition)\b|分母|归一", re.I)


_IF = re.compile(
    r"\b(?:if|when|whenever|unless|suppose|assume|assuming|imagine|instead|without|otherwise|in case|were)\b"
    r"|如果|假设|假如|若|当|比如|的话",
    re.I,
)
_SIZE = re.compile(
    r"\s*(?:(?:is|are|becomes?|gets?) (?:very |much |sufficiently |too )?(?:large|larger|big|bigger|long|longer"
    r"|small|smaller|tiny|short|shorter)|(?:很|较|变|偏|非常)*(?:大|小|长|短))",
    re.I,
)


_PLAIN_SIZE = re.compile(
    r"\s*[a-zA-Z] (?:is|are|becomes?|gets?) (?:very |much |sufficiently |too )?"
    r"(?:large|larger|big|small|smaller|tiny)",
    re.I,
)


_INVERTED = re.compile(r"(?:^|[.;,(]\s*)(?:had|were|should)\s+(?:we|the|all|both|it|there|this|that|\$)", re.I)


def _unclear(before: str) -> bool:
    """Whether a word of supposition is followed by something else than a formula that is understood."""
    if _INVERTED.search(before):
        return True
    for found in _IF.finditer(re.sub(r"\$[^$]*\$", lambda m: "\x00" * len(m[0]), before)):
        if _PLAIN_SIZE.match(before, found.end()):
            continue
        if found[0].lower() == "instead" and _after_definition(before[: found.start()]):
            continue
        span = SPAN.search(before, found.end())
        if span is None or span.start() - found.end() > 40:
            return True
        clauses = clauses_of(span[1])
        sized = _SIZE.match(before, span.end()) is not None
        if not sized and not any(not c.sides or is_number_condition(c) or _is_definition(c) for c in clauses):
            return True
    return False


def _after_definition(words: str) -> bool:
    """Whether words end with a formula that defines something."""
    found = re.search(r"\$([^$]*)\$\s*$", words)
    return found is not None and any(_is_definition(c) for c in clauses_of(found[1]) if c.sides)


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


_LONG = r"(?:large|big|long|huge|great)"
_SHORT = r"(?:small|short|tiny)"
_SIZED = re.compile(
    r"(?:\$(?P<one>[^$]*)\$|\b(?P<that>key))\s*(?:(?:is|are|was|becomes?|gets?|grows?|happens to be|turns? out)\s+)"
    rf"(?:very |much |sufficiently |too |quite |rather )*(?:(?P<l1>{_LONG})|(?P<s1>{_SHORT}))(?:r|er|ger|est)?\b"
    rf"|(?:(?P<l2>{_LONG})|(?P<s2>{_SHORT}))(?:r|er|ger)?\s+(?:values? of )?"
    rf"(?:\$(?P<two>[^$=<>]*)\$|(?P<key>one|key)\b)"
    r"|(?<![\w$\\])(?P<three>[a-zA-Z]) (?:is|becomes?|gets?) (?:very |much |sufficiently |too )?"
    rf"(?:(?P<l3>{_LONG})|(?P<s3>{_SHORT}))(?:r|er|ger)?\b"
    r"|\$(?P<four>[^$]*)\$\s*(?:(?:很|较|偏|变|更|非常|特别|比较)*(?:(?P<l4>大(?!于)|长(?!度))|(?P<s4>小(?!于)|短))"
    r"|(?:is )?(?P<s5>(?:near|close to|about) (?:0|zero)\b|接近\s*0))",
    re.I,
)
"""Something that is said to be large or small."""


def _sizes(before: str, after: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is said to be large, and what small: the last mention before the formula, or one right after it."""
    found = [m for m in _SIZED.finditer(before) if not belongs(before[: m.start()])]
    if not found:
        head = _first_words(after)
        found = [m for m in _SIZED.finditer(head) if belongs(f"$c = v$ {head[: m.start()]}")][:1]
    if not found:
        return (), ()
    last = found[-1]
    name = (
        "k_a"
        if last["key"] or last["that"]
        else next(last[k] for k in ("one", "two", "three", "four") if last[k]).strip()
    )
    is_large = any(last[f"l{k}"] for k in range(1, 5))
    return ((name,), ()) if is_large else ((), (name,))


def _first_words(after: str) -> str:
    """The words after a formula up to the next comma or main clause."""
    return re.split(r"[,，;；:：]|\b(?:and|but|while|so|whereas|or)\b", after)[0]


def _unclear_after(after: str) -> bool:
    """Whether a supposition follows that is not a formula that is understood, as in "$c = v_a$ if nobody looks"."""
    head = _first_words(after)
    return _SUPPOSED_AFTER.match(head) is not None and _unclear(head)


_SUPPOSED_AFTER = re.compile(
    r"^[\s(（]*(?:(?:only|but|even|at least|exactly|just)\s+)?(?:if|when|unless|whenever|provided|in case|were)\b"
    r"|^[\s(（]*(?:如果|若|当|假如)",
    re.I,
)
_THEN_FIRST = re.compile(
    r"^\W*(?:then|so|now|hence|thus|here|in (?:that|this|which) case|this (?:gives|yields|means)|we (?:would|get|have)"
    r"|则|那么|此时|这时|于是|这样|所以)(?![a-z])",
    re.I,
)
_SUPPOSES = re.compile(
    r"^\W*(?:(?:now|but|and|next|so|or)\b,?\s*)?(?:suppose|imagine|assume|what if|if|consider|let us"
    r"|say|were|instead|without"
    r"|假设|假如|设想|如果|若|考虑)|^\W*(?:now|next)\b",
    re.I,
)
"""How a sentence begins that supposes something."""


def _unclear_lead(lead: str) -> bool:
    """Whether the sentence before supposes something that is not understood; a definition in it says what is meant."""
    defined = any(_is_definition(c) for m in SPAN.finditer(lead) for c in clauses_of(m[1]) if c.sides)
    return not defined and _unclear(lead)


def _lead(formula: Formula) -> str:
    """The sentence before, where it supposes something and this one says what then holds; else empty."""
    goes_on = _THEN_FIRST.match(formula.before) is not None and _SUPPOSES.search(formula.previous) is not None
    return formula.previous if goes_on else ""
