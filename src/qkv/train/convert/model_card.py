"""README.md of an exported model: what it was trained on, how it is asked, and a snippet that runs."""

from __future__ import annotations

from qkv.train import run_files
from qkv.train.data.text_files import read_questions
from qkv.train.runs import Run
from qkv.train.tokenizers import END, MASK

MAX_NEW_TOKENS = 32
EXAMPLE_QUESTION = "Where was Ada Lovelace born?"


def is_trained_on_questions(run: Run) -> bool:
    """Whether a run has seen questions, so that it can be asked."""
    return run.data.get("kind") == "questions" or "questions" in run.data


def model_card(run: Run, architecture: str) -> str:
    """The README.md of the folder that a run is exported to."""
    size = sum(p.numel() for p in run.model.parameters())
    lines = [
        f"# {run.folder.name}",
        "",
        f"A {architecture} model of {size:,} parameters that qkv trained by the recipe `{run.recipe}` in {run.step:,} "
        f"steps, with a context of {run.config.context_length} tokens.",
        "",
    ]
    if not run.tokenizer.special:
        lines += ["Its tokenizer is that of the model that was imported; it has not learned to answer questions.", ""]
    elif is_trained_on_questions(run):
        lines += _how_to_ask(run)
    else:
        lines += _how_to_continue(run)
    return "\n".join(lines)


def _example_question(run: Run) -> str:
    """The first question that the run was trained on; where its file is gone, one of the same form."""
    record = run.data if run.data.get("kind") == "questions" else run.data.get("questions") or {}
    pairs = run_files.read_recorded(record, run.folder, read_questions)
    if pairs:
        return pairs[0][0]
    frames = run.data.get("frames", ())
    return frames[0].replace("…", "Ada Lovelace") if frames else EXAMPLE_QUESTION


def _how_to_ask(run: Run) -> list[str]:
    frames = [f"- `{frame}`" for frame in run.data.get("frames", ())[:10]]
    question = _example_question(run)
    return [
        "## How it is asked",
        "",
        f"The prompt is the question, then the sign `{MASK}` without a space: `{question}{MASK}`. The answer ends at "
        f"the next `{MASK}`, which is one token. Without the sign, a prompt is continued as a question, not answered.",
        "",
        *(["It was trained on questions of these forms, with a name for `…`:", "", *frames, ""] if frames else []),
        "```python",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        'folder = "."  # this folder',
        "tokenizer = AutoTokenizer.from_pretrained(folder)",
        "model = AutoModelForCausalLM.from_pretrained(folder)",
        f'sign = tokenizer.convert_tokens_to_ids("{MASK}")',
        f'prompt = tokenizer({question + MASK!r}, return_tensors="pt").input_ids',
        f"found = model.generate(prompt, max_new_tokens={MAX_NEW_TOKENS}, do_sample=False, eos_token_id=sign)",
        "answer = found[0, prompt.shape[1] :].tolist()",
        "answer = answer[: answer.index(sign)] if sign in answer else answer",
        "print(tokenizer.decode(answer).strip())",
        "```",
        "",
    ]


def _how_to_continue(run: Run) -> list[str]:
    form = {
        "next": f"It was trained to predict the next token of a text, which begins and ends with `{END}`.",
        "cloze": f"It was trained to fill in spans, and not on questions. A prompt is a name, words before the span, "
        f"`{MASK}`, words after it and `{MASK}`; the span ends at the next `{MASK}`.",
    }.get(
        run.settings.objective,
        f"It was trained to fill in spans, and not on questions. A prompt is the text before the span, `{MASK}`, the "
        f"text after it and `{MASK}`; the span ends at the next `{MASK}`.",
    )
    prompt = f"{END}Ada Lovelace" if run.settings.objective == "next" else f" Ada Lovelace was born in{MASK}{MASK}"
    return [
        "## How it is prompted",
        "",
        form,
        "",
        "```python",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        'folder = "."  # this folder',
        "tokenizer = AutoTokenizer.from_pretrained(folder)",
        "model = AutoModelForCausalLM.from_pretrained(folder)",
        f'prompt = tokenizer({prompt!r}, return_tensors="pt").input_ids',
        f"found = model.generate(prompt, max_new_tokens={MAX_NEW_TOKENS}, do_sample=False)",
        "print(tokenizer.decode(found[0, prompt.shape[1] :]))",
        "```",
        "",
    ]
