"""A GPT-2 whose heads are set by hand, so that what they look up is known."""

import torch
import transformers
from families import tokenizer as tokenizer

WORDS, PLACES, SIZE, HEADS = 97, 64, 161, 6
"""A head's queries and keys hold a token and a place, each as a unit vector."""


def wired(sharpness: float = 40.0, copies: float = 8.0):
    """Layer 0: previous token, first token, self, duplicate, broad, half previous token and half self; 1.0: induction.

    The other heads of layer 1 have queries of zeros and read all tokens equally. Hidden states hold the token, its
    place, and the token before, which head 0.0 writes there for 1.0 to compare with; layer norms only scale them.
    """
    width = SIZE * HEADS
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_embd=width, n_layer=2, n_head=HEADS, n_positions=PLACES, bos_token_id=1, eos_token_id=2
    )
    model = transformers.GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval()
    for name, weights in model.named_parameters():
        weights.data.fill_(1.0 if "ln" in name and name.endswith("weight") else 0.0)
    token, place = torch.zeros(width, SIZE), torch.zeros(width, SIZE)
    token[:WORDS, :WORDS] = torch.eye(WORDS)
    place[WORDS : WORDS + PLACES, WORDS:] = torch.eye(PLACES)
    model.transformer.wte.weight.data[:] = token[:, :WORDS].T
    model.transformer.wpe.weight.data[:] = place[:, WORDS:].T
    scale = (width / 2) ** 0.5  # of hidden states behind a layer norm
    strong = sharpness * SIZE**0.5 / scale**2
    before, after, sink = (torch.zeros(width, SIZE) for _ in range(3))
    before[WORDS + PLACES : 2 * WORDS + PLACES, :WORDS] = torch.eye(WORDS)
    after[WORDS : WORDS + PLACES - 1, WORDS + 1 :] = torch.eye(PLACES - 1)
    sink[WORDS, 0] = 1

    def put(layer, head, query, key, writes=None):
        attention, at = model.transformer.h[layer].attn, head * SIZE
        into = attention.c_attn.weight.data
        into[:, at : at + SIZE], into[:, width + at : width + at + SIZE] = strong * query, key
        if writes is not None:
            into[:, 2 * width + at : 2 * width + at + SIZE] = token / scale
            attention.c_proj.weight.data[at : at + SIZE] = writes.T

    put(0, 0, place, after, before)
    put(0, 1, torch.zeros_like(place), sink)
    model.transformer.h[0].attn.c_attn.bias.data[SIZE] = strong * scale
    put(0, 2, place, place)
    put(0, 3, token - 2 * place, token + place)
    put(0, 5, place, place + after)
    put(1, 0, token, before, copies * token)
    return model
