"""Proof scripts of comparisons, distributions and statistics of scores."""

from __future__ import annotations

from qkv.claims.kernel import exponentials
from qkv.claims.kernel.limit_proofs import heads_used
from qkv.claims.kernel.score_hints import Hints, NoHint, Scalar
from qkv.claims.kernel.statement import Statement
from qkv.claims.kernel.terms import NotExported, rational
from qkv.claims.kernel.translation import LimitTerms, Translator
from qkv.claims.semantics.context import REST, Context
from qkv.claims.syntax import nodes as L


class RelationProof:
    """The script of a comparison without limits."""

    def __init__(self, context: Context, statement: Statement, core: L.Node) -> None:
        self.context = context
        self.statement = statement
        self.core = core
        self.moving = tuple(name for name, _ in statement.approaches)
        self.writer = Translator(context, self.moving, LimitTerms())
        self.heads, self.outputs = heads_used(context, core)
        self.lines: list[str] = []
        self.rewrites: list[str] = []

    def script(self) -> str:
        """The whole proof."""
        self.lines = ["cbv zeta beta; intros; cbv beta.", *self.counts(), *self._logarithms()]
        cases = self._cases()
        if self.writer.statistics:
            self.moments()
        scores = self._scores()
        alternatives = [
            *self._all_named(),
            "reflexivity",
            "(weights_fact; first [assumption | order | (given_order; order)])",
            "gap_fact",
            "coordinate_equation",
            "basis_equation",
            "vector_equation",
            "norm_fact",
            "(expand; number)",
            "order",
        ]
        self.lines.append("repeat match goal with |- _ /\\ _ => split end; intros; cbv beta.")
        script = f"all: try solve [{' | '.join(f'solve [{one}]' for one in alternatives)}]."
        self.lines.append(script.replace("solve [solve", "first [solve", 1))
        self.lines += [f"all: {line}" for line in self._by_formula(scores)]
        if cases:
            later = [line if line.startswith("all:") else f"all: {line}" for line in self.lines[1:]]
            self.lines = [self.lines[0], *cases, *later]
        return "\n".join("  " + line for line in self.lines)

    def counts(self) -> list[str]:
        """The number of items as a real number."""
        if self.context.all_items_named or not any("(n : nat)" in b for b in self.statement.binders):
            return []
        where = self.context.numbers["n"]
        if where.point is not None:
            at = rational(where.point)
            return [
                f"assert (Count : INR n = {at}) by (match goal with H : n = _ |- _ => rewrite H end; simpl INR; ring)."
            ]
        low = int(where.lo or 1)
        return [
            f"assert (Count : {low} <= INR n) by"
            f" (replace {low} with (INR {low}) by (simpl INR; ring); apply le_INR; lia)."
        ]

    def _logarithms(self) -> list[str]:
        """Logarithms of numbers above 1 are positive."""
        out = []
        for name in sorted(self.context.inside_logarithms):
            where = self.context.numbers.get(name)
            if where is not None and where.lo is not None and where.lo >= 1 and where.lo_open:
                word = self.writer.names.of("num", name)
                out.append(f"try assert (Log_{word} : 0 < ln {word}) by (rewrite <- ln_1; apply ln_increasing; lra).")
        return out

    def _cases(self) -> list[str]:
        """An index over tokens is one of them."""
        quantifier = self.context.claim.statement.quantifier
        word = self.writer.names.of("item", quantifier.index if quantifier is not None else "i")
        if not (self.context.all_items_named and f"forall {word} : nat" in self.statement.conclusion):
            return []
        return [f"do 7 (try (destruct {word} as [|{word}]; [try (exfalso; lia)|])); try (exfalso; lia)."]

    def moments(self) -> None:
        """The first two moments of each key that the statement speaks of."""
        for mark, item in enumerate(self._key_items()):
            word = self.writer.item(item)
            key = " ".join(["keys", *(self.writer.names.of("num", one) for one in self.moving), "outcome", word])
            pose = f"pose proof (moments_rules _ _ _ _ %s) as Rules_{mark}"
            given = "M : forall x : nat, _ |- _"
            self.lines.append(
                f"first [match goal with M : moments law (fun outcome => {key}) _ _ |- _ => {pose % 'M'} end"
                f" | match goal with {given} => {pose % f'(M {word} ltac:(lia) ltac:(lia))'} end"
                f" | match goal with {given} => {pose % f'(M {word} ltac:(lia))'} end]."
            )
            self.lines.append(f"cbv beta in Rules_{mark}; destruct Rules_{mark} as (R1 & R2 & R3 & R4 & R5 & R6).")
            self.lines.append("rewrite ?R1, ?R2, ?R3, ?R4, ?R5, ?R6; clear R1 R2 R3 R4 R5 R6.")

    def _key_items(self) -> list[str]:
        found: dict[str, None] = {}
        for node in L.nodes(self.core):
            if isinstance(node, L.Name) and node.base == "k" and len(node.subs) == 1:
                found[node.subs[0]] = None
        return list(found)

    def _all_named(self) -> list[str]:
        """With as many items as names, an output is the sum over the named ones."""
        where = self.context.numbers.get("n")
        named = self._named()
        if self.context.all_items_named or where is None or where.point != len(named) or not self.outputs:
            return []
        items = "[" + "; ".join(self.writer.item(one) for one in named) + "]"
        return [
            f"(unfold attend; apply vector_ext; intro; rewrite inner_total_l, (total_named n {items} _ 0);"
            f" [cbn [over fold_right length]; autorewrite with inner; rewrite Count; simpl INR; ring|distinct|in_range"
            f"|intros i Hi N; exfalso; apply (all_named n {items} ltac:(distinct) ltac:(in_range) ltac:(simpl; lia)"
            " i Hi N)])"
        ]

    # Weights by their scores.
    def _named(self) -> list[str]:
        """The named items that the theorem quantifies over."""
        words = " ".join(self.statement.binders)
        if self.context.all_items_named:
            return list(self.context.items)
        return [
            one
            for one in self.context.items
            if f"{self.writer.names.of('item', one)}" in words.split()
            or f"({self.writer.names.of('item', one)}" in words.split()
        ]

    def _scores(self) -> list[Scalar]:
        """Assert the score of each item of each head, and the sum of exponentials."""
        hints = self.hints = Hints(self.context, self.writer)
        found: list[Scalar] = []
        for head in self.heads:
            try:
                if self.context.noise:
                    raise NoHint
                items = [*self._named(), *([] if self.context.all_items_named else [REST])]
                scores = {item: hints.score(head, item) for item in items}
            except NoHint:
                continue
            found += scores.values()
            self._head(head, scores)
        return found

    def _head(self, head: str, scores: dict[str, Scalar]) -> None:
        writer, hints = self.writer, self.hints
        keys, query = writer.family_text("k"), writer.query(head)
        named = [item for item in scores if item != REST]
        mine = []
        for item in named:
            word = f"Score_{head}_{item}"
            text = f"({keys} {writer.item(item)}) dot {query}"
            self.lines.append(f"assert ({word} : {text} = {hints.text(scores[item])}) by score.")
            mine.append(f"?{word}")
        if REST in scores:
            others = "".join(f"i <> {writer.item(item)} -> " for item in named)
            rest = hints.text(scores[REST])
            self.lines.append(
                f"assert (Rest_{head} : forall i : nat, (i < n)%nat -> {others}{keys} i dot {query} = {rest})"
                " by (intros; score)."
            )
            items = "[" + "; ".join(writer.item(item) for item in named) + "]"
            total = " + ".join(f"exp {hints.text(scores[item])}" for item in named) or "0"
            self.lines.append(
                f"assert (Sum_{head} : total n (fun j => exp ({keys} j dot {query}))"
                f" = {total} + (INR n - {len(named)}) * exp {rest})."
            )
            self.lines.append(
                f"{{ rewrite (total_named n {items} _ (exp {rest})); [|distinct|in_range|intros i Hi N; outside N;"
                f" rewrite Rest_{head} by lia; reflexivity]."
            )
            rewriting = f"rewrite {', '.join(mine)}; " if mine else ""
            self.lines.append(f"  cbn [over fold_right length]; cbv beta; {rewriting}simpl INR; ring. }}")
            self.rewrites.append(f"?Sum_{head}")
        self.rewrites += mine

    def _by_formula(self, scores: list[Scalar]) -> list[str]:
        """Write the weights out, name the exponentials, and let `field` or the order tactics finish."""
        hints = self.hints
        out = ["unfold attend."] if self.outputs else []
        out += ["cbn [vtotal]; autorewrite with inner."] if self.outputs and self.context.all_items_named else []
        out.append("unfold alpha, softmax.")
        if self.context.all_items_named:
            out.append("cbn [total].")
        out.append("cbv beta.")
        if self.rewrites:
            out.append(f"rewrite {', '.join(self.rewrites)}.")
        if self.context.numbers.get("n") is not None and self.context.numbers["n"].point is not None:
            out.append("try rewrite Count in *.")
        for head in self.heads:
            if f"?Sum_{head}" in self.rewrites:
                out.append(f"try rewrite Rest_{head} by lia.")
        try:
            found = exponentials.arguments(hints, scores, self.core)
            out += exponentials.lines(hints, found)
        except NotExported:
            pass
        out.append("autorewrite with inner; gram; decide_items.")
        out.append("first [close_formula | (exponentials; close_formula)].")
        return out
