"""Words by which authors say what outputs do: approach, vary, deny, compare, and under which condition."""

from __future__ import annotations

import re

APPROACH = (
    r"\b(?:approximat\w*|approx\w*|close\w*|approach\w*|converg\w*|tend\w*|near\w*|equals|equal to|cop(?:y|"
    r"ies)|essential\w*|"
    r"remain\w*|stay\w*|keep\w*|becom\w*|oscillat\w*|swing\w*|flip\w*|jump\w*|fluctuat\w*|alternat\w*|"
    r"switch\w*|bounc\w*|sometimes|either|occasionally|resembl\w*|looks? like|roughly|similar to|same as|"
    r"toward\w*|identical|dominated by|still|always|consistently)\b|仍|依然|接近|近似|趋|等于|振荡|震荡|波动|"
    r"之间|偏向|变成|摇摆|约为|就是|有时|在(?=\s*\$)"
)
IS = r"\bis\b|\bbe\b|\balmost\b|\bjust\b|\bbasically\b|\bmostly\b|为|是|几乎"
"""Further words for a question that asks what an output is."""
NEGATED = re.compile(
    r"\b(?:not|never|no longer|neither|nor|isn't|won't|doesn't|can't|cannot|rather than|instead of|unlike|"
    r"impossible|unable)\b|"
    r"n't\b|不再|不是|而不是|无法|不能|不会|不可能|并非",
    re.I,
)
GOAL = re.compile(
    r"\b(?:want|wish|need|goal|desired?|such that|so that we|in order|to get|to have|to obtain|to make|should|"
    r"aim|require\w*)\b|"
    r"希望|想要|为了|使得|需要|要使|目标",
    re.I,
)
CONTRAST = re.compile(
    r"\b(?:single|previous(?:ly)?|earlier|before|parts?|questions?|unlike|in contrast|instead|whereas|compared|"
    r"former|originally|than|one[ -]head\w*|"
    r"ideal(?:ly)?|on average|in expectation|expected value|mean of)\b"
    r"|\b(?:in|of|from|with|to|unlike) \([a-h]\)|之前|单头|上一",
    re.I,
)
"""Words that set a statement against another part, or that speak of means: such statements accuse nobody."""
WAS = re.compile(r"\b(?:was|were|used to be|had)\W*$|原来\W*$", re.I)
WAS_BEFORE = re.compile(r"^\W*(?:before|earlier|previously|so far|until now)\b", re.I)
"""Words before and after a formula that put it into the past."""
SWINGS = re.compile(r"oscillat|swing|flip|jump|fluctuat|alternat|switch|bounc|between|之间|摇摆|振荡|震荡", re.I)
VARIES = re.compile(
    r"^\W*(?:has|have|will have|would have|shows?|exhibits?|suffers? from)\W+(?:an?\W+)?(?:(?:very|more|quite|"
    r"a lot of)\W+)?"
    r"(?:high|large|significant|substantial|non-?\s?negligible|considerable|huge|big|great)\W+varianc",
    re.I,
)
VARIANCE_OF = re.compile(r"varianc\w*\W+(?:of|in)\b\W*(?:the\b\W*)?$", re.I)
IS_LARGE = re.compile(
    r"^\W*(?:is|will be|would be|becomes|remains)\W+(?:(?:very|quite|more|still)\W+)?(?:high|large|significant|"
    r"huge|considerable|"
    r"substantial|non-?\s?negligible)\b(?!er)",
    re.I,
)
UNSTABLE = re.compile(
    r"^\W*(?:is|are|will be|becomes?|would be)\W+(?:(?:very|highly|more)\W+)?(?:unstable|volatile)\b|^\W*不稳定", re.I
)
AND_VALUE = re.compile(
    r"^(?:[^$.。;]{0,40}?\$[^$]*[<>][^$]*\$)?[^$.。;]{0,40}?\b(?:and|or|to)\b[^$.。;]{0,40}?\$([^$]+)\$|^\s*(?:和|或|与|到|跟|、)[^$.。;]{0,12}\$([^$]+)\$"
)
LARGER = re.compile(
    r"k_a[^$]*\$?[^.。$]{0,60}\b(?:large|larger|long|longer|big|bigger|high|higher|greater)\b|"
    r"k_a[^$]*\$[^.。$]{0,30}(?:较?长|较?大|变大)",
    re.I,
)
SMALLER = re.compile(
    r"k_a[^$]*\$?[^.。$]{0,60}\b(?:small|smaller|short|shorter|low|lower|less)\b|"
    r"k_a[^$]*\$[^.。$]{0,30}(?:较?短|较?小|变小)",
    re.I,
)
COPIED = re.compile(
    r"^[^$.。;]{0,30}?\b(?:is|gets|are|will be|would be|being)\s+(?:\w+\s+){0,3}"
    r"(?:copied|passed|returned|selected|output)\b|"
    r"^[^$.。;]{0,12}(?:被复制|复制到)",
    re.I,
)
WRITTEN_PLAINLY = re.compile(
    r"(?:\boutput|\bresult|\b[cC]\b)[^$.。;]{0,80}?\b(?:approximat\w*|close to|equal\w*|near\w*|"
    r"cop(?:y|ies)\w*|resembl\w*|is|"
    r"becomes?)\b[^$.。;]{0,40}?\bv_?\s?(?P<item>[a-z])\b(?!\w)",
    re.I,
)
CASES = re.compile(r"^(?P<head>.*?)\\begin\s*\{cases\}(?P<rows>.*?)\\end\s*\{cases\}\s*[.,]?\s*$", re.S)
CONDITION_AFTER = re.compile(
    r"^\s*(?:[(（]\s*|[,，(（]?\s*(?:(?:always|again|then|and|only|just|exactly|mostly)\s+)?"
    r"(?:(?:if|when|whenever|for|provided|as long as|as soon as|in|where|with|once|while)\b"
    r"|在|当|若|如果)[^$.。;；]{0,40})"
    r"\$([^$]+)\$",
    re.I,
)
OTHERWISE = re.compile(r"\b(?:otherwise|else|others?|the rest|in the other case)\b|否则|反之|其余|其他", re.I)
OTHERWISE_AFTER = re.compile(r"^\s*[,，]?\s*(?:otherwise|else)\s*(?:[.,;]|$)", re.I)
ALWAYS = re.compile(
    r"^[\s,]*(?:always|in all (?:samples|cases)|in every (?:sample|case)|for (?:all|every|each) samples?|"
    r"(?:regardless|independent\w*) of)\b|^[\s,，]*(?:总是|始终)",
    re.I,
)
DENIED = re.compile(
    r"^[\s,，]*(?:now\s+|then\s+|here\s+)?(?:no longer|not?\b|never|do(?:es)?(?: not|n't)|did(?: not|n't)|"
    r"is(?: not|n't)|"
    r"is (?:false|wrong|broken|violated|lost)|will (?:not|fail)|won't|would (?:not|fail)|wouldn't|"
    r"can(?:not|'t| not)|fails?\b|"
    r"breaks?\b|不再|不成立|不会|不能|不是|并不|并非|无法|未必|就不|失效|不一定)",
    re.I,
)
"""Words after a formula that deny it."""
COMPARED = re.compile(
    r"\b(?:sometimes|occasionally|closer|nearer|more|less|lean\w*|bias\w*|skew\w*|shift\w*|pull\w*|drawn?|draws|toward\w*|direction|tilt\w*|favou?r\w*|vary|varies|influenced|"
    r"varianc\w*)\b|偏|有时|更接近|更靠近|越|拉向|靠向|拉近",
    re.I,
)
"""Words that compare and do not equate: what they say can agree with a goal, and does not fail it."""
ALL_LENGTHS = "gamma > 0"
