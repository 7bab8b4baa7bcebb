"""scale_in_words: whether the words beside a query give it a large factor that its formula does not have.

"q = k_a + k_b with a large scale", "q = k_a + k_b. The scale is large." and "For a huge factor, take q = k_a + k_b" say
the same. Mentions of a large scale are looked for in the sentence of the query and in the two next to it; the clause of
a mention tells whether it is said, denied ("no large scale is needed") or left open ("a large scale could help").
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

ScaleInWords = Literal["large", "perhaps", ""]

_MATH = re.compile(r"\$([^$]*)\$")
_QUERY = (
    r"(?:\\(?:vec|mathbf|boldsymbol|bm|hat|tilde)\s*\{?\s*)?[qg]\s*\}?"
    r"(?:\s*[_^]\s*\{?\s*(?:[\w*]|\\top|\\star|\\ast)\s*\}?){0,2}'?"
)
_FRAME = r"(?:\\begin\{[^{}]*\}(?:\[[^\[\]]*\])?|\\(?:boxed|fbox|displaystyle|left|bigl?)(?![A-Za-z])|[{&]|\\,|\s)*"
_QUERIES = re.compile(rf"\${_FRAME}({_QUERY})\s*&?\s*:?=([^$]*)\$")
_OWN_SCALE = re.compile(
    r"\\(?:beta|lambda|kappa|eta|rho|omega|tau)(?![A-Za-z])|(?<![\\A-Za-z_^{])[tsrcCLβλ](?![A-Za-z])"
)
_TAGS = (
    ("QUERYIS", re.compile(rf"{_FRAME}{_QUERY}\s*(?:&\s*)?(?:=|:=|\\propto|\\coloneqq|\\approx|\\sim)")),
    ("QUERY", re.compile(rf"\s*(?:\\?[|‖]|\\l?[Vv]ert)*\s*{_QUERY}\s*(?:\\?[|‖]|\\r?[Vv]ert|_2)*\s*$")),
    ("SUM", re.compile(r"(?!.*(?:[=<>|‖]|top|\\gg|\\ll|\\perp)).*(?:\+|\\sum).*(?:k|K|mu|u)\s*_")),
    ("INFINITY", re.compile(r"\s*[+]?\s*\\infty\s*$")),
    ("GROWS", re.compile(r"\s*(?:\\gg|≫|(?:\\to|\\rightarrow|→)\s*\+?\s*(?:\\infty|∞))")),
    ("VANISHES", re.compile(r"\s*(?:\\to|\\rightarrow|→)\s*0")),
    ("LETTER", re.compile(r"\s*(?:\\(?:beta|lambda|kappa|eta|rho|omega|zeta|theta)|[βλκηρωζθtsrcCLwzR])\s*$")),
    ("EUCLIDEAN", re.compile(r"\s*(?:\\ell|[lL])_\{?2")),
    ("NUMBER", re.compile(r"\s*\d+(?:\.\d+)?\s*$")),
)  # fmt: skip
_BARE = re.compile(
    r"(?<![\w'’\\])(?:[βλκηρωζθ]|[tsrC](?=\s+(?:is|goes|tends|very|large|big|huge|sufficiently)\b))(?!\w)|"
    r"(?<=\blarge )[tsrcC](?![\w'’])|(?<=\bbig )[tsrcC](?![\w'’])"
)
"""A letter of a scale outside math."""

_VERY = (
    r"(?:(?:very|sufficiently|extremely|arbitrarily|really|quite|rather|suitably|fairly|so|infinitely|as|enough|"
    r"appropriately|exceedingly|always|also|just|simply|now|here|chosen|taken|made|kept|already|indeed|thus|"
    r"assumed|set|meant|understood|supposed|and|positive|to be)\s+){0,4}"
)
_BIG = (
    rf"{_VERY}(?:large|big|huge|enormous|gigantic|immense|massive|infinite|great|unbounded|"
    r"(?:much|far|vastly|way)\s+(?:larger|bigger|greater)\s+than\s+(?:one|zero|[01]))\b(?!\s+than\b)"
)
_KIND = (
    r"(?:(?:positive|overall|common|scalar|constant|multiplicative|real|global|enough|numerical|leading|and|fixed|"
    r"scaling|single|same|shared|finite|euclidean|arbitrary)\W+){0,3}"
)
_NOUN = (
    r"(?:scal(?:e|ar|ing)(?:[\s-]+(?:factor|parameter|constant|coefficient|number))?s?|(?:pre)?factors?|multiples?|"
    r"multipliers?|coefficients?|constants?|magnitudes?|norms?|lengths?|amplitudes?|gain|"
    r"inverse[\s-]temperature|LETTER)"
)
_NOT_A_SCALE = (
    r"(?!\s*-?\s*(?:models?|networks?|transformers?|experiments?|training|problems?|systems?|settings?|data\w*|"
    r"applications?|attention|language|of (?:things|the problem)))"
)
_WHOSE = (
    r"(?:\s+of\s+(?:the\s+|this\s+|that\s+|our\s+|their\s+)*(?:query|queries|vectors?|sum|it|both|heads?|QUERY|LETTER)"
    r"(?:\s+vectors?)?)?"
    r"(?:\s+(?:in front(?: of (?:it|this|them|the sum|the query))?|before it|LETTER)){0,2}"
)
_BECOMES = (
    r"(?:\s+(?:which|that|we|is|are|be|being|becomes?|gets?|has|have|must|should|shall|will|needs?|to|goes?|going|"
    r"tends?|tending|grows?|growing|approach\w*|diverg\w+|all|both|can|could|would|might|may|need|not|cannot|"
    r"isn['’]t|aren['’]t|needn['’]t|doesn['’]t|does|do|were|was|been|too|never|no longer|toward\w*|up|want\w*|take|"
    r"let|make|go|grow|tend|made|chosen|taken|set|sent|sending|assumed|as)){0,6}"
)
_ENDLESS = (
    r"(?:(?:to|towards?|at)?\s*(?:\+\s*)?(?:infinity|INFINITY|∞)|GROWS|→\s*\+?\s*∞|->\s*(?:oo|infinity)|without "
    r"(?:any )?(?:bound|limit)|beyond (?:all|every|any) bounds?|diverges?\b|(?:≫|>>)\s*[01]\b)"
)
_TEMPERATURE = r"(?<!inverse )(?<!inverse-)temperature(?:\s+of (?:the )?softmax)?(?:\s+LETTER)?"
_AMOUNT = (
    rf"(?:(?:a|an|some|any|the|our|such)\s+)*(?:{_BIG}\W*{_KIND}(?:{_NOUN}|numbers?|values?|amount|real|integers?|"
    rf"something)?|(?:{_NOUN}|numbers?|something)\s+(?:(?:that|which)\s+is\s+)?{_BIG}|infinity|a lot|INFINITY)"
)
_IT = (
    r"(?:it|this|that|them|both|everything|QUERY|(?:the|this|that|our|your|each)\s+"
    r"(?:query|sum|vector|average|result|mean)s?(?: vectors?)?)"
)
_LONG = rf"(?:{_VERY}long\b(?!\s+(?:as|key|run|term))|{_BIG})"

_MENTIONS = re.compile(
    "|".join((
        rf"\b{_BIG}\s+{_KIND}{_NOUN}\b{_NOT_A_SCALE}",  # a large scale
        rf"\b{_NOUN}{_WHOSE}{_BECOMES}\s*,?\s*{_BIG}(?!\s+(?:number|amount) of\b)",  # the scale is large
        rf"\b{_NOUN}{_WHOSE}{_BECOMES}\s*{_ENDLESS}",  # the scale goes to infinity
        rf"\b(?:multipl(?:y|ied|ying|ies)|scal(?:e|ed|es|ing)|stretch(?:ed|ing)?|blown|blow|rescaled?|magnif\w+|"
        rf"amplif\w+|increased?|enlarged?)(?:\s+{_IT})?(?:\s+up)?\s+(?:by|with|to|towards)\s+{_AMOUNT}",
        rf"\btimes\s+{_AMOUNT}",
        rf"\b(?:scaled?|scaling|blown|blow|multiplied|multiply)(?:\s+{_IT})?\s+up\b",  # scaled up
        rf"\b(?:the\s+)?(?:query|queries|QUERY|QUERYIS)(?:\s+vectors?)?{_BECOMES}\s+{_LONG}",  # the query is long
        rf"\b{_LONG}\s+(?:query|queries|QUERY)\b",
        rf"\b{_VERY}(?:low|small|tiny|vanishing|zero)\s+(?:softmax\s+)?{_TEMPERATURE}",
        rf"\b{_TEMPERATURE}{_BECOMES}\s*"
        rf"(?:{_VERY}(?:low|small|tiny|near zero|close to zero)\b|to\s+(?:zero|0)\b|VANISHES)",
        r"(?:乘|放大)[^.。;；,，]{0,12}大[的]?[^.。;；,，]{0,6}",
        r"(?:尺度|系数|因子|倍数|常数|标量|缩放|模长|范数|长度|LETTER)[^.。;；,，]{0,8}(?:大|无穷|∞|INFINITY|GROWS)",
        r"大的?[^.。;；,，]{0,4}(?:尺度|系数|因子|倍数|常数|标量|缩放|模长|范数)",
        r"温度[^.。;；,，]{0,6}(?:低|小|趋[于近]零|VANISHES)",
    )),
    re.I,
)  # fmt: skip
_PERHAPS = re.compile(
    rf"\b(?:larger|bigger|greater|longer|increas\w+|grow\w*)\b[^.]{{0,20}}?\b{_NOUN}\b|"
    rf"\b{_NOUN}{_WHOSE}{_BECOMES}\s+(?:larger|bigger|greater|increases?|grows?|growing|increasing)\b|"
    rf"\b{_NOUN}\s+of\s+(?:about\s+|say\s+)?(?:[5-9]|\d{{2,}}|a (?:hundred|thousand|million)|ten|twenty|fifty)\b",
    re.I,
)
"""Words that speak of a scale and do not say that it is large."""

MAX_SENTENCE = 1500  # characters of a sentence that are looked at
MAX_CLAUSE = 120  # characters of a clause on each side of a mention
_OF_SOMETHING_ELSE = re.compile(
    r"^\s*(?:s\b)?(?:\s*\w+){0,1}?\s*\b(?:of|for|in|to|on)\s+(?:the\s+|all\s+|both\s+|its\s+|their\s+|each\s+|every\s+|these\s+|other\s+|key\s+|"
    r"number of\s+){0,3}(?:keys?|values?|items?|tokens?|noise|problem|model|data\w*|MATH|dimensions?|variances?|"
    r"covariances?|noises?|entries|components?|embeddings?)\b",
    re.I,
)
_SOMETHING_ELSE = re.compile(
    r"(?:\b(?:keys?|values?|items?|tokens?|noise|means|the mean|dimensions?|variances?|covariances?|embeddings?|"
    r"vocabulary|sequences?|weights?|outputs?|scores?|logits?|MATH|n|d)\b(?:['’]s?)?(?:\s+(?:vectors?|themselves|all|both|each)){0,2}"
    r"(?:\s+(?:is|are|has|have|had|having|with|of|whose|be|being|must|should|to|need|needs|get|gets)){0,3}"
    r"(?:\s+(?:a|an|the|some|very|same|equal)){0,3})\s*$",
    re.I,
)
_NEGATION = re.compile(
    r"\bnot\s+(?:\w+\s+){0,2}too\b|\b(?:no|none|not|without|never|neither|avoid\w*|instead of|"
    r"rather than|cannot|unnecessar\w+|irrespective|"
    r"regardless|unless|however|lack\w*|miss(?:es|ing)|forg[eo]t\w*|drop\w*|ignor\w+|omit\w*|superfluous|irrelevant|"
    r"needless|immaterial|unneeded|optional|too|fails?|failed|nothing|independent)\b|n['’]t\b|"
    r"不需|无需|不必|不用|没有|并非|不[要是]|不[够很]?大",
    re.I,
)
_OPEN = re.compile(
    r"\b(?:would|could|might|may|were|had|perhaps|maybe|possibly|can|whether|even|how|why|what|hurts?|harm\w*|bad|"
    r"breaks?|wrong|unstable|contrary|other|another|later|previous|earlier|part|question|next|tried|try|"
    r"should have|if only|wonder\w*|seems?)\b|\?|\([a-e]\)|也许|可能|如果|如何|是否|可以",
    re.I,
)
_NO_DENIAL = re.compile(r"\bnot (?:only|just)\b|\bno (?:longer|less) than\b|\bwithout (?:any )?(?:bound|limit)", re.I)
_CLAUSE_END = re.compile(
    r"[,;:()，；：（）]|\s[-–—]+\s|[–—]|\b(?:but|so|because|since|hence|thus|therefore|"
    r"then|whereas|while|which gives|giving|making)\b",
    re.I,
)
_WHICH_IS_NOT = re.compile(
    r"^\W*(?:which|that|this|it|but (?:this|that|it))?\W*(?:is|are|was)?\s*(?:not|n['’]t|hardly|never|un)\s*"
    r"(?:really\s+|actually\s+)?(?:needed|necessary|required|important|relevant|essential|have to|matter)\b",
    re.I,
)


def scale_in_words(sentences: Iterable[str]) -> ScaleInWords:
    """Whether sentences beside a query say that it has a large factor.

    Args:
        sentences: The sentence of the query, then those next to it, formulas between dollar signs.

    Returns:
        "large" if they say so, "perhaps" if they speak of a large factor and leave open whether there is one or which
        query has it, and "" if they do not speak of one or deny it.

    Example:
        >>> scale_in_words(["Take $q = k_a + k_b$ with a large scale."])
        'large'
        >>> scale_in_words(["No large scale is needed."]), scale_in_words(["This holds for large $n$."])
        ('', '')
        >>> scale_in_words(["A large factor could help."])
        'perhaps'
    """
    kinds: set[str] = set()
    mine: list[str] = []
    for number, sentence in enumerate(sentences):
        queries = _QUERIES.findall(sentence[:MAX_SENTENCE])
        heads = [re.sub(r"[\s{}]", "", head) for head, _ in queries]
        mine = heads if number == 0 else mine
        if number == 0:
            other = any(_OWN_SCALE.search(value) for head, value in queries) and len(set(heads)) < len(heads)
        else:
            other = bool(set(mine) & set(heads))
        found = _in_sentence(_tagged(sentence[:MAX_SENTENCE]))
        kinds |= {"perhaps" if other and kind == "large" else kind for kind in found}  # it may be the other's scale
    if "large" in kinds and "denied" not in kinds:
        return "large"
    return "perhaps" if kinds & {"large", "perhaps"} else ""


def _tagged(sentence: str) -> str:
    """A sentence with one word for each formula: what it says of a query or a scale, or MATH."""

    def tag(found: re.Match[str]) -> str:
        name = next((name for name, pattern in _TAGS if pattern.match(found[1])), "MATH")
        return f" {found[1].strip()} " if name == "NUMBER" else f" {name} "

    text = _MATH.sub(tag, sentence)
    return re.sub(r"\s+", " ", _BARE.sub("LETTER", text))


def _in_sentence(text: str) -> list[str]:
    """What every mention of a large scale in a sentence says: "large", "perhaps" or "denied"."""
    found = [kind for mention in _MENTIONS.finditer(text) if (kind := _kind(text, mention))]
    return found or (["perhaps"] if _PERHAPS.search(text) else [])


def _kind(text: str, mention: re.Match[str]) -> str:
    """What one mention says; empty if it is about something else than a query."""
    before = text[max(0, mention.start() - MAX_CLAUSE) : mention.start()]
    after = text[mention.end() : mention.end() + MAX_CLAUSE]
    ends = list(_CLAUSE_END.finditer(before))
    lead = before[ends[-1].end() :] if ends else before
    stop = _CLAUSE_END.search(after)
    rest = after[: stop.start()] if stop else after
    if _OF_SOMETHING_ELSE.match(after) or _SOMETHING_ELSE.search(lead):
        return ""
    clause = _NO_DENIAL.sub(" ", f"{lead}{mention[0]}{rest}")
    negations = len(_NEGATION.findall(clause)) + bool(_WHICH_IS_NOT.match(after[stop.end() :] if stop else ""))
    if negations == 1:
        return "denied"
    return "perhaps" if negations or _OPEN.search(clause) else "large"
