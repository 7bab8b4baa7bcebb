"""Proof scripts of limit statements: the items on top of each head share the weight, by the gap below them."""

from __future__ import annotations

from qkv.claims.kernel.score_hints import Hints, NoHint
from qkv.claims.kernel.statement import Statement, side_texts
from qkv.claims.kernel.terms import NotExported, rational
from qkv.claims.kernel.tops import Top, top_of
from qkv.claims.kernel.translation import LimitTerms, Translator
from qkv.claims.semantics.context import Context, names_used
from qkv.claims.syntax import nodes as L


class LimitProof:
    """The script of one limit statement, limit by limit."""

    def __init__(self, context: Context, statement: Statement, core: L.Limit, tends: bool) -> None:
        self.context = context
        self.core = core
        self.tends = tends
        self.approaches = statement.approaches
        self.moving = tuple(name for name, _ in self.approaches)
        self.heads, self.outputs = heads_used(context, core)

    def writer(self, limits: LimitTerms) -> Translator:
        """A translator that writes what is left after some limits."""
        return Translator(self.context, self.moving, limits)

    def script(self) -> str:
        """The whole proof."""
        lines = ["cbv zeta beta; intros; cbv beta."]
        limits = LimitTerms()
        count = len(self.approaches)
        for index in range(count):
            after = self._after(limits, index)
            if count == 1:
                lines += self._only(limits, after)
            elif index < count - 1:
                lines += self._first(limits, after, index)
            else:
                lines += self._last(limits, after, index)
            limits = after[0]
        return "\n".join("  " + line for line in lines)

    # One limit.
    def _only(self, before: LimitTerms, after: tuple[LimitTerms, list[str]]) -> list[str]:
        """The only limit: both sides tend to their limits, which are equal."""
        _, where = self.approaches[0]
        fun = self._fun(0)
        left, right, v = self._sides(after[0])
        lines = list(after[1])
        if not self.tends:
            return lines + self._apart(fun, where, left, v)
        lines.append(f"apply ({v}tends_trans {where} _ ({fun} {left}) _); [mirror|].")
        lines.append(f"apply ({v}tends_trans {where} _ ({fun} {right}) _); [|apply {v}tends_sym; [exact _|]; mirror].")
        lines.append(f"apply {v}tends_eq; [exact _|]. {self._eventually(0)} {self._equal(v)}")
        return lines

    def _apart(self, fun: str, where: str, left: str, v: str) -> list[str]:
        """The left side tends to vectors that stay away from the right side."""
        if not v:
            raise NotExported("a number that does not tend to another")
        number = self._number(0)
        return [
            "match goal with |- ~ vtends ?F ?f ?g =>",
            f"  assert (Limit : vtends F f ({fun} {left})) by mirror; intro Wrong;",
            "  pose proof (vtends_trans F _ f _ (vtends_sym F _ _ Limit) Wrong) as Near end.",
            f"assert (Far : {where} (fun {number} : R => 1 < {number})) by (exists 1; intros; assumption).",
            "destruct (filter_ex _ (filter_and _ _ (Near 1 Rlt_0_1) Far)) as [x [Close Large]].",
            "apply norm2_lt_1 in Close. revert Close. at_scale x. apply Rle_not_lt.",
            "do 3 (expand; cbn [length over fold_right]). expand. simpl INR. nra.",
        ]

    def _first(self, before: LimitTerms, after: tuple[LimitTerms, list[str]], index: int) -> list[str]:
        """A limit with others after it: name the value that is left, and show that it is reached."""
        left, right, v = self._sides(after[0])
        later = [self._number(i) for i in range(index + 1, len(self.approaches))]
        minus = f"{left} -{v} {right}"
        lines = [f"exists (fun {' '.join(f'({one} : R)' for one in later)} => {minus}). split."]
        inner = " ".join(self._eventually(i) for i in reversed(range(index + 1, len(self.approaches))))
        lines.append("{ " + inner)
        lines += ["  " + one for one in after[1]]
        if index:
            old = self._sides(before)
            fun = self._fun(index)
            where = self.approaches[index][1]
            lines.append(f"  apply ({v}tends_trans {where} _ ({fun} {old[0]} -{v} {old[1]}) _); [|mirror].")
            lines.append(f"  apply {v}tends_eq; [exact _|]. {self._eventually(index)} {self._equal(v)} }}")
        else:
            lines.append("  mirror. }")
        return lines

    def _last(self, before: LimitTerms, after: tuple[LimitTerms, list[str]], index: int) -> list[str]:
        """The last of several limits: what is left tends to 0."""
        left, right, v = self._sides(after[0])
        where, fun = self.approaches[index][1], self._fun(index)
        lines = list(after[1])
        lines.append(f"apply ({v}tends_trans {where} _ ({fun} {left} -{v} {right}) _); [mirror|].")
        lines.append(f"apply {v}tends_eq; [exact _|]. {self._eventually(index)} {self._equal(v)}")
        return lines

    # Pieces.
    def _number(self, index: int) -> str:
        return self.writer(LimitTerms()).names.of("num", self.approaches[index][0])

    def _fun(self, index: int) -> str:
        return f"fun {self._number(index)} : R =>"

    def _sides(self, limits: LimitTerms) -> tuple[str, str, str]:
        writer = self.writer(limits)
        left, right, vectors = side_texts(writer.term(self.core.left), writer.term(self.core.right))
        return left, right, "v" if vectors else ""

    def _equal(self, v: str) -> str:
        return (
            "vector_equation."
            if v
            else "cbv beta; expand; cbn [length]; simpl INR; first [number | (exponentials; number)]."
        )

    def _eventually(self, index: int) -> str:
        """Introduce a number that is close to its limit."""
        name, where = self.approaches[index]
        word = self._number(index)
        if where == "above_zero":
            return f"exists (mkposreal 1 Rlt_0_1); intros {word} _ Near_{word}."
        low = self.context.numbers[name].lo
        at = "1" if low is None or low < 1 else rational(low)
        at = at if where == "at_infinity" else "(-1)"
        facts = ""
        if where == "at_infinity":
            log = f"assert (Log_{word} : 0 < ln {word}) by (rewrite <- ln_1; apply ln_increasing; lra)."
            facts = f" {log} at_scale {word}."
        return f"exists {at}; intros {word} Near_{word}.{facts}"

    # What the weights and outputs tend to.
    def _after(self, before: LimitTerms, index: int) -> tuple[LimitTerms, list[str]]:
        name, where = self.approaches[index]
        if name in self.context.noise_sizes and where == "above_zero":
            after = LimitTerms(before.tops, True)
            return after, self._noise_lines(before, after, index)
        if where != "at_infinity":
            raise NotExported("a limit at this place")
        lines: list[str] = []
        tops = dict(before.tops)
        for head in self.heads:
            writer = self.writer(before)
            top = None if head in tops else top_of(self.context, writer, head, name)
            if top is not None:
                lines += self._head_lines(before, index, head, top)
                tops[head] = top.items
        return LimitTerms(tops, before.noise_gone), lines

    def _noise_lines(self, before: LimitTerms, after: LimitTerms, index: int) -> list[str]:
        """The keys tend to their means, so weights and outputs tend to those of the means."""
        fun = self._fun(index)
        old, new = self.writer(before), self.writer(after)
        keys, gone, n = old.family_text("k"), new.family_text("k"), old.items_text()
        lines = [
            f"assert (Keys : forall i : nat, (i < {n})%nat -> vtends above_zero ({fun} {keys} i) (fun _ => {gone} i)).",
            "{ intros; cbv beta; noise_gone. }",
        ]
        for head in self.heads:
            query = old.query(head)
            lines.append(
                f"assert (Weight_{head} : forall i : nat, (i < {n})%nat -> tends above_zero"
                f" ({fun} alpha {n} {keys} {query} i) (fun _ => alpha {n} {gone} {query} i))"
                f" by (intros; apply (alpha_continuous above_zero {n} ({fun} {keys}) {gone}); assumption)."
            )
            if head in self.outputs:
                values = old.family_text("v")
                lines.append(
                    f"assert (Output_{head} : vtends above_zero ({fun} attend {n} {keys} {values} {query})"
                    f" (fun _ => attend {n} {gone} {values} {query}))"
                    f" by (apply (attend_continuous above_zero {n} ({fun} {keys}) {gone}); assumption)."
                )
        return lines

    def _head_lines(self, limits: LimitTerms, index: int, head: str, top: Top) -> list[str]:
        """The limits of the weights and of the output of one head."""
        writer, fun, where = self.writer(limits), self._fun(index), self.approaches[index][1]
        n, keys, query = writer.items_text(), writer.family_text("k"), writer.query(head)
        items = "[" + "; ".join(writer.item(one) for one in top.items) + "]"
        lines = self._smallest(writer, top) if top.smallest else []
        lines += self._common_factor(top) if top.factors else []
        scores = "token_top_scores" if self.context.all_items_named else "top_scores"
        score, gap = f"({fun} {top.score})", f"({fun} {top.gap})"
        lines += [
            f"assert (Top_{head} : {where} ({fun} on_top {n} {items} (fun i => {keys} i dot {query})"
            f" {top.score} {top.gap})).",
            f"{{ {self._eventually(index)} {scores}. }}",
            f"assert (Gap_{head} : to_infinity {where} {gap}) by (apply inf_scal; [exact _|order|apply {top.grows}]).",
            f"assert (Weight_{head} : forall i : nat, (i < {n})%nat -> tends {where} ({fun} alpha {n} {keys} {query} i)"
            f" (fun _ => if existsb (Nat.eqb i) {items} then / INR (length {items}) else 0))",
            f"  by (intros; apply (softmax_tends {where} {n} {items} ({fun} fun i => {keys} i dot {query})"
            f" {score} {gap}); [distinct|in_range|discriminate|exact Top_{head}|exact Gap_{head}|assumption]).",
        ]
        if head in self.outputs:
            lines += self._output_lines(writer, index, head, top, items)
        return lines

    def _output_lines(self, writer: Translator, index: int, head: str, top: Top, items: str) -> list[str]:
        fun, where = self._fun(index), self.approaches[index][1]
        n, keys, query = writer.items_text(), writer.family_text("k"), writer.query(head)
        values = writer.family_text("v")
        score, gap = f"({fun} {top.score})", f"({fun} {top.gap})"
        goal = f"vtends {where} ({fun} attend {n} {keys} {values} {query}) ({fun} average {items} {values})"
        if self._number(index) not in values:
            return [
                f"assert (Output_{head} : {goal})",
                f"  by (apply (attend_tends {where} {n} {items} ({fun} {keys}) ({fun} {query}) {values} {score} {gap});"
                f" [distinct|in_range|discriminate|exact Top_{head}|exact Gap_{head}]).",
            ]
        size, sizes = self._size_of_values(writer)
        number = self._number(index)
        checks = " | ".join(f"sized ({one} * {number} ^ 2)" for one in sizes)
        bound = f"({fun} {size} * {self._number(index)})"
        return [
            f"assert (Output_{head} : {goal}).",
            f"{{ apply (attend_tends_moving {where} {n} {items} ({fun} {keys}) ({fun} {query}) ({fun} {values})"
            f" {score} {gap} {bound}); [distinct|in_range|discriminate|exact Top_{head}| |].",
            f"  {{ {self._eventually(index)} intros i Hi; do 7 (try (destruct i as [|i]; [try (exfalso; lia)|]));"
            f" try (exfalso; lia); (apply norm2_le; [order|expand; first [{checks}]]). }}",
            "  { apply outgrows; order. } }",
        ]

    def _size_of_values(self, writer: Translator) -> tuple[str, list[str]]:
        """A number C such that every value is at most C times the scale, and the squared norm of each at scale 1."""
        hints = Hints(self.context, writer)
        try:
            sizes = [sum(f**2 for f in hints.value_of_item(t).values()) for t in self.context.items]
        except NoHint:
            raise NotExported("values that have no formula") from None
        largest = sizes[0] if all(s == sizes[0] for s in sizes) else sum(sizes)
        return f"(1 + {hints.text(largest)})", list(dict.fromkeys(hints.text(one) for one in sizes))

    def _common_factor(self, top: Top) -> list[str]:
        """Two factors have a positive lower bound."""
        one, two = top.factors
        return [
            f"assert (Least : exists smallest, 0 < smallest /\\ smallest <= {one} /\\ smallest <= {two})"
            f" by (exists (Rmin {one} {two}); split; [apply Rmin_glb_lt; order|split; [apply Rmin_l|apply Rmin_r]]).",
            "destruct Least as (smallest & Smallest & Least_one & Least_two).",
        ]

    def _smallest(self, writer: Translator, top: Top) -> list[str]:
        """Finitely many fixed scores lie lower by some positive number."""
        assert top.smallest is not None
        item, vector = writer.item(top.smallest[0]), top.smallest[1]
        keys, n = writer.family_text("k"), writer.items_text()
        return [
            f"destruct (lower_bound {n} (fun i => i <> {item})"
            f" (fun i => {keys} {item} dot {vector} - {keys} i dot {vector})) as (smallest & Smallest & Least).",
            "{ intros i Hi N. given_scores i. lra. }",
            "cbv beta in Least.",
        ]


def heads_used(context: Context, core: L.Node) -> tuple[list[str], set[str]]:
    """The heads whose weights or outputs a statement speaks of, and those whose outputs it does."""
    heads: dict[str, None] = {}
    outputs: set[str] = set()
    for name in names_used(context, core):
        if str(name) in context.lets:
            continue
        if name.base == "alpha" and name.subs:
            single = len(name.subs) == 1 and not (context.tokens and len(name.subs[0]) == 2)
            heads["" if single else name.subs[0] if len(name.subs) == 2 else name.subs[0][0]] = None
        elif name.base == "c":
            found = [name.subs[0]] if name.subs else list(context.heads())
            heads.update(dict.fromkeys(found))
            outputs |= set(found)
    return list(heads), outputs
