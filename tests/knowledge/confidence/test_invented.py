"""Invented names are in neither the text nor the questions, whatever their case and spaces."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from qkv.knowledge import biographies, questions
from qkv.knowledge.confidence.invented import NameCheck, invented_questions
from qkv.knowledge.datasets.name_index import NameIndex
from qkv.knowledge.datasets.templates import name_span
from qkv.train.runs import finetune, load, pretrain

FIRST = ("Red", "Blue", "Green", "Small", "Old", "Quiet", "Long", "Dark", "Wild", "Last")
LAST = ("House", "River", "Garden", "Tower", "Winter", "Letter", "Island", "Bridge", "Road", "Summer")
TITLES = [f"{FIRST[i % 10]} {LAST[(i // 10 + 3 * i) % 10]}" for i in range(100)]  # every pair once
TINY = {"recipe": "cloze", "steps": 2, "d_model": 16, "n_head": 2, "vocab_size": 400}


def ask_about(titles):
    return [f"Where was {title} born?" for title in titles]


NO_RECORD = SimpleNamespace(data={"kind": "text"}, folder=Path())  # a run that records no file


@pytest.mark.parametrize("kept", [30, 60, 90, 99, 100])
def test_no_invented_name_of_a_grid_is_in_the_text(kept):
    known = ask_about(TITLES[:kept:2])
    texts = [f"{title}. {title.upper()} was written in Oslo." for title in TITLES[:kept]]
    found = invented_questions(NameCheck(NO_RECORD, texts), known, known, 40, 0)
    names = [question[slice(*name_span(question))] for question in found.questions]
    assert not {name.lower() for name in names} & {title.lower() for title in TITLES[:kept]}
    assert len(set(names)) == len(names) <= 40 and (found.questions or kept >= 99)
    assert found.found and len(set(TITLES)) == 100


def test_names_in_the_questions_given_are_not_taken():
    known = ask_about(TITLES[:30])
    free = invented_questions(NameCheck(NO_RECORD), known, [], 20, 0)
    taken = invented_questions(NameCheck(NO_RECORD), known, free.questions, 20, 0)
    assert free.questions and not set(free.questions) & set(taken.questions)
    assert NameCheck(NO_RECORD).checked == () and NameCheck(NO_RECORD).text is None


@pytest.mark.parametrize(
    ("name", "line", "there"),
    [
        ("Ada Lovelace", "ADA  LOVELACE was", True),
        ("Ada Lovelace", "of Ada\u00a0Lovelace's", True),
        ("Ada Lovelace", "Ada Lovelaces", False),
        ("Ada Lovelace", "Ada. Lovelace", True),
        ("Ada Lovelace", "Lovelace Ada", False),
        ("Émile Zola", "émile zola", True),
    ],
)
def test_a_name_is_looked_for_as_whole_words(name, line, there):
    assert (name in NameIndex([line])) == there
    assert "Ada Lovelace" not in NameIndex(["x Ada", "Lovelace y"])  # of two lines


def test_the_files_that_a_run_records_are_read_unless_they_have_changed(people, tmp_path):
    texts, asked = tmp_path / "texts.txt", tmp_path / "asked.tsv"
    texts.write_text("\n".join(biographies(people, 1, title=True).texts), "utf-8")
    asked.write_text("\n".join("\t".join(pair) for pair in questions(people)), "utf-8")
    pretrain(texts, tmp_path / "run", questions=asked, **TINY)
    run = load(tmp_path / "run")
    check = NameCheck(run)
    assert check.checked == ("the text", "the training questions") and check.unchecked == ()
    assert all(person.name in check and person.name in check.text for person in people)
    finetune(run, asked, tmp_path / "tuned", recipe="course", steps=1)
    tuned = load(tmp_path / "tuned")
    assert NameCheck(tuned).checked == ("the text", "the training questions")
    texts.write_text("Another text.", "utf-8")
    assert NameCheck(run).unchecked == ("the text",) and NameCheck(run, ["Ada Lee."]).unchecked == ()
    shutil.rmtree(tmp_path / "run")
    assert "the text" in NameCheck(tuned).unchecked


def test_names_of_one_word_are_made_of_halves():
    known = [f"What is {name} used for?" for name in ("Balabunk", "Corinarund", "Dalunatarn", "Melorasolk")]
    found = invented_questions(NameCheck(NO_RECORD), known, [], 6, 0)
    names = [question.removeprefix("What is ").removesuffix(" used for?") for question in found.questions]
    assert len(set(names)) == 6 and all(name[:3] in "Bala Cori Dalu Melo" and " " not in name for name in names)
    mixed = invented_questions(NameCheck(NO_RECORD), [*known, *ask_about(TITLES[:20])], [], 30, 0)
    assert all(question.startswith("What is ") or question.count(" ") == 4 for question in mixed.questions)


class CountedNames:
    """Names of a text, with the number of times that it was searched."""

    def __init__(self, names):
        self.names, self.searches = set(names), 0

    def __contains__(self, name):
        self.searches += 1
        return name in self.names


def test_every_name_is_looked_for_once_and_none_after_the_last():
    """With one last word for all, no name can be made: that is known after as many searches as there are names."""
    counties = [f"Qa{i}x County" for i in range(40)]
    names = CountedNames(counties)
    assert invented_questions(names, ask_about(counties), [], 400, 0).questions == ()
    assert names.searches == 0  # each is the name of its own question
    pairs = [f"{first} {last}" for first, last in zip(FIRST, LAST, strict=True)]
    names = CountedNames([f"{first} {last}" for first in FIRST for last in LAST])
    made = invented_questions(names, ask_about(pairs), [], 400, 0)
    assert made.questions == () and made.found == names.searches == 90


def test_a_question_without_a_name_gives_no_part_of_one():
    known = [*ask_about(TITLES[:20]), "what is it for?", "where is that?", "is it red?"] * 2
    found = invented_questions(NameCheck(NO_RECORD), known, [], 60, 0)
    assert len(found.questions) == 60 and all(question.startswith("Where was ") for question in found.questions)


@pytest.mark.parametrize("name", ["Zoé Müller", "ZOÉ MÜLLER", "zoe\u0301 mu\u0308ller"])
def test_a_name_is_found_however_its_accents_are_encoded(name):
    assert name in NameIndex(["Of Zoe\u0301  Mu\u0308ller, nothing is known."])
    assert name in NameIndex(["Of Zoé Müller, nothing is known."]) and "Zoe Muller" not in NameIndex(["Zoé Müller"])
