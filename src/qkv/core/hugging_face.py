"""Load a Hugging Face model and its tokenizer: safetensors only, no remote code, no network unless it is allowed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qkv.core.panics import panics_as_errors
from qkv.errors import MissingExtra, QkvError

MAX_NAMES_SHOWN = 3


def load_pretrained(
    source: str | Path, *, choose: Callable[[Any], Any], offline: bool = True, **options: Any
) -> tuple[Any, Any]:
    """Load a model in evaluation mode, and its tokenizer.

    Args:
        source: A folder with `config.json`, safetensors and a tokenizer, or a hub name.
        choose: Gives the class of transformers to load with (such as AutoModelForCausalLM), from the configuration.
        offline: Look only at folders and at what was downloaded before.
        options: Passed to `from_pretrained` of that class.

    Returns:
        (model, tokenizer).

    Raises:
        QkvError: Nothing is there, the weights are no safetensors or are cut off, there is no tokenizer, or the model
            needs code of its own; tensors are missing from the files, or weights are not finite.
        MissingExtra: transformers is not installed.
    """
    try:
        with warnings.catch_warnings():  # in a notebook without ipywidgets, tqdm warns of bars that are never shown
            warnings.filterwarnings("ignore", message="IProgress not found")
            from transformers import AutoConfig, AutoTokenizer
    except ImportError:
        raise MissingExtra("opening a Hugging Face model", "hf") from None
    from safetensors import SafetensorError

    request, name = f"opening the model {source}", str(source)
    is_folder = Path(source).is_dir()
    if is_folder and not (Path(source) / "config.json").is_file():
        raise QkvError(request, "the folder has no config.json", "Name the folder of a Hugging Face model")
    if is_folder and not any(Path(source).glob("*.safetensors")):
        raise QkvError(request, "the folder has no weights in safetensors", "Save the model again with save_pretrained")
    settings = {"trust_remote_code": False, "local_files_only": offline or is_folder}
    reading = "the model"
    with _quietly(offline):
        try:
            maker = choose(AutoConfig.from_pretrained(name, **settings))
            model, loaded = maker.from_pretrained(
                name, **settings, use_safetensors=True, output_loading_info=True, **options
            )
            reading = "the tokenizer"
            with panics_as_errors():
                tokenizer = AutoTokenizer.from_pretrained(name, **settings)
        except QkvError:  # of `choose`; it is a ValueError too, but it already says what is wrong
            raise
        except SafetensorError as error:
            problem = f"its safetensors are damaged or cut off ({error})"
            raise QkvError(request, problem, "Copy or download the file again") from error
        except (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError, AttributeError) as error:
            if offline and not is_folder:
                problem = "there is no such folder, and no model of this name was downloaded before"
                hint = "Name a model folder, or allow downloads (--online; in Python offline=False)"
                raise QkvError(request, problem, hint) from error
            if reading == "the tokenizer" and is_folder:
                hint = "Save the tokenizer into the same folder with save_pretrained"
                raise QkvError(request, "the folder has no tokenizer that can be read", hint) from error
            first = str(error).strip().split("\n")[0].rstrip(".")
            raise QkvError(request, first or type(error).__name__, "Name another model") from error
    _check_weights(request, model, loaded)
    return model.eval(), tokenizer


def _check_weights(request: str, model: Any, loaded: dict[str, Any]) -> None:
    """Refuse a model that has random weights, because its files lack tensors, or weights that are no numbers.

    Weights that are tied to others need no tensor of their own. Nothing here reads the pooler of an encoder, which many
    checkpoints lack.
    """
    missing = sorted(name for name in loaded.get("missing_keys", ()) if "pooler" not in name.split("."))
    if missing:
        problem = f"{len(missing)} of its tensors are not in its files ({_some(missing)})"
        raise QkvError(request, problem, "Copy or download all of its safetensors again")
    spoilt = [name for name, weight in model.named_parameters() if not _is_finite(weight)]
    if spoilt:
        problem = f"weights of it are not finite ({_some(spoilt)})"
        raise QkvError(request, problem, "Copy or download the file again, or name another model")


def _some(names: list[str]) -> str:
    return ", ".join(names[:MAX_NAMES_SHOWN]) + ", …" * (len(names) > MAX_NAMES_SHOWN)


def _is_finite(weight: Any) -> bool:
    """Whether all numbers are finite: they are if their sum is, which is faster to find."""
    held = weight.detach()
    return bool(held.sum().isfinite()) or bool(held.isfinite().all())


def is_hugging_face_folder(folder: str | Path) -> bool:
    """Whether a folder's config.json is one of transformers: it names the family, which that of a qkv run does not."""
    from qkv.core.json_files import read_json

    path = Path(folder) / "config.json"
    if not path.is_file():  # opening a pipe would wait for ever, and a device may have no end
        return False
    try:
        settings = read_json(path)
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and "model_type" in settings


@contextmanager
def _quietly(offline: bool) -> Iterator[None]:
    """Keep the hub library from the network, whose setting is read from the environment once.

    Its bars are hidden, and so are its warnings: what matters of them is said in a refusal.
    """
    from logging import ERROR

    import huggingface_hub.constants as constants
    from transformers.utils import logging

    before, shown = constants.HF_HUB_OFFLINE, logging.is_progress_bar_enabled()
    verbosity = logging.get_verbosity()
    try:
        constants.HF_HUB_OFFLINE = offline or before
        logging.disable_progress_bar()
        logging.set_verbosity(max(verbosity, ERROR))
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()
