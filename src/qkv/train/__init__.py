"""From text to examples, training steps and a run folder.

Reading order: settings (TrainSettings), recipes (presets, and the rule that chooses one), data (texts, objectives,
packed batches), run_data (what a run records of them), loop (the training steps), runs (create, train, resume and load
a run folder), generation (text from a run), convert (to and from other libraries). tokenizers, optimizers, distributed,
checkpoint, metrics_log, allocator and run_lock serve the loop; creation writes the first files of a folder; resuming
refuses options that contradict a run, removal takes one away; run_files and old_runs read a run folder without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.train.convert.hf_export import export_model as export_model
    from qkv.train.convert.importer import import_model as import_model
    from qkv.train.generation import Generated as Generated
    from qkv.train.generation import generate as generate
    from qkv.train.loop import Job as Job
    from qkv.train.loop import TrainResult as TrainResult
    from qkv.train.loop import train as train
    from qkv.train.metrics_log import History as History
    from qkv.train.recipes import Recipe as Recipe
    from qkv.train.runs import Run as Run
    from qkv.train.runs import finetune as finetune
    from qkv.train.runs import load as load
    from qkv.train.runs import pretrain as pretrain
    from qkv.train.runs import resume as resume
    from qkv.train.settings import TrainSettings as TrainSettings
    from qkv.train.tokenizers import BytePairs as BytePairs
    from qkv.train.tokenizers import Characters as Characters
else:
    _HOME = {
        "TrainSettings": "settings",
        "Recipe": "recipes",
        "pretrain": "runs",
        "finetune": "runs",
        "resume": "runs",
        "load": "runs",
        "Run": "runs",
        "TrainResult": "loop",
        "Job": "loop",
        "train": "loop",
        "History": "metrics_log",
        "Characters": "tokenizers",
        "BytePairs": "tokenizers",
        "generate": "generation",
        "Generated": "generation",
        "export_model": "convert.hf_export",
        "import_model": "convert.importer",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
