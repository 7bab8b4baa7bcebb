r"""Changes told in words, as in "after adding $u_d$ to $x_2$": which token becomes what, or that nobody can tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, expression

_MATH = r"\$([^$]*)\$"
_VECTOR = r"(?:the |a |just |only |also |vectors? |both |either |further |e\.g\. ?|embedding )*"
_MORE = rf"(?:\s*(?P<joint>,|and|or|or also|plus|resp\.|和|与|或|或者|还是|、|及|以及)\s*{_VECTOR}\$([^$=<>\\]*)\$)?"
_TO = r"(?:\s*(?:to|into|onto|in|to the token|to token)\s*\$([^$]*)\$)?"
_ADDED = (
    re.compile(rf"\badd(?:s|ed|ing)?\s*{_VECTOR}{_MATH}{_MORE}{_TO}", re.I),
    re.compile(
        rf"{_MATH}{_MORE}\s*(?:(?:is|are|was|were|gets?|being|also|now|has been|would be)\s+)*added\b{_TO}", re.I
    ),
    re.compile(rf"(?:再|又|另|多)?(?:加上|加入|添加|加了|添上|增加|加)\s*(?:一个|向量)?\s*{_MATH}{_MORE}()"),
)
_ADDED_TO = (
    re.compile(rf"(?:给|在|往|向|对)\s*{_MATH}\s*(?:里面?|中|上|内)?\s*(?:再|又)?(?:加上|加入|添加|加了|加)\s*{_MATH}"),
)
_ADDED_INTO = (re.compile(rf"(?:把|将)\s*{_MATH}\s*(?:加到|加入到?|加进|加在)\s*{_MATH}"),)
_BECOMES = (
    re.compile(rf"\breplac(?:e|es|ed|ing)\s*{_VECTOR}{_MATH}\s*(?:by|with)\s*{_VECTOR}{_MATH}", re.I),
    re.compile(
        rf"{_MATH}\s*(?:is|was|were|gets?|being)\s+(?:replaced (?:by|with)|(?:changed|turned) (?:in)?to)\s*{_MATH}",
        re.I,
    ),
    re.compile(rf"\b(?:chang|turn|modify|alter)\w*\s*{_VECTOR}{_MATH}\s*(?:in)?to\s*{_VECTOR}{_MATH}", re.I),
    re.compile(rf"(?:把|将)\s*{_MATH}\s*(?:换成|换为|改成|改为|替换为|替换成|变成|变为|取为|设为)\s*{_MATH}"),
)  # fmt: skip
_THING = (
    r"(?:the |a |an |one |both |all |some |other |two |of |its |their |large |single |either |multiples? |copy )*"
    r"(?:\$|heads?\b|quer(?:y|ies)\b|roles?\b|keys?\b|factors?\b|scal\w+|constants?\b|multiplier|tokens?\b|items?\b)"
)
_CHANGED = re.compile(
    rf"\b(?:add(?:s|ed|ing)?(?! up)|drop(?:s|ped|ping)?|remov\w+|delet\w+|omit\w*|leav\w+ out|replac\w+|substitut\w+"
    rf"|swap\w*|exchang\w+|interchang\w+|switch\w*|chang(?:e|ed|ing)|doubl(?:e|ing)|halv(?:e|ing)|ignor\w+|neglect\w*"
    rf"|disregard\w*)\s+{_THING}"
    r"|\$\s*(?:is|are|was|were|gets?|being)?\s*(?:added|dropped|removed|omitted|left out|replaced|swapped|changed"
    r"|exchanged|doubled|ignored|neglected)\b|\bkeys are (?:dropped|removed|ignored|left out)\b"
    r"|\bin place of\b|\bwhat(?:ever)? (?:we|you|one|is) add"
    r"|\bwithout\s+(?:the |a |any |this |that )*(?:\$|factor|scal|large|constant)"
    r"|(?:加上|加入|添加|加了|去掉|删去|删掉|去除|省略|略去|忽略|不乘|换成|换为|改成|改为|替换|交换|对调|没有|不加|加)\s*"
    r"(?:(?:其他|其余|别的|的|键|项|因子|系数|常数|两个|这个|那个)*\s*(?:\$|键|项|因子|系数|头|查询))"
    r"|\$\s*(?:换成|改成|改为|交换|对调|加到|去掉)|(?:头|查询|query)\s*(?:交换|对调|互换)",
    re.I,
)


@dataclass(frozen=True)
class Change:
    """A change of a token: its name, and the vectors that are added, or what it becomes; at a place of the sheet."""

    token: str
    value: T.Node
    added: bool
    order: int = 0
    part: str = ""


def says_changed(before: str, after: str) -> bool:
    """Whether the words around a formula tell of a change, understood or not."""
    return any(_CHANGED.search(words) is not None for words in (before, after))


def changes_in(words: str, token: str) -> list[Change]:
    r"""The changes of tokens that words tell; a vector that is added to nothing that is named is added to `token`.

    Example:
        >>> [(c.token, c.added) for c in changes_in("after adding $u_d$ or $u_c$ to", "x_2")]
        [('x_2', True), ('x_2', True)]
        >>> [(c.token, c.added) for c in changes_in("we replace $x_1$ by $u_a$ and find", "x_2")]
        [('x_1', False)]
    """
    found: list[Change] = []
    for patterns, order in ((_ADDED_TO, (2, 1)), (_ADDED_INTO, (1, 2))):
        for pattern in patterns:
            for m in pattern.finditer(words):
                found += _change(m[order[1]], [m[order[0]]], "", True)
    for pattern in () if found else _ADDED:
        for m in pattern.finditer(words):
            vectors = [one for one in (m[1], m[3]) if one]
            target = m[4] or (f"{token}" if token else "")
            found += _change(target, vectors, m["joint"] or "", True)
    for pattern in _BECOMES:
        for m in pattern.finditer(words):
            found += _change(m[1], [m[2]], "", False)
    return found


def _change(target: str, vectors: list[str], joint: str, added: bool) -> Iterator[Change]:
    """One change for each vector, and one for all of them together where they are not alternatives."""
    token = re.fullmatch(r"\s*x_\{?(\d)\}?\s*", target)
    if token is None:
        return
    try:
        nodes = [expression(one) for one in vectors]
    except Unreadable:
        return
    name = f"x_{token[1]}"
    if not added or len(nodes) == 1 or joint not in ("and", "和", "与", "、", "及", "以及", "plus", ","):
        yield from (Change(name, node, added) for node in nodes)
        return
    yield Change(name, T.Binary("+", nodes[0], nodes[1]), added)
    yield from (Change(name, node, added) for node in nodes)


def sentence(formula: Formula) -> str:
    """The sentence of a formula."""
    return f"{formula.before} ${formula.math}$ {formula.after}"
