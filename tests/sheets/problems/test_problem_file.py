"""Problem files: what is read from them, and refusals with their line instead of tracebacks."""

import random
from importlib import resources
from pathlib import Path

import pytest

from qkv.claims import check
from qkv.errors import QkvError
from qkv.sheets.problems import SHIPPED, Problem, editions, load_problem, read_problem
from qkv.sheets.problems.problem import HOLE, SCALE

SMALL = """# Cold and hot

- id: small

## Letters

- scale: t beta

## Part a: Cold

- also: 1.a; first
- given: k_1..k_n orthonormal, n >= 3

### Asked: q with c = v_a

- kind: construction
- let: q = ?
- goal: c -> v_a
  as scale -> oo
- show: alpha_a -> 1
"""


def shipped_text(name):
    return resources.files("qkv.sheets.problems").joinpath("files", f"{name}.md").read_text(encoding="utf-8")


def test_a_small_file_is_read_into_a_problem():
    problem = read_problem(SMALL)
    (part,) = problem.parts
    (question,) = part.questions
    assert (problem.id, problem.family, problem.title) == ("small", "small", "Cold and hot")
    assert part.also == ("1.a", "first")
    assert question.holes == ("q",)
    assert question.goal == ("c -> v_a as scale -> oo",)
    assert question.given == ("k_1..k_n orthonormal, n >= 3",)
    assert question.show == ("alpha_a", "1")
    assert problem.letters_for("scale") == ("t", "beta")
    assert problem.letters_for("noise") == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("# Cold and hot\n", "", 2, "title of the problem"),
        ("- id: small", "- id: sm all", 1, "the id"),
        ("- id: small", "- name: small", 3, "the entry 'name'"),
        ("- scale: t beta", "- scale:", 7, "is empty"),
        ("- scale: t beta", "- colour: t", 7, "the entry 'colour'"),
        ("## Part a: Cold", "## Chapter a", 9, "the heading"),
        ("### Asked: q with c = v_a", "### Asked:", 14, "without words"),
        ("- kind: construction", "- kind: riddle", 14, "the kind 'riddle'"),
        ("- let: q = ?", "- let: q = 2*?", 17, "the definition"),
        ("- let: q = ?\n", "", 14, "without a hole"),
        ("- goal: c -> v_a\n  as scale -> oo\n", "", 14, "without a goal"),
        ("- goal: c -> v_a", "- goal: c -> (v_a", 18, "no claim"),
        ("orthonormal, n >= 3", "orthonormal sideways", 12, "no claim"),
        ("- show: alpha_a -> 1", "- show: alpha_a", 20, "'alpha_a'"),
        ("- show: alpha_a -> 1", "- uses: z", 14, "uses 'z'"),
    ],
)
def test_a_mistake_in_a_file_is_refused_with_its_line_and_what_was_expected(old, new, line, says):
    assert old in SMALL
    with pytest.raises(QkvError) as why:
        read_problem(SMALL.replace(old, new, 1), "small.md")
    assert why.value.request == f"small.md, line {line}"
    assert says in f"{why.value.problem} {why.value.hint}"
    assert why.value.hint


def test_every_shipped_file_loads_and_belongs_to_one_family():
    found = editions("attention")
    assert [problem.id for problem in found] == list(SHIPPED)
    for problem in found:
        assert isinstance(problem, Problem)
        ids = [part.id for part in problem.parts]
        assert len(ids) == len(set(ids))
        assert {"b", "c.i", "c.ii", "d.i", "d.ii"} <= set(ids)


@pytest.mark.parametrize("name", SHIPPED)
def test_goals_of_shipped_files_are_claims_that_their_model_answers_meet(name):
    answers = {"q": "t*(mu_a + mu_b)", "q_1": "t*mu_a", "q_2": "t*mu_b", "M": "A*A'"}
    for question in load_problem(name).questions:
        if question.kind != "construction" or not set(question.holes) <= set(answers):
            continue
        keys = "mu_1" not in question.given[0]
        lets = [
            *question.let,
            *(f"{h} = {answers[h].replace('mu', 'k') if keys else answers[h]}" for h in question.holes),
        ]
        goals = [goal.replace(f"{SCALE} ->", "t ->") for goal in question.goal]
        block = [
            *(f"given {g}" for g in question.given),
            *(f"let {one}" for one in lets),
            *(f"then {g}" for g in goals),
        ]
        verdicts = check("\n".join(["~~~claim model", *block, "~~~"]))
        assert {v.verdict for v in verdicts} == {"proved"}, (question.part, block)
        assert not any(HOLE in line for line in block)


def test_a_name_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(QkvError, match="no such file"):
        load_problem("attention-1999")
    with pytest.raises(QkvError):
        load_problem(tmp_path)
    other = tmp_path / "latin.md"
    other.write_bytes(b"# caf\xe9\n")
    with pytest.raises(QkvError, match="UTF-8"):
        load_problem(other)
    mine = tmp_path / "small.md"
    mine.write_text(SMALL, encoding="utf-8")
    assert load_problem(mine) == load_problem(str(mine)) == read_problem(SMALL)


def test_the_example_of_the_tutorial_loads():
    path = Path(__file__).resolve().parents[3] / "examples" / "temperature_problem.md"
    assert [q.part for q in load_problem(path).questions] == ["a", "b"]


def test_mutated_files_are_read_or_refused_and_never_fail_otherwise():
    chance = random.Random(5)
    text = shipped_text("attention-2021")
    signs = "#-:?;=(){}[]`~\\_^ \n\x00é∞"
    for _ in range(25):
        changed = list(text)
        for _ in range(chance.randint(1, 8)):
            place = chance.randrange(len(changed))
            changed[place : place + chance.randint(0, 5)] = chance.choice(signs)
        try:
            assert isinstance(read_problem("".join(changed)), Problem)
        except QkvError as why:
            assert "line" in why.request and why.hint
