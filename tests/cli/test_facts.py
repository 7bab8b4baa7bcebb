"""qkv facts: files that the other commands take as they are."""

import pytest

NAMES = [f"{'ABCDEFGH'[i % 8]}{'aeiou'[i % 5]}{'klmnrst'[i % 7]}{'aeiou'[i // 5 % 5]}nd" for i in range(24)]
BOOKS = "title;author;year\n" + "".join(f'"Book {n}";"by {n[-3:]}ora";{1900 + i}\n' for i, n in enumerate(NAMES))


def test_the_whole_way_from_a_spreadsheet_to_a_badge_runs_by_the_command_line_alone(tmp_path, shell, monkeypatch):
    from qkv.knowledge.confidence import calibration

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(calibration, "MIN_QUESTIONS", 1)
    monkeypatch.setattr(calibration, "MIN_PER_KIND", 1)
    (tmp_path / "books.csv").write_text(BOOKS, "utf-8-sig")
    wording = ("--wording", "author=Who wrote {subject}?", "--statement", "author={subject} was written {object}.")
    made = shell("facts", "books.csv", "--out", "books", *wording, "--json")
    assert made.code == 0 and made.data["relations"] == ["author", "year"], made.err
    assert made.data["counts"] == {"texts.txt": 24, "train.tsv": 36, "dev.tsv": 12, "outside.tsv": 48}
    small = ("--n-layer", "1", "--d-model", "32", "--n-head", "2", "--vocab-size", "400", "--threads", "1")
    read = ("--text", "books/texts.txt", "--questions", "books/train.tsv")
    done = shell("pretrain", *read, "--out", "base", "--recipe", "cloze", "--steps", "3", *small)
    assert done.code == 0 and "cannot" not in done.err, done.err
    done = shell("finetune", "base", "--questions", "books/train.tsv", "--out", "run", "--steps", "3")
    assert done.code == 0, done.err
    scored = shell("evaluate", "run", "--questions", "books/dev.tsv", "--json")
    assert scored.code == 0 and scored.data["n"] == 12
    asked = shell("ask", "run", f"Who wrote Book {NAMES[0]}?", "--n-samples", "0", "--json")
    assert asked.code == 0, asked.err
    known = ("--known", "books/dev.tsv", "--unknown", "books/outside.tsv", "--level", "0.6", "--no-save")
    badge = shell("trust", "run", *known, "--json")
    refusals = ("right answers", "questions about people in the text", "gives an empty answer")
    assert badge.code == 0 or any(why in badge.err for why in refusals)  # three steps teach too little for a badge


def test_what_cannot_be_drilled_is_said_before_training_starts(tmp_path, shell, recwarn):
    texts, questions = tmp_path / "t.txt", tmp_path / "q.tsv"
    texts.write_text("".join(f"Thing{i}. Thing{i} eats {'ab'[i % 2]}-grass.\n" for i in range(12)), "utf-8")
    asked = [f"What does Thing{i} eat?\t{'ab'[i % 2]}-grass\n" for i in range(8)]
    questions.write_text("".join([*asked, "What does Nobody eat?\tb-grass\n"]), "utf-8")
    small = ("--n-layer", "1", "--d-model", "16", "--n-head", "2", "--vocab-size", "300", "--threads", "1")
    files = ("--text", texts, "--questions", questions, "--out", tmp_path / "base")
    done = shell("pretrain", *files, "--recipe", "cloze", "--steps", "1", *small)
    assert done.code == 0
    said = done.err + " ".join(str(each.message) for each in recwarn)
    assert "1 of 9 questions do not show what to learn from a text: 1 name no text by its title" in said
    assert said.count("What does Nobody eat?") == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("books.csv --example country", "both a table and --example"),
        ("none.csv", "no such file"),
        ("books.csv --wording author", "not of the form"),
        ("books.csv --wording author=Who?", "holds no name in braces"),
        ("books.csv --relation cake", "asking for cake"),
        ("books.csv --form cake", "form is 'cake'"),
        ("books.csv --held-out 2", "held_out is 2.0"),
        ("books.csv --relation author --wording year=When_was_{subject}_written?", "is not asked for"),
        ("--example cake", "there is none called 'cake'"),
    ],
)
def test_refusals(words, problem, tmp_path, shell, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "books.csv").write_text(BOOKS, "utf-8")
    done = shell("facts", *words.split())
    assert done.code == 2 and problem in done.err


@pytest.mark.parametrize("option", ["--wording", "--statement"])
@pytest.mark.parametrize("sign", ["\t", "\n", "\r", "\x0b", "\x85", "\u2028", "\0"])
def test_templates_with_tabs_or_line_ends_are_refused(tmp_path, shell, option, sign):
    (tmp_path / "books.csv").write_text(BOOKS, "utf-8")
    template = (
        f"author=Who{sign}wrote {{subject}}?" if option == "--wording" else f"author={{subject}}{sign}{{object}}."
    )
    done = shell("facts", tmp_path / "books.csv", "--out", tmp_path / "out", option, template)
    assert done.code != 0 and "tab or line end" in done.err and not (tmp_path / "out").exists()


def test_the_number_of_subjects_is_that_of_an_example_and_no_table_s(tmp_path, shell):
    (tmp_path / "books.csv").write_text(BOOKS, "utf-8")
    made = shell("facts", str(tmp_path / "books.csv"), "--out", str(tmp_path / "books"), "--subjects", "5")
    assert made.code == 2 and "--subjects has no effect here: it is for --example" in made.err
    assert not (tmp_path / "books").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--held-out", "2"), ("--outside", "0.1"), ("--versions", "3"), ("--relation", "city"), ("--form", "table"),
        ("--wording", "a=b {subject}?"), ("--statement", "a={subject} {object}."), ("--things",), ("--people",),
    ],
)  # fmt: skip
def test_options_of_a_table_are_refused_with_an_example(tmp_path, shell, options):
    made = shell("facts", "--example", "minerals", "--subjects", "20", "--out", str(tmp_path / "minerals"), *options)
    assert made.code == 2 and f"{options[0]} has no effect here" in made.err
    assert not (tmp_path / "minerals").exists()


def test_the_table_that_is_read_is_not_replaced_though_an_earlier_call_wrote_it(shell, tmp_path):
    (tmp_path / "books.csv").write_text("title,author\nDune,Herbert\nEmma,Austen\nMomo,Ende\nUlysses,Joyce\n")
    assert shell("facts", tmp_path / "books.csv", "--out", tmp_path / "out").code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for name in ("train.tsv", "dev.tsv", "texts.txt"):
        made = shell("facts", tmp_path / "out" / name, "--out", tmp_path / "out")
        assert made.code == 2 and "which is read" in made.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_file_or_link_called_lock_is_nobody_elses(shell, tmp_path):
    (tmp_path / "books.csv").write_text("title,author\nDune,Herbert\nEmma,Austen\nMomo,Ende\nUlysses,Joyce\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "precious.txt").write_text("precious")
    (tmp_path / "out" / "lock").write_text("my notes")
    (tmp_path / "out" / ".qkv-lock").symlink_to(tmp_path / "precious.txt")
    assert shell("facts", tmp_path / "books.csv", "--out", tmp_path / "out").code == 2
    (tmp_path / "out" / ".qkv-lock").unlink()
    assert shell("facts", tmp_path / "books.csv", "--out", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "lock").read_text() == "my notes" and (
        tmp_path / "precious.txt"
    ).read_text() == "precious"
