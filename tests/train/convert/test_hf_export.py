"""Exports: transformers loads them and computes the same logits."""

import pytest
import torch
import transformers

from qkv.model.decoding import decode


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_transformers_loads_an_export_and_says_the_same(exported, dtype, atol):
    run, folder = exported
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    x = torch.randint(
        0, run.config.vocab_size, (3, run.config.context_length), generator=torch.Generator().manual_seed(0)
    )
    with torch.no_grad():
        ours = run.model.to(dtype)(x)
        torch.testing.assert_close(theirs(x).logits, ours, rtol=0, atol=atol)
    assert ours.abs().max() > 0.5


def test_the_tokenizer_of_an_export_is_the_same_to_transformers(exported):
    run, folder = exported
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    assert theirs.encode("Person Ω 7") == run.tokenizer.encode("Person Ω 7")


def test_both_decode_the_same_texts(exported):
    run, folder = exported
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    prompt = run.tokenizer.encode("Person 12")
    got = theirs.generate(torch.tensor([prompt]), max_new_tokens=10, min_new_tokens=10, do_sample=False)
    banned = int(got[0, len(prompt)])  # their generation forbids the end token before min_new_tokens
    assert banned is not None
    ours = decode(run.model, [prompt], 10).tokens[0]
    assert ours == got[0, len(prompt) :].tolist()
