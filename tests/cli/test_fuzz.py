"""Random command lines: exit code 0, 1 or 2, no traceback, and --json prints one document of a schema."""

import json
import random

import jsonschema
import pytest

from qkv.cli.json_schemas import MODELS, schema_of

WORDS = {
    "read": ("--query", "--scale", "--orthonormal", "--seed"),
    "check": ("--seconds", "--strict", "--show"),
    "design copy": ("--item", "--tol", "--form", "--orthonormal", "--seed"),
    "design blend": ("--weights", "--tol", "--form", "--orthonormal"),
    "design project": ("spans.npz", "A", "B"),
    "design wire": ("--reads", "--writes", "--tol", "--head-size", "--prefer"),
    "design reach": ("--token", "--along", "--target", "--tol"),
    "design verify": ("--reads", "--writes", "--tol"),
    "noise moments": ("--query", "--isotropic", "--along", "--bits", "--noise", "--covariance"),
    "generate": ("--temperature", "--top-k", "nowhere"),
    "ask": ("--n-samples", "nowhere", "Who?"),
    "export": ("--out", "--to", "nowhere"),
    "evaluate": ("--questions", "--seeds", "nowhere"),
    "study": ("--out", "--seeds"),
}
VALUES = [
    "keys.csv",
    "inside.csv",
    "query.json",
    "tokens.npz",
    "spans.npz",
    "true.md",
    "false.md",
    "none.json",
    "-",
    "",
    "a",
    "0",
    "1",
    "-1",
    "nan",
    "inf",
    "1e400",
    "9" * 400,
    "a=1",
    "a=1/2,b=1/2",
    "a=1/0",
    "0:1",
    "0:1=x",
    "3x4",
    "4x3",
    "x",
    "smallest",
    "textbook",
    "norm",
    "½",
    "\x00",
    "../..",
    "--",
    "--json",
    "--cake",
    "-h",
]


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 20), *(pytest.param(seed, 60, marks=pytest.mark.slow) for seed in range(6))]
)
def test_random_command_lines_end_with_a_documented_code(seed, count, files, shell, monkeypatch):
    monkeypatch.chdir(files)
    draw = random.Random(seed)
    for _ in range(count):
        verb = draw.choice(sorted(WORDS))
        words = verb.split()
        for _ in range(draw.randint(0, 5)):
            words += [draw.choice(WORDS[verb]), draw.choice(VALUES)] if draw.random() < 0.7 else [draw.choice(VALUES)]
        as_json = draw.random() < 0.5
        words += ["--json"] * as_json
        done = shell(*words, stdin="[1.0, 0.5]")
        assert done.code in (0, 1, 2), (words, done)
        assert "Traceback" not in done.err
        if as_json and done.out.startswith("{"):
            data = json.loads(done.out)
            name = next(v for v in MODELS if data["schema"] == f"qkv/{v.replace(' ', '-')}")
            jsonschema.validate(data, schema_of(name), cls=jsonschema.Draft202012Validator)
