"""Texts and questions written from facts: complete, disjoint, and taken by training as they are."""

import errno
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from qkv.errors import QkvError
from qkv.knowledge import Facts, Person, load_facts, load_questions, load_texts, write_example, write_facts
from qkv.knowledge.datasets import fact_files
from qkv.knowledge.datasets.examples import EXAMPLES, minerals
from qkv.knowledge.datasets.fact_files import invented_names
from qkv.train.data.cloze import ClozeSource
from qkv.train.run_lock import run_lock
from qkv.train.tokenizers import Characters

THINGS = Facts(
    tuple(Person(f"Thing{i}", more=(("use", f"use {i % 7}"), ("place", f"place {i % 5}"))) for i in range(40))
)


def test_every_subject_is_read_and_asked_about_once(tmp_path):
    found = write_facts(
        THINGS, tmp_path, held_out=0.25, wordings={"use": ["What is {subject} for?", "Use of {subject}?"]}
    )
    assert found.counts == {"texts.txt": 40, "train.tsv": 90, "dev.tsv": 30, "outside.tsv": 120}
    train, dev = (dict(load_questions(tmp_path / name)) for name in ("train.tsv", "dev.tsv"))
    assert not set(train) & set(dev)
    for person in THINGS:
        text = next(t for t in load_texts(tmp_path / "texts.txt") if t.startswith(f"{person.name}. "))
        assert all(value in text for value in person.facts().values())
        asked = train if f"Use of {person.name}?" in train else dev
        assert asked[f"What is {person.name} for?"] == asked[f"Use of {person.name}?"] == person.facts()["use"]
        assert asked[f"What is the place of {person.name}?"] == person.facts()["place"]
    outside = load_questions(tmp_path / "outside.tsv", answered=False)
    names = {person.name for person in THINGS}
    assert all(not answer and not names & set(question.rstrip("?").split()) for question, answer in outside)
    assert "invented names" in str(found.card().rows)


def test_subjects_left_out_are_in_no_text(tmp_path):
    found = write_facts(THINGS, tmp_path, ["use"], outside=0.2, statements={"use": ["{subject}: {object}!"]})
    assert found.counts == {"texts.txt": 32, "train.tsv": 24, "dev.tsv": 8, "outside.tsv": 8} and not found.invented
    texts = " ".join(load_texts(tmp_path / "texts.txt"))
    for question, answer in load_questions(tmp_path / "outside.tsv"):
        name = question.rstrip("?").split()[-1]
        assert f"{name}:" not in texts and answer.startswith("use")
    assert write_facts(Facts(THINGS.people[:1]), tmp_path, held_out=0.5).counts["train.tsv"] == 2
    assert not (tmp_path / "dev.tsv").exists()  # of the earlier call


@pytest.mark.parametrize(
    "wrong",
    [
        {"relations": ["cake"]},
        {"wordings": {"use": ["no name"]}},
        {"wordings": {"cake": ["Who is {subject}?"]}},
        {"wordings": {"use": ["{subject} {object.__class__}?", "{subject}{x}?"]}},
        {"statements": {"use": ["{subject} only"]}},
        {"held_out": 1.0},
        {"outside": -0.1},
        {"versions": 6},
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(tmp_path, wrong):
    with pytest.raises(QkvError):
        write_facts(THINGS, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_invented_names_are_no_names_of_a_grid():
    names = [f"{a} {b}" for a in ("Red", "Old", "Wet") for b in ("Fox", "Sea", "Ash")]
    grid = Facts(tuple(Person(name, more=(("x", "y"),)) for name in names))
    found = invented_names(grid, 20)
    assert found and not set(found) & set(names)  # every combination of words is taken, so that words are cut
    assert {"Wet Sea", "Wet Ash"} <= set(invented_names(Facts(grid.people[:7]), 50))
    single = invented_names(minerals(200), 100, seed=3)
    assert len(single) == 100 and not set(single) & {mineral.name for mineral in minerals(200)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_can_be_drilled_in_full(tmp_path, name):
    found = write_example(name, tmp_path, subjects=80)
    assert found.subjects == 80 and found.counts["train.tsv"] == found.counts["dev.tsv"]
    texts = [*load_texts(tmp_path / "texts.txt")]
    train, dev, outside = ([*load_questions(tmp_path / f"{each}.tsv")] for each in ("train", "dev", "outside"))
    assert not {q for q, _ in train} & {q for q, _ in dev} and not {q for q, _ in outside} & {
        q for q, _ in [*train, *dev]
    }
    source = ClozeSource(texts, train, Characters.train([*texts, *(q for q, _ in train)]), 128)
    assert source.coverage.undrilled <= 2 and source.coverage.empty == 0
    assert len(source.relevance.frames) == len(EXAMPLES[name].relations)


def test_names_that_cannot_be_told_apart_are_not_invented(tmp_path):
    found = write_facts(Facts(tuple(Person(name, more=(("x", "y"),)) for name in ("A", "B"))), tmp_path)
    assert "outside.tsv" not in found.counts and not found.invented and "no names could be invented" in found.note


def test_unknown_and_impossible_examples_are_refused(tmp_path):
    for name, subjects in (("cake", 4), ("minerals", 10**6), ("country", 10**6)):
        with pytest.raises(QkvError, match="writing an example"):
            write_example(name, tmp_path, subjects)


def test_answers_with_quotes_come_back_as_they_are(tmp_path):
    songs = {"Heroes": '"David Bowie', "Low": "Iggy", "Lodger": 'Tony"', "Hunky": '"Mick"', "Station": 'a "b" c'}
    rows = [json.dumps({"subject": s, "relation": "singer", "object": o}) for s, o in songs.items()]
    (tmp_path / "songs.jsonl").write_text("\n".join(rows))
    write_facts(load_facts(tmp_path / "songs.jsonl"), tmp_path / "out", held_out=0)
    read = load_questions(tmp_path / "out" / "train.tsv")
    assert sorted(answer for _, answer in read.pairs) == sorted(songs.values()) and not read.problems


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"statements": {"autor": ["{subject} is by {object}."]}}])
def test_seeds_below_zero_and_statements_of_no_relation_are_refused(tmp_path, wrong):
    (tmp_path / "books.csv").write_text("title,author\nDune,Herbert\nEmma,Austen\nMomo,Ende\n")
    with pytest.raises(QkvError, match=r"seed is -1|the facts have author"):
        write_facts(load_facts(tmp_path / "books.csv"), tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_examples_of_fewer_than_no_subjects_are_refused(tmp_path):
    with pytest.raises(QkvError, match="subjects is -3"):
        write_example("minerals", tmp_path, subjects=-3)


@pytest.mark.parametrize(
    ("name", "odd"), [("wordings", "Who \udcff {subject}?"), ("statements", "\udcff {subject} {object}.")]
)
def test_what_is_no_text_is_refused_before_earlier_files_are_removed(tmp_path, name, odd):
    (tmp_path / "books.csv").write_text("title,author\nDune,Herbert\nEmma,Austen\nMomo,Ende\n")
    facts = load_facts(tmp_path / "books.csv")
    write_facts(facts, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(QkvError, match="no text in UTF-8"):
        write_facts(facts, tmp_path / "out", **{name: {"author": (odd,)}})
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_questions_without_answers_that_hold_commas_come_back_whole(tmp_path):
    (tmp_path / "plays.csv").write_text(
        "title,author\nWhat Is Art?,Tolstoy\nWho Goes There?,Campbell\nWhy Is Sex Fun?,Diamond\n"
    )
    write_facts(
        load_facts(tmp_path / "plays.csv"), tmp_path / "out", wordings={"author": ("{subject}, who wrote it?",)}
    )
    asked = load_questions(tmp_path / "out" / "outside.tsv", answered=False)
    assert asked.pairs and all(q.endswith(", who wrote it?") and not a for q, a in asked.pairs)


def test_names_outside_the_texts_stand_in_none_of_them_in_any_case(tmp_path):
    """Subjects whose other halves are answers, in other case and with punctuation."""
    names = ["Red Hill", "Blue Lake", "Green Town", "White Rock", "Black Sea", "Grey Wall", "Gold Gate", "Pink Park"]
    halves = [f"{a.split()[0]} {b.split()[1]}" for a in names for b in names if a != b]
    said = [half.upper() if i % 2 else f"({half.lower()})." for i, half in enumerate(halves)]
    people = [Person(name, more=(("near", ", ".join(said[i::8][:4])),)) for i, name in enumerate(names)]
    write_facts(Facts(tuple(people)), tmp_path)
    texts = " ".join(load_texts(tmp_path / "texts.txt")).lower()
    for question in (tmp_path / "outside.tsv").read_text("utf-8").splitlines():
        name = question.removeprefix("What is the near of ").rstrip("?").lower()
        assert len(name.split()) == 2 and name not in texts


def test_a_subject_left_out_that_is_an_answer_is_not_asked_about_as_an_outsider(tmp_path):
    names = [f"Alpha{i}" for i in range(20)]
    people = tuple(Person(name, more=(("friend", names[(i + 1) % 20]),)) for i, name in enumerate(names))
    found = write_facts(Facts(people), tmp_path, outside=0.5, held_out=0.2)
    texts = " ".join(load_texts(tmp_path / "texts.txt"))
    asked = [q.split(" of ")[1].rstrip("?") for q, _ in load_questions(tmp_path / "outside.tsv")]
    assert asked and not any(f"{name}." in texts or f"{name} " in texts for name in asked)
    assert f"{10 - len(asked)} subject" in found.note and "mentioned" in found.note


@pytest.mark.parametrize("seed", range(12))
def test_a_relation_of_a_single_subject_is_no_reason_to_refuse_whoever_is_left_out(tmp_path, seed):
    people = [Person(f"Stone{i}", more=(("use", f"use {i}"),)) for i in range(8)]
    people[3] = Person("Stone3", more=(("use", "use 3"), ("finder", "Ann")))
    more = {"wordings": {"finder": ["Who found {subject}?"]}, "statements": {"finder": ["{object} found {subject}."]}}
    found = write_facts(Facts(tuple(people)), tmp_path, outside=0.5, seed=seed, **more)
    inside = "Stone3" in " ".join(load_texts(tmp_path / "texts.txt"))
    assert found.relations == (("use", "finder") if inside else ("use",))
    assert ("no question asks for finder" in found.note) != inside


def test_line_ends_and_tabs_in_facts_are_spaces_in_the_files(tmp_path):
    people = (
        Person("Ada\tX", more=(("address", "1 Main St\nLondon"),)),
        Person("Bob", more=(("address", "2 Low Rd"),)),
    )
    found = write_facts(Facts(people), tmp_path, held_out=0)
    assert found.counts["texts.txt"] == len(load_texts(tmp_path / "texts.txt").texts) == 2
    read = load_questions(tmp_path / "train.tsv")
    assert dict(read)["What is the address of Ada X?"] == "1 Main St London" and len(read) == 2 and not read.problems


BOOKS = Facts(
    tuple(Person(title, more=(("author", f"Writer {i}"),)) for i, title in enumerate(["Dune", "Emma", "Momo"]))
)
NAMES = ("texts.txt", "train.tsv", "dev.tsv", "outside.tsv", "facts.json")


@pytest.mark.parametrize("name", NAMES)
def test_files_that_no_earlier_call_wrote_are_neither_replaced_nor_removed(tmp_path, name):
    (tmp_path / name).write_text("mine\n")
    for _ in range(2):  # the second time with a record of files beside it
        with pytest.raises(QkvError, match=rf"{name} is there already, and no earlier call wrote it"):
            write_facts(BOOKS, tmp_path, held_out=0)
        assert [path.name for path in tmp_path.iterdir()] == [name] and (tmp_path / name).read_text() == "mine\n"


def test_files_of_an_earlier_call_are_replaced_unless_they_were_changed(tmp_path):
    first = write_facts(BOOKS, tmp_path)
    assert "dev.tsv" in first.counts
    second = write_facts(BOOKS, tmp_path, held_out=0, seed=3)
    assert "dev.tsv" not in second.counts and not (tmp_path / "dev.tsv").exists()
    assert {path.name for path in tmp_path.iterdir()} == {*second.counts, "facts.json"}
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in second.counts:
        (tmp_path / name).write_bytes(before[name] + b"a line of mine\n")
        with pytest.raises(
            QkvError, match=rf"{name} is there already, and no earlier call wrote it, or it was changed"
        ):
            write_facts(BOOKS, tmp_path)
        (tmp_path / name).write_bytes(before[name])
    (tmp_path / "facts.json").write_text("{}")
    with pytest.raises(QkvError, match="is there already"):
        write_facts(BOOKS, tmp_path)
    with run_lock(tmp_path), pytest.raises(QkvError, match="is writing to it"):
        write_facts(BOOKS, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before | {"facts.json": b"{}"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["link", "broken link", "folder"])
def test_links_and_folders_of_these_names_stay(tmp_path, name, kind):
    target = tmp_path / "target"
    if kind == "folder":
        (tmp_path / "out" / name).mkdir(parents=True)
    else:
        (tmp_path / "out").mkdir()
        if kind == "link":
            target.write_text("mine\n")
        (tmp_path / "out" / name).symlink_to(target)
    with pytest.raises(QkvError, match=r"is there already|it is a folder"):
        write_facts(BOOKS, tmp_path / "out", held_out=0)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]
    assert target.exists() == (kind == "link")


@pytest.mark.parametrize("failing", range(1, 7))
def test_a_disk_that_is_full_leaves_the_files_of_the_earlier_call(tmp_path, monkeypatch, failing):
    write_facts(BOOKS, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    written, whole = [], Path.write_text

    def write(path, *args, **options):
        written.append(path)
        if len(written) == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, *args, **options)

    monkeypatch.setattr(Path, "write_text", write)
    with pytest.raises(OSError, match="No space left"):
        write_facts(BOOKS, tmp_path, seed=5)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert write_facts(BOOKS, tmp_path, seed=5).counts


EVENTS = {"os.rename", "os.link", "os.remove", "os.truncate", "os.chmod"}


def disturbed(at, folder, how, call):
    """Whether `call`, in another process, came to its file operation number `at` in a folder, and was disturbed there.

    `how` is "kill", "interrupt", "error", or the name of a file that appears then, if it is not there.
    """
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 7, 9), code
        return code != 0
    try:
        count, busy, reached = 0, False, False

        def hook(event, arguments):
            nonlocal count, busy, reached
            writes = event in EVENTS or (event == "open" and arguments[2] and arguments[2] & os.O_CREAT)
            if busy or not writes or not any(str(each).startswith(str(folder)) for each in arguments):
                return
            count += 1
            if count == at:
                busy = reached = True
                if how == "kill":
                    os._exit(9)
                if how in ("interrupt", "error"):
                    busy = False
                    raise KeyboardInterrupt if how == "interrupt" else OSError(errno.EIO, "Input/output error")
                if not os.path.lexists(folder / how):
                    (folder / how).write_text("mine\n")
                busy = False

        sys.addaudithook(hook)
        with suppress(KeyboardInterrupt, OSError, QkvError):
            call()
        os._exit(7 if reached else 0)
    finally:
        os._exit(1)


def as_it_is(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".qkv-lock"}


@pytest.fixture
def earlier_and_later(tmp_path):
    """The files of two calls in a folder; the second has no outside.tsv of its own, and other contents."""
    sets = []
    for name, options in (("one", {}), ("two", {"held_out": 0, "seed": 5})):
        write_facts(BOOKS, tmp_path / name, **options)
        sets.append(as_it_is(tmp_path / name))
    write_facts(BOOKS, tmp_path / "out")
    assert sets[0].keys() != sets[1].keys()
    return sets


@pytest.mark.parametrize("how", ["interrupt", "error", "kill"])
def test_all_earlier_or_all_later_files_are_there_whenever_a_call_is_ended(how, earlier_and_later, tmp_path):
    out = tmp_path / "out"
    earlier, later = earlier_and_later
    at = 0
    while True:
        at += 1
        if not disturbed(at, out, how, lambda: write_facts(BOOKS, out, held_out=0, seed=5)):
            break
        if how == "kill":  # the next call, which fails as soon as it may, restores what it finds
            with pytest.MonkeyPatch.context() as patch, pytest.raises(ZeroDivisionError):
                patch.setattr(fact_files, "replace_files", lambda *_: 1 / 0)
                write_facts(BOOKS, out)
        left = as_it_is(out)
        assert {name: left[name] for name in left if not name.startswith(".qkv-")} in (earlier, later), (at, set(left))
        write_facts(BOOKS, out)
        assert as_it_is(out) == earlier, at
    assert at > 15 and as_it_is(out) == later


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_appears_while_files_are_written_is_kept(name, again, earlier_and_later, tmp_path):
    out, at, placed = tmp_path / "out", 0, 0
    while True:
        at += 1
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        if again:
            write_facts(BOOKS, out)
        if not disturbed(at, out, name, lambda: write_facts(BOOKS, out, seed=5)):
            break
        left = as_it_is(out)
        if b"mine\n" in left.values():
            placed += 1
            assert left[name] == b"mine\n"
            kept = {each.removeprefix(".qkv-old-"): left[each] for each in left if left[each] != b"mine\n"}
            kept.pop(".qkv-replacing", None)
            assert kept == (earlier_and_later[0] if again else {})  # the earlier file of this name is kept beside it
            (out / name).unlink()
            write_facts(BOOKS, out)
            assert as_it_is(out) == earlier_and_later[0]
        else:
            assert again or left == {} or set(left) >= set(NAMES), left.keys()
    assert placed > 1


@pytest.mark.parametrize("name", ["photo.txt", "", "..", "../beside.txt", "/etc/hostname"])
@pytest.mark.parametrize("side", ["old", "new"])
@pytest.mark.parametrize("checksum", ["true", "edited"])
def test_a_record_that_speaks_of_other_files_than_facts_removes_nothing(name, side, checksum, tmp_path, contents):
    """Somebody else's .qkv-replacing, with the true checksums of the files that it names."""
    from qkv.core.json_files import content_checksum, with_checksum
    from qkv.knowledge.datasets.file_sets import PENDING_FILE, PENDING_FORMAT

    folder = tmp_path / "w"
    folder.mkdir()
    for path in (folder / "photo.txt", folder / ".qkv-old-photo.txt", tmp_path / ".qkv-old-w", tmp_path / "beside.txt"):
        path.write_text("mine")
    sides = {"old": {}, "new": {}} | {side: {name: content_checksum(b"mine"), "texts.txt": "x"}}
    record = with_checksum({"format": PENDING_FORMAT, **sides}) | ({} if checksum == "true" else {"checksum": "edited"})
    (folder / PENDING_FILE).write_text(json.dumps(record))
    before = contents(tmp_path)
    with pytest.raises(QkvError, match="qkv did not write it"):
        write_facts(THINGS, folder)
    assert contents(tmp_path) == before
