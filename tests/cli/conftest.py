"""Commands run in this process as `main` runs them, and the files that they need."""

import importlib.util
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from qkv.cli import run

SHEET = r"""\section*{Attention exploration}
\begin{enumerate}
\item[(b)] An average of two. The keys are orthonormal. Take $q = SCALE (k_a + k_b)$ with $\beta \gg 0$.
Then $k_i^\top q = 0$ for all $i \neq a, b$, and $\alpha_a = \alpha_b$.
\end{enumerate}
"""
"""An answer sheet, with a query whose scale a test puts in."""


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def data(self):
        return json.loads(self.out)


@pytest.fixture(scope="session")
def shell():
    """A function that runs one command in this process; paths and numbers may be among its words."""

    def call(*words, stdin=None):
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            if stdin is not None:
                patch.setattr("sys.stdin", io.StringIO(stdin))
            try:
                code = run([str(word) for word in words])
            except SystemExit as left:
                code = left.code
        return Done(code, out.getvalue(), err.getvalue())

    return call


@pytest.fixture(scope="session")
def language_model(tmp_path_factory):
    """The folder of a tiny random Hugging Face model, made as for the tests of qkv.knowledge.language_models."""
    pytest.importorskip("transformers")
    path = Path(__file__).parents[1] / "knowledge" / "language_models" / "conftest.py"
    spec = importlib.util.spec_from_file_location("tiny_language_models", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    folder = tmp_path_factory.mktemp("language-model") / "model"
    made.tiny_model().save_pretrained(folder)
    made.tiny_tokenizer(chat=True).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with a run that has read of a few people, its text, and files of questions."""
    from qkv.knowledge import biographies, pantheon, questions, train_mixed
    from qkv.model.config import ModelConfig
    from qkv.train.settings import TrainSettings
    from qkv.train.tokenizers import BytePairs

    here = tmp_path_factory.mktemp("trained")
    people = pantheon().sample(12, seed=2)
    texts = biographies(people).texts
    train_mixed(
        here / "run", texts, questions(people).pairs, 0.6,
        config=ModelConfig(attention="rope", n_layer=1, n_head=2, d_model=32, context_length=80),
        tokenizer=BytePairs.train(texts, 400),
        settings=TrainSettings(steps=60, batch_size=16, lr=8e-3, objective="next", val_fraction=0.0),
    )  # fmt: skip
    (here / "text.txt").write_text("\n".join(texts) + "\n", "utf-8")
    (here / "known.tsv").write_text("".join(f"{q}\t{a}\n" for q, a in questions(people, ["city", "year"])), "utf-8")
    unknown = "".join(f"Where was {name} born?\n" for name in people.invented_names(12))
    (here / "unknown.txt").write_text(unknown, "utf-8")
    return here


@pytest.fixture
def files(tmp_path):
    """Small files of every kind of input: keys, tokens, spans, claims."""
    (tmp_path / "keys.csv").write_text("name,x,y\na,4,0\nb,0,4\nc,-4,-4\n")
    (tmp_path / "inside.csv").write_text("name,x,y\na,4,0\nb,0,4\nc,-4,-4\nmiddle,0,0\n")
    (tmp_path / "query.json").write_text("[1.0, 0.5]")
    a, b, c, d = 4 * np.eye(4)
    tokens = {"X": np.array([d + b, a, c + b]), "writes": np.array([b - c, b]), "u_d": d, "u_b": b}
    np.savez(tmp_path / "tokens.npz", **tokens)
    np.savez(tmp_path / "same.npz", X=np.ones((2, 2)), writes=np.eye(2))
    np.savez(tmp_path / "spans.npz", A=np.eye(3)[:, :1], B=np.eye(3)[:, 1:])
    np.savez(tmp_path / "heads.npz", keys=np.stack([4 * np.eye(3), 3 * np.eye(3)]), queries=np.eye(3)[:2])
    np.savez(tmp_path / "words.npz", tokens=np.random.default_rng(0).normal(size=(6, 4)))
    np.savez(tmp_path / "alike.npz", tokens=np.ones((3, 4)))
    (tmp_path / "texts.json").write_text("[[0, 1, 0, 2]]")
    (tmp_path / "torn.json").write_text("[[0, 1, 0], [1, 0, 0]]")  # with equal vectors, the last token cannot do both
    (tmp_path / "true.md").write_text("```claim yes\ngiven t > 0\nthen 2*t > t\n```\n")
    (tmp_path / "false.md").write_text("```claim no\ngiven t > 0\nthen t < 0\n```\n")
    (tmp_path / "sheet.tex").write_text(SHEET.replace("SCALE", r"\frac{1}{2}"), "utf-8")
    (tmp_path / "right.tex").write_text(SHEET.replace("SCALE", r"\beta"), "utf-8")
    (tmp_path / "words.md").write_text("# (a)\n\nThe weight is high.\n")
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.7\x00\xff")
    (tmp_path / "name.txt").write_text("Where was Ada born?\n")
    (tmp_path / "malformed.md").write_text("```claim odd\nthen then\n```\n")
    return tmp_path
