"""Facts, questions and texts from files; every row that cannot be used is reported by its line number."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import QkvError
from qkv.knowledge import Facts, Person, load_facts, load_questions, load_texts, pantheon
from qkv.knowledge.datasets.facts import MAX_PROBLEMS_SHOWN, Problem, describe_problems


@given(st.integers(1, 200), st.integers(0, 5), st.floats(0.01, 0.99))
def test_samples_and_splits_are_seeded_and_complete(n, seed, share):
    facts = pantheon().sample(n + 1, seed)
    assert facts == pantheon().sample(n + 1, seed) and len(set(facts.people)) == n + 1
    one, two = facts.split(share, seed)
    assert sorted([*one, *two]) == sorted(facts) and one.people and two.people
    assert abs(len(one) - share * len(facts)) <= 1


def test_invented_names_are_new_and_made_of_words_of_the_names():
    facts = pantheon().sample(200, 0)
    names, words = facts.invented_names(50, seed=3), {w for p in facts for w in p.name.split()}
    assert len(set(names)) == 50 and not set(names) & {p.name for p in facts}
    assert all(w in words for name in names for w in name.split())
    assert names == facts.invented_names(50, seed=3) != facts.invented_names(50, seed=4)
    with pytest.raises(QkvError, match="inventing"):
        pantheon().sample(1, 0).invented_names(5)


def test_bad_rows_of_questions_are_reported_by_line(tmp_path):
    path = tmp_path / "q.tsv"
    path.write_bytes(b"Where?\tRome\nno answer\n\n\tempty\na\tb\tc\nWho?\tAda\r\n" + b"bad \xff byte\tx\n")
    found = load_questions(path)
    assert found.pairs == (("Where?", "Rome"), ("Who?", "Ada"))
    assert [p.line for p in found.problems] == [2, 4, 5, 7]
    assert "4 bad rows left out (line 2:" in found.card().note


def test_questions_may_come_without_answers(tmp_path):
    path = tmp_path / "unknown.txt"
    path.write_text("Where was Kim Moss born?\nWhere was Al Poe born?\tRome\na\tb\tc\n", "utf-8")
    found = load_questions(path, answered=False)
    assert found.pairs == (("Where was Kim Moss born?", ""), ("Where was Al Poe born?", "Rome"))
    assert [problem.line for problem in found.problems] == [3] and len(load_questions(path).problems) == 2


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_triples_become_people_under_all_names_of_a_relation(tmp_path, suffix):
    rows = [
        ("Ada Lovelace", "birthplace", "London"),
        ("Ada Lovelace", "year of birth", "1815"),
        ("Ada Lovelace", "hobby", "flying, on paper"),
        ("Ada Lovelace", "city", "Paris"),
        ("Bob", "profession", "writer"),
    ]
    path = tmp_path / f"facts.{suffix}"
    if suffix == "csv":
        quoted = [",".join(f'"{c}"' if "," in c else c for c in row) for row in rows]
        path.write_text("\n".join(["subject,relation,object", *quoted, "only,two", '"open,quote,x']), "utf-8")
        bad = [7, 8]
    else:
        lines = [json.dumps(dict(zip(("subject", "relation", "object"), row, strict=True))) for row in rows]
        path.write_text("\n".join([*lines, "{", "[1]", '{"subject": "x", "relation": "y", "object": [1]}']), "utf-8")
        bad = [6, 7, 8]
    found = load_facts(path)
    ada, bob = found.people
    apart = (("birthplace", "London"), ("hobby", "flying, on paper"), ("city", "Paris"))
    assert ada == Person("Ada Lovelace", year="1815", more=apart)
    assert bob.facts() == {"occupation": "writer"}
    assert [p.line for p in found.problems] == bad


def test_texts_are_lines_and_invalid_bytes_affect_only_their_line(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(b"one\n\ntwo \xe2\x80\xa8 still two\n\xff\n")
    found = load_texts(path)
    assert found.texts == ("one", "two \u2028 still two") and [p.line for p in found.problems] == [4]


@pytest.mark.parametrize("load", [load_questions, load_texts, load_facts])
def test_files_of_only_bad_rows_and_missing_files_are_refused(tmp_path, load):
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xff\n\xff\n")
    with pytest.raises(QkvError, match=r"no row of it can be used: 2 bad rows"):
        load(path)
    path.write_bytes(b"\n")
    with pytest.raises(QkvError, match="empty"):
        load(path)
    with pytest.raises(QkvError, match="no such file"):
        load(tmp_path / "none.csv")


def test_facts_of_another_format_are_refused(tmp_path):
    with pytest.raises(QkvError, match=r"\.txt or \.jsonl"):
        load_facts(tmp_path / "x.xml")


def test_only_keeps_the_named_relations():
    ada = Person("Ada", "London", "England", "1815", "mathematician", (("pet", "Puff"), ("hobby", "flying")))
    (kept,) = Facts((ada,)).only("city", "hobby")
    assert kept.facts() == {"city": "London", "hobby": "flying"} and kept.name == "Ada"
    with pytest.raises(QkvError, match=r"nobody has a fact 'citty'.*city, country, hobby"):
        Facts((ada,)).only("citty")


@pytest.mark.parametrize("count", [0, 1, MAX_PROBLEMS_SHOWN, MAX_PROBLEMS_SHOWN + 3])
def test_problems_are_listed_up_to_a_number(count):
    text = describe_problems([Problem(i, "bad") for i in range(count)])
    assert text.count("line") == min(count, MAX_PROBLEMS_SHOWN) and ("and 3 more" in text) == (count == 8)
    assert text.startswith(f"{count} bad row") if count else text == ""


def test_impossible_samples_and_splits_are_refused():
    facts = pantheon().sample(3, 0)
    for call in (lambda: facts.sample(4), lambda: facts.sample(0), lambda: facts.split(1.0), lambda: facts.split(0)):
        with pytest.raises(QkvError):
            call()
