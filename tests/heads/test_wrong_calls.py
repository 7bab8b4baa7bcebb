"""Calls that cannot be meant are refused with what was asked, what came in and what to try; none gives a number."""

import numpy as np
import pytest
import torch
import transformers
from families import text, tiny, tokenizer

import qkv.heads as heads
from qkv.errors import QkvError
from qkv.heads.ablation import mean_outputs

WORDS = text(20)
IDS = torch.randint(3, 90, (2, 10), generator=torch.Generator().manual_seed(0))
NAN = float("nan")


@pytest.fixture(scope="module")
def model():
    return heads.from_transformers(tiny("llama"), tokenizer(), name="mine")


@pytest.fixture(scope="module")
def surveyed(model):
    return model.survey(WORDS)


def nothing(done, total):
    pass


def refused(call, match=None):
    with pytest.raises(QkvError, match=match) as found:
        call()
    assert found.value.request and found.value.problem and found.value.hint


@pytest.mark.parametrize("wrong", [3, None, "models/mine", [], tiny("llama")], ids=lambda w: type(w).__name__)
def test_something_that_is_no_model(wrong):
    asked = heads.NamedQuestion([3, 4], [5], (0, 1))
    for call in (
        lambda: heads.allocate(wrong, WORDS),
        lambda: heads.survey(wrong, WORDS),
        lambda: heads.token_losses(wrong, IDS),
        lambda: heads.head_effects(wrong, list(IDS), nothing),
        lambda: heads.name_heads(wrong, [asked]),
        lambda: mean_outputs(wrong, IDS),
        lambda: heads.head_view(wrong, 0, 0, WORDS),
    ):
        refused(call, "there is no model" if wrong is None and "head_view" in str(call.__code__.co_names) else "model")


@pytest.mark.parametrize(
    "ids",
    [
        IDS[0], IDS[None], IDS[:0], IDS[:, :0], IDS[:, :1], IDS.float(), IDS > 5, IDS + 500, -IDS, IDS.repeat(1, 7),
        WORDS, None, 5, {}, [[3, 4], [5]], [["a", "b"]], [[0.5, 1.0]], [[3, None]], IDS.numpy() * 1.5, IDS * 1j,
    ],
    ids=str,
)  # fmt: skip
def test_token_ids_that_are_none(model, ids):
    for call in (
        lambda: heads.token_losses(model, ids),
        lambda: heads.token_losses(model, ids, [(0, 1)]),
        lambda: heads.head_effects(model, ids, nothing),
    ):
        refused(call, "token|windows|row")


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_every_whole_type_of_token_ids_gives_the_same(model, kind):
    own = heads.token_losses(model, IDS, [(1, 2)])
    for ids in (IDS.to(kind), IDS.to(kind).numpy(), IDS.tolist(), tuple(map(tuple, IDS.tolist()))):
        assert torch.equal(heads.token_losses(model, ids, [(1, 2)]), own)


@pytest.mark.parametrize("removed", [None, 5, (0, 1), ["0.1"], [(0,)], [(0, 1, 2)], [(9, 9)], [(-1, 0)], [(0.5, 0)]])
def test_heads_that_are_none(model, removed):
    refused(lambda: heads.token_losses(model, IDS, removed))


@pytest.mark.parametrize(
    "means",
    [3, [3], [torch.zeros(4, 8)], [torch.zeros(4, 3)] * 3, [torch.zeros(4, 1)] * 3, [torch.zeros(4, 8) * NAN] * 3],
    ids=lambda m: str(getattr(m, "__len__", lambda: m)()),
)
def test_means_that_do_not_fit(model, means):
    refused(lambda: heads.token_losses(model, IDS, [(0, 1)], means=means), "mean_outputs returns")
    refused(lambda: heads.head_effects(model, list(IDS), nothing, means=means), "mean_outputs returns")


def test_effects_of_windows_that_do_not_fit(model):
    refused(lambda: heads.head_effects(model, [IDS[0], IDS[0, :5]], nothing), "different lengths, 5 and 10")
    refused(lambda: heads.head_effects(model, [], nothing), "token ids")
    for last in (0, -1, 10, 99, 1.5, "1", True):
        refused(lambda last=last: heads.head_effects(model, list(IDS), nothing, last=last), "last")
    nine = heads.head_effects(model, list(IDS), nothing, last=9)
    assert torch.allclose(nine, heads.head_effects(model, list(IDS), nothing), atol=1e-6)


@pytest.mark.parametrize("layer", [-1, 3, 0.5, 0.0, NAN, "0", None, True, [0]])
def test_heads_of_a_survey(model, surveyed, layer):
    for call in (
        lambda: surveyed.weights(layer, 0),
        lambda: surveyed.scores(0, layer if layer != 3 else 4),
        lambda: surveyed.summary(layer, 0),
        lambda: surveyed.rounding(layer, 0, 3),
        lambda: heads.head_view(None, layer, 0, surveyed=surveyed, harden=False),
        lambda: heads.head_view(model, layer, 0, WORDS, harden=False),
        lambda: model.head(layer, 0),
        lambda: model.rounding(WORDS, 3).of(layer, 0),
    ):
        refused(call)


def test_whole_numbers_of_numpy_are_whole_numbers(surveyed):
    one = heads.head_view(None, np.int64(1), np.int32(2), surveyed=surveyed, token=np.int64(7), harden=False)
    assert (one.head, one.token) == ("1.2", 7)
    memory = heads.from_transformers(tiny("llama"), tokenizer()).head(1, 2).memory(WORDS)
    assert torch.equal(memory.at(np.int64(7))[1], memory.at(7)[1]) and torch.equal(memory.at(-13)[1], memory.at(7)[1])
    for wrong in (20, -21, True, 1.0, "1", None, torch.tensor([1, 2])):
        refused(lambda wrong=wrong: memory.at(wrong), "taking the query of token")
        refused(
            lambda wrong=wrong: heads.head_view(None, 0, 0, surveyed=surveyed, token=wrong), "the text has 20 tokens"
        )
    assert one.looked_up == heads.head_view(None, 1, 2, surveyed=surveyed, token=7, harden=False).looked_up


@pytest.mark.parametrize("options", [{"token": 20}, {"token": "1"}, {"token": 1.0}, {"bits": 0}, {"bits": 99}])
def test_views_of_nothing(surveyed, options):
    refused(lambda: heads.head_view(None, 0, 0, surveyed=surveyed, harden=False, **options))
    refused(lambda: heads.head_view(None, 0, 0, surveyed=3), "surveyed is an int")


def test_limits_of_a_survey(model):
    for most in (0, 1, -5, 2.5, "x", 19):
        refused(lambda most=most: heads.survey(model, WORDS, max_tokens=most))
    assert len(heads.survey(model, WORDS, max_tokens=20).tokens) == 20


@pytest.mark.parametrize(
    "asked",
    [
        ([3, 4, 5], [7], (1, 9)), ([3, 4, 5], [7], (-1, 2)), ([3, 4, 5], [7], (2, 1)), ([3, 4, 5], [7], (1, 1)),
        ([3, 4, 5], [7, 8, 9], (3, 4)), ([3, 4, 5], [7], (0.5, 1)), ([3, 4, 500], [7], (0, 1)),
        ([3, 4, -5], [7], (0, 1)), ([3, 4, 0.5], [7], (0, 1)), ("abc", "d", (0, 1)), ([3, 4], [5], None),
        ([3, 4], [5], "ab"), ([], [5], (0, 1)), ([3, 4], [], (0, 1)), ([3] * 70, [7], (0, 1)), (3, 4, (0, 1)),
        ([[3, 4]], [5], (0, 1)),
    ],
)  # fmt: skip
def test_questions_that_cannot_be_asked(model, asked):
    refused(lambda: heads.name_heads(model, [heads.NamedQuestion([3, 4], [5], (0, 1)), heads.NamedQuestion(*asked)]))


def test_questions_of_any_sequence(model):
    one = heads.NamedQuestion([3, 4, 5, 6], [7, 8], (1, 3))
    plain = heads.name_heads(model, [one])
    tensors = heads.NamedQuestion(torch.tensor(one.ids), np.array(one.answer), (np.int64(1), 3))
    for same in ([tensors], (q for q in [one]), [tuple(one)]):
        assert heads.name_heads(model, same) == plain
    for wrong in ("x", 5, None, [], [[3, 4]], [5]):
        refused(lambda wrong=wrong: heads.name_heads(model, wrong))
    assert plain.name_share == 0.5


@pytest.mark.parametrize("wrong", [None, 3, "tokenizer"])
def test_a_model_without_a_tokenizer_says_so(wrong):
    found = heads.from_transformers(tiny("llama"), wrong, name="mine")
    for call in (
        lambda: found.table(WORDS),
        lambda: found.survey(WORDS),
        lambda: heads.allocate(found, WORDS),
        lambda: found.head(0, 0).view(WORDS),
        lambda: found.head(0, 0).radius_certificates(WORDS),
    ):
        refused(call, "mine was opened without a tokenizer")
    assert heads.token_losses(found, IDS).shape == (2, 9)


def test_the_example_has_no_losses():
    example = heads.example()
    for call in (
        lambda: heads.token_losses(example, [[0, 1, 2]]),
        lambda: heads.head_effects(example, [torch.tensor([0, 1, 2])], nothing),
        lambda: heads.allocate(example, "a b a b"),
        lambda: heads.name_heads(example, [heads.NamedQuestion([1, 2], [3], (0, 1))]),
    ):
        refused(call, "predicts no tokens|no model around")


def test_encoders_predict_nothing():
    encoder = heads.from_transformers(tiny("bert"), tokenizer())
    assert isinstance(encoder.model, transformers.BertModel)
    refused(lambda: heads.token_losses(encoder, IDS), "predicts no tokens")
    refused(lambda: heads.allocate(encoder, WORDS), "predicts no tokens")
