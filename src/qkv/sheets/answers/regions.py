"""The formulas and words that belong to each part of the problem, also where the sheet does not label it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qkv.sheets.answers.construction import Length, joined
from qkv.sheets.answers.tree_text import clauses
from qkv.sheets.problems.edition import part_holding
from qkv.sheets.problems.problem import Problem, Question
from qkv.sheets.reading.sheet import Formula, Sheet
from qkv.sheets.statements import tree as T


@dataclass(frozen=True)
class Region:
    """What a sheet says on one part.

    Attributes:
        formulas: In reading order, without those of the problem's own text.
        words: The words, formulas between dollar signs.
        line: The line on which it begins, or 0 if there is nothing.
    """

    formulas: tuple[Formula, ...] = ()
    words: str = ""
    line: int = 0

    @property
    def empty(self) -> bool:
        """Whether there is nothing but a label."""
        letters = sum(char.isalpha() for char in self.words)
        return not self.formulas and letters < 12


def regions_of(sheet: Sheet, problem: Problem) -> dict[str, Region]:
    """The region of every part that asks something; parts without a label begin where their construction does."""
    formulas = [_placed(formula, problem) for formula in sheet.formulas if not formula.own_text]
    formulas = _relabelled(formulas, problem)
    moved = {(f.line, f.source): f.part for f in formulas}
    found: dict[str, Region] = {}
    for part in problem.parts:
        if not part.questions:
            continue
        own = tuple(f for f in formulas if f.part == part.id)
        words, line = _words(sheet, problem, part.id, own, moved)
        found[part.id] = Region(own, words, line or (own[0].line if own else 0))
    return _with_parents(found, formulas, sheet, problem)


def _placed(formula: Formula, problem: Problem) -> Formula:
    part = part_holding(problem, formula.part)
    return formula if part is None else replace(formula, part=part.id)


def _words(
    sheet: Sheet, problem: Problem, part: str, own: tuple[Formula, ...], moved: dict[tuple[int, str], str]
) -> tuple[str, int]:
    """The passages of a part; of a part that the sheet does not label, the words around its formulas."""
    passages = [p for p in sheet.passages if not p.own_text and _id(problem, p.part) == part]
    if passages:
        first = min((f.line for f in own), default=0)
        gone = [
            f
            for f in sheet.formulas
            if _id(problem, f.part) == part and moved.get((f.line, f.source)) not in (part, None)
        ]
        if gone and not own:
            return "", 0
        return " ".join(p.words for p in passages), passages[0].line or first
    said = dict.fromkeys(f"{f.before} ${f.math}$ {f.after}" for f in own)
    return " . ".join(said), own[0].line if own else 0


def _id(problem: Problem, label: str) -> str:
    part = part_holding(problem, label)
    return part.id if part is not None else label


def _with_parents(
    found: dict[str, Region], formulas: list[Formula], sheet: Sheet, problem: Problem
) -> dict[str, Region]:
    """A part without a region takes that of its parent, if the sheet answers the parent's parts in one stretch."""
    out = dict(found)
    for part, region in found.items():
        if not region.empty or "." not in part:
            continue
        parent = part.rsplit(".", 1)[0]
        siblings = [p for p in found if p.rsplit(".", 1)[0] == parent]
        own = tuple(f for f in formulas if f.part == parent)
        words = " ".join(p.words for p in sheet.passages if not p.own_text and _id(problem, p.part) == parent)
        candidate = Region(own, words, own[0].line if own else 0)
        first = all(found[p].empty for p in siblings if siblings.index(p) < siblings.index(part))
        if not candidate.empty and first:
            here = problem.part(part)
            out[part] = _from_beginning(candidate, here.questions[0]) if here is not None else candidate
    return out


def _from_beginning(region: Region, question: Question) -> Region:
    """A stretch that answers several parts, from where it begins to speak of what varies in this one."""
    start = next((f for f in region.formulas if question.varies and _begins(question, f)), None)
    if start is None:
        return region
    place = region.formulas.index(start)
    words = region.words
    found = max(words.find(f"${written}$") for written in (start.math, start.source))
    if found > 0:
        words = words[max(words.rfind(mark, 0, found) for mark in (". ", "。", "\n")) + 1 :]
    return Region(region.formulas[place:], words, start.line)


def _relabelled(formulas: list[Formula], problem: Problem) -> list[Formula]:
    """Formulas after the point at which a part begins that the sheet does not label.

    A part is said to begin at the first definition of the holes of its question, or of the number that varies, within
    the part before it.
    """
    out = list(formulas)
    order = [part.id for part in problem.parts]
    asked = [part for part in problem.parts if part.questions]
    for part in reversed(asked[1:]):  # later parts first, so that what is left belongs to the earlier ones
        question = part.questions[0]
        if question.kind not in ("construction", "samples"):
            continue
        present = [f for f in out if f.part == part.id or f.part == part.id.rsplit(".", 1)[0]]
        if any(_begins(question, f) for f in present):
            continue
        start = next(
            (i for i, f in enumerate(out) if _begins(question, f) and _may_hold(order, f.part, question)), None
        )
        if start is None or (present and question.kind == "samples"):
            continue
        holder = out[start].part
        for i in range(start, len(out)):
            if out[i].part == holder:
                out[i] = replace(out[i], part=part.id)
            elif _shifted(order, out[i].part, holder, part.id):
                out[i] = replace(out[i], part=_next(asked, part.id))
            else:
                break
    return out


def _may_hold(order: list[str], part: str, question: Question) -> bool:
    """Whether the beginning of a part may stand in another: of samples, in the part that they take over."""
    if question.kind == "samples":
        return part == question.uses
    return part in order and 0 < order.index(question.part) - order.index(part) <= 4


def _shifted(order: list[str], part: str, holder: str, new: str) -> bool:
    """Whether a label follows the holder's letter, which has become another part's: ii of c after d began."""
    same_letter = part.split(".")[0] == holder.split(".")[0] and part in order
    return same_letter and new.split(".")[0] != holder.split(".")[0]


def _next(asked: list, id: str) -> str:  # type: ignore[type-arg]
    ids = [part.id for part in asked]
    place = ids.index(id)
    return str(ids[min(place + 1, len(ids) - 1)])


def _begins(question: Question, formula: Formula) -> bool:
    """Whether a formula defines a hole of the question with an index of its own, or the length of a key."""
    for clause in clauses(formula.math):
        if not clause.sides or clause.signs[0] not in ("=", "~"):
            continue
        head = clause.sides[0]
        if question.kind == "construction":
            if isinstance(head, T.Symbol) and any(
                hole == f"{head.base}_{'_'.join(head.index)}" for hole in question.holes
            ):
                return True
        elif question.varies and (is_length(clause) is not None or _is_wide(head)):
            return True
    return False


def _is_wide(head: T.Node) -> bool:
    """Whether a side is the covariance of one key, which only the questions about samples speak of."""
    return isinstance(head, T.Symbol) and head.base == "Sigma" and head.index == ("a",)


def is_length(clause: T.Clause) -> Length | None:
    """The letter L of a clause k_a ≈ L mu_a or k_a ≈ (1 + L) mu_a, or None if it says something else."""
    head, last = clause.sides[0], clause.sides[-1]
    if not (isinstance(head, T.Symbol) and head.base.lower() == "k" and head.index == ("a",)):
        return None
    found = _factor(last)
    if found is not None:
        return Length(joined(found.base, "".join(found.index)))
    if not isinstance(last, T.Binary):
        return None
    if last.sign in ("*", "."):  # (1 + L) mu_a
        for one, other in ((last.left, last.right), (last.right, last.left)):
            if isinstance(other, T.Symbol) and other.base in MEANS and isinstance(one, T.Binary) and one.sign == "+":
                sides = (one.left, one.right)
                letter = next((s for s in sides if isinstance(s, T.Symbol)), None)
                if letter is not None and any(isinstance(s, T.Number) and s.text in ("1", "1.0") for s in sides):
                    return Length(joined(letter.base, "".join(letter.index)), 1)
    if last.sign == "+":  # mu_a + L mu_a
        for one, other in ((last.left, last.right), (last.right, last.left)):
            found = _factor(other)
            if isinstance(one, T.Symbol) and one.base in MEANS and found is not None:
                return Length(joined(found.base, "".join(found.index)), 1)
    return None


MEANS = ("mu", "u")


def _factor(last: T.Node) -> T.Symbol | None:
    """The letter L of L mu_a."""
    if not isinstance(last, T.Binary) or last.sign not in ("*", "."):
        return None
    for one, other in ((last.left, last.right), (last.right, last.left)):
        if (
            isinstance(one, T.Symbol)
            and isinstance(other, T.Symbol)
            and other.base in ("mu", "u")
            and one.base not in ("mu", "u")
        ):
            return one
    return None
