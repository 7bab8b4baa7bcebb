"""The printed sentences of trust and ask, read back and compared with figures that are computed here from the rows."""

import math
import re
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta

from qkv.errors import QkvError
from qkv.knowledge import ask, trust
from qkv.knowledge.answering.answer_model import EncodedQuestion
from qkv.knowledge.answering.beam_search import Candidate
from qkv.knowledge.confidence import calibration as module
from qkv.knowledge.confidence.badge import REMEMBERED
from qkv.knowledge.confidence.features import FEATURES, AnswerFeatures

FIRST = ("Ada", "Alan", "Emmy", "Kurt", "Sofia", "Niels", "Lise", "Paul", "Mary", "Otto", "Hedy", "Carl", "Rosa")
MORE = ("Hans", "Inge", "Jean", "Nora", "Leif", "Signe", "Tove", "Ulf", "Vera", "Willy", "Yrsa")
LAST = ("Love", "Ring", "Noet", "God", "Kova", "Bohr", "Meit", "Dirac", "Cart", "Hahn", "Lama", "Gauss", "Lux", "Bethe")
KNOWN = [f"Where was {first} {last}son born?" for first in (*FIRST, *MORE) for last in LAST]
OTHERS = [f"Where was {last}ine {first}berg born?" for first in (*FIRST, *MORE) for last in LAST]
STATES = [
    {"known": known, "others": others, "share": share, "gap": gap, **options}
    for known, others, share, gap, options in [
        *product((30, 60), (30, 120), (0.4, 0.9), (1.0, 4.0), ({}, {"level": 0.7})),
        *product((120,), (120, 300), (0.5, 0.95), (0.0, 2.0, 6.0), ({}, {"level": 0.6}, {"calibration": 0.5})),
        *product((300,), (300,), (0.97,), (2.0, 6.0), ({}, {"level": 0.99}, {"confidence": 0.8}, {"max_outside": 0.3})),
        *product((60, 120), (60,), (0.8,), (3.0,), ({"empty": 9}, {"unnamed": 6}, {"twice": True}, {"guessed": 0.4})),
    ]
]
assert len(STATES) >= 50


class NoText:
    """A check of names without any text."""

    checked, unchecked, text, trained = (), (), None, frozenset()

    def __contains__(self, name):
        return False


def simulated(questions, state):
    """Features of answers: the answer "right" with the state's share for known people, surer by its gap."""
    random = np.random.default_rng((len(questions), round(10 * state["gap"])))
    n = len(questions)
    known = np.array([question in KNOWN or "they" in question for question in questions])
    knows = random.random(n) < np.where(known, state["share"], state.get("guessed", 0.0))
    log_p = -np.exp(np.where(knows, -0.5 * state["gap"], 0.0) + random.normal(size=n) * 0.7)
    name = np.where(known, -1.0, -1.0 - state["gap"])
    columns = dict.fromkeys(FEATURES, log_p) | {"entropy": -log_p, "agreement": np.exp(log_p)}
    columns |= {each: name for each in FEATURES if each.startswith("name_m")}
    values = np.column_stack([columns[each] for each in FEATURES])
    values[:, 1:] += random.normal(size=(n, len(FEATURES) - 1)) * 0.5
    texts = ["right" if ok else "wrong" for ok in knows]
    for i in range(0, n, max(1, n // state["empty"])) if state.get("empty") else ():
        texts[i] = ""
    return AnswerFeatures(
        tuple(EncodedQuestion(each, [1, 2, 3], (0, 2), "they" not in each) for each in questions),
        tuple((text, "other") for text in texts),
        tuple((Candidate((), float(log), True), Candidate((), -9.0, True)) for log in log_p),
        values,
        np.zeros((n, 2)),
    )


def asked(state):
    """Questions about known people and others, as a state has them."""
    known, others = KNOWN[: state["known"]], OTHERS[: state["others"]]
    if state.get("twice"):
        known = [*known, *(each.replace("Where", "When") for each in known[:20])]
    known = [*known, *(f"where were they {i} born?" for i in range(state.get("unnamed", 0)))]
    pairs = [(question, "right") for question in known]
    return pairs, [(question, "right" if state.get("guessed") else "") for question in others]


def lower(right, n, confidence):
    """Clopper and Pearson's lower bound, by SciPy's beta distribution."""
    return float(beta.ppf(1 - confidence, right, n - right + 1)) if right else 0.0


def fitted(run, state, monkeypatch):
    monkeypatch.setattr(module, "answer_features", lambda run, questions, **_: simulated(questions, state))
    monkeypatch.setattr(module, "NameCheck", lambda run, text: NoText())
    options = {name: state[name] for name in ("level", "confidence", "max_outside", "calibration") if name in state}
    return trust(run, *asked(state), save=False, n_samples=0, **options)


def percent(text):
    return [float(each) for each in re.findall(r"([\d.]+) %", text)]


def counts(text):
    return [int(each) for each in re.findall(r"\d+", text)]


@pytest.mark.parametrize(
    "state",
    [pytest.param(state, marks=() if i % 6 == 0 else pytest.mark.slow) for i, state in enumerate(STATES)],
    ids=lambda state: " ".join(f"{k}={v}" for k, v in state.items()),
)
def test_the_card_of_trust_says_what_was_computed(run, state, monkeypatch):
    try:
        found = fitted(run, state, monkeypatch)
    except QkvError as why:
        small = counts(str(why))
        assert "to fit it on" in str(why) and small[0] < small[-1] == 20
        return
    card, made, rows = found.card(), found.badge.remembered, found.rows()
    facts = dict(card.facts)
    check_title(found, card.title)
    check_what_the_level_would_take(found, facts, state)
    called = [row for row in rows if row["badge"] == REMEMBERED]
    right = [row for row in rows if row["right"]]
    if called:
        n_right, n = counts(facts["measured"])[:2]
        assert (n_right, n) == (sum(row["right"] for row in called), len(called))
        share, low, high = percent(facts["measured"])[0], *counts_of_interval(facts["measured"])
        assert share == pytest.approx(100 * n_right / n, abs=0.051) and low <= share <= high
        assert ("people held out" in facts["measured"]) == (state.get("calibration", 1) < 1)
        covered, *of_known = percent(facts["coverage"])
        assert covered == pytest.approx(100 * sum(row["right"] for row in called) / len(right), abs=0.051)
        if of_known:
            known_right = [row for row in right if row["seen"]]
            share = sum(row["badge"] == REMEMBERED for row in known_right) / len(known_right)
            assert of_known == [pytest.approx(100 * share, abs=0.051)]
    else:
        assert "measured" not in facts and "coverage" not in facts
    known = [row for row in rows if row["seen"]]
    said = counts(facts["questions"])
    assert said[0] == len(known) and f"{len(rows) - len(known)} about others" in facts["questions"]
    assert percent(facts["questions"])[0] == pytest.approx(100 * np.mean([row["right"] for row in known]), abs=0.051)
    assert (f"{found.empty} without an answer" in facts["questions"]) == bool(found.empty)
    assert (found.empty > 0) == bool(state.get("empty"))
    check_badge_counts(found, facts["badges"], rows)
    check_outside(found, facts, state)
    if made.accepted:
        bounds = [lower(made.right, made.accepted, each) for each in (made.confidence, at_half_the_error(made))]
        assert any(made.bound == pytest.approx(each) for each in bounds)


def counts_of_interval(text):
    low, high = re.search(r"interval ([\d.]+) to ([\d.]+) %", text).groups()
    return float(low), float(high)


def at_half_the_error(made):
    """The confidence with which a level below the wanted one is stated."""
    return 1 - (1 - made.confidence) / 2


def check_title(found, title):
    """The level that the title states is what the exact bound of the accepted answers shows, and no more."""
    made = found.badge.remembered
    if not made.accepted:
        assert title == f"No answer can be called “remembered” at {100 * found.level:g} %" and not found.any_remembered
        return
    level, confidence = percent(title)
    shown = 100 * (found.level if made.reached else lower(made.right, made.accepted, at_half_the_error(made)))
    assert shown <= 100 * min(found.level, lower(made.right, made.accepted, found.confidence)) + 1e-9
    assert level <= shown + 1e-9 and level > shown - 0.11 and confidence == pytest.approx(100 * found.confidence)


def check_what_the_level_would_take(found, facts, state):
    """So many more questions show the level by the exact bound, and clearly fewer do not."""
    made, key = found.badge.remembered, f"for {100 * found.level:g} %"
    assert (key in facts) == (found.stated_level < found.level)
    if key not in facts:
        return
    text = facts[key]
    if "more questions like these" in text:
        (more,) = counts(text)
        given = sum(row["answer"] != "" for row in found.rows())
        if found.held_out:
            return
        first = (made.accepted, made.right) if made.accepted else None
        for factor, shows in ((1 + more / given, True), (1 + 0.9 * more / given - 1e-3, False)):
            if first and factor > 1:
                n, right = (factor * each for each in first)
                assert (beta.ppf(1 - made.confidence, right, n - right + 1) >= found.level - 1e-6) == shows
    elif "while that share stays" in text:
        if text.startswith("of the"):
            n, right = counts(text)
            assert (n, right) == (made.accepted, made.right) and right / n <= found.level
    else:
        assert "passes both" in text and not made.accepted


def check_badge_counts(found, text, rows):
    """Each badge with as many answers as the rows have."""
    for part in text.split("; "):
        badge, said = part.split(": ")
        own = [row for row in rows if row["badge"] == badge]
        wanted = {
            "right": sum(row["right"] and row["seen"] for row in own),
            "wrong": sum(not row["right"] and row["seen"] for row in own),
            "about people not in the text": sum(not row["seen"] for row in own),
        }
        for kind, n in wanted.items():
            assert (f"{n} {kind}" in said) == bool(n)
        assert (said == "none") == (not own and not found.counts[badge]["invented"])


def check_outside(found, facts, state):
    """What is called so, and a bound that the exact one allows."""
    wanted = 100 * state.get("max_outside", 0.03)
    for name, kind in (("people not in the text", "unknown"), ("invented names", "invented")):
        n_called, n = counts(facts[name])[:2]
        assert n == sum(each[kind] for each in found.counts.values()) and n_called == found.counts[REMEMBERED][kind]
        limit = next(each for each in found.outside if each.group == ("outsider" if kind == "unknown" else kind))
        bound = 100 * float(beta.ppf(found.confidence, limit.allowed + 1, limit.n - limit.allowed))
        if "guaranteed" in facts[name]:
            assert bound > wanted and percent(facts[name])[-2] == pytest.approx(bound, rel=0.011)
        else:
            assert bound <= wanted + 1e-9 and f"at most {wanted:g} % of such names" in facts[name]
        if not found.held_out and limit.n == n:  # of several answers about one name, one counts for the limit
            assert n_called <= limit.allowed


@pytest.mark.parametrize("level", [0.6, 0.8, 0.95])
def test_a_lower_level_is_said_to_cover_no_less(run, level, monkeypatch):
    state = {"known": 120, "others": 120, "share": 0.9, "gap": 4.0}
    covers = [fitted(run, {**state, "level": each}, monkeypatch).coverage for each in (level, min(0.99, level + 0.1))]
    assert covers[0] >= covers[1]


def test_the_reason_of_ask_says_what_the_features_say(run, people):
    """The figures in the reason are those of the evidence, in twenty questions about people and about nobody."""
    names = [person.name for person in people.people[:14]] + list(people.invented_names(6, seed=4))
    for name in names:
        found = ask(run, f"Where was {name} born?", n_samples=8)
        said, values = found.why, found.evidence
        p = float(re.search(r"probability ([\d.e-]+)", said).group(1).rstrip("."))
        assert p == pytest.approx(found.alternatives[0].probability, rel=0.06)
        ratio = found.alternatives[0].probability / found.alternatives[1].probability
        times = re.search(r", (over 1000|[\d.]+) times that of (?:“|no answer)", said).group(1)
        assert ratio > 999 if times == "over 1000" else float(times) == pytest.approx(ratio, rel=0.06)
        assert f"{round(8 * values['agreement'])} of 8 sampled answers agree" in said
        by_name = values["log_probability"] - values["question_only_log_probability"]
        words = re.search(r"the name makes it (no likelier|.*? (?:likelier|less likely)) than the question", said)[1]
        if words == "no likelier":
            assert abs(by_name) < math.log(1.06)
        elif words.startswith("10") and words[2] in "⁰¹²³⁴⁵⁶⁷⁸⁹":
            assert abs(by_name) > math.log(900) and words.endswith("likelier" if by_name > 0 else "less likely")
        else:
            assert float(words.split(" ")[0]) == pytest.approx(math.exp(abs(by_name)), rel=0.06)
            assert words.endswith("likelier" if by_name > 0 else "less likely")
