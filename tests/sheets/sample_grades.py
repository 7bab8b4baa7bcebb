"""Grades made by hand, for tests of what shows them."""

from qkv.claims.verdict import Step
from qkv.sheets.feedback import Grade, GradedAnswer, Statement

TEXT = "\n".join(
    [
        r"\documentclass{article}", *(f"% line {i}" for i in range(2, 14)),
        r"\item[(b)] Take $q = \frac{1}{2}(k_a + k_b)$. Then $k_a^\top q = \frac12$ and $\alpha_a = \frac{1}{2}$,",
        r"so that $c = \frac12(v_a + v_b)$ <b>for all</b> n.",
        r"\item[(c)] $q = \lambda(\mu_a + \mu_b)$ with $\lambda \gg 0$; $\phi \leadsto x$.",
    ]
)  # fmt: skip
GIVEN = "given k_1..k_n orthonormal, n >= 3\nlet q = (k_a + k_b)/2\n"
NO_SCALE = "q = (k_a + k_b)/2 has no large scale: alpha_a = e^(1/2)/(2*e^(1/2) + n - 2), which is 0.146 at n = 10"
STATEMENTS = (
    Statement(14, r"q = \frac{1}{2}(k_a + k_b)", "b", "choice", "let q = (k_a + k_b)/2", "defines q"),
    Statement(14, r"k_a^\top q = \frac12", "b", "right", GIVEN + "then k_a'q = 1/2", "left minus right is 0",
              derivation=(Step("k_a'q = 1/2", r"k_a^\top q = \frac{1}{2}"),)),
    Statement(14, r"\alpha_a = \frac{1}{2}", "b", "wrong", GIVEN + "then alpha_a = 1/2", "alpha_a is 0.146 at n = 10"),
    Statement(15, r"c = \frac12(v_a + v_b)", "b", "wrong", GIVEN + "then c = (v_a + v_b)/2", "c is not that", 14),
    Statement(16, r"q = \lambda(\mu_a + \mu_b)", "c", "choice", "let q = lambda*(mu_a + mu_b)"),
    Statement(16, r"\phi \leadsto x", "c", "not_read", "", "two readings disagree", readings=("phi = x",)),
)  # fmt: skip
ANSWERS = (
    GradedAnswer("a", "the condition for copying", 0, "", "none"),
    GradedAnswer("b", "q with c = (v_a + v_b)/2", 14, r"q = \frac{1}{2}(k_a + k_b)", "misses", NO_SCALE,
           GIVEN + "then c -> (v_a + v_b)/2 as t -> oo"),
    GradedAnswer("c", "q under noise", 16, r"q = \lambda(\mu_a + \mu_b)", "limit", "meets the goal as lambda -> oo",
           "given mu_1..mu_n orthonormal, n >= 3, t > 0\nlet q = t*(mu_a + mu_b)\nthen mu_a'q = t"),
    GradedAnswer("d", "how several heads help", 16, "They help.", "prose"),
)  # fmt: skip


def sample_grade(file="sheets/ada.tex", answers=ANSWERS, statements=STATEMENTS, problem="demo", text=TEXT):
    """A sheet whose query has no scale."""
    return Grade(file, problem, (("λ", "the scale"),), statements, answers, ("Part (e) was not found.",), text=text)
