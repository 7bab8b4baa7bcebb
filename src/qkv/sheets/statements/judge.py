"""judge: a verdict for each formula of a sheet, by the readings that its letters and its words allow."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

from qkv.sheets.feedback import Statement, StatementVerdict
from qkv.sheets.problems.problem import Problem
from qkv.sheets.reading.sheet import Formula, Sheet
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.bindings import between, is_norm_of_key
from qkv.sheets.statements.changed_tokens import is_supposed_here, token_worlds, told_changes
from qkv.sheets.statements.changes import Change
from qkv.sheets.statements.choices import begins_with_matrix, choice
from qkv.sheets.statements.circumstances import Circumstances, circumstances
from qkv.sheets.statements.deciding import Budget
from qkv.sheets.statements.indices import INDICES, by_entries, entries, in_subpart, indices, rest
from qkv.sheets.statements.links import EXACT, LIMIT, OPEN, UNREAD, WRONG, Finding, Setting, decide_link, worst
from qkv.sheets.statements.moves import for_no_length, limits_length, moves, with_values
from qkv.sheets.statements.notation import (
    Definition,
    Notation,
    current,
    infer,
    is_key,
    is_query,
    names_scores,
)
from qkv.sheets.statements.parsed_formulas import Parsed, parsed_formulas
from qkv.sheets.statements.reading_of import Reading
from qkv.sheets.statements.sparing import Refuted, is_example, is_output_statistic, spared
from qkv.sheets.statements.world_choice import (
    fitting_worlds,
    siblings,
    speaks_of_length,
    speaks_of_noise,
)
from qkv.sheets.statements.worlds import worlds_of

MAX_READINGS = 8
MAX_LINKS = 8
MAX_OTHER_QUERIES = 2
DENOMINATOR = T.Total(
    "j", (), "", T.Call("exp", (T.Binary("*", T.Transposed(T.Symbol("k", ("j",))), T.Symbol("q")),))
)  # of a softmax
NOISES = ("epsilon", "sigma", "delta")  # letters that stand for the size of noise, where nothing else is said
EXACTLY = re.compile(r"^\s*(?:exactly|precisely|without any error|恰好|精确)", re.I)
OTHERWISE_LINES = 3  # "otherwise" refers to a condition at most so far above it


def judge(sheet: Sheet, problem: Problem, budget: Budget) -> tuple[tuple[Statement, ...], Notation]:
    """The statements of a sheet with their verdicts, and the notation in which they were read."""
    parsed = [in_subpart(p, problem) for p in parsed_formulas(sheet)]
    notation = infer([(p.order, p.formula, p.clauses) for p in parsed])
    judge_one = _Judge(problem, notation, budget)
    judge_one.changes = told_changes(sheet, problem)
    judge_one.scores_named = any(names_scores(clause) for p in parsed for clause in p.clauses)
    statements = [s for p in parsed if (s := judge_one.statement(p)) is not None]
    return tuple(statements), notation


def _without_bars(node: T.Node) -> T.Node:
    """δ of |δ|."""
    return node.arguments[0] if isinstance(node, T.Call) and node.name in ("abs", "norm") else node


class _Judge:
    """The state while the statements of a sheet are judged."""

    def __init__(self, problem: Problem, notation: Notation, budget: Budget) -> None:
        self.problem = problem
        self.notation = notation
        self.budget = budget
        self.own: dict[str, dict[T.Symbol, Definition]] = {}  # letters of the author's own, by the letter of the part
        self.everywhere: dict[T.Symbol, Definition] = {}  # those of every item, which hold in all parts
        self.mistakes: dict[str, int] = {}  # the line of the first mistake, by the letter of the part
        self.last_condition: tuple[int, tuple[T.Condition, ...]] = (0, ())  # with its line
        self.changes: tuple[Change, ...] = ()  # of tokens, told in words
        self.queries: tuple[Definition, ...] = ()  # queries that are tried in the place of those that hold
        self.unchanged = False  # whether tokens are as the problem gives them, whatever the words tell
        self.elsewhere = False  # whether the givens of sibling parts are tried
        self.scores_named = False  # whether the sheet writes α for scores
        self.alpha = "weight"  # what α with an index stands for in the reading that is tried

    def statement(self, parsed: Parsed) -> Statement | None:
        formula = parsed.formula
        if not formula.part:
            return self._before_all_parts(parsed)
        if self.problem.part(formula.part.split(".")[0]) is None:
            return None
        if parsed.problem:
            return self._made(formula, "not_read", because=f"not read: {parsed.problem}")
        around = circumstances(formula)
        findings: list[tuple[str, Finding]] = []
        extra: list[T.Condition] = []
        clauses = [c for c in parsed.clauses if c.sides]
        if not clauses:
            return None
        for clause in clauses:
            if self._is_condition(clause, formula.part) and len(clauses) > 1:
                extra += [T.Condition("relation", clause=one) for one in between(clause) or (clause,)]
        real = [c for c in clauses if not (self._is_condition(c, formula.part) and len(clauses) > 1)] or clauses
        for clause in real:
            findings.append(self._clause(parsed, clause, around, tuple(extra)))
        return self._combined(formula, around, findings)

    def _before_all_parts(self, parsed: Parsed) -> Statement | None:
        """A formula before the first part, such as the definition of the weights: said only where it is right."""
        first = next((part.id for part in self.problem.parts if part.given), "")
        if not first:
            return None
        mistakes = dict(self.mistakes)
        found = self.statement(replace(parsed, formula=replace(parsed.formula, part=first)))
        self.mistakes = mistakes
        return found if found is not None and found.verdict in ("right", "limit") else None

    # One verdict from those of the clauses.
    def _combined(
        self, formula: Formula, around: Circumstances, findings: list[tuple[str, Finding]]
    ) -> Statement | None:
        if any(kind in ("right", "limit") for kind, _ in findings):  # it is not right as a whole
            findings = [("not_read" if kind == "spared choice" else kind, f) for kind, f in findings]
        findings = [(kind.removeprefix("spared "), f) for kind, f in findings]
        kinds = [kind for kind, _ in findings]
        if all(kind == "skip" for kind in kinds):
            return None
        shown = [f for kind, f in findings if kind not in ("skip",)]
        if "wrong" in kinds:
            found = next(f for kind, f in findings if kind == "wrong")
            letter = formula.part.split(".")[0]
            follows = self.mistakes.get(letter)
            self.mistakes.setdefault(letter, formula.line)
            return self._made(formula, "wrong", found, follows=follows)
        decided = [f for kind, f in findings if kind in ("right", "limit")]
        if decided and all(kind in ("right", "limit", "choice", "skip") for kind in kinds):
            verdict: StatementVerdict = "limit" if "limit" in kinds else "right"
            return self._made(
                formula, verdict, decided[-1] if verdict == "right" else next(f for k, f in findings if k == "limit")
            )
        if all(kind in ("choice", "skip") for kind in kinds):
            return self._made(formula, "choice", shown[0])
        unread = next((f for kind, f in findings if kind == "not_read"), shown[0])
        return self._made(formula, "not_read", unread)

    @staticmethod
    def _made(
        formula: Formula,
        verdict: StatementVerdict,
        found: Finding | None = None,
        because: str = "",
        follows: int | None = None,
    ) -> Statement:
        found = found or Finding(OPEN)
        return Statement(
            formula.line,
            formula.source,
            formula.part,
            verdict,
            found.claim,
            because or found.because,
            follows,
            found.derivation,
            found.readings if verdict in ("wrong", "not_read") else (),
        )

    # Clauses.
    def _is_condition(self, clause: T.Clause, part: str) -> bool:
        """Whether a clause only says how large a letter is: β ≫ 0, γ → ½, t > 0."""
        if len(clause.sides) == 2 and is_norm_of_key(clause.sides[0]) and self._kind(part) == "means":
            return clause.signs[0] in (">>", "<<", ">", "<", ">=", "<=", "->", "~")
        if len(clause.sides) == 2 and clause.signs[0] in (">>", "<<") and self._are_numbers(clause):
            return True
        if ends := between(clause):
            return all(self._is_condition(one, part) for one in ends)
        left = _without_bars(clause.sides[0])
        if len(clause.sides) != 2 or not isinstance(left, T.Symbol):
            return False
        if left.index and (left.base in ("p", "w") or left.base in {s.base for s in self.everywhere}):
            return False  # weights and scores
        if left.base in ("q", "k", "v", "x", "V", "K", "Q", "M", "mu", "u") or (left.base == "alpha" and left.index):
            return False
        if left.base in ("c", "C") and left != self.notation.length and left not in self._scales():
            return False
        return clause.signs[0] in (">>", "<<", ">", "<", ">=", "<=", "->") and not any(
            s.index for s in T.symbols(clause.sides[1])
        )

    def _are_numbers(self, clause: T.Clause) -> bool:
        """Whether a clause compares an expression in scales, lengths and sizes with a number, as α C² ≪ 1 does."""
        if not any(isinstance(side, T.Number) for side in clause.sides):
            return False
        known = {*self._scales(), self.notation.length, T.Symbol("alpha"), T.Symbol("n"), T.Symbol("d")}
        inside = T.symbols(clause)
        return bool(inside) and all(s in known or (s.base in NOISES and not s.index) for s in inside)

    def _scales(self) -> list[T.Symbol]:
        return [s for symbols in self.notation.scales.values() for s in symbols]

    def _clause(
        self, parsed: Parsed, clause: T.Clause, around: Circumstances, extra: tuple[T.Condition, ...]
    ) -> tuple[str, Finding]:
        if clause.signs[0] == "prop" and len(clause.sides) > 2:
            clause = replace(clause, sides=clause.sides[1:], signs=clause.signs[1:])
        if begins_with_matrix(clause, self._kind(parsed.formula.part)):  # M = A A' = …: the first link chooses
            clause = replace(clause, sides=clause.sides[1:], signs=clause.signs[1:])
        if clause.signs[0] in ("in", "notin", "prop"):
            return "skip", Finding(OPEN)
        if self._is_condition(clause, parsed.formula.part):
            return "choice", Finding(OPEN, "", "says how large a letter is")
        chosen = choice(clause, around, worlds_of(self.problem, parsed.formula.part), self.notation, self.budget)
        if chosen is not None:
            return "choice", chosen
        asked = self._kind(parsed.formula.part) == "margin" and clause.signs[-1] in (">>", "<<")
        if around.goal and not asked:
            return "choice", Finding(OPEN, "", "a goal: wanted, not asserted")
        if self._kind(parsed.formula.part) == "margin" and is_example(clause, (), []):
            return "not_read", Finding(OPEN, "", "numbers of an example, where keys and query may be any")
        found = self._decided(parsed, clause, around, extra)
        if found.kind in (OPEN, UNREAD) and parsed.head is not None and parsed.head != clause.sides[0]:
            whole = self._decided(parsed, replace(clause, sides=(parsed.head, *clause.sides[1:])), around, extra)
            found = whole if whole.kind in (EXACT, LIMIT) else found
        if found.kind == WRONG:
            case = Refuted(self.problem, self.notation, parsed, clause, around, extra, found.because)
            reason = spared(case)
            if reason is None and self._at_length_zero(parsed, clause, around):
                reason = ("not_read", "true where the length of the key is about 0")
            if reason is not None:
                return f"spared {reason[0]}", replace(found, because=reason[1])
            return "wrong", found
        if around.negated:
            return "not_read", replace(found, because="denied in the words around it")
        if found.kind == EXACT:
            return "right", found
        weights = any(s.base == "alpha" and s.index for s in T.symbols(clause))
        if found.kind == LIMIT and weights and set(clause.signs) == {"="} and EXACTLY.match(parsed.formula.after):
            return "not_read", replace(found, because="said to hold exactly, and right in a limit")
        if found.kind == LIMIT:
            return "limit", found
        if around.hypothesis or around.perhaps_goal:
            return "choice", replace(found, because="supposed or wanted, not asserted")
        return "not_read", found

    def _at_length_zero(self, parsed: Parsed, clause: T.Clause, around: Circumstances) -> bool:
        """Whether a clause that no condition stands beside is true for a random key of length 0."""
        if around.conditions or self._kind(parsed.formula.part) != "means":
            return False
        if not any(is_key(s) and s.index[-1] == "a" for s in T.symbols(clause)):
            return False
        zero = T.Clause((T.Symbol("length"), T.Number("1")), ("<<",))
        keep = self.notation.length
        if keep is None:
            self.notation.length = T.Symbol("length")
        try:
            head = self.notation.length
            condition = T.Condition("relation", clause=replace(zero, sides=(head, T.Number("1")))) if head else None
            found = self._chain(
                parsed, clause, (*clause.conditions, condition) if condition else (), around, (), "weight"
            )
        finally:
            self.notation.length = keep
        return found.kind in (EXACT, LIMIT)

    def _kind(self, part: str) -> str:
        found = worlds_of(self.problem, part)
        return found[0].kind if found else ""

    # Readings.
    def _decided(
        self, parsed: Parsed, clause: T.Clause, around: Circumstances, extra: tuple[T.Condition, ...]
    ) -> Finding:
        """Decide a chain link by link: wrong if one is, right if all are."""
        if any(isinstance(s, T.Missing) for s in clause.sides):
            return Finding(UNREAD, "", "a side that is not written")
        conditions = self._conditions(parsed, clause, around)
        found = self._chain(parsed, clause, conditions, around, extra, "weight")
        exact = all(sign == "=" for sign in clause.signs)
        if (
            found.kind == WRONG
            and (exact or around.scores)
            and any(s.base == "alpha" and s.index for s in T.symbols(clause))
            and (around.scores or self.scores_named or self._valued_as_score(clause))
        ):
            for alpha in ("score", "exp"):
                other = self._chain(parsed, clause, conditions, around, extra, alpha)
                if other.kind in (EXACT, LIMIT):
                    return other
        place = (parsed.formula.part, parsed.order)
        tokens = found.kind == WRONG and around.changed and self._kind(parsed.formula.part) == "tokens"
        if tokens and not is_supposed_here(parsed, self.notation.in_part(*place)):
            self.unchanged = True
            other = self._chain(parsed, clause, conditions, around, extra, "weight")
            self.unchanged = False
            if other.kind in (EXACT, LIMIT):
                return replace(found, kind=OPEN, because="right only without the change that the words tell")
        in_words = [d for d in self.notation.in_part(*place).values() if d.scale] if found.kind == WRONG else []
        if in_words:
            scaled = tuple(d.scaled() for d in in_words)
            other = self._with_queries(scaled, parsed, clause, conditions, around, extra)
            if other.kind != WRONG:
                sure = all(d.scale == "large" for d in in_words) and other.kind in (EXACT, LIMIT)
                because = "the words beside the query speak of a large factor, which the formula does not have"
                return other if sure else replace(found, kind=OPEN, because=because)
        for query in self.notation.other_queries(*place)[:MAX_OTHER_QUERIES] if found.kind == WRONG else ():
            other = self._with_queries((query,), parsed, clause, conditions, around, extra)
            if other.kind in (EXACT, LIMIT):
                return replace(
                    found, kind=OPEN, because=f"right with the query of line {query.line}, not with the last"
                )
        for bound in around.other_conditions if found.kind == WRONG else ():
            other = self._chain(parsed, clause, (*clause.conditions, *bound), around, extra, "weight")
            if other.kind in (EXACT, LIMIT, OPEN):
                return other
        if (
            found.kind == WRONG
            and self._kind(parsed.formula.part) == "means"
            and not around.every
            and not is_output_statistic(self.problem, parsed, clause)
            and not limits_length((*conditions, *extra), self.notation)
        ):
            return self._in_sibling(parsed, clause, conditions, around, extra) or found
        return found

    def _with_queries(
        self, queries: tuple[Definition, ...], parsed: Parsed, clause: T.Clause, conditions: tuple[T.Condition, ...],
        around: Circumstances, extra: tuple[T.Condition, ...],
    ) -> Finding:  # fmt: skip
        """The finding of a chain with other queries in the place of those that hold."""
        self.queries = queries
        try:
            return self._chain(parsed, clause, conditions, around, extra, "weight")
        finally:
            self.queries = ()

    def _valued_as_score(self, clause: T.Clause) -> bool:
        """Whether one side is made of scales alone, as in α_a = λ or α_a = e^λ, which no weight is."""
        scales = {*self._scales(), T.Symbol("beta")}
        return any(
            (inside := set(T.symbols(side)) - {T.Symbol("e")})
            and inside <= scales
            and not any(isinstance(node, T.Binary) and node.sign == "/" for node in T.nodes(side))
            for side in clause.sides
        )

    def _in_sibling(
        self,
        parsed: Parsed,
        clause: T.Clause,
        conditions: tuple[T.Condition, ...],
        around: Circumstances,
        extra: tuple[T.Condition, ...],
    ) -> Finding | None:
        """The finding under the givens of a sibling part, unless it is wrong there too: the part may be mislabelled."""
        self.elsewhere = True
        try:
            found = self._chain(parsed, clause, conditions, around, extra, "weight")
        finally:
            self.elsewhere = False
        return found if found.kind in (EXACT, LIMIT, OPEN) else None

    def _chain(
        self, parsed: Parsed, clause: T.Clause, conditions: tuple[T.Condition, ...], around: Circumstances,
        extra: tuple[T.Condition, ...], alpha: str,
    ) -> Finding:  # fmt: skip
        """The finding of a chain with one meaning of α."""
        links = list(zip(clause.sides, clause.signs, clause.sides[1:], strict=False))[:MAX_LINKS]
        self.alpha = alpha
        findings: list[Finding] = []
        for number, (left, sign, right) in enumerate(links):
            if number == 0 and self._names_everywhere(parsed, left, sign, right):
                continue
            found = self._link(parsed, left, sign, right, conditions, around, extra)
            if found.kind == UNREAD and number == 0 and self._names(parsed, left, sign, right):
                if not around.denominator or left.base not in ("Z", "S", "D"):  # type: ignore[attr-defined]
                    continue
                found = self._link(parsed, DENOMINATOR, sign, right, conditions, around, extra)
            findings.append(found)
        if not findings:
            return Finding(UNREAD, "", "a letter is named")
        for found in findings:
            if found.kind == WRONG:
                return found
        open_ones = [f for f in findings if f.kind in (OPEN, UNREAD)]
        if open_ones:
            ends = self._ends(parsed, clause, conditions, around, extra) if len(links) > 1 else None
            return ends or open_ones[0]
        return next((f for f in findings if f.kind == LIMIT), findings[-1])

    def _ends(
        self,
        parsed: Parsed,
        clause: T.Clause,
        conditions: tuple[T.Condition, ...],
        around: Circumstances,
        extra: tuple[T.Condition, ...],
    ) -> Finding | None:
        """The ends of a chain whose middle could not be read: right if they are, else nothing."""
        sign = "=" if all(s == "=" for s in clause.signs) else "~" if set(clause.signs) <= {"=", "~", "->"} else ""
        if not sign:
            return None
        found = self._link(parsed, clause.sides[0], sign, clause.sides[-1], conditions, around, extra)
        return found if found.kind in (EXACT, LIMIT) else None

    def _names(self, parsed: Parsed, left: T.Node, sign: str, right: T.Node) -> bool:
        """Whether a link gives a new letter its meaning; it is remembered."""
        if sign not in ("=", "~") or not isinstance(left, T.Symbol):
            return False
        if left.base in ("q", "k", "v", "c", "C", "alpha", "mu", "u", "x", "n", "Sigma"):
            return False
        letter = parsed.formula.part.split(".")[0]
        known = self.own.setdefault(letter, {})
        if left in known or left in self._scales() or left == self.notation.length:
            return False
        known[left] = Definition(parsed.order, parsed.formula.part, parsed.formula.line, left, right)
        return True

    def _names_everywhere(self, parsed: Parsed, left: T.Node, sign: str, right: T.Node) -> bool:
        """Whether a link defines a letter of every item by keys and query, as s_i = k_i'q, which holds in all parts."""
        if sign != "=" or not isinstance(left, T.Symbol) or left.base in {s.base for s in self.everywhere}:
            return False
        if left.base in ("q", "k", "K", "v", "c", "C", "alpha", "mu", "u", "x", "Sigma") or len(left.index) != 1:
            return False
        inside = [s for s in T.symbols(right) if s != T.Symbol("e")]
        own = {s.base for s in self.everywhere}
        general = left.index[0] in INDICES and any(s.index[-1:] == left.index for s in inside)
        if any(isinstance(node, T.Total) for node in T.nodes(right)):
            return False  # weights, which are known
        if not general or not all((is_key(s) or is_query(s) or s.base in own) and "a" not in s.index for s in inside):
            return False
        self.everywhere[left] = Definition(parsed.order, parsed.formula.part, parsed.formula.line, left, right)
        return True

    def _conditions(self, parsed: Parsed, clause: T.Clause, around: Circumstances) -> tuple[T.Condition, ...]:
        found = clause.conditions
        if not any(c.kind in ("index", "all") for c in found):
            found = (*found, *around.conditions)
        else:
            found = (*found, *(c for c in around.conditions if c.kind == "relation"))
        indexed = tuple(c for c in found if c.kind == "index")
        if around.otherwise:
            line, last = self.last_condition
            if last and 0 <= parsed.formula.line - line <= OTHERWISE_LINES:
                found = tuple(replace(c, inside=not c.inside) for c in last)
        elif indexed:
            self.last_condition = (parsed.formula.line, indexed)
        return found

    def _link(
        self, parsed: Parsed, left: T.Node, sign: str, right: T.Node, conditions: tuple[T.Condition, ...],
        around: Circumstances, extra: tuple[T.Condition, ...],
    ) -> Finding:  # fmt: skip
        """The finding of one relation over all readings: the first that shows it, wrong if all refute it."""
        if isinstance(right, T.Cases):
            return self._cases(parsed, left, sign, right, around, extra)
        if isinstance(right, T.Matrix) and isinstance(left, T.Symbol):
            pairs = entries(left, right)
            if pairs:
                entry = [self._link(parsed, one, sign, two, conditions, around, extra) for one, two in pairs]
                return worst(entry)
        listed = by_entries(left, right)
        if listed:
            return worst([self._link(parsed, one, sign, two, conditions, around, extra) for one, two in listed])
        refuted: list[Finding] = []
        best: Finding | None = None
        for reading, setting in itertools.islice(
            self._readings(parsed, left, right, conditions, around, extra), MAX_READINGS
        ):
            found = decide_link(left, sign, right, reading, setting, self.budget)
            if reading.guessed and found.kind not in (EXACT, LIMIT):
                found = replace(found, kind=UNREAD, because="a letter that is not defined")
            if found.kind in (EXACT, LIMIT):
                return found
            if found.kind == OPEN and found.because.startswith("true when") and sign in ("=", "~", "->"):
                found = for_no_length(left, sign, right, reading, setting, self.budget, around) or found
            if found.kind == WRONG:
                refuted.append(found)
            elif found.kind == OPEN or best is None:
                best = found if best is None or best.kind == UNREAD else best
        if not refuted and (best is None or best.kind == UNREAD):
            general = self._for_any_query(parsed, left, sign, right, conditions, around, extra)
            if general is not None:
                return general
        chosen = refuted[0] if refuted and (best is None or best.kind == UNREAD) else best
        if chosen is None:
            return Finding(UNREAD, "", "no reading of it")
        others = tuple(dict.fromkeys(f.claim for f in refuted if f.claim and f.claim != chosen.claim))
        return replace(chosen, readings=others[:3])

    def _for_any_query(
        self, parsed: Parsed, left: T.Node, sign: str, right: T.Node, conditions: tuple[T.Condition, ...],
        around: Circumstances, extra: tuple[T.Condition, ...],
    ) -> Finding | None:  # fmt: skip
        """The finding where no query was read, if it is right whatever the query is."""
        if any(is_query(s) for s in self.notation.in_part(parsed.formula.part, parsed.order)):
            return None
        for reading, setting in itertools.islice(
            self._readings(parsed, left, right, conditions, around, extra), MAX_READINGS
        ):
            if reading.world.kind not in ("keys", "means", "noise"):
                return None
            reading.any_query = True
            found = decide_link(left, sign, right, reading, setting, self.budget)
            if found.kind in (EXACT, LIMIT):
                return found
        return None

    def _cases(
        self,
        parsed: Parsed,
        left: T.Node,
        sign: str,
        right: T.Cases,
        around: Circumstances,
        extra: tuple[T.Condition, ...],
    ) -> Finding:
        found: list[Finding] = []
        named: list[T.Condition] = []
        for piece in right.pieces:
            conditions = piece.condition
            if any(c.kind == "otherwise" for c in conditions):
                conditions = rest(named)
            if not conditions:
                return Finding(UNREAD, "", "a case without a condition")
            named += conditions
            found.append(self._link(parsed, left, sign, piece.value, conditions, around, extra))
        return worst(found)

    def _readings(
        self, parsed: Parsed, left: T.Node, right: T.Node, conditions: tuple[T.Condition, ...], around: Circumstances,
        extra: tuple[T.Condition, ...],
    ) -> Iterator[tuple[Reading, Setting]]:  # fmt: skip
        part, order = parsed.formula.part, parsed.order
        both = T.Binary("+", left, right)
        inside = T.symbols(both)
        definitions = self.everywhere | self.own.get(part.split(".")[0], {})
        definitions |= self.notation.in_part(part, order)
        definitions |= {query.symbol: query for query in self.queries}
        names = [n.name for n in T.nodes(both) if isinstance(n, T.Call) and n.name in ("Var", "Cov", "E", "N")]
        statistics = "N" if "N" in names else names[0] if names else ""
        if self.elsewhere:
            worlds = [w for w in siblings(self.problem, part) if w.kind in ("means", "noise")]
            worlds = [
                w for w in worlds if (w.kind == "noise") == bool(statistics or speaks_of_noise(inside, self.notation))
            ]
        else:
            spoken = speaks_of_length(parsed, inside, (*conditions, *extra), self.notation)
            worlds = fitting_worlds(self.problem, self.notation, part, inside, statistics, spoken)
        scales = self.notation.scales.get(part.split(".")[0], [])
        doubtful = any((s in scales or s == self.notation.length) and s.base in ("c", "C") for s in inside)
        if worlds and worlds[0].kind == "tokens":
            if not self.unchanged:
                worlds = token_worlds(parsed, worlds[0], definitions, self.changes, self.problem, self.notation)
            definitions = {s: d for s, d in definitions.items() if s.base != "x"}
        for world in worlds:
            base = Reading(world, self.notation, current(definitions, inside), replaced={})
            heads = base.heads
            loose = heads and any(
                (s.base in ("alpha", "beta", "w", "p") and len(s.index) == 1 and s not in scales)
                or (is_query(s) and not s.index)
                for s in inside
            )
            lettered = heads and any(s.base in ("q", "g") and s.index and s.index[0] in INDICES for s in inside)
            for head in (1, 2) if loose or lettered else (0,):
                for replaced, stands_for in indices(both, conditions, definitions, world):
                    if lettered:
                        replaced = {
                            **replaced,
                            **{s.index[0]: str(head) for s in inside if s.base in ("q", "g") and s.index},
                        }
                    for plain in (False, True) if doubtful else (False,):
                        reading = Reading(
                            world,
                            self.notation,
                            base.definitions,
                            head,
                            self.alpha,
                            plain_output=plain,
                            replaced=dict(replaced),
                        )
                        with_values(reading, (*conditions, *extra))
                        for limits, when in moves(world, (*conditions, *extra), around, self.notation):
                            yield reading, Setting(limits, stands_for, when)
