"""Chapters of the tour on design: copy, blend, limits, subspaces, wiring, texts, reachability."""

from __future__ import annotations

import math

import numpy as np

from qkv.core.attention import self_attention
from qkv.core.display import number
from qkv.core.memory import Memory
from qkv.design.hull.selectable import copyable
from qkv.design.projection import project
from qkv.design.query import blend, copy
from qkv.design.reachability import reach
from qkv.design.sequences.rules import induction
from qkv.design.sequences.text_wiring import wire_texts
from qkv.design.sequences.texts import Vocabulary
from qkv.design.wiring import check_wiring, wire
from qkv.viz.html_report import Chapter, Picture
from qkv.viz.plots import design as plots
from qkv.viz.theme import figure_svg

SEED = 0


def lookup() -> Chapter:
    """Copy one value, blend two, and the smallest scale for it."""
    memory = Memory.orthonormal(10, 16, SEED)
    one = copy(memory, 3)
    two = blend(memory, {0: 0.5, 1: 0.5})
    book = blend(memory, {0: 0.5, 1: 0.5}, form="textbook")
    formula = np.log(8 * (1 - two.tol) / (2 * two.tol))
    checked = two.certificate.verify()
    return Chapter(
        "Copy a value, blend two",
        (
            f"Ten items, orthonormal keys in 16 dimensions. To read item 3 alone with at most {number(one.tol)} of the "
            f"weight elsewhere, a scale of {math.ceil(1e4 * one.scale) / 1e4:.4f} is enough.",
            "To read the average of items 0 and 1, the textbook takes `q = t(k_a + k_b)`. The smallest t for n items "
            f"and a leak of ε is log((n−2)(1−ε)/(2ε)), here {formula:.6f}; the query has norm "
            f"{float(book.query.norm()):.4f}. The designed query scores "
            f"{float((memory.keys[2:] @ two.query).mean()):.3f} on average on the other keys, and has norm {float(two.query.norm()):.4f}. "
            f"Its certificate says: {two.certificate.statement}.",
            Picture(
                figure_svg(plots.reading(memory, two)),
                "Left: the weights of the designed query. Right: how their distance from ½, ½ falls as the same "
                "direction is scaled up, with the certified point.",
                "qkv design blend --orthonormal 10x16 --weights 0=1/2,1=1/2 --plot blend.svg",
            ),
            two,
            "The certificate holds the raw inputs and the bounds, and `verify()` recomputes every bound in ball "
            "arithmetic, with no solver involved:",
            checked,
        ),
    )


def limits() -> Chapter:
    """Which keys can be copied at all."""
    random = np.random.default_rng(SEED)
    plane = Memory(random.standard_normal((26, 2)))
    flat = copyable(plane)
    inside = int(flat.interior[0])
    refused = copy(plane, inside)
    assert refused.obstacle is not None
    dimensions, n = [2, 4, 8, 16, 32], 400
    counts = [len(copyable(random.standard_normal((n, d)), processes=1).vertices) for d in dimensions]
    return Chapter(
        "What cannot be copied",
        (
            "Scores are linear in the query. A key that is an average of other keys gets the average of their scores, so some "
            "other key always scores at least as high: no query selects it, at any scale. The other keys are the vertices "
            "of the hull, and each comes with a query that selects it and the margin by which it does.",
            Picture(
                figure_svg(plots.hull(plane, flat)),
                f"{plane.n} keys in the plane; {len(flat.vertices)} can be selected, along the arrows.",
                "qkv tour",
            ),
            f"A request to copy key {inside} is answered with a proof of what is impossible, and with the best blend "
            "that was found.",
            refused,
            refused.obstacle.verify(),
            f"Of {n} random keys, {100 * counts[0] / n:.0f} % can be copied in the plane, and {100 * counts[-1] / n:.0f} % in "
            f"{dimensions[-1]} dimensions.",
            Picture(
                figure_svg(plots.shares(dimensions, [c / n for c in counts], n)),
                "Each key was decided with a certificate: a selecting query or a convex combination of other keys.",
                "qkv tour",
            ),
        ),
    )


def subspaces() -> Chapter:
    """Project: keep one subspace, remove another."""
    random = np.random.default_rng(SEED)
    frame = np.linalg.qr(random.standard_normal((8, 5)))[0]
    right = project(frame[:, :2], frame[:, 2:])
    tilted = project(random.standard_normal((8, 2)), random.standard_normal((8, 3)))
    a = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    b = np.array([[1.0], [2.0], [1.0], [0.0]])
    none = project(a, b)
    return Chapter(
        "Read one subspace out of a sum",
        (
            "A head that has read v_a + v_b can still give v_a, if the two come from spans that do not meet. With "
            "orthonormal bases at right angles the matrix is A Aᵀ.",
            right,
            "Where the spans are not at right angles, projecting at right angles mixes in a part of v_b. The matrix that "
            "reads v_a projects along B instead; it exists as long as the spans share no vector.",
            Picture(
                figure_svg(plots.subspaces()),
                "One-dimensional spans in the plane: M s is v_a exactly, the orthogonal projection is not.",
                "qkv tour",
            ),
            tilted,
            "Where they do share one, that vector is the proof: M would have to keep it and remove it.",
            none,
        ),
    )


def wiring() -> Chapter:
    """Three tokens, two rules, Q, K and V."""
    x, u = tokens()
    rules = {0: 2, 1: 0}
    writes = {0: u["b"] - u["c"], 1: u["b"]}
    found = wire(x, rules, writes)
    assert found.Q is not None and found.K is not None and found.V is not None and found.W is not None
    square = BETA**2
    textbook = {
        "Q": (np.outer(u["d"], u["a"]) + np.outer(u["c"], u["d"])) / square,
        "K": np.eye(4),
        "V": (np.outer(u["b"], u["b"]) - np.outer(u["c"], u["c"])) / square,
    }
    by_hand = check_wiring(x, textbook["Q"], textbook["K"], textbook["V"], rules, writes, tol=1e-3)
    output = self_attention(x, found.Q, found.K, found.V).output.numpy()
    error = max(float(np.linalg.norm(output[i] - writes[i])) for i in rules)
    hand_norm = float(np.linalg.norm(textbook["Q"].T @ textbook["K"]))
    return Chapter(
        "Wire token to token",
        (
            f"Four orthogonal vectors of norm β = {BETA:g} make three tokens: x_0 = u_d + u_b, x_1 = u_a, x_2 = u_c + u_b. "
            "Token 0 should read token 2 and write u_b − u_c; token 1 should read token 0 and write u_b. Scores are "
            "linear in W = QᵀK, so the smallest W is a convex program; V follows by least squares.",
            Picture(
                figure_svg(plots.wiring(x, found.Q, found.K, found.V)),
                f"The weights, and the matrices found: outputs are within {error:.2g} of what was to be written.",
                "qkv design wire examples/tokens.json --reads 0:2,1:0 --writes writes --plot wiring.svg",
            ),
            found,
            "The textbook answer, V = (u_b u_bᵀ − u_c u_cᵀ)/β², K = I, Q = (u_d u_aᵀ + u_c u_dᵀ)/β², is checked the same "
            f"way. Its W has norm {hand_norm:.3g}; the designed one gets to the same tolerance with {float(found.W.norm()):.3g}.",
            by_hand.verify(),
        ),
    )


WORDS = ("the", "cat", "saw", "a", "dog", "and", "then", "it", "ran", "to", "her", "house")
TEXT = ("then", "the", "cat", "saw", "the", "dog", "and", "then")


def texts() -> Chapter:
    """An induction circuit of two layers, for every text over a vocabulary."""
    vectors = np.random.default_rng(SEED).standard_normal((len(WORDS), 8))
    words = Vocabulary.side_by_side(vectors, length=16, labels=WORDS)
    circuit = wire_texts(words, induction(), tol=1e-3)
    assert circuit.certificate is not None
    ids = [WORDS.index(word) for word in TEXT]
    last = len(TEXT) - 1
    weights = circuit.weights(ids)[-1]
    best = int(np.asarray(weights)[last].argmax())
    return Chapter(
        "One head for every text",
        (
            f"A rule may hold for texts, not only for one row of tokens. {len(WORDS)} words with random vectors and {words.length} positions: "
            "each word that stood earlier should read what followed it there. Two layers do it, an induction circuit: the first copies "
            "the word before, the second looks for it.",
            Picture(
                figure_svg(plots.text_weights(TEXT, np.asarray(weights))),
                f"The second layer on “{' '.join(TEXT)}”: the last word, “{TEXT[last]}”, reads “{TEXT[best]}”, which followed it before, with "
                f"weight {float(np.asarray(weights)[last, best]):.4f}. Words without an earlier copy have no rule.",
                "python examples/induction_circuit.py",
            ),
            circuit,
            "The certificate covers every text over this vocabulary, not only the one above. It is recomputed from the raw numbers:",
            circuit.certificate.verify(),
        ),
    )


def reaching() -> Chapter:
    """With Q = K = V = I, no multiple of u_d or u_c brings the output of token 1 to u_b."""
    x, u = tokens()
    cases = {name: reach(x, 1, u[name[-1]], u["b"]) for name in ("u_d", "u_c")}
    plotted = {name: (u[name[-1]], found) for name, found in cases.items()}
    return Chapter(
        "What no token can reach",
        (
            "With Q = K = V = I, token 1 attends mostly to itself. Could adding some multiple of u_d, or of u_c, make it "
            "attend to a token that contains u_b, and output u_b? "
            + " ".join(
                f"Along {name} it is {found.status}: the output stays at least {at_least(found.at_least)} away."
                for name, found in cases.items()
            )
            + " Every output is an average of the values, and the proof is a hyperplane that separates all of them from u_b.",
            Picture(
                figure_svg(plots.reach(x, 1, plotted, u["b"])),
                "Distance of the output from u_b against the multiple added, and the bound that holds for all multiples.",
                "qkv design reach examples/tokens.json --token 1 --along u_d --target u_b --plot reach.svg",
            ),
            *cases.values(),
        ),
    )


def at_least(bound: float) -> str:
    """A lower bound with three decimals, rounded down."""
    return f"{math.floor(1e3 * bound) / 1e3:.3f}"


BETA = 4.0


def tokens() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The three tokens of the problem, and the vectors they are made of."""
    u = dict(zip("abcd", BETA * np.eye(4), strict=True))
    return np.array([u["d"] + u["b"], u["a"], u["c"] + u["b"]]), u
