"""Words by which authors say when one weight dominates: which of a score, a gap, a length or an angle they speak of."""

from __future__ import annotations

import re

from qkv.sheets.answers.tree_text import clauses
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.bindings import is_norm_of_key
from qkv.sheets.statements.parser import Unreadable, expression

MUCH = (
    r"(?:much|significantly|far|substantially|considerably|way|very much|a lot|vastly|drastically|"
    r"exponentially|overwhelmingly|"
    r"dramatically|greatly)"
)
SCORES = (
    r"(?:dot[ -]?products?|inner products?|scores?|products?|similarit\w+|projections?|logits?|"
    r"内积|点积|得分|分数|打分|相似度)"
)
MUCH_LARGER = re.compile(
    rf"\b{MUCH}\W+(?:more\W+)?(?:larger|greater|bigger|higher|exceed\w*|stronger|aligned|dominat\w*|above)|\bdominat\w+|"
    rf"\blarge(?:r)?\W+(?:relative|compared)\W+to\b|\bvery large\b|\bextremely large\b|\bsufficiently large\b|"
    rf"\blarge enough\b|"
    rf"\bexceeds?\W.{{0,40}}\bby a (?:large|wide)\b|\bgoes? to infinity\b|\bapproach\w* infinity\b|"
    rf"\blarge\b[^.。]{{0,80}}\b(?:small|zero|close to 0|negative|low)\b|\blarge\W+(?:norm|magnitude|scal\w+|"
    rf"length)\b|"
    rf"\b(?:norm|magnitude|scale|length)\W[^.。]{{0,30}}\blarge\b|"
    rf"\bby (?:a|some) (?:large|wide|big|huge|great|significant|considerable)\b|"
    rf"\b(?:gap|difference|margin)s?\b[^.。]{{0,90}}\b(?:large|big|huge|wide|infinity)\b|差距?[^.。]{{0,40}}大|"
    rf"\bGAP\b[^.。]{{0,30}}(?:\b(?:large|big|huge|wide|infinity|infinite)\b|大)|"
    rf"\b{MUCH}\W+more\W+similar\b|"
    rf"远大于|远远大于|远高于|远超|大得多|大很多|非常大|特别大|相当大|很大|极大|无穷大|(?:明显|显著)(?:地)?(?:大|高)于",
    re.I | re.S,
)
"""That something is much larger than something else, or large."""
NEGATED = re.compile(r"\b(?:not|no|never|isn't|n't)\b|不(?!同|等|相|正交|垂直)|并非|没有|无法", re.I)
NOT_ENOUGH = re.compile(
    r"\b(?:not|n't) (?:be )?(?:enough|sufficient)|\binsufficient|\b(?:not|n't) suffice|不够|不足|不充分", re.I
)
NEUTRAL = re.compile(
    r"\b(?:the|an?|of|for|all|any|each|every|[a-z]|i{2,3}|iv|is|are|be|being|ha(?:ve|s|d)|must|should|needs?|to|with|and|or|in|"
    r"on|where|that|this|these|those|such|we|let|it|its|one|ones|only|left|so|then|when|if|while|whereas|among|(?:an)?others?|"
    r"remaining|everything|keys?|quer(?:y|ies)|vectors?|values?|output|item|index|scores?|dot|inner|products?|equals?|same|both|"
    r"norms? equal|orthonormal|orthogonal|unit|vanish\w*|zero|positive|nonzero|respect|conditions?|following|"
    r"property|properties|true|holds?|satisf\w+|namely|exists?|there|some|certain|particular|case|exactly|strictly|picks?|get|gets|given|"
    r"attention|operation|inputs?|copies|copied|equation|enumerate|document|solution|answer|"
    r"KEY[IJ]|QUERY|VALUE|WEIGHT|MATH|RELATION|SCORERELATION|LENGTHS)\b|"
    r"其余|其他|其它|所有|任意|两两正交|互相正交|只和|不正交|成立|时候|此时|输出|等于|约为|条件|需要|满足|只要|如果|一个|向量|查询|即可|键|"
    r"[且的即对有时则是就都与和为当若第个这该使]",
    re.I,
)
"""Words that ask for nothing by themselves. Beside others a weak condition is not held against the author."""
REASON = re.compile(
    r"\b(?:since|because|as (?:it|then|this|the)|which (?:makes|gives|means|implies|leads|leaves|yields|is why)|"
    r"so(?! that)|hence|thus|then)\b.*|(?:因为|由于|所以|从而|于是|这样|则).*",
    re.I | re.S,
)
WEIGHTS = re.compile(r"\b(?:WEIGHT|weights?|softmax|mass|probabilit\w+|attention)\b|权重|概率", re.I)
NAMED = re.compile(r"\b(?:SCORE[IJ]|SCORERELATION|GAP|KEY[IJ]|KEYNORM[IJ]|QUERY|QNORM|quer(?:y|ies)|keys?)\b|键|查询")
CLAUSES = re.compile(
    r"[,，:：]|\b(?:as soon as|if|when|whenever|provided(?: that)?|once|as long as)\b|只要|如果|当|若", re.I
)
EQUAL_LENGTHS = re.compile(r"\b(?:same|equal|unit|identical)\s+(?:norm|length|magnitude)s?\b", re.I)
OF_LENGTH = r"(?:norms?|lengths?|magnitudes?|模长?|长度|范数)"
TO_END = r"(?:(?!\band\b|\bwith\b|\bby\b|且|并)[^.。,，])*"
LONGER = re.compile(
    rf"\b{OF_LENGTH} of (?:the |its |that |this )?(?:key )?(?:vector )?(?:KEYJ|key\b)[^.。]*?\b(?:larger|greater|"
    rf"bigger|longer|higher|large|exceeds?|dominates?|largest|greatest)\b{TO_END}|"
    rf"(?:KEYJ|\bkeys?)\b[^.。]{{0,30}}?\b(?:(?:{MUCH} )?longer than|the longest){TO_END}|"
    rf"(?:KEYJ|\bkeys?)\b[^.。]{{0,30}}?\bha(?:s|ve) (?:the|a) (?:\w+ ){{0,3}}(?:larger|largest|greater|greatest|"
    rf"biggest) {OF_LENGTH}{TO_END}|"
    rf"\bKEYNORMJ[^.。]{{0,30}}?\b(?:larger|greater|bigger|exceeds?)\b{TO_END}|"
    rf"\bkeys\b[^.。]{{0,30}}?\b(?:{MUCH} )?shorter than KEYJ{TO_END}|"
    rf"(?:KEYJ|键)\s*的{OF_LENGTH}[^。]*?(?:大于|大得多|最大|超过){TO_END}|"
    rf"\bKEYNORMJ\s*远?远?(?:大于|超过){TO_END}|KEYJ\s*(?:最长|比[^。，]*长得多)",
    re.I,
)
"""A key that is longer than the others."""
OTHER_KEYS = (
    r"(?:(?:all|every|each|any|the|each of the|all of the|all the)\s+)*(?:(?:other|remaining)\s+)?"
    r"(?:key vectors?|keys?)"
)
RIGHT_ANGLES = r"(?:orthogonal|perpendicular|at right angles)"
AT_RIGHT_ANGLES = re.compile(
    rf"\b(?:QUERY|query)\b[^.。,，]{{0,30}}?\b{RIGHT_ANGLES}\s+(?:to|with)\s+{OTHER_KEYS}"
    rf"(?:\s+(?P<except>except|but|other than|apart from|besides)[^.。,，]{{0,20}}KEYJ)?|"
    rf"\b(?:all|every|each|the)?\s*(?P<others>other|remaining)\s+keys?\b[^.。,，]{{0,20}}?\b{RIGHT_ANGLES}\s+to\s+"
    rf"(?:the\s+)?(?:QUERY|query)|"
    rf"\bkeys?\s+(?P<apart>apart from|except|other than|but|besides)[^.。,，]{{0,12}}KEYJ[^.。,，]{{0,12}}?"
    rf"\b{RIGHT_ANGLES}\s+to\s+(?:the\s+)?(?:QUERY|query)|"
    rf"(?:QUERY|查询)[^。，,]{{0,6}}(?:与|和)[^。，,]{{0,4}}(?P<zh>除|其他|其余|其它)[^。，,]{{0,24}}(?:正交|垂直)|"
    r"(?P<zhothers>其他|其余|其它)的?键[^。，,]{0,6}(?:与|和|跟)\s*(?:QUERY|查询)\s*都?(?:正交|垂直)|"
    r"(?P<zhout>除)[^。，,]{0,12}(?:外|以外|之外)[^。，,]{0,12}(?:与|和|跟)\s*(?:QUERY|查询)\s*都?(?:正交|垂直)",
    re.I,
)
"""A query at right angles to keys."""
PARALLEL = re.compile(
    r"\b(?:QUERY|query)\b[^.。,，]{0,20}?\b(?:parallel|collinear)\s+(?:to|with)\s+(?:the\s+key\s+)?KEYJ|"
    r"\b(?:QUERY|query)\b[^.。,，]{0,20}?\b(?:points?|lies|is)\b[^.。,，]{0,20}\bdirection\s+(?:of|as)\s+"
    r"(?:the\s+key\s+)?KEYJ|"
    r"(?:QUERY|查询)\s*(?:与|和)\s*KEYJ\s*(?:平行|方向(?:相同|一致)|同向|共线)",
    re.I,
)
"""A query in the direction of a key, of which no length is said."""
LARGEST = re.compile(
    rf"\b(?:largest|biggest|highest|maximum|maximal|greatest)\W+{SCORES}|"
    rf"(?:\bSCOREJ\b|{SCORES})[^.。,，]{{0,30}}?\b(?:is|be|being)\W+(?:the\W+)?(?:largest|biggest|highest|"
    rf"maximal|greatest)\b|(?:\bSCOREJ\b|{SCORES})[^.。,，]{{0,30}}?\b(?:larger|greater|higher|bigger)\W+than\b{TO_END}|"
    rf"\bSCOREJ\s*(?:大于|高于|最大){TO_END}|\bSCOREJ\s*是[^。，,]{{0,20}}最大",
    re.I,
)
"""A score that is larger than the others, without a word of how much."""


LARGEST_SIGN = re.compile(
    r"(?P<score>[^=>]*?)(?:=|\\geq?(?![a-z])|≥)\s*\\max(?![a-z])|\s*j\s*=\s*\\(?:operatorname\*?\{)?arg"
)
DISPLAYED = re.compile(r"\$\$.*?\$\$|\\\[.*?\\\]", re.S)
PARALLEL_SIGN = re.compile(r"\$([^$]*?)(?:\\parallel(?![a-zA-Z])|∥)([^$]*)\$")


def tagged(words: str, item: str) -> str:
    """Words with every formula as the kind of thing that it names: SCOREJ, GAP, KEYNORMJ, KEYJ, QUERY, WEIGHT, …

    Example:
        >>> tagged(r"$k_j^\\top q$ is larger than $k_i^\\top q$", "j")
        'SCOREJ is larger than SCOREI'
    """
    words = DISPLAYED.sub(" MATH ", words)
    words = PARALLEL_SIGN.sub(r"$\1$ is parallel to $\2$", words)
    return re.sub(r"\$([^$]*)\$", lambda found: _tag(found[1], item), words)


def _tag(math: str, item: str) -> str:
    try:
        node = expression(math)
    except Unreadable:
        largest = LARGEST_SIGN.match(math)
        if largest is not None and (largest["score"] is None or _tag(largest["score"], item) == "SCOREJ"):
            return "SCOREJ is the largest"
        found = [clause for clause in clauses(math) if clause.sides]
        larger = [c for c in found if set(c.signs) <= {">", ">=", ">>"}]
        lengths = any(is_norm_of_key(c.sides[0]) and is_norm_of_key(c.sides[-1]) for c in larger)
        kinds = {_kind(n) for c in found for n in T.nodes(c) if isinstance(n, T.Symbol)}
        if lengths or not found:
            return "LENGTHS" if lengths else "MATH"
        return "SCORERELATION" if {"KEY", "QUERY"} <= kinds else "RELATION"
    symbols = [n for n in T.nodes(node) if isinstance(n, T.Symbol)]
    kinds = {_kind(n) for n in symbols}
    indices = {n.index for n in symbols if _kind(n) == "KEY"}
    place = "J" if indices == {(item,)} else "I"
    if {"KEY", "QUERY"} <= kinds:
        apart = (isinstance(node, T.Binary) and node.sign == "-") or len(indices) > 1
        return "GAP" if apart else f"SCORE{place}"
    if is_norm_of_key(node):
        return f"KEYNORM{place}"
    if isinstance(node, T.Call) and node.name in ("norm", "abs") and kinds == {"QUERY"}:
        return "QNORM"
    if isinstance(node, T.Symbol):
        return f"KEY{place}" if _kind(node) == "KEY" else _kind(node)
    return "MATH"


def _kind(symbol: T.Symbol) -> str:
    base = symbol.base.lower()
    if base == "k" and symbol.index:
        return "KEY"
    return {"q": "QUERY", "g": "QUERY", "alpha": "WEIGHT", "v": "VALUE"}.get(base, "MATH")


def without_reasons(text: str) -> str:
    """The clauses of a tagged text that state the condition: without reasons, and without what weights then are."""
    kept = []
    for sentence in re.split(r"(?<=[.。;；])\s*", text):
        stated = EQUAL_LENGTHS.sub(" ", REASON.sub("", sentence))
        kept += [clause for clause in CLAUSES.split(stated) if not WEIGHTS.search(clause) or NAMED.search(clause)]
    return " , ".join(kept)


def asks_more(stated: str) -> bool:
    """Whether words beside a condition may ask for more than it says: any that is not known to ask for nothing.

    Example:
        >>> asks_more("for all MATH where the keys are orthonormal"), asks_more("and QUERY is scaled up")
        (False, True)
    """
    return re.search(r"[A-Za-z\u4e00-\u9fff]", NEUTRAL.sub(" ", stated)) is not None
