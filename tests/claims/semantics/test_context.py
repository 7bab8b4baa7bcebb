"""Context: what is declared, where limits go, which names a formula uses."""

from claim_builders import claim_of, context_of, expression

from qkv.claims.semantics.context import bases_indexed_by, names_used

NOISE = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n >= 3"


def test_items_are_all_named_with_tokens_or_a_finite_family_of_keys():
    assert context_of("u_a, u_b orthonormal", "x_1 = u_a, x_2 = u_b").all_items_named
    assert context_of("k_1..k_3 orthonormal", "q = k_1").all_items_named
    assert not context_of("k_1..k_n orthonormal", "q = k_a").all_items_named
    assert not context_of("mu_1..mu_n orthonormal", "k_i = 2*mu_i, q = mu_a").all_items_named


def test_heads_are_the_queries_that_are_defined():
    assert context_of("k_1..k_n orthonormal", "q = k_a").heads() == ("",)
    assert context_of("k_1..k_n orthonormal", "q_2 = k_a, q_1 = k_b").heads() == ("1", "2")
    assert context_of("k_1..k_n free, q free").heads() == ("",)
    assert context_of("u_a, u_b orthonormal", "x_1 = u_a, x_2 = u_b").heads() == ("1", "2")
    assert context_of("k_1..k_n orthonormal").heads() == ()


def test_a_template_defines_every_item_and_an_own_definition_goes_before_it():
    context = context_of("mu_1..mu_n orthonormal, t > 0", "k_i = 2*mu_i, k_a = t*mu_a, q = mu_a", "k_b'q = 0")
    name = lambda text: expression(text)  # noqa: E731
    assert str(context.definition(name("k_b"))).count("'b'") == 1
    assert "'t'" in str(context.definition(name("k_a")))
    assert context.definition(name("mu_a")) is None
    assert context.template_names == {"k"}


def test_limits_noise_sizes_and_logarithms_are_found():
    context = context_of(f"{NOISE}, eps -> 0", "q = log(t)*mu_a", "alpha_a -> 1 as t -> oo")
    assert context.limit_variables == {"eps", "t"}
    assert context.noise_sizes == {"eps"}
    assert context.inside_logarithms == {"t"}


def test_names_are_followed_through_definitions():
    context = context_of("k_1..k_n orthonormal, t > 0", "w = t*k_a, q = w + k_b", "k_a'q = t")
    used = {str(n) for n in names_used(context, claim_of(then="q = 0").statement.core)}
    assert used == {"q", "w", "t", "k_a", "k_b"}


def test_an_index_of_columns_belongs_to_its_basis():
    context = context_of("A, B orthonormal bases", "y = a_1", "a_1'b_1 = 0")
    assert bases_indexed_by(context, "i", expression("a_i'a_j")) == {"A"}
    assert bases_indexed_by(context, "j", expression("a_i'b_j")) == {"B"}
    assert bases_indexed_by(context, "i", expression("k_i")) == set()
    assert bases_indexed_by(context, "1", expression("y")) == {"A"}
