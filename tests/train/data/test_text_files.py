"""Texts and questions from files and lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import QkvError
from qkv.train.data.text_files import read_questions, read_texts

LINE = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(st.lists(LINE, min_size=1))
def test_a_file_holds_one_text_per_line_whatever_else_separates_lines(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    texts[0] = "x" + texts[0]  # a first character U+FEFF would be taken for a byte order mark
    for end in ("\n", "\r\n"):
        path.write_bytes(end.join(texts).encode())
        assert read_texts(path) == texts == read_texts(texts)


def test_a_byte_order_mark_and_empty_lines_are_left_out(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n  \ntwo\n", "utf-8-sig")
    assert read_texts(tmp_path / "a.txt") == ["one", "two"]
    (tmp_path / "q.tsv").write_text("who?\tAda\n\n what? \t a thing \n", "utf-8-sig")
    assert read_questions(str(tmp_path / "q.tsv")) == [("who?", "Ada"), ("what?", "a thing")]


def test_errors_name_the_lines(tmp_path):
    path = tmp_path / "q.tsv"
    path.write_text("a?\tb\n" + "no tab\n" * 7 + "two\ttabs\there\n")
    with pytest.raises(QkvError, match="line 2, 3, 4, 5, 6 and 3 more is not question<TAB>answer"):
        read_questions(path)
    path.write_text("\n")
    with pytest.raises(QkvError, match="there are none"):
        read_questions(path)
    with pytest.raises(QkvError, match="there is no such file"):
        read_texts(tmp_path / "none")
    with pytest.raises(QkvError, match="reading questions from a list"):
        read_questions([("a?", "")])


def test_a_folder_in_the_place_of_a_file_is_said_to_be_one(tmp_path):
    with pytest.raises(QkvError, match=r"it is a folder\. Name a file"):
        read_texts(tmp_path)
