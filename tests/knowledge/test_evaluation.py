"""Exact-match accuracy against generated texts, with baselines and intervals."""

import math

import numpy as np
import pytest
from scipy import stats

from qkv.errors import QkvError
from qkv.knowledge import biographies, evaluate, questions
from qkv.knowledge.evaluation import Score, accuracy, exact_match, question_pairs
from qkv.knowledge.intervals import independent_draws, wilson_interval
from qkv.train.generation import generate
from qkv.train.runs import finetune, pretrain


def test_scores_are_exact_matches_with_intervals_beside_the_baselines(run, people, train_run, tmp_path):
    asked = questions(people)
    found = evaluate(run, asked, training=asked, unpretrained=train_run(steps=1), ablated=train_run(steps=1))
    plain = generate(run, [q for q, _ in asked], ask=True).texts
    right = [said.strip() == true for said, (_, true) in zip(plain, asked, strict=True)]
    assert found.accuracy == sum(right) / 30 and found.right == (tuple(right),) and found.accuracy > 0.5
    assert found.low < found.accuracy <= found.high
    data = found.to_json()
    assert {"accuracy", "low", "high", "n", "baselines"} <= set(data) and data["n"] == 30
    (frequent, no, ablated) = found.baselines.values()
    assert no.accuracy == ablated.accuracy < found.accuracy > frequent.accuracy > 0
    assert [row["right"] for row in found.rows()] == right
    path = tmp_path / "q.tsv"
    path.write_text("".join(f"{q}\t{a}\n" for q, a in asked), "utf-8")
    twice = evaluate([run, train_run(steps=1)], path)
    assert twice.runs == (found.accuracy, no.accuracy) and twice.accuracy == pytest.approx(np.mean(twice.runs))
    assert math.isclose(len(twice.rows()), 60)
    assert twice.card().rows[0][0] == "these runs (mean of 2 runs)" and found.card().rows[0][0] == "this run"


def test_the_interval_of_a_score_is_scipys(run):
    score = Score.of(0.6, 50)
    theirs = stats.binomtest(30, 50).proportion_ci(method="wilson")
    assert (score.low, score.high) == pytest.approx((theirs.low, theirs.high))
    assert str(score) == "60.0 % (46.1 to 72.4 %)"


def test_several_questions_about_one_subject_are_one_draw_of_an_interval(run, people):
    once = evaluate(run, questions(people))
    both = evaluate(run, questions(people, ["city", "year"]), training=questions(people))
    assert (once.n, once.subjects, both.n, both.subjects) == (30, 30, 60, 30)
    theirs = stats.binomtest(15, 30).proportion_ci(method="wilson")
    half = Score.of(0.5, 60, 30)
    assert (half.low, half.high) == pytest.approx((theirs.low, theirs.high)) and half.n == 60
    for score in (both, *both.baselines.values()):
        assert (score.low, score.high) == pytest.approx(wilson_interval(score.accuracy * 30, 30))
    assert "30 subjects" in both.card().title and "subjects" not in once.card().title
    repeated = evaluate(run, [*questions(people).pairs] * 3)
    assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high))


@pytest.mark.parametrize("sizes", [[3] * 40, [1, 2, 3, 4, 5] * 8, [50] + [1] * 39, [1]])
def test_the_interval_holds_where_some_subjects_have_more_questions_than_others(sizes):
    random, truth, n = np.random.default_rng(3), 0.7, sum(sizes)
    draws = independent_draws(i for i, size in enumerate(sizes) for _ in range(size))
    assert draws == pytest.approx(n * n / sum(size * size for size in sizes)) and draws <= len(sizes) + 1e-9
    right = (random.random((2000, len(sizes))) < truth) @ np.array(sizes) / n
    scores = [Score.of(share, n, draws) for share in right]
    assert np.mean([not score.low <= truth <= score.high for score in scores]) <= 0.065  # 5 % and three standard errors


def test_only_white_space_around_an_answer_is_ignored():
    assert exact_match(" New York\n", "New York") and not exact_match("new York", "New York")
    assert accuracy(["a", "b", "c"], [("?", "a"), ("?", " b "), ("?", "d")]) == pytest.approx(2 / 3)


def test_questions_come_from_pairs_files_and_loaded_questions(people, tmp_path):
    asked = questions(people)
    path = tmp_path / "q.tsv"
    path.write_text("".join(f"{q}\t{a}\n" for q, a in asked), "utf-8")
    assert question_pairs(asked) == question_pairs(list(asked)) == question_pairs(path) == list(asked)


def test_evaluating_nothing_is_refused(run):
    for runs, asked in (([], [("a", "b")]), (run, [])):
        with pytest.raises(QkvError):
            evaluate(runs, asked)


def test_questions_longer_than_the_context_are_refused(run):
    with pytest.raises(QkvError, match="a question has"):
        evaluate(run, [("x" * 500, "y")])


def test_a_question_as_long_as_the_context_shortens_no_other_answer(run, people):
    asked = list(questions(people))
    long = " ".join(["Where was"] * 60)
    while len(run.tokenizer.encode(long)) + 1 > run.config.context_length:
        long = long.rsplit(" ", 1)[0]
    alone, beside = evaluate(run, asked), evaluate(run, [*asked, (long, "nowhere")])
    assert beside.answers[0][:-1] == alone.answers[0] and alone.accuracy > 0.5


@pytest.mark.parametrize("left", range(3, 12))
def test_a_question_that_leaves_little_room_is_answered_with_all_features(run, left):
    from qkv.knowledge import ask

    question = "Where was"
    while len(run.tokenizer.encode(question)) + 1 < run.config.context_length + 1 - left:
        question += " x"
    found = ask(run, question)
    assert all(value is None or math.isfinite(value) for value in found.evidence.values())


def test_the_baseline_of_a_file_that_has_changed_since_is_left_out(tmp_path, people):
    asked = questions(people)
    path = tmp_path / "train.tsv"
    path.write_text("".join(f"{q}\t{a}\n" for q, a in asked), "utf-8")
    options = {"recipe": "cloze", "steps": 1, "context_length": 64, "d_model": 16, "n_head": 2, "vocab_size": 400}
    (tmp_path / "texts.txt").write_text("\n".join(biographies(people, title=True).texts), "utf-8")
    pretrain(tmp_path / "texts.txt", tmp_path / "base", questions=path, **options)
    finetune(tmp_path / "base", path, tmp_path / "run", steps=1)
    assert list(evaluate(tmp_path / "run", asked).baselines)
    path.write_text("".join(f"{q}\tnowhere\n" for q, _ in asked), "utf-8")
    assert not evaluate(tmp_path / "run", asked).baselines
    path.write_bytes(b"\0\0")
    assert not evaluate(tmp_path / "run", asked).baselines
