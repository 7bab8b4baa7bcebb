"""One small figure of every plot function, for the tests of the theme and of the plots."""

import numpy as np
import pytest
from marks import spread

import qkv
from qkv.design import blend, copyable, reach, wire
from qkv.knowledge.answer import Answer
from qkv.knowledge.answering.name_attention import HeadAttention
from qkv.knowledge.confidence.badge import MADE_UP, REMEMBERED, UNSURE
from qkv.knowledge.confidence.calibration import Trust
from qkv.knowledge.confidence.metrics import Reliability
from qkv.knowledge.confidence.trust_result import PlainThreshold
from qkv.knowledge.language_models.known_facts import Group, KnownFacts
from qkv.knowledge.studies.experiment import Study
from qkv.noise import Gaussian, reference_layouts
from qkv.train.metrics_log import History
from qkv.viz.plots import design, knowledge, language_models, noise, studies, training

KEYS = np.array([[0.0, 0], [4, 0], [0, 4], [1, 1]])
VECTORS = dict(zip("abcd", 4.0 * np.eye(4), strict=True))
TOKENS = np.array([VECTORS["d"] + VECTORS["b"], VECTORS["a"], VECTORS["c"] + VECTORS["b"]])
ROWS = {
    "extraction": [
        {"what": "read once", "accuracy": 0.1, "interval": (0.05, 0.2)},
        {"what": "five wordings", "accuracy": 0.9},
    ],
    "capacity": [
        {"parameters": p, "exposures": e, "bits_per_parameter": b, "interval": (b - 0.1, b + 0.1)}
        for p, e, b in ((1000, 50, 0.5), (1000, 200, 1.5), (4000, 50, 0.25), (4000, 200, 1.25))
    ],
    "rare_facts": [
        {"seen_once": s, "made_up": m, "made_up_of_once": m, "made_up_of_often": None, "interval": (m / 2, m)}
        for s, m in ((0.0, 0.1), (0.5, 0.4))
    ],
    "ablation": [
        {"what": f"text {kind}: all", "accuracy": a, "is_a_place": 1.0, "probability": a, "surely": a / 2}
        for kind, a in (("read", 0.8), ("deleted", 0.05))
    ],
}


def _layouts():
    memory = qkv.Memory(np.eye(4), labels=["a", "b", "c", "d"])
    model = Gaussian(isotropic=1e-6, along={"a": 0.5})
    return memory, reference_layouts(memory, {"a": 0.5, "b": 0.5}, model, 4.0), model


def _reading():
    memory = qkv.Memory.orthonormal(4, 4)
    return design.reading(memory, blend(memory, {0: 0.5, 1: 0.5}))


def _wiring():
    found = wire(TOKENS, {0: 2, 1: 0}, {0: VECTORS["b"] - VECTORS["c"], 1: VECTORS["b"]})
    return design.wiring(TOKENS, found.Q, found.K, found.V)


def _reach():
    cases = {f"u_{name}": (VECTORS[name], reach(TOKENS, 1, VECTORS[name], VECTORS["b"])) for name in "dc"}
    return design.reach(TOKENS, 1, cases, VECTORS["b"])


def _success():
    memory, layouts, model = _layouts()
    return noise.success(memory, layouts, model, {"a": 0.5, "b": 0.5}, 0.2, [1.0, 4.0])


def _weights():
    memory, layouts, model = _layouts()
    return noise.weights(memory, layouts, model, "a", 500)


def _variance():
    memory, layouts, model = _layouts()
    return noise.variance(memory, layouts, model, [1.0, 4.0])


def _reliability():
    counts = {word: {"right": 6, "wrong": 2, "unknown": 1} for word in (REMEMBERED, UNSURE, MADE_UP)}
    bins = Reliability((4, 0, 6), (0.2, 0.5, 0.9), (0.25, 0.0, 0.8), (0.0, 0.3, 0.6, 1.0))
    return knowledge.reliability(
        Trust(
            0.9,
            0.9,
            0.95,
            20,
            7,
            0.7,
            0.75,
            0.5,
            0.9,
            0.4,
            counts,
            (),
            bins,
            PlainThreshold(0.9, 1.0, 0.2, 0, 0),
            0,
            0,
            False,
            (),
            False,
            None,
            (),
        )
    )


def _study(name):
    return studies.study_figure(Study(name, f"The study {name}", tuple(ROWS[name]), ("A remark.",), 1, 1))


def _known_facts():
    groups = tuple(
        Group(kind, name, right, 20, max(0.0, right / 20 - 0.1), right / 20 + 0.1)
        for kind, names in (
            ("page views", ("rank 1 to 100", "rank 101 to 300")),
            ("occupation", ("singer", "writer", "pope")),
            ("century", ("before Christ", "19th century")),
        )
        for right, name in enumerate(names, 3)
    )
    return language_models.known_facts(
        KnownFacts(0.2, 0.15, 0.25, 60, 60, {}, (0.2,), (), ((),), relation="city", groups=groups)
    )


FIGURES = {
    "language_models.known_facts": _known_facts,
    "design.reading": _reading,
    "design.hull": lambda: design.hull(qkv.Memory(KEYS), copyable(KEYS)),
    "design.margins": lambda: design.margins(copyable(KEYS)),
    "design.subspaces": design.subspaces,
    "design.wiring": _wiring,
    "design.text_weights": lambda: design.text_weights(("a", "b"), [[1.0, 0.0], [0.3, 0.7]]),
    "design.reach": _reach,
    "design.shares": lambda: design.shares([2, 4], [0.1, 0.5], 10),
    "noise.weights": _weights,
    "noise.variance": _variance,
    "noise.success": _success,
    "training.losses": lambda: training.losses(
        History(tuple(range(1, 41)), tuple(1 + 1 / i for i in range(1, 41)), (20, 40), (1.2, 1.1))
    ),
    "knowledge.heads": lambda: knowledge.heads(
        Answer("Where?", "Oslo", (), UNSURE, "", {}, (HeadAttention(1, 0, 0.7), HeadAttention(0, 1, 0.2)), "Ada")
    ),
    "knowledge.reliability": _reliability,
    "knowledge.accuracy_curve": lambda: knowledge.accuracy_curve(
        [{"minutes": m, "accuracy": a, "low": a - 0.1, "high": a + 0.1} for m, a in ((1, 0.2), (10, 0.6))], {"GPT": 0.4}
    ),
    **{f"studies.{name}": (lambda name=name: _study(name)) for name in ROWS},
}


def pytest_generate_tests(metafunc):
    """A test that takes `make_figure` runs once for every plot function."""
    if "make_figure" in metafunc.fixturenames:
        metafunc.parametrize("make_figure", spread(list(FIGURES.values()), 4), ids=FIGURES)


@pytest.fixture(scope="session")
def figures():
    """The figures by name."""
    return FIGURES
