"""The torch-free model of a run, and the encoding of questions."""

import json
import shutil

import numpy as np
import pytest
import torch

from qkv.errors import QkvError
from qkv.knowledge import questions
from qkv.knowledge.answering.answer_model import answer_text, encode_question, load_answer_model
from qkv.train import tokenizers
from qkv.train.tokenizers import END_ID, MASK_ID, PAD_ID


def test_a_run_and_its_folder_give_the_same_model(run, people):
    opened, loaded = load_answer_model(run), load_answer_model(run.folder)
    assert load_answer_model(loaded) is loaded
    assert loaded.config == opened.config == run.config and loaded.folder == run.folder
    ids = [*run.tokenizer.encode(questions(people).pairs[0][0]), MASK_ID]
    logs = [model.model.log_probabilities(model.model.forward(np.array([ids]))[0][0]) for model in (opened, loaded)]
    assert np.array_equal(*logs)
    assert np.allclose(logs[0], run.model(torch.tensor([ids])).detach()[0].double().log_softmax(-1), atol=1e-4)


def test_weights_that_do_not_fit_the_configuration_are_refused(run, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    data = json.loads((folder / "config.json").read_text("utf-8"))
    for changes in ({"n_layer": 3}, {"d_model": 64}, {"attention": "causal"}, {"vocab_size": 10}):
        (folder / "config.json").write_text(
            json.dumps({**data, "model": {**data["model"], **changes}, "checksum": "edited"}), "utf-8"
        )
        with pytest.raises(QkvError, match="opening a model"):
            load_answer_model(folder)


def test_an_encoded_question_ends_in_the_mask_and_has_the_tokens_of_the_name(run, people):
    for question, _ in questions(people):
        found = encode_question(run, f"  {question} ")
        assert found.text == question and found.ids == [*run.tokenizer.encode(question), MASK_ID]
        name = question.removeprefix("Where was ").removesuffix(" born?")
        assert run.tokenizer.decode(found.ids[slice(*found.name)]).strip() == name


@pytest.mark.parametrize("question", ["who", "Where was Ω🎈 born?", "⁇", "born?"])
def test_a_question_without_a_name_has_a_span_inside_it(run, question):
    found = encode_question(run, question)
    assert 0 <= found.name[0] < found.name[1] < len(found.ids)


@pytest.mark.parametrize("question", ["", "   ", "Where was " + "x" * 500 + " born?"])
def test_empty_and_too_long_questions_are_refused(run, question):
    with pytest.raises(QkvError, match="asking"):
        encode_question(run, question)


def test_the_text_of_an_answer_ends_where_the_text_ends_and_has_no_special_tokens():
    tokenizer = tokenizers.train("characters", ["Paris Rome"])
    paris, rome = tokenizer.encode("Paris"), tokenizer.encode(" Rome")
    for ids, text in (
        (paris, "Paris"), ([*paris, END_ID], "Paris"), ([*paris, END_ID, *rome], "Paris"), ([END_ID], ""), ([], ""),
        ([PAD_ID, *paris, MASK_ID, *rome], "Paris Rome"), ([END_ID, *paris], ""), (tokenizer.encode("␃"), ""),
        (tokenizer.encode("Paris□⁇␃Rome"), "Paris"),
    ):  # fmt: skip
        assert answer_text(tokenizer, ids) == text
