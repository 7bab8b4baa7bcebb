"""Tables in every delimiter and quoting that spreadsheets write; question files among them."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.errors import QkvError
from qkv.knowledge import load_questions
from qkv.train.data.tables import find_delimiter, parse_questions, split_rows, tab_separated
from qkv.train.data.text_files import read_questions

CELL = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="\ufffd"),
    min_size=1,
    max_size=12,
)
PHRASE = st.lists(CELL, min_size=1, max_size=4).map(" ".join)
QUOTING = st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])


def numbered(text):
    return [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]


def written(rows, delimiter, quoting):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerows(rows)
    return out.getvalue()


@settings(max_examples=3 * settings.default.max_examples)
@given(st.lists(st.tuples(PHRASE, PHRASE, PHRASE), min_size=1, max_size=6), st.sampled_from(["\t", ";", ","]), QUOTING)
def test_what_the_csv_module_writes_is_read_back(rows, delimiter, quoting):
    lines = numbered(written(rows, delimiter, quoting))
    assert [row.cells for row in split_rows(lines, delimiter)] == rows


@settings(max_examples=3 * settings.default.max_examples)
@given(
    st.lists(st.tuples(PHRASE.map(lambda q: f"{q}?"), PHRASE), min_size=1, max_size=8),
    st.sampled_from(["\t", ";", ","]),
    st.booleans(),
)
def test_quoted_exports_are_read_with_and_without_a_header(pairs, delimiter, headed):
    rows = [("Question", "Answer"), *pairs] if headed else pairs
    found, bad = parse_questions(numbered(written(rows, delimiter, csv.QUOTE_ALL)))
    assert [(q, a) for _, q, a in found] == pairs and not bad


@pytest.mark.parametrize(
    "text",
    [
        "Who wrote Emma?\tJane Austen\nWho wrote Dune?\tFrank Herbert\n",
        '"Who wrote Emma?"\t"Jane Austen"\n"Who wrote Dune?"\t"Frank Herbert"\n',
        "question\tanswer\nWho wrote Emma?\tJane Austen\nWho wrote Dune?\tFrank Herbert\n",
        "question,answer\nWho wrote Emma?,Jane Austen\nWho wrote Dune?,Frank Herbert\n",
        'id;"Question";"Answer"\n1;"Who wrote Emma?";"Jane Austen"\n2;"Who wrote Dune?";"Frank Herbert"\n',
        "Answer,Question\nJane Austen,Who wrote Emma?\nFrank Herbert,Who wrote Dune?\n",
        "Who wrote Emma?;Jane Austen\r\nWho wrote Dune?;Frank Herbert\r\n",
        "\ufeffQuestions:,Answers:\nWho wrote Emma?,Jane Austen\nWho wrote Dune?,Frank Herbert\n",
        '"Who wrote\nEmma?","Jane\nAusten"\n"Who wrote Dune?","Frank Herbert"\n',
    ],
)
def test_both_readers_read_every_form_alike(text, tmp_path):
    path = tmp_path / "q.csv"
    path.write_bytes(text.encode())
    wanted = [("Who wrote Emma?", "Jane Austen"), ("Who wrote Dune?", "Frank Herbert")]
    assert read_questions(path) == wanted and list(load_questions(path)) == wanted


def test_quotes_that_belong_to_a_cell_stay():
    text = 'Who sang "Heroes"?\tBowie\nWho sang Low?\t"Bowie" or "Eno"\n"Who sang ""Low""?"\tBowie\n'
    found, bad = parse_questions(numbered(text))
    assert [(q, a) for _, q, a in found] == [
        ('Who sang "Heroes"?', "Bowie"),
        ("Who sang Low?", '"Bowie" or "Eno"'),
        ('Who sang "Low"?', "Bowie"),
    ]
    assert not bad


def test_commas_in_questions_of_a_tab_file_separate_nothing():
    text = "".join(f"Where, pray, was Ada {n}, the poet, born?\tParis, France\n" for n in range(9))
    found, bad = parse_questions(numbered(text + "no answer here\n"))
    assert [a for _, _, a in found] == ["Paris, France"] * 9 and [each.line for each in bad] == [10]


def test_questions_alone_keep_their_commas():
    text = "Where was Ada, Countess of Lovelace, born?\nWhere was Al, the poet, born?\n"
    found, bad = parse_questions(numbered(text), answered=False)
    assert [q for _, q, _ in found] == text.splitlines() and not bad
    found, _ = parse_questions(numbered("question\nWhere, pray?\nWho?\n"), answered=False)
    assert [q for _, q, _ in found] == ["Where, pray?", "Who?"]


def test_rows_of_another_form_are_named_by_line():
    found, bad = parse_questions(numbered("a?,b\nc?,d\ne?,f,g\nh?,\n"))
    assert [q for _, q, _ in found] == ["a?", "c?"] and [each.line for each in bad] == [3, 4]
    assert find_delimiter(numbered("one\ntwo\n")) is None
    with pytest.raises(QkvError, match="line 1, 2 is not"):
        read_questions_of("one\ntwo\n")


def read_questions_of(text):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "q.tsv")
        path.write_text(text, "utf-8")
        return read_questions(path)


def test_rows_with_more_cells_than_the_header_are_reported_and_not_cut():
    text = "question,answer\nWho wrote Emma?,Jane Austen\nWho wrote Dune?,Herbert, Frank\nWho wrote Momo?,Ende\n"
    found, bad = parse_questions(numbered(text))
    assert [line for line, _, _ in found] == [2, 4] and [each.line for each in bad] == [3]
    assert "3 cells" in bad[0].why and "header" in bad[0].why
    found, bad = parse_questions(numbered("question\tanswer\tnote\nWho?\tA\nWhom?\tB\tn\nWhat?\tC\tn\td\n"))
    assert [each[0] for each in found] == [2, 3] and [each.line for each in bad] == [4]  # a short row lacks its note


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_unquoted_questions_that_need_no_answer_are_cut_off_from_theirs(delimiter):
    pairs = [(f"Who wrote Book {i}?", f"Author {i}") for i in range(6)]
    text = "".join(f"{q}{delimiter}{a}\n" for q, a in pairs)
    for answered in (True, False):
        found, bad = parse_questions(numbered(text), answered)
        assert [(q, a) for _, q, a in found] == pairs and not bad
    alone = ["Who wrote Yes, Minister?", "Who wrote Dune, part one?", "Who, me?"]
    found, bad = parse_questions(numbered("\n".join(alone)), answered=False)
    assert [q for _, q, _ in found] == alone and not bad


def test_a_long_quoted_cell_is_one_cell_and_one_without_an_end_is_a_bad_row():
    note = "\n".join(f"line {i},foo,bar" for i in range(40))
    rows = split_rows(numbered(f'title,author,note\nDune,Frank,"{note}"\nEmma,Jane,ok\n'), ",")
    assert [row.cells[0] for row in rows] == ["title", "Dune", "Emma"] and len(rows[1].cells) == 3
    rows = split_rows(numbered(f'title,author,note\nDune,Frank,"{note}\nEmma,Jane,ok\n'), ",")
    assert rows[1].cells == ('Dune,Frank,"line 0,foo,bar',)  # the quote is never closed


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"])
def test_files_are_decoded_by_their_byte_order_mark(tmp_path, encoding):
    text = "Who wrote Émile?\tRousseau\nWho wrote Dune?\tFrank Herbert\n"
    marked = "\ufeff" + text if encoding.endswith(("le", "be")) else text
    (tmp_path / "q.tsv").write_bytes(marked.encode(encoding))
    wanted = [("Who wrote Émile?", "Rousseau"), ("Who wrote Dune?", "Frank Herbert")]
    assert list(load_questions(tmp_path / "q.tsv")) == wanted == read_questions(tmp_path / "q.tsv")


def test_files_with_zero_bytes_are_refused(tmp_path):
    for data in (b"Who\0?\tA\nWho?\tB\n", "Who?\tA\n".encode("utf-16-le"), b"\xff\xfeW"):
        (tmp_path / "q.tsv").write_bytes(data)
        for load in (load_questions, read_questions):
            with pytest.raises(QkvError, match=r"zero bytes|not UTF-"):
                load(tmp_path / "q.tsv")


def test_lines_may_end_with_a_carriage_return_alone(tmp_path):
    (tmp_path / "q.tsv").write_bytes(b"Who wrote Emma?\tJane Austen\rWho wrote Dune?\tFrank Herbert\r")
    assert len(load_questions(tmp_path / "q.tsv")) == 2 == len(read_questions(tmp_path / "q.tsv"))


@settings(max_examples=60)
@given(rows=st.lists(st.tuples(PHRASE, PHRASE | CELL.map(lambda cell: f'"{cell}')), min_size=1, max_size=5))
def test_what_is_written_as_tab_separated_is_read_back(rows):
    lines = [(i, tab_separated(row)) for i, row in enumerate(rows, 1)]
    assert [row.cells for row in split_rows(lines, "\t")] == [*rows]


def test_a_lone_quote_swallows_no_other_rows():
    lines = [(1, 'A?\t"x'), (2, "B?\ty"), (3, 'C?\tz"')]
    assert parse_questions(lines)[0] == [(1, "A?", '"x'), (2, "B?", "y"), (3, "C?", 'z"')]
    across = [(1, 'A?\t"x'), (2, 'y"'), (3, "B?\tz")]  # a cell of two lines, as spreadsheets write it
    assert parse_questions(across)[0] == [(1, "A?", "x y"), (3, "B?", "z")]


@pytest.mark.parametrize(
    "first", [("Question one", "Answer one"), ("Question 1", "Answer 1"), ("Query me", "Target him")]
)
def test_a_first_row_that_begins_like_a_header_is_a_row(first):
    good, bad = parse_questions(list(enumerate(["\t".join(first), "Where was Ada born?\tLondon"], 1)))
    assert [row[1:] for row in good] == [first, ("Where was Ada born?", "London")] and not bad


@pytest.mark.parametrize(
    "first", [("Question", "Answer"), ("questions:", "Expected answer"), ("Question text", "target value")]
)
def test_a_header_of_one_or_two_words_is_none_of_the_questions(first):
    good, _ = parse_questions(list(enumerate(["\t".join(first), "Where was Ada born?\tLondon"], 1)))
    assert [row[1:] for row in good] == [("Where was Ada born?", "London")]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["title,author,year", "Dune;Messiah,Frank Herbert,1969", "Emma;1,Jane Austen,1815"], (",", 3)),
        (["title;author", "Dune, one;Frank Herbert", "Emma, two;Jane Austen"], (";", 2)),
        (["a,b;c", "d,e;f", "g,h;i"], (";", 2)),
        (["What, is it?\tA", "no tab, here", "Why, so?\tB", "Who, me?\tC"], ("\t", 2)),
        (["x;y,1,2", "x;z,1,2", "w,1,2", "v,1,2"], (",", 3)),
    ],
)
def test_the_delimiter_is_the_one_of_the_header_and_of_most_lines(lines, found):
    assert find_delimiter(list(enumerate(lines, 1))) == found
