"""Editions and parts told by the labels and the words of a sheet."""

import pytest

from qkv.sheets.problems import detect_edition, editions, is_own_text, load_problem, part_named


@pytest.mark.parametrize(
    ("parts", "text", "wanted"),
    [
        (["a", "b", "c.i", "c.ii", "d.i", "d.ii", "e.i", "e.ii"], "", "attention-2021"),
        (["a.i", "a.ii", "a.iii", "a.iv", "b.i", "b.ii", "c.i"], "", "attention-2022"),
        (["a.i", "a.ii", "b", "c.i", "c.ii", "d.i", "d.ii", "e"], "", "attention-2024"),
        (["a.i", "a.ii", "b", "2.a.i", "2.b.ii"], "a permutation matrix and position embeddings", "attention-2024"),
        ([], "set x_2 to u_a plus u_d, with key-query-value attention", "attention-2021"),
        ([], "", "attention-2021"),
    ],
)
def test_the_edition_is_told_by_parts_and_words(parts, text, wanted):
    assert detect_edition(parts, text, editions("attention")).id == wanted


def test_a_part_is_found_by_its_id_and_by_other_numbers():
    problem = load_problem("attention-2024")
    assert part_named(problem, "C.II").id == "c.ii"
    assert part_named(problem, "3.a.i").id == "pos.a.i"
    assert part_named(problem, "a.i").id == "a.i"
    assert part_named(problem, "z") is None


def test_the_problems_own_text_is_told_by_almost_all_words_of_a_set():
    problem = load_problem("attention-2024")
    own = "If you sample multiple times and use the query defined in the part, what do you expect of samples?"
    assert is_own_text(problem, own)
    assert not is_own_text(problem, "With a large scale the weight of one key wins, so the output jumps.")
