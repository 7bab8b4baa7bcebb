"""Documents with accidents: blocks of the catalogue with characters and words dropped, doubled, swapped and put in."""

from __future__ import annotations

import random
import re

from qkv.claims.catalogue import documents

POOL = [
    "alpha_a",
    "alpha_{1,a}",
    "c",
    "c_1",
    "q",
    "q_1",
    "k_a",
    "k_i",
    "k_1..k_n",
    "v_a",
    "mu_a",
    "mu_i",
    "t",
    "n",
    "beta",
    "eps",
    "gamma",
    "oo",
    "-oo",
    "I",
    "A",
    "B",
    "A'",
    "M",
    "s",
    "x_1",
    "x_2",
    "Q",
    "K",
    "V",
    "u_a",
    "R(t)",
    "exp(",
    "log(",
    "sqrt(",
    "norm(",
    "Phi(",
    ")",
    "(",
    "[",
    "]",
    "{",
    "}",
    "+",
    "-",
    "*",
    "/",
    "^",
    "^2",
    "^-1",
    "^(1/2)",
    "'",
    "''",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "->",
    "-/->",
    "~=",
    ",",
    ";",
    ":",
    ".",
    "..",
    "~",
    "$",
    "$$",
    "\\frac",
    "\\frac{1}{2}",
    "\\sum_{i=1}^n",
    "\\top",
    "\\infty",
    "0",
    "1",
    "2",
    "3",
    "1/2",
    "0.5",
    "999999999",
    "1e9",
    "given",
    "let",
    "then",
    "for",
    "when",
    "and",
    "as",
    "all",
    "no",
    "real",
    "query",
    "makes",
    "within",
    "of",
    "with",
    "probability",
    "is",
    "a",
    "distribution",
    "permutation",
    "equivariant",
    "orthonormal",
    "orthogonal",
    "free",
    "norm",
    "in",
    "R^m",
    "Var[",
    "Cov[",
    "Corr[",
    "E[",
    "P[",
    "sum_i",
    "sum_{i!=a}",
    "k_i~N(mu_i,eps*I)",
    "__import__('os')",
    "eval(",
    "lambda",
    "x.y",
    "α",
    "β",
    "→",
    "½",
    "ᵀ",
    "∞",
    "≈",
    "你好",
    "\x00",
    "\t",
    "#",
    "```",
    "~~~",
    "exp(exp(exp(t)))",
    "t^t^t",
    "(((((((",
    "(t+1)^12",
    "(t+n+beta)^12",
    "x_9999",
    "alpha_{1,2,3}",
    "k_b",
    "k_j",
    "n>=3",
    "n=2",
    "t>0",
    "t<0",
]


def blocks() -> list[str]:
    text = "\n".join(text for _, text in documents())
    return re.findall(r"```claim.*?\n```", text, flags=re.S)


def documents_with_accidents(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    every = blocks()
    return [mutated(rng, _short(rng, rng.choice(every))) for _ in range(count)]


def _short(rng: random.Random, block: str) -> str:
    """A block with one or two of its statements, so that many fit into a test."""
    lines = block.split("\n")
    thens = [i for i, line in enumerate(lines) if line.startswith("then")]
    keep = set(rng.sample(thens, min(len(thens), rng.choice([1, 1, 2]))))
    return "\n".join(line for i, line in enumerate(lines) if not line.startswith("then") or i in keep)


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        how = rng.randrange(7)
        if how == 0 and text:  # drop a few characters
            i = rng.randrange(len(text))
            text = text[:i] + text[i + rng.randint(1, 3) :]
        elif how == 1:  # put a word in
            i = rng.randrange(len(text) + 1)
            text = text[:i] + " " + rng.choice(POOL) + " " + text[i:]
        elif how in (2, 3):  # replace a word
            words = list(re.finditer(r"[A-Za-z0-9_{}]+|\S", text))
            if words:
                w = rng.choice(words)
                text = text[: w.start()] + rng.choice(POOL) + text[w.end() :]
        elif how == 4:  # swap two lines
            lines = text.split("\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            text = "\n".join(lines)
        elif how == 5:  # double a piece
            i = rng.randrange(len(text) + 1)
            j = min(len(text), i + rng.randint(1, 30))
            text = text[:j] + text[i:j] * rng.choice([1, 2, 20]) + text[j:]
        else:  # a random character
            i = rng.randrange(len(text) + 1)
            text = text[:i] + chr(rng.choice([rng.randrange(32, 127), rng.randrange(1, 0x3000)])) + text[i:]
    return text
