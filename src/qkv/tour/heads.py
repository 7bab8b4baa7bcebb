"""Tour chapter on heads of a model: a real one where its package is installed, else a tiny run, else the example."""

from __future__ import annotations

import importlib.util
import tempfile
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from qkv.heads.example_model import TEXT, example
from qkv.heads.packaged_models import PACKAGED, get
from qkv.heads.text_survey import survey
from qkv.heads.token_view import head_view, shown_token
from qkv.viz.attention_arcs import LEAST_WEIGHT, arcs_svg
from qkv.viz.html_report import Chapter, Picture

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel

SENTENCE = "Kant was born in Königsberg. When Kant was walking past, people set their clocks by him."
STORY = "Ada lives in Rome. Bo lives in Oslo. Ada lives in Rome."
BITS = (8, 4, 3, 2)


def looking_up() -> Chapter:
    """The heads of one model on one text, and the firmest of them from one token."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        model, text, which = _model(Path(folder))
        found = survey(model, text)
        firmest = max(found.heads, key=lambda one: (one.reads, one.radius or 0.0))
        place = (firmest.layer, firmest.head)
        view = head_view(model, *place, text, bits=3, rounding=False, harden=False, surveyed=found)
        rounded = found.rounding(*place, BITS)
    figures = [
        f"{_percent(r.measured)} (predicted {_percent(r.predicted)}), top kept for {100 * r.survives:.0f} %"
        for r in rounded
    ]
    said = "; ".join(  # equal figures are said once
        f"{', '.join(str(bits) for bits, _ in same)} bits: {figure}"
        for figure, same in groupby(zip(BITS, figures, strict=True), key=lambda one: one[1])
    )
    shape = f"{model.shape.layers} layers of {model.shape.heads} heads"
    return Chapter(
        "What the heads of a model look up",
        (
            f"{which} It has {shape}. `qkv heads` runs it on a text and watches its attention, without changing its "
            "output by a bit. On one text:",
            found,
            f"Head {view.head} reads most firmly: {100 * firmest.reads:.0f} % of the tokens put 90 % of their weight on one token.",
            Picture(
                arcs_svg([shown_token(t) for t in view.tokens], view.weights, view.token, f"Head {view.head}"),
                f"Left: the token that looks; right: what it looks at, from a weight of {LEAST_WEIGHT} on. In front: the last token.",
                f"qkv heads {model.name} --head {view.head} --text text.txt --html head.html",
            ),
            view,
            f"The error of its output, over all tokens, when its keys are rounded: {said}.",
        ),
    )


def _percent(x: float) -> str:
    return f"{100 * x:.1f} %" if x == 0 or x >= 5e-4 else "< 0.1 %"


def _model(folder: Path) -> tuple[AttentionModel, str, str]:
    """A model, a text for it, and a sentence that says which model it is."""
    if importlib.util.find_spec("transformers") is None:
        return example(), TEXT, "The example is designed by qkv itself: the extra `hf` opens real models."
    from dataclasses import replace

    from qkv.heads.attention_model import open as open_model

    for name in ("minilm", "smollm2"):
        needed = () if name == "minilm" else ("gguf", "accelerate")
        if all(importlib.util.find_spec(module) is not None for module in (PACKAGED[name].module, *needed)):
            get(name, folder / name)
            about = f"The model is {PACKAGED[name].about} ({PACKAGED[name].licence}), from the package `{PACKAGED[name].package}`."
            return replace(open_model(folder / name), name=f"models/{name}"), SENTENCE, about
    _train(folder / "run")
    about = (
        "The model is a tiny run that was trained for this chapter, since no package with a real model is installed."
    )
    return replace(open_model(folder / "run"), name="runs/tiny"), STORY, about


def _train(folder: Path) -> None:
    """A tiny model of three sentences, in a few seconds."""
    from qkv.model.config import ModelConfig
    from qkv.train.runs import pretrain
    from qkv.train.settings import TrainSettings

    config = ModelConfig(attention="rope", n_layer=2, n_head=2, d_model=32, context_length=80)
    settings = TrainSettings(steps=60, batch_size=8, lr=1e-2, objective="next", val_fraction=0.0)
    pretrain([STORY, "Bo lives in Oslo. Ada lives in Rome. Bo lives in Oslo."], folder, config, settings)
