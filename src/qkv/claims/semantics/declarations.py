"""Build the context of a claim from its declarations, and refuse what is malformed."""

from __future__ import annotations

from fractions import Fraction

from qkv.claims.semantics.context import MAX_ITEMS, Context, VectorFamily
from qkv.claims.semantics.name_resolution import check_names
from qkv.claims.semantics.ranges import Range
from qkv.claims.semantics.scope_checks import check_scopes
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import MIRRORED_OP, Malformed, constant


def build_context(claim: L.Claim) -> Context:
    """Collect what a claim declares; unknown or clashing names raise Malformed."""
    context = Context(claim)
    for let in claim.lets:
        if let.name.base in ("oo", "I", "alpha"):
            raise Malformed(let.name.at, f"a definition of {let.name}", "another name: this one is built in")
        if str(let.name) in context.lets:
            raise Malformed(let.name.at, f"a second definition of {let.name}", "one definition for each name")
        context.lets[str(let.name)] = let
    for given in claim.given:
        _declare(context, given)
    for name in claim.moving:  # a limit declares its number
        taken = {*context.vectors, *context.bases, *context.lets, "oo", "I"}
        if name in taken:
            raise Malformed(claim.at, f"a limit of {name}, which is no number", "a number such as t")
        context.numbers.setdefault(name, Range())
    if isinstance(claim.statement.core, L.Never) and claim.statement.core.kind == "real":
        context.numbers.setdefault(str(claim.statement.core.name), Range())
    for let in claim.lets:
        if str(let.name) in {*context.numbers, *context.vectors, *context.bases}:
            raise Malformed(let.name.at, f"a definition of {let.name}, which is given", "one of the two")
        if _is_given_vector(context, let.name):
            raise Malformed(
                let.name.at, f"a definition of {let.name}, which is given", "another name, or no declaration"
            )
    _tokens(context)
    facts, relations = [f for f in claim.given if isinstance(f, L.Fact)], claim.statement.when
    for fact in [*facts, *(L.Fact(r, None, r.at) for r in relations)]:
        _fact(context, fact)
    for name, where in context.numbers.items():
        if where.empty:
            raise Malformed(claim.at, f"a range for {name} that holds no number", "conditions that can be met")
    if not context.all_items_named:
        context.numbers.setdefault("n", Range(Fraction(1), None, whole=True))
    check_scopes(context)
    context.items = _items(context)
    check_names(context)
    _check_masks(context)
    most = context.numbers["n"].hi if "n" in context.numbers and not context.all_items_named else None
    if most is not None and most < len(context.items):
        raise Malformed(claim.at, f"{len(context.items)} named items among n = {most}", "a larger n")
    if not context.all_items_named and (context.noise or "k" in context.template_names):
        means = [g.mean for g in context.noise.values()] + [x.value for x in claim.lets if x.name.base == "k"]
        for node in L.nodes(tuple(means)):
            family = context.families.get(node.base) if isinstance(node, L.Name) and node.subs else None
            if family is not None and family.items is not None:
                raise Malformed(claim.at, "n keys made of fewer vectors", "a family such as mu_1..mu_n")
    return context


def _check_masks(context: Context) -> None:
    """Refuse a causal mask without tokens, masks beside random keys, and masks that hide every item."""
    at = context.claim.at
    if context.causal and not context.tokens:
        raise Malformed(at, "a causal mask without tokens", "tokens: let x_1 = ..., x_2 = ...")
    if (context.causal or context.masked) and (context.noise or context.random):
        raise Malformed(at, "a mask beside random keys", "keys that are not random")
    if context.tokens and context.masked:
        raise Malformed(at, "masked items beside tokens", "a causal mask, or keys k_1..k_n")
    if context.masked and context.all_items_named and set(context.items) <= set(context.masked):
        raise Malformed(at, "a mask over every item", "an item that is seen")
    most = context.numbers["n"].lo if "n" in context.numbers else None
    if context.masked and not context.all_items_named and (most is None or most <= len(set(context.masked))):
        raise Malformed(at, f"{len(set(context.masked))} masked items among n", "a range such as n >= 3")


def _is_given_vector(context: Context, name: L.Name) -> bool:
    """Whether a vector with an index is declared: as a member of a family, a column of a basis, or a random key."""
    if len(name.subs) != 1:
        return False
    if name.base == "k" and context.noise:
        return "i" in context.noise or name.subs[0] == "i" or name.subs[0] in context.noise
    family = context.families.get(name.base)
    return family is not None and (family.items is None or name.subs[0] == "i" or name.subs[0] in family.items)


def _declare(context: Context, given: L.Given) -> None:
    """Add one declaration of vectors, noise or a limit; facts about numbers and scores are added later."""
    if isinstance(given, L.Approach):
        context.limits = (*context.limits, given)
        context.numbers.setdefault(given.name, Range())
    elif isinstance(given, L.Gaussian):
        _gaussian(context, given)
    elif isinstance(given, L.Mask):
        context.causal |= given.kind == "causal"
        context.masked = (*context.masked, *given.items)
    elif isinstance(given, L.Family):
        if given.norm is not None and given.kind != "orthogonal":
            raise Malformed(given.at, f"a norm for {given.kind} vectors", "orthogonal of norm beta")
        if given.kind == "orthogonal" and not (isinstance(given.norm, L.Name) or (constant(given.norm) or 0) > 0):
            raise Malformed(given.at, "orthogonal vectors without a norm", "orthogonal of norm beta, or of norm 2")
        if given.kind == "basis at right angles":
            if len(given.names) < 2:
                raise Malformed(given.at, f"{given.names[0]} at right angles to nothing", "A, B ... at right angles")
            context.right_angles = True
        for name, upto in zip(given.names, given.upto, strict=True):
            _member(context, given, name, upto)
        for node in L.nodes(given.norm) if given.norm is not None else ():
            if isinstance(node, L.Name):
                context.numbers[str(node)] = context.numbers.get(str(node), Range()).meet(">", Fraction(0))


def _member(context: Context, given: L.Family, name: L.Name, upto: L.Name | None) -> None:
    """Add one name of a family, a basis, a coordinate vector or a number."""
    taken = {*context.numbers, *context.vectors, *context.bases}
    if str(name) in taken:
        raise Malformed(name.at, f"a second declaration of {name}", "one declaration for each name")
    if given.kind.startswith("basis"):
        if str(name) not in ("A", "B"):
            raise Malformed(name.at, f"a basis called {name}", "A (d x m) or B (d x p)")
        if str(name).lower() in context.families:
            raise Malformed(
                name.at, f"a basis {name} beside vectors {str(name).lower()}", "another letter for the vectors"
            )
        context.bases[str(name)] = "m" if str(name) == "A" else "p"
        context.families[str(name).lower()] = VectorFamily("orthonormal", None, None)
    elif given.kind == "real":
        context.numbers[str(name)] = Range()
    elif given.kind.startswith("R^"):
        context.vectors[str(name)] = given.kind[-1]
    elif upto is not None:
        if upto.base != name.base or name.subs != ("1",) or len(upto.subs) != 1:
            raise Malformed(upto.at, f"a range up to {upto}", f"{name.base}_1..{name.base}_n")
        last = upto.subs[0]
        if last.isdigit():
            if not 1 <= int(last) <= MAX_ITEMS:
                raise Malformed(upto.at, f"{last} items", f"1 to {MAX_ITEMS}, or n")
            items = tuple(str(i) for i in range(1, int(last) + 1))
        elif last in ("n", "m", "p"):
            items = None
        else:
            raise Malformed(upto.at, f"a range up to {upto}", f"{name.base}_1..{name.base}_n")
        if name.base in context.families:
            raise Malformed(name.at, f"a second declaration of {name.base}", "one declaration for each family")
        context.families[name.base] = VectorFamily(given.kind, given.norm, items)
        if items is None:
            context.numbers.setdefault("n", Range(Fraction(1), None, whole=True))
    elif name.subs:
        old = context.families.get(name.base)
        if old is not None and (old.items is None or old.kind != given.kind or old.norm != given.norm):
            raise Malformed(name.at, f"a second declaration of {name.base}", "one declaration for each family")
        context.families[name.base] = VectorFamily(
            given.kind, given.norm, (*(old.items or () if old else ()), *name.subs)
        )
    elif given.kind == "free":
        context.vectors[str(name)] = "d"
    else:
        raise Malformed(name.at, f"a single {given.kind} vector", "a family such as k_1..k_n")


def _gaussian(context: Context, given: L.Gaussian) -> None:
    """Add the distribution of keys or of a number."""
    if given.name.base != "k" and (constant(given.mean) is None or (constant(given.spread) or 0) <= 0):
        raise Malformed(given.at, f"the distribution of {given.name}", "a mean and a positive variance, as numbers")
    if not given.name.subs and given.name.base != "k":
        context.random[str(given.name)] = given
        context.numbers[str(given.name)] = Range()
        return
    if given.name.base != "k" or len(given.name.subs) != 1:
        if len(given.name.subs) == 1 and given.name.base in ("gamma", "eps"):
            context.random[str(given.name)] = given
            context.numbers[str(given.name)] = Range()
            return
        raise Malformed(given.name.at, f"a distribution for {given.name}", "one for keys k_i or for a number")
    context.noise[given.name.subs[0]] = given
    for node in L.nodes(given.spread):
        if isinstance(node, L.Name) and not node.subs and node.base != "I":
            context.numbers[str(node)] = context.numbers.get(str(node), Range()).meet(">", Fraction(0))


def _tokens(context: Context) -> None:
    """Read which tokens x_1, x_2, ... are defined."""
    found = sorted(
        let.name.subs[0] for let in context.lets.values() if let.name.base == "x" and len(let.name.subs) == 1
    )
    if found and all(item.isdigit() for item in found):
        if found != [str(i) for i in range(1, len(found) + 1)] or len(found) > MAX_ITEMS:
            raise Malformed(context.claim.at, f"tokens x_{', x_'.join(found)}", f"x_1, x_2, ... up to {MAX_ITEMS}")
        context.tokens = tuple(found)


def _fact(context: Context, fact: L.Fact) -> None:
    """Add a condition: on scores, on one number (its range), or between numbers."""
    for left, op, right in fact.relation.pairs():
        names = [n for n in L.nodes((left, right)) if isinstance(n, L.Name)]
        weights = next((n for n in names if n.base in ("alpha", "c") and str(n) not in context.numbers), None)
        if weights is not None:
            raise Malformed(weights.at, f"a condition on {weights}", "a condition on numbers, or on scores k_i'q")
        if any(n.base == "k" or str(n) in context.vectors for n in names):
            for name in names:  # a bound such as m in k_j'q - k_i'q >= m
                known = (
                    name.subs
                    or str(name) in context.vectors
                    or str(name) in context.lets
                    or name.base in ("q", "k", "alpha", "c")
                )
                if not known:
                    context.numbers.setdefault(str(name), Range())
            context.score_conditions.append(L.Fact(L.Relation((left, right), (op,), fact.at), fact.quantifier, fact.at))
            continue
        if fact.quantifier is not None:
            raise Malformed(fact.at, "a condition on numbers for several items", "a condition on scores k_i'q")
        for name in names:
            if name.base == "oo":
                raise Malformed(name.at, "a comparison with infinity", "a number")
            whole = str(name) == "n"
            context.numbers.setdefault(str(name), Range(Fraction(1) if whole else None, None, whole=whole))
        if op == "!=":
            raise Malformed(fact.at, "a condition with !=", "one of = < <= > >=")
        bound, swapped = constant(right), constant(left)
        if isinstance(left, L.Name) and bound is not None:
            context.numbers[str(left)] = context.numbers[str(left)].meet(op, bound)
        elif isinstance(right, L.Name) and swapped is not None:
            context.numbers[str(right)] = context.numbers[str(right)].meet(MIRRORED_OP[op], swapped)
        else:
            context.number_conditions.append(L.Relation((left, right), (op,), fact.at))


def _items(context: Context) -> tuple[str, ...]:
    """The items that the claim names, in their order; those of closed families are all named."""
    if context.tokens:
        return context.tokens
    bound = {n.index for n in L.nodes(context.claim) if isinstance(n, L.Sum | L.Quantifier)} | {"i"}
    quantifier = context.claim.statement.quantifier
    many = {b for b in {"k", "v", "mu", "alpha", "c"} if b not in context.families or context.families[b].items is None}
    many |= {base for base, f in context.families.items() if f.items is None}
    many -= {base.lower() for base in context.bases}  # columns of A and B are counted apart
    found: list[str] = []
    for node in L.nodes(
        (context.claim.lets, context.claim.statement, tuple(context.score_conditions), tuple(context.noise.values()))
    ):
        item: tuple[str, ...] = ()
        if isinstance(node, L.Name) and node.subs and node.base in many:
            if node.base == "alpha":
                item = node.subs[-1:] if (len(node.subs) == 2 or context.heads() == ("",)) else ()
            elif node.base != "c":
                item = node.subs[-1:]
        elif isinstance(node, L.Sum | L.Quantifier):
            item = node.but
        found += [s for s in dict.fromkeys(item) if s not in bound and s not in found]
    found += [item for item in dict.fromkeys(context.masked) if item not in found]
    family = context.families.get("k")
    if family is not None and family.items is not None:
        if any(item not in family.items for item in context.masked):
            raise Malformed(context.claim.at, "a masked item that is not there", ", ".join(family.items))
        found = list(family.items)
    elif any(s.isdigit() for s in found) and any(s.isalpha() for s in found):
        raise Malformed(context.claim.at, f"items {', '.join(found)}", "letters or numbers as items, not both")
    if len(found) > MAX_ITEMS:
        raise Malformed(context.claim.at, f"{len(found)} named items", f"at most {MAX_ITEMS}")
    if quantifier is not None and quantifier.index in found:
        raise Malformed(quantifier.at, f"'{quantifier.index}'", "an index that is not an item's name")
    return tuple(found)
