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
from qkv.sheets.statements.circumstances import Circumstances, circumstances, is_norm_of_key
from qkv.sheets.statements.deciding import Budget
from qkv.sheets.statements.indices import INDICES, entries, in_subpart, indices, rest
from qkv.sheets.statements.links import EXACT, LIMIT, OPEN, UNREAD, WRONG, Finding, Setting, decide_link, worst
from qkv.sheets.statements.notation import Definition, Notation, current, infer, is_key, is_mean, is_query
from qkv.sheets.statements.parsed_formulas import Parsed, parsed_formulas
from qkv.sheets.statements.reading_of import Reading
from qkv.sheets.statements.worlds import World, worlds_of
from qkv.sheets.statements.writing import Unwritable

MAX_READINGS = 8
MAX_LINKS = 8


def judge(sheet: Sheet, problem: Problem, budget: Budget) -> tuple[tuple[Statement, ...], Notation]:
    """The statements of a sheet with their verdicts, and the notation in which they were read."""
    parsed = [in_subpart(p, problem) for p in parsed_formulas(sheet)]
    notation = infer([(p.order, p.formula, p.clauses) for p in parsed])
    judge_one = _Judge(problem, notation, budget)
    statements = [s for p in parsed if (s := judge_one.statement(p)) is not None]
    return tuple(statements), notation


class _Judge:
    """The state while the statements of a sheet are judged."""

    def __init__(self, problem: Problem, notation: Notation, budget: Budget) -> None:
        self.problem = problem
        self.notation = notation
        self.budget = budget
        self.own: dict[str, dict[T.Symbol, Definition]] = {}  # letters of the author's own, by the letter of the part
        self.mistakes: dict[str, int] = {}  # the line of the first mistake, by the letter of the part
        self.last_condition: tuple[T.Condition, ...] = ()
        self.elsewhere = False  # whether the givens of sibling parts are tried
        self.alpha = "weight"  # what α with an index stands for in the reading that is tried

    def statement(self, parsed: Parsed) -> Statement | None:
        formula = parsed.formula
        if not formula.part or self.problem.part(formula.part.split(".")[0]) is None:
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
                extra.append(T.Condition("relation", clause=clause))
        real = [c for c in clauses if not (self._is_condition(c, formula.part) and len(clauses) > 1)] or clauses
        for clause in real:
            findings.append(self._clause(parsed, clause, around, tuple(extra)))
        return self._combined(formula, around, findings)

    # One verdict from those of the clauses.
    def _combined(
        self, formula: Formula, around: Circumstances, findings: list[tuple[str, Finding]]
    ) -> Statement | None:
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
        if len(clause.sides) != 2 or not isinstance(clause.sides[0], T.Symbol):
            return False
        left = clause.sides[0]
        if left.base in ("q", "k", "v", "x", "V", "K", "Q", "M", "mu", "u") or (left.base == "alpha" and left.index):
            return False
        if left.base in ("c", "C") and left != self.notation.length and left not in self._scales():
            return False
        return clause.signs[0] in (">>", "<<", ">", "<", ">=", "<=", "->") and not any(
            s.index for s in T.symbols(clause.sides[1])
        )

    def _scales(self) -> list[T.Symbol]:
        return [s for symbols in self.notation.scales.values() for s in symbols]

    def _clause(
        self, parsed: Parsed, clause: T.Clause, around: Circumstances, extra: tuple[T.Condition, ...]
    ) -> tuple[str, Finding]:
        if clause.signs[0] in ("in", "notin", "prop"):
            return "skip", Finding(OPEN)
        if self._is_condition(clause, parsed.formula.part):
            return "choice", Finding(OPEN, "", "says how large a letter is")
        chosen = self._choice(parsed, clause, around)
        if chosen is not None:
            return "choice", chosen
        asked = self._kind(parsed.formula.part) == "margin" and clause.signs[-1] in (">>", "<<")
        if around.goal and not asked:
            return "choice", Finding(OPEN, "", "a goal: wanted, not asserted")
        found = self._decided(parsed, clause, around, extra)
        if found.kind == WRONG:
            spared = self._spared(parsed, clause, around, extra)
            if spared is not None:
                return spared[0], replace(found, because=spared[1])
            return "wrong", found
        if around.negated:
            return "not_read", replace(found, because="denied in the words around it")
        if found.kind == EXACT:
            return "right", found
        if found.kind == LIMIT:
            return "limit", found
        if around.hypothesis or around.perhaps_goal:
            return "choice", replace(found, because="supposed or wanted, not asserted")
        return "not_read", found

    def _spared(
        self, parsed: Parsed, clause: T.Clause, around: Circumstances, extra: tuple[T.Condition, ...]
    ) -> tuple[str, str] | None:
        """Why a clause that is refuted is not called wrong: its verdict and the reason; or None."""
        if around.negated or around.hypothesis or around.perhaps_goal:
            return "choice", "supposed, wanted or denied, not asserted"
        if around.choice:
            return "choice", "chosen, not asserted"
        if self._comes_first(parsed, clause):
            return "choice", "a goal: what it speaks of is chosen later"
        head = clause.sides[0]
        if isinstance(head, T.Symbol) and not head.index and not any(T.symbols(s) for s in clause.sides[1:]):
            return "choice", "a letter is given a value"
        valued = isinstance(head, T.Symbol) and (
            head in self._scales() or head in (self.notation.length, T.Symbol("n"))
        )
        if valued and not (T.bases(head) & {"c", "C"} and any(s.base == "v" or is_mean(s) for s in T.symbols(clause))):
            return "choice", "a letter is given a value"
        if re.search(r"_\{?\s*\\(?:tilde|hat|bar)|_\{\d,\s*\\(?:tilde|hat)", parsed.formula.math):
            return "not_read", "an index with an accent, which may stand for another one"
        if clause.doubtful:
            return "not_read", "a slash leaves open what is divided by what"
        if around.unclear or any(not self._understood(c) for c in (*around.conditions, *extra)):
            return "not_read", "it stands under a condition that was not understood"
        free = self._kind(parsed.formula.part) == "margin" and len(set(clause.sides)) > 1
        if free and any(is_key(s) or is_query(s) for s in T.symbols(clause)):
            return "not_read", "keys and query are not fixed in this part"
        if self._lacks_matrices(parsed):
            return "not_read", "a matrix that was not read"
        if self._at_length_zero(parsed, clause, around):
            return "not_read", "true where the length of the key is about 0"
        return None

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

    def _is_length(self, node: T.Node) -> bool:
        """Whether a node is the random length of a key."""
        if is_norm_of_key(node):
            inner = T.symbols(node)[0]
            return inner.index[-1] == "a"
        return node == self.notation.length and node is not None

    def _understood(self, condition: T.Condition) -> bool:
        """Whether a condition beside a formula was taken into account or does not matter."""
        if condition.clause is None:
            return True
        left = condition.clause.sides[0]
        known = (
            self._is_length(left)
            or left in self._scales()
            or (left.base == "alpha" if isinstance(left, T.Symbol) else False)
        )
        return known or left in (T.Symbol("n"), T.Symbol("beta"), T.Symbol("d"))

    def _lacks_matrices(self, parsed: Parsed) -> bool:
        """Whether the part asks for matrices of which not all are known."""
        part = self.problem.part(parsed.formula.part)
        asked = {h for q in part.questions for h in q.holes if h in ("V", "K", "Q")} if part else set()
        found = self.notation.in_part(parsed.formula.part, parsed.order)
        return bool(asked - {s.base for s in found})

    def _comes_first(self, parsed: Parsed, clause: T.Clause) -> bool:
        """Whether the construction that a clause speaks of is chosen only after it."""
        kind = self._kind(parsed.formula.part)
        found = self.notation.in_part(parsed.formula.part, parsed.order)
        mine = [
            d
            for s, d in found.items()
            if (is_query(s) if kind not in ("tokens", "bases") else s.base in ("M", "V", "K", "Q"))
        ]
        if kind == "tokens":
            return any(d.order >= parsed.order for d in mine if d.part == parsed.formula.part)
        return bool(mine) and all(d.order >= parsed.order for d in mine)

    def _choice(self, parsed: Parsed, clause: T.Clause, around: Circumstances) -> Finding | None:
        """The finding for a clause that defines or chooses, or None if it asserts."""
        head = clause.sides[0]
        kind = self._kind(parsed.formula.part)
        if clause.signs[0] == "=" and isinstance(head, T.Symbol):
            if is_query(head) and kind not in ("tokens", "bases") and self._is_query_value(clause):
                return Finding(OPEN, "", "chooses a query")
            if all(isinstance(s, T.Symbol) and is_query(s) for s in clause.sides):
                return Finding(OPEN, "", "supposes that queries are alike")
            if head.base == "M" and not head.index and kind == "bases" and len(clause.sides) == 2:
                return Finding(OPEN, "", "chooses a matrix")
            if head.base in ("V", "K", "Q") and not head.index and kind == "tokens" and len(clause.sides) == 2:
                return Finding(OPEN, "", "chooses a matrix")
            if (
                head.base == "x"
                and head.index
                and kind == "tokens"
                and len(clause.sides) == 2
                and self._is_other_input(parsed, clause)
            ):
                return Finding(OPEN, "", "another input, supposed")
            if head.base in ("A", "B") and not head.index and isinstance(clause.sides[1], T.Matrix):
                return Finding(OPEN, "", "names a matrix")
        if kind == "tokens" and clause.signs[0] == "=" and T.bases(head) == {"K", "Q"}:
            return Finding(OPEN, "", "chooses a matrix")
        return None

    def _is_other_input(self, parsed: Parsed, clause: T.Clause) -> bool:
        """Whether a token gets another value than the given one."""
        world = worlds_of(self.problem, parsed.formula.part)[0]
        found = decide_link(
            clause.sides[0], "=", clause.sides[1], Reading(world, self.notation, {}), Setting(), self.budget
        )
        return found.kind not in (EXACT, LIMIT)

    def _is_query_value(self, clause: T.Clause) -> bool:
        last = clause.sides[-1]
        others = [s for s in clause.sides if not (isinstance(s, T.Symbol) and is_query(s))]
        if any(sign != "=" for sign in clause.signs):
            return False
        inside = [s for side in others for s in T.symbols(side)]
        return (
            bool(others)
            and any(is_key(s) or is_mean(s) for s in inside)
            and not any(is_query(s) for s in T.symbols(last))
        )

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
        conditions = self._conditions(clause, around)
        found = self._chain(parsed, clause, conditions, around, extra, "weight")
        exact = all(sign == "=" for sign in clause.signs)
        if (
            found.kind == WRONG
            and (exact or around.scores)
            and any(s.base == "alpha" and s.index for s in T.symbols(clause))
        ):
            for alpha in ("score", "exp"):
                other = self._chain(parsed, clause, conditions, around, extra, alpha)
                if other.kind in (EXACT, LIMIT):
                    return other
        if found.kind == WRONG and self._kind(parsed.formula.part) == "means":
            return self._in_sibling(parsed, clause, conditions, around, extra) or found
        return found

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
            found = self._link(parsed, left, sign, right, conditions, around, extra)
            if found.kind == UNREAD and number == 0 and self._names(parsed, left, sign, right):
                continue
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

    def _conditions(self, clause: T.Clause, around: Circumstances) -> tuple[T.Condition, ...]:
        found = clause.conditions
        if not any(c.kind in ("index", "all") for c in found):
            found = (*found, *around.conditions)
        else:
            found = (*found, *(c for c in around.conditions if c.kind == "relation"))
        if around.otherwise and self.last_condition:
            found = tuple(replace(c, inside=not c.inside) for c in self.last_condition)
        indexed = tuple(c for c in found if c.kind == "index")
        if indexed:
            self.last_condition = indexed
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
        refuted: list[Finding] = []
        best: Finding | None = None
        for reading, setting in itertools.islice(
            self._readings(parsed, left, right, conditions, around, extra), MAX_READINGS
        ):
            found = decide_link(left, sign, right, reading, setting, self.budget)
            if found.kind in (EXACT, LIMIT):
                return found
            if found.kind == WRONG:
                refuted.append(found)
            elif found.kind == OPEN or best is None:
                best = found if best is None or best.kind == UNREAD else best
        chosen = refuted[0] if refuted and (best is None or best.kind == UNREAD) else best
        if chosen is None:
            return Finding(UNREAD, "", "no reading of it")
        others = tuple(dict.fromkeys(f.claim for f in refuted if f.claim and f.claim != chosen.claim))
        return replace(chosen, readings=others[:3])

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
        definitions = dict(self.own.get(part.split(".")[0], {}))
        definitions |= self.notation.in_part(part, order)
        names = [n.name for n in T.nodes(both) if isinstance(n, T.Call) and n.name in ("Var", "Cov", "E", "N")]
        statistics = "N" if "N" in names else names[0] if names else ""
        if self.elsewhere:
            worlds = [w for w in self._siblings(part) if w.kind in ("means", "noise")]
            worlds = [w for w in worlds if (w.kind == "noise") == bool(statistics)]
        else:
            spoken = self._speaks_of_length(parsed, inside, (*conditions, *extra))
            worlds = self._worlds(part, inside, statistics, spoken)
        scales = self.notation.scales.get(part.split(".")[0], [])
        doubtful = any((s in scales or s == self.notation.length) and s.base in ("c", "C") for s in inside)
        if worlds and worlds[0].kind == "tokens":
            worlds = [*self._other_inputs(worlds[0], definitions), *worlds]
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
                        for limits, when in self._moves(world, conditions, extra, around):
                            yield reading, Setting(limits, stands_for, when)

    def _other_inputs(self, world: World, definitions: dict[T.Symbol, Definition]) -> list[World]:
        """The world with a token that the author supposed to be another one."""
        for s, d in definitions.items():
            if s.base == "x" and len(s.index) == 1:
                try:
                    value = Reading(world, self.notation, {}).writer().write(d.value).text
                except Unwritable:
                    continue
                name = f"x_{s.index[0]}"
                lets = tuple(f"{name} = {value}" if one.split("=")[0].strip() == name else one for one in world.let)
                return [replace(world, let=lets)] if lets != world.let else []
        return []

    def _siblings(self, part: str) -> list[World]:
        """The worlds of the other parts under the same letter."""
        family = [p.id for p in self.problem.parts if p.id.split(".")[0] == part.split(".")[0] and p.id != part]
        return [w for id in family for w in worlds_of(self.problem, id)]

    def _speaks_of_length(self, parsed: Parsed, inside: list[T.Symbol], conditions: tuple[T.Condition, ...]) -> bool:
        """Whether the random length of a key matters: it is named in the formula, beside it, or earlier in its part."""
        length = self.notation.length
        if length is None:
            return False
        if length in inside or any(c.clause is not None and length in T.symbols(c.clause) for c in conditions):
            return True
        order, part = self.notation.length_at
        return part == parsed.formula.part and order < parsed.order

    def _worlds(self, part: str, inside: list[T.Symbol], statistics: str, spoken: bool) -> list[World]:
        found = list(worlds_of(self.problem, part))
        if spoken and not any("gamma" in w.text for w in found):
            found = [*(w for w in self._siblings(part) if "gamma" in w.text or "mu_a'" in w.text), *found]
        noisy = any(s.base == self.notation.noise_vector and s.index for s in inside) or any(
            s.base == "Sigma" for s in inside
        )
        noisy = noisy or any(s.base == "alpha" and not s.index for s in inside)
        if statistics or noisy:
            mine = [w for w in found if w.kind == "noise"]
            if any(s.base == "Sigma" for s in inside) or statistics == "N":
                mine += [w for w in self._siblings(part) if w.kind == "noise" and w not in mine]
            return mine or found
        if any(w.kind == "means" for w in found):
            return [w for w in found if w.kind == "means"]
        return found

    def _moves(
        self, world: World, conditions: tuple[T.Condition, ...], extra: tuple[T.Condition, ...], around: Circumstances
    ) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Further limits and conditions on numbers: γ ≫ 1 is a limit, γ > 1 a condition."""
        limits: list[str] = []
        when: list[str] = []
        if "gamma" in world.text:
            for condition in (*conditions, *extra):
                clause = condition.clause
                if clause is None or not self._is_length(clause.sides[0]):
                    continue
                value = T.Number("1") if is_norm_of_key(clause.sides[1]) else clause.sides[1]
                if not isinstance(value, (T.Number, T.Binary, T.Minus)) and clause.sides[1] != T.Symbol("oo"):
                    continue
                sign = clause.signs[0]
                if sign == ">>":
                    limits.append("gamma -> oo")
                elif sign == "<<" and not self.notation.length_less_one:
                    limits.append("gamma -> 0")
                elif sign == "->" and value == T.Symbol("oo"):
                    limits.append("gamma -> oo")
                else:
                    try:
                        text = Reading(world, self.notation, {}).writer().write(value).text
                    except Unwritable:
                        continue
                    less_one = self.notation.length_less_one and clause.sides[0] == self.notation.length
                    text += " + 1" if less_one else ""
                    when.append(f"gamma {'=' if sign in ('->', '~') else sign} {text}")
            if not limits and not when:
                if any(re.search(r"k_\{?a|\\lVert|\\\|", name) for name in around.large):
                    when.append("gamma > 1")
                elif any(re.search(r"k_\{?a|\\lVert|\\\|", name) for name in around.small):
                    when.append("gamma < 1")
        yield tuple(limits), tuple(when)
        if limits and any("oo" in x for x in limits):
            yield (), ("gamma > 1",)
        elif limits:
            yield (), ("gamma < 1",)
