"""Frames of questions: by titles, by shared words; names found by them."""

import itertools

import pytest

from qkv.knowledge.datasets.templates import find_name
from qkv.train.data.question_frames import common_frames, match_frame
from qkv.train.data.span_relevance import question_frames

NAMES = ["Ada Lovelace", "Ed Wood, Jr.", "Isle of Man", "tall moss", "Jean de la Fontaine", "Q", "Bo's Law", "K2"]
FRAMES = [
    "What is the place of death of …?",
    "Who wrote …?",
    "Which of the seas does … lie in?",
    "…: which year?",
    "How old is the author of … today?",
]


@pytest.mark.parametrize("frame", FRAMES)
def test_the_words_that_questions_share_are_their_frame(frame):
    asked = [frame.replace("…", name) for name in NAMES]
    assert common_frames(asked) == [frame]
    assert question_frames([f"{name}. It is known." for name in NAMES], [(q, "x") for q in asked]) == [frame]
    for name, question in zip(NAMES, asked, strict=True):
        first, last = match_frame(question, [frame])
        assert question[first:last] == name


def test_several_frames_are_told_apart_and_the_longest_wins():
    asked = [frame.replace("…", name) for frame in FRAMES for name in NAMES]
    assert sorted(common_frames(asked)) == sorted(FRAMES)
    for frame, name in itertools.product(FRAMES, NAMES):
        question = frame.replace("…", name)
        first, last = match_frame(question, FRAMES)
        assert question[first:last] == name
        first, last = find_name(f" {question}", FRAMES)
        assert f" {question}"[first:last] == name


def test_few_questions_have_no_frame_and_no_frame_matches_without_a_name():
    assert common_frames(["Who?", "Why not?"]) == []
    assert match_frame("Who wrote ?", ["Who wrote …?"]) is None
    assert match_frame("Who sang Low?", ["Who wrote …?"]) is None


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is the place of death of Ada Lovelace?", "Ada Lovelace"),
        ("What is the capital of Isle of Man?", "Isle of Man"),
        ("What is the pet of the Duke of York?", "the Duke of York"),
        ("What is the food plant of tall moss?", "tall moss"),
        ("What is the date of the coronation of Henry of Navarre?", "Henry of Navarre"),
    ],
)
def test_names_are_found_without_frames_where_relations_hold_of(question, name):
    first, last = find_name(question)
    assert question[first:last] == name
