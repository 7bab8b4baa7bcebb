"""Facts from tables of every form; people and things are told apart."""

import csv
import itertools

import pytest

from qkv.errors import QkvError
from qkv.knowledge import Facts, Person, biographies, load_facts, questions, write_facts

BOOKS = [
    ("Dune", "Frank Herbert", "1965"),
    ("Emma", "Jane Austen", "1815"),
    ("Time; and, again", 'Jack "J" Finney', "1970"),
]
DIALECTS = list(itertools.product([",", ";", "\t"], [csv.QUOTE_ALL, csv.QUOTE_MINIMAL], [".csv", ".tsv", ".txt"]))


def write(path, rows, delimiter=",", quoting=csv.QUOTE_MINIMAL):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, quoting=quoting).writerows(rows)
    return path


@pytest.mark.parametrize(
    ("text", "columns", "relations"),
    [
        ("Dune,author,Herbert\nEmma,genre,novel\nMomo,language,German\n", (), ["author", "genre", "language"]),
        ("Mars,moons,2\nEarth,orbital period,365\n", (), ["moons", "orbital period"]),
        ("Salt,use,food\nGold,use,money\nTin,colour,grey\nIron,colour,black\n", (), ["use", "colour"]),
        ("salt,use,food\ntin,colour,grey\niron,use,tools\ngold,use,money\n", (), ["use", "colour"]),
        ("title,author,year\nDune,Herbert,1965\n", ("title", "author", "year"), ["author", "year"]),
        ("Name,role,Home\nAnna,nurse,Rome\nBen,cook,Oslo\n", ("Name", "role", "Home"), ["role", "Home"]),
        ("City,River,Lake\nRome,tiber,none\n", ("City", "River", "Lake"), ["River", "Lake"]),
        ("Dune,author,Herbert\nEmma,Jane Austen,1815\n", ("Dune", "author", "Herbert"), ["author", "Herbert"]),
        ("plant,height\nfern,tall\n", ("plant", "height"), ["height"]),
    ],
)
def test_where_nothing_comes_again_triples_are_known_by_how_they_are_written(tmp_path, text, columns, relations):
    (tmp_path / "t.csv").write_text(text)
    found = load_facts(tmp_path / "t.csv")
    assert found.columns == columns
    assert list(dict.fromkeys(name for person in found for name, _ in person.more)) == relations
    shown = str(write_facts(found, tmp_path / "out"))
    assert ("(the first row" in shown) == bool(columns) and ("--form triples" in shown) == (len(columns) == 3)


@pytest.mark.parametrize(("delimiter", "quoting", "suffix"), DIALECTS)
def test_triples_and_tables_hold_the_same_facts(tmp_path, delimiter, quoting, suffix):
    relations = ("author", "year")
    triples = [(row[0], relations[i], row[i + 1]) for row in BOOKS for i in (0, 1)]
    forms = {
        "table": [("title", *relations), *BOOKS],
        "triples": triples,
        "headed": [("Subject", "Relation", "Object"), *triples],
        "properties": [("item", "property", "value"), *triples],
    }
    found = {
        name: load_facts(write(tmp_path / f"{name}{suffix}", rows, delimiter, quoting)) for name, rows in forms.items()
    }
    for facts in found.values():
        assert [(p.name, *p.facts().values()) for p in facts] == BOOKS and not facts.problems
        assert all(tuple(p.facts()) == relations for p in facts)


def test_nothing_about_people_is_said_of_things(tmp_path):
    odd = '{"subject": "a\\ufffd", "relation": "b", "object": "c"}'
    (tmp_path / "replaced.jsonl").write_text(odd + '\n{"subject": "a", "relation": "b", "object": "c"}')
    assert [each.line for each in load_facts(tmp_path / "replaced.jsonl").problems] == [1]
    rows = [
        ("mountain", "country", "city", "year"),
        ("Everest", "Nepal", "Namche", "1953"),
        ("K2", "Pakistan", "Skardu", "1954"),
    ]
    facts = load_facts(write(tmp_path / "m.csv", rows))
    said = " ".join(biographies(facts, 5, name="pronoun")) + " ".join(biographies(facts, 5))
    for word in ("born", "family", "native", "life", "birth", " they", "their", "came from", "at home"):
        assert word not in said.lower(), word
    assert "The country of Everest is Nepal." in said and "Its city is Namche." in said
    assert dict(questions(facts, ["country"]))["What is the country of K2?"] == "Pakistan"
    assert facts.only("country").people[0].more == (("country", "Nepal"),)
    people = load_facts(tmp_path / "m.csv", people=True)
    assert dict(questions(people, ["country"]))["Which country did K2 come from?"] == "Pakistan"


def test_people_are_known_by_their_relations_or_by_the_header(tmp_path):
    mixed = [("Ada", "birthplace", "London"), ("Ada", "country", "England"), ("Everest", "country", "Nepal")]
    ada, everest = load_facts(write(tmp_path / "a.csv", mixed))
    assert (ada.city, ada.country, ada.more) == ("London", "", (("country", "England"),))
    assert everest == Person("Everest", more=(("country", "Nepal"),))
    (bo,) = load_facts(write(tmp_path / "b.csv", [("Person", "birthplace"), ("Bo", "Rome")]))
    assert bo.city == "Rome"
    (bo,) = load_facts(write(tmp_path / "b.csv", [("Person", "city"), ("Bo", "Rome")]))
    assert bo.city == "" and load_facts(tmp_path / "b.csv", people=True).people[0].city == "Rome"
    (thing,) = load_facts(tmp_path / "b.csv", people=False)
    assert thing.city == "" and thing.facts() == {"city": "Rome"}


@pytest.mark.parametrize(
    ("rows", "false"),
    [
        ([("name", "job", "city"), ("Anna Berg", "nurse", "Oslo")], ("Oslo",)),
        ([("laureate", "year", "profession", "country"), ("Marie Curie", "1903", "physicist", "France")],
         ("1903", "France")),
        ([("person", "city", "year", "country"), ("Anna Berg", "Oslo", "2020", "Norway")], ("Oslo", "2020", "Norway")),
        ([("name", "born", "died"), ("Ada Lovelace", "London", "1852")], ("1852",)),
    ],
)  # fmt: skip
def test_a_column_that_may_mean_anything_is_no_fact_of_birth(tmp_path, rows, false):
    facts = load_facts(write(tmp_path / "t.csv", rows))
    sentences = [each for text in biographies(facts, 5) for each in text.split(". ")]
    birth = ("born", "birth", "native", "came from", "at home", "family", "came to life", "life began", "light of day")
    for value in false:
        own = [sentence for sentence in sentences if value in sentence]
        assert own and not any(word in sentence for sentence in own for word in birth), own
    assert not any("year London" in sentence for sentence in sentences)
    for column in ("born", "born in"):
        rows = [("name", column, "job"), ("Ada", "1815", "x"), ("Bo", "Ulm", "y"), ("Cy", "12 May 1987", "z")]
        born = load_facts(write(tmp_path / "b.csv", rows))
        assert [(person.year, person.city) for person in born] == [("1815", ""), ("", "Ulm"), ("", "")]
        assert born.people[2].more == ((column, "12 May 1987"),)
    both = [("name", "born", "city", "job"), ("Ada", "London", "Bath", "x")]
    assert load_facts(write(tmp_path / "c.csv", both)).people[0].facts() == {
        "occupation": "x", "born": "London", "city": "Bath"
    }  # fmt: skip


@pytest.mark.parametrize(
    "written",
    [
        "NA",
        "N/A",
        "#N/A",
        "NULL",
        "NaN",
        "nan",
        "None",
        r"\N",
        "-",
        "?",
        "unknown",
        "<NA>",
        "NaT",
        "#NUM!",
        "(null)",
        ".",
    ],
)
@pytest.mark.parametrize("form", ["table", "triples"])
def test_what_programs_write_for_nothing_is_no_fact_and_is_said(tmp_path, written, form):
    rows = [("name", "team", "birthplace"), ("Ann Lee", "Ajax", written), ("Bob Ray", written, "Ulm")]
    if form == "triples":
        rows = [(row[0], name, value) for row in rows[1:] for name, value in zip(rows[0][1:], row[1:], strict=True)]
    facts = load_facts(write(tmp_path / "t.csv", rows), form=form)
    assert [person.facts() for person in facts] == [{"team": "Ajax"}, {"city": "Ulm"}]
    assert facts.missing == (written, written) and not facts.problems
    assert f"2 cells taken for not known ({written})" in write_facts(facts, tmp_path / "out").card().note
    assert written not in " ".join(biographies(facts, 3)).replace("?", written if written == "?" else "").split()


def test_words_of_a_column_may_be_joined_by_lines(tmp_path):
    rows = [("name", "Year_of_Birth", "place_of_birth"), ("Ada", "1815", "London")]
    (ada,) = load_facts(write(tmp_path / "t.csv", rows))
    assert ada == Person("Ada", city="London", year="1815")


def test_a_row_about_nobody_is_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,birthplace\nNULL,Paris\nAnn Lee,Ulm\nBob Ray,NA\n")
    facts = load_facts(path)
    assert [person.name for person in facts] == ["Ann Lee"] and [bad.line for bad in facts.problems] == [2, 4]


def test_sodium_is_no_missing_value(tmp_path):
    facts = load_facts(write(tmp_path / "t.csv", [("element", "symbol"), ("Sodium", "Na"), ("Iron", "Fe")]))
    assert facts.people[0].facts() == {"symbol": "Na"} and not facts.missing


def test_rows_that_do_not_fit_are_named_and_empty_cells_are_not_known(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("title,author,year\nDune,Herbert,\nEmma,Austen\n,Nobody,1\nDune,Other,1965\n", "utf-8")
    found = load_facts(path)
    assert found.people[0].facts() == {"author": "Herbert"} and len(found) == 1
    assert [problem.line for problem in found.problems] == [3, 4, 5]
    for text in ("Everest,8849\nK2,8611\n", "title,x,x\na,b,c\nd,e,f\n"):
        path.write_text(text, "utf-8")
        with pytest.raises(QkvError, match="reading facts"):
            load_facts(path)
    path.write_text("a,b,c\nd,e,f\n", "utf-8")
    assert load_facts(path, form="triples").people[1].facts() == {"e": "f"}
    assert load_facts(path, form="table").people[0].facts() == {"b": "e", "c": "f"}
    with pytest.raises(QkvError, match="form is"):
        load_facts(path, form="cake")


def facts_in(tmp_path, text, name="t.csv", **options):
    """The facts by subject, and the numbers of the bad lines."""
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    found = load_facts(tmp_path / name, **options)
    return {person.name: person.facts() for person in found}, [problem.line for problem in found.problems]


@pytest.mark.parametrize("order", [("city", "birthplace"), ("birthplace", "city")])
@pytest.mark.parametrize("subject", ["person", "name"])
def test_columns_that_may_mean_the_same_stay_apart_where_both_are_there(tmp_path, order, subject):
    rows = [(subject, *order), ("Ada", "Paris", "London"), ("Bob", "Rome", "Rome"), ("Cy", "", "Oslo")]
    found = load_facts(write(tmp_path / "t.csv", rows))
    assert not found.problems
    for person, row in zip(found, rows[1:], strict=True):
        assert person.facts() == {name: value for name, value in zip(order, row[1:], strict=True) if value}
    said = dict(questions(found, order))
    assert {said[f"What is the {name} of Ada?"] for name in order} == {"London", "Paris"}


def test_synonyms_are_one_relation_where_only_one_of_them_is_known(tmp_path):
    triples = "Ada,birthplace,London\nBob,place of birth,Rome\nAda,birthplace,London\n"
    found, bad = facts_in(tmp_path, triples, form="triples")
    assert found == {"Ada": {"city": "London"}, "Bob": {"city": "Rome"}} and not bad


def test_a_header_that_comes_again_does_not_make_triples_of_a_table(tmp_path):
    table = "Title,Author,Year\nDune,Frank Herbert,1965\nEmma,Jane Austen,1815\nTitle,Author,Year\nMomo,Ende,1973\n"
    found, bad = facts_in(tmp_path, table)
    assert found["Momo"] == {"Author": "Ende", "Year": "1973"} and len(found) == 3 and bad == [4]
    again = "Title,Author,Year\nDune,Author,1965\nEmma,Jane Austen,1815\nMomo,Ende,1973\nJaws,Benchley,1974\n"
    found, _ = facts_in(tmp_path, again)
    assert found["Dune"] == {"Author": "Author", "Year": "1965"} and len(found) == 4
    minerals = "mineral,colour,place\nquartz,colour,norway\ntalc,white,italy\nruby,red,india\n"
    assert facts_in(tmp_path, minerals)[0]["talc"] == {"colour": "white", "place": "italy"}


@pytest.mark.parametrize("text", ["title,author,year\n", "title,author\n", "Title;Author;Year\n\n", "name,city\n" * 2])
def test_a_file_of_a_header_alone_is_refused(tmp_path, text):
    with pytest.raises(QkvError, match="no row"):
        facts_in(tmp_path, text)


def test_encodings_suffixes_and_spreadsheet_lines(tmp_path):
    text = "title,author\nDune,Frank Herbert\nÉmile,Rousseau\n"
    wanted = {"Dune": {"author": "Frank Herbert"}, "Émile": {"author": "Rousseau"}}
    for data, name in (
        (text.encode("utf-16"), "a.csv"),
        (text.encode("utf-8-sig"), "a.CSV"),
        (text.replace("\n", "\r").encode(), "a.csv"),
        (("sep=;\n" + text.replace(",", ";")).encode(), "a.csv"),
        (text.replace("É", "E\u0301").encode(), "a.csv"),
    ):
        assert facts_in(tmp_path, data, name) == (wanted, []), data
    with pytest.raises(QkvError, match="zero bytes"):
        facts_in(tmp_path, b"title,author\nDu\0ne,Frank\nEmma,Jane\n")
    assert facts_in(tmp_path, "title,author\nCafe\u0301,A\nCaf\u00e9,B\n") == ({"Café": {"author": "A"}}, [3])


def test_a_long_quoted_cell_gives_no_facts_of_its_lines(tmp_path):
    note = "\n".join(f"line {i},foo,bar" for i in range(12))
    found, bad = facts_in(tmp_path, f'title,author,note\nDune,Frank,"{note}"\nEmma,Jane,ok\n')
    assert list(found) == ["Dune", "Emma"] and not bad


def test_rows_that_say_nothing_or_are_no_text_are_named_by_their_line(tmp_path):
    (tmp_path / "books.csv").write_text("title,author\nDune,\nEmma,Austen\nMomo,Ende\n")
    found = load_facts(tmp_path / "books.csv")
    assert [each.line for each in found.problems] == [2] and "Dune" in found.problems[0].why
    rows = [
        '{"subject": "a\\ud800", "relation": "b", "object": "c"}',
        '{"subject": "a\\u0000", "relation": "b", "object": "c"}',
    ]
    (tmp_path / "odd.jsonl").write_text("\n".join([*rows, '{"subject": "a", "relation": "b", "object": "c"}']))
    found = load_facts(tmp_path / "odd.jsonl")
    assert [each.line for each in found.problems] == [1, 2] and [person.name for person in found.people] == ["a"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("names", [("subject", "relation", "object"), ("head", "relation", "tail")])
def test_a_header_may_name_the_roles_of_triples_in_any_order(tmp_path, order, names):
    triples = [("Dune", "author", "Frank Herbert"), ("Emma", "author", "Jane Austen"), ("Dune", "year", "1965")]
    rows = [tuple(row[i] for i in order) for row in [names, *triples]]
    found = load_facts(write(tmp_path / "t.csv", rows))
    assert {p.name: p.facts() for p in found} == {
        "Dune": {"author": "Frank Herbert", "year": "1965"}, "Emma": {"author": "Jane Austen"}
    }  # fmt: skip


@pytest.mark.parametrize("first", [0, 1])
def test_an_index_of_pandas_is_no_subject_and_a_named_or_other_first_column_is(tmp_path, first):
    rows = [("", "title", "author"), *((str(i + first), *book[:2]) for i, book in enumerate(BOOKS))]
    found = load_facts(write(tmp_path / "t.csv", rows))
    assert [p.name for p in found] == [book[0] for book in BOOKS] and found.columns == ("title", "author")
    own = [("", "author", "year"), *BOOKS]  # the index is the title itself
    assert [p.name for p in load_facts(write(tmp_path / "t.csv", own))] == [book[0] for book in BOOKS]
    numbered = [("number", "name", "sign"), ("1", "Hydrogen", "H"), ("2", "Helium", "He")]
    assert [p.name for p in load_facts(write(tmp_path / "t.csv", numbered))] == ["1", "2"]


@pytest.mark.parametrize("column", ["job", "profession"])
def test_a_row_with_an_empty_cell_is_of_the_same_kind_as_the_others_of_its_table(tmp_path, column):
    people = [("Anna Bo", "Munich", "baker"), ("Carl Do", "Berlin", ""), ("Eve Fo", "Bonn", "smith")]
    rows = [("name", "birthplace", column), *people]
    found = load_facts(write(tmp_path / "t.csv", rows))
    asked = {q.replace(person.name, "…") for person in found for q, _ in questions(Facts((person,)), ["city"])}
    assert asked == {"Where was … born?"}


@pytest.mark.parametrize("end", [",", ",,,"])
def test_empty_last_columns_of_a_spreadsheet_are_left_out(tmp_path, end):
    path = tmp_path / "t.csv"
    path.write_text(f"title,author{end}\nDune,Herbert{end}\nEmma,Austen{end}\n", "utf-8")
    found = load_facts(path)
    assert [person.facts() for person in found] == [{"author": "Herbert"}, {"author": "Austen"}]
    assert not found.problems and found.columns == ("title", "author")
    path.write_text("title,author,\nDune,Herbert,\nEmma,Austen,1815\n", "utf-8")
    with pytest.raises(QkvError, match="not the name of a column"):
        load_facts(path)


def test_a_contradicting_row_is_left_out_whole(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("person,city,year,occupation\nJohn Smith,London,1900,\nJohn Smith,Paris,1950,painter\n", "utf-8")
    found = load_facts(path)
    assert found.people[0].facts() == {"city": "London", "year": "1900"}
    assert [problem.line for problem in found.problems] == [3]


def test_a_first_line_in_another_encoding_is_refused_since_it_may_be_the_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("Título;Autor\n".encode("cp1252") + b"Emma;Jane Austen\nDune;Frank Herbert\n")
    with pytest.raises(QkvError, match="first line is not UTF-8"):
        load_facts(path)


def test_an_index_with_gaps_or_a_row_without_a_number_is_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",title,author\n0,Dune,Herbert\n2,Emma,Austen\n5,Ulysses,Joyce\n,title,author\n,total,\n", "utf-8")
    found = load_facts(path)
    assert [person.name for person in found] == ["Dune", "Emma", "Ulysses"]
    assert [problem.line for problem in found.problems] == [5, 6]


@pytest.mark.parametrize("numbers", [(3, 0, 2), (0, 1, 0), (7, 7, 7)])
def test_an_index_in_any_order_is_left_out(tmp_path, numbers):
    path = tmp_path / "t.csv"
    rows = zip(numbers, ("Ada Lovelace", "Alan Turing", "Kurt Gödel"), ("London", "Paris", "Brno"), strict=True)
    path.write_text(",name,birthplace\n" + "".join(f"{n},{name},{city}\n" for n, name, city in rows), "utf-8")
    found = load_facts(path)
    assert [person.name for person in found] == ["Ada Lovelace", "Alan Turing", "Kurt Gödel"] and not found.problems


def test_headers_of_joined_files_are_no_facts(tmp_path):
    path = tmp_path / "t.csv"
    one = "subject,relation,object\nDune,author,Herbert\n"
    path.write_text(one + one.replace("Dune", "Emma").replace("Herbert", "Austen"), "utf-8")
    assert [person.name for person in load_facts(path)] == ["Dune", "Emma"]
    path.write_text("title,author\nDune,Herbert\n\ufefftitle,author\nEmma,Austen\n", "utf-8")
    found = load_facts(path)
    assert [person.name for person in found] == ["Dune", "Emma"] and [p.line for p in found.problems] == [3]


def test_city_and_birthplace_stay_apart_though_no_row_has_both(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("person,city,birthplace\nAda Lovelace,Bath,\nAlan Turing,,London\n", "utf-8")
    assert [person.facts() for person in load_facts(path)] == [{"city": "Bath"}, {"birthplace": "London"}]
