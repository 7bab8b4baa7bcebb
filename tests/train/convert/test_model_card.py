"""README.md of an export: the snippet in it runs, and answers what the run itself answers."""

import re
import subprocess
import sys

import pytest
from marks import some

from qkv.model.config import ModelConfig
from qkv.train.convert.hf_export import export_model
from qkv.train.generation import generate
from qkv.train.runs import finetune, load, pretrain

TEXTS = [f"{name}. {name} was born in {place} ." for name, place in [("Ada Lee", "Rome"), ("Bo Roy", "Oslo")] * 3]
QUESTIONS = [("Where was Ada Lee born?", "Rome"), ("Where was Bo Roy born?", "Oslo")]


def snippet(folder) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), flags=re.S)
    return code.replace('folder = "."', f"folder = {str(folder)!r}")


@pytest.mark.parametrize("attention", some(["causal", "rope"], []))
def test_the_snippet_of_a_question_run_answers_as_the_run_does(tmp_path, attention):
    config = ModelConfig(attention=attention, n_layer=1, n_head=2, d_model=32, context_length=64)
    pretrain(TEXTS, tmp_path / "base", config, steps=2, batch_size=4)
    finetune(tmp_path / "base", QUESTIONS, tmp_path / "run", steps=60, batch_size=4, lr=1e-2)
    export_model(tmp_path / "run", tmp_path / "hf")
    text = (tmp_path / "hf" / "README.md").read_text("utf-8")
    assert "Where was" in text and "⁇" in text and f"{load(tmp_path / 'run').step} steps" in text
    code = snippet(tmp_path / "hf")
    asked = re.search(r"tokenizer\('(.*)⁇'", code) or re.search(r'tokenizer\("(.*)⁇"', code)
    code = code.replace(asked[1], "Where was Bo Roy born?")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = generate(tmp_path / "run", ["Where was Bo Roy born?"], ask=True).texts[0]
    assert done.stdout.strip() == wanted.strip() == "Oslo"


@pytest.mark.parametrize("objective", ["span", "next"])
def test_a_run_without_questions_says_how_it_is_prompted(tmp_path, objective):
    config = ModelConfig(n_layer=1, n_head=2, d_model=16, context_length=64)
    pretrain(TEXTS, tmp_path / "base", config, steps=1, batch_size=2, objective=objective)
    export_model(tmp_path / "base", tmp_path / "hf")
    text = (tmp_path / "hf" / "README.md").read_text("utf-8")
    assert "How it is prompted" in text and "How it is asked" not in text
    namespace: dict[str, object] = {}
    exec(snippet(tmp_path / "hf"), namespace)
    assert namespace["found"].shape[0] == 1
