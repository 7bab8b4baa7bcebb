"""Life cycle of a run folder: create, pretrain, finetune, resume, load.

A run is a folder: config.json (model, settings, data, recipe), tokenizer.json, model.safetensors, the optimizer's
state and log.jsonl. Starting is resuming: `pretrain` and `finetune` create a run that has taken no step, and resume it.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch

from qkv.core.display import Card, Displayable
from qkv.core.files import write_text
from qkv.core.json_files import content_checksum
from qkv.errors import QkvError, QkvWarning, kind_of
from qkv.model.config import ModelChanges, ModelConfig
from qkv.model.gpt import GPT
from qkv.model.numpy_gpt import shapes
from qkv.train import checkpoint, creation, loop, resuming, run_data, tokenizers
from qkv.train.creation import Creation
from qkv.train.data.cloze import ClozeSource
from qkv.train.data.objectives import Example, documents, objective, question_examples, unchanged
from qkv.train.data.packing import BatchSource, batches
from qkv.train.data.span_relevance import question_frames
from qkv.train.data.text_files import read_questions, read_texts
from qkv.train.distributed import process_group
from qkv.train.loop import Job, StepCallback, TrainResult, torch_threads, train_locked
from qkv.train.metrics_log import LOG_FILE, TENSORBOARD_FOLDER
from qkv.train.recipes import CUSTOM, Plan, RecipeName, check_fields, plan_finetuning, plan_pretraining
from qkv.train.removal import remove_new_run
from qkv.train.run_data import DerivedText, KeptText, QuestionSource, TextSource
from qkv.train.run_files import CONFIG_FILE as CONFIG_FILE
from qkv.train.run_files import (
    FROM_SCRATCH,
    PARENT,
    PARENT_WEIGHTS,
    WEIGHTS_FILE,
    RunDescription,
    is_run,
    read_description,
    recorded_path,
    write_description,
)
from qkv.train.run_lock import run_lock
from qkv.train.settings import CLOZE, TrainChanges, TrainSettings
from qkv.train.tokenizers import TOKENIZER_FILE, Tokenizer

BUDGET_MARGIN = 0.94  # fraction of a time budget that is for steps; the rest is for checkpoints and a busy machine
MIN_BUDGET_STEPS = 10
NEW_RUN_FILES = (CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE, checkpoint.optimizer_file(0))


class PretrainChanges(ModelChanges, TrainChanges, total=False):
    """Fields of ModelConfig and TrainSettings, each optional: the types of `pretrain(..., **changes)`."""


@dataclass(frozen=True, eq=False)
class Run(Displayable):
    """A run in memory: its model, ready to use, with its tokenizer and what config.json says.

    Attributes:
        folder: Where it is stored.
        config: Shape of the model.
        settings: How it was trained.
        data: What it was trained on: `kind` (text, cloze, questions or imported), `path`, `sha256` and others.
        tokenizer: Its tokenizer.
        model: Its model, in evaluation mode.
        step: Steps that it has taken.
        recipe: Recipe that it was trained by; `finetune` follows the same.

    Example:
        >>> import tempfile, qkv
        >>> folder = tempfile.mkdtemp()
        >>> config = qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16)
        >>> _ = qkv.train.pretrain(["Ada was born in London."], folder, config, steps=2, batch_size=2)
        >>> run = qkv.train.load(folder)
        >>> run.step, run.recipe, run.tokenizer.decode(run.tokenizer.encode("Ada"))
        (2, 'custom', 'Ada')
    """

    folder: Path
    config: ModelConfig
    settings: TrainSettings
    data: dict[str, Any]
    tokenizer: Tokenizer
    model: GPT
    step: int
    recipe: str = CUSTOM

    def card(self) -> Card:
        size = sum(p.numel() for p in self.model.parameters())
        facts = (
            ("attention", self.config.attention),
            ("parameters", f"{size:,}"),
            ("tokens", f"{self.tokenizer.vocab_size} {self.tokenizer.name}"),
            ("steps", f"{self.step} of {self.settings.steps}"),
        )
        return Card(f"Run {self.folder}", facts)


RunOrFolder = Run | str | Path


def _folder(out: Any) -> Path:
    if not isinstance(out, str | Path):
        raise QkvError("training a model", f"out is {kind_of(out)}, not a path", "Give the folder of the new run")
    return Path(out)


def pretrain(
    text: TextSource | DerivedText | None,
    out: str | Path,
    config: ModelConfig | str | None = None,
    settings: TrainSettings | None = None,
    *,
    recipe: RecipeName | None = None,
    questions: QuestionSource | None = None,
    tokenizer: str | Tokenizer | None = None,
    minutes: float | None = None,
    resume: bool = False,
    callback: StepCallback | None = None,
    **changes: Unpack[PretrainChanges],
) -> TrainResult:
    """Train a new model on texts; `qkv pretrain` calls this function.

    With texts alone it follows the recipe `cloze` (see `qkv.train.recipes.RECIPES`), for eight minutes. A caller that
    gives `config`, `settings`, `tokenizer`, `steps` or another `objective` chooses the rest too: the recipe is then
    `custom`, the defaults of ModelConfig and TrainSettings with a character tokenizer. To change single fields of
    another recipe, name it: `recipe="cloze", steps=100`.

    Args:
        text: File with one text per line, or a list of texts; None only with `resume`. A
            `qkv.train.run_data.DerivedText` is made when the run is created, and kept in its folder.
        out: Folder of the new run; it must hold no run, unless `resume` is true, and no other files of a run's names.
        config: Shape of the model, or the name of a preset (`tiny`, `small` or `course`). Its `vocab_size` is the size
            asked of a tokenizer that is trained here, 0 for the tokenizer's default.
        settings: How to train.
        recipe: `cloze`, `course` or `custom`; None chooses by the rule above.
        questions: File of question<TAB>answer lines, or pairs, to be mixed in; only for the objective `cloze`.
        tokenizer: `characters` or `bytepairs`, trained on the texts; or a tokenizer.
        minutes: Train for about this long: the number of steps is what this machine can do in that time.
        resume: Continue the run in `out`, if there is one, from its last checkpoint. Options that contradict it are
            refused.
        callback: Called after each step with its number, the number of all steps, the loss and tokens per second.
        **changes: Single fields of ModelConfig and TrainSettings.

    Returns:
        The step that was reached, with the last losses.

    Raises:
        QkvError: If data, options or folder cannot be used, or the loss is no longer finite.

    Example:
        >>> import tempfile, qkv
        >>> texts = ["Ada was born in London.", "Bo was born in Rome."]
        >>> options = {"steps": 3, "batch_size": 2, "n_layer": 1, "n_head": 2, "d_model": 16}
        >>> done = qkv.train.pretrain(texts, tempfile.mkdtemp(), **options)
        >>> done.step, done.parameters
        (3, 8752)
    """
    folder = _folder(out)
    plan = plan_pretraining(recipe, config, settings, tokenizer, minutes, changes)

    def create() -> Creation:
        _check_objective(plan, questions)
        if text is None:
            missing = f"there is no run in {folder} to go on with, and no text" if resume else "there is no text"
            raise QkvError("pretraining", missing, "Give a text (--text FILE, one text per line), or texts in Python")
        creation.remove_killed(folder)
        source = KeptText.of(text, folder) if isinstance(text, DerivedText) else text
        texts = run_data.texts_of(source)
        shape, made = _with_tokenizer(plan, texts)
        data = run_data.data_record(source, questions, plan.settings.objective)
        settings = plan.settings_for(len(texts))
        return _write_new_run(folder, shape, settings, data, made, None, plan.recipe, plan.minutes, source)

    def check() -> None:
        given = {} if config is None else {**plan.config.to_json(), "vocab_size": 0}
        given |= {} if settings is None else settings.to_json()
        resuming.check_pretraining(folder, text, questions, tokenizer, recipe, minutes, given, changes)

    given = None if isinstance(text, DerivedText) else text
    return _create_and_train(folder, create, check, resume, (given, questions), callback)


def finetune(
    run: RunOrFolder,
    questions: QuestionSource,
    out: str | Path,
    settings: TrainSettings | None = None,
    *,
    recipe: RecipeName | None = None,
    text: TextSource | None = None,
    minutes: float | None = None,
    from_scratch: bool = False,
    resume: bool = False,
    callback: StepCallback | None = None,
    **changes: Unpack[TrainChanges],
) -> TrainResult:
    """Train a run's model further, to answer questions; `qkv finetune` calls this function.

    It follows the recipe that the run was trained by, or `custom` if `settings` is given. With the objective `cloze`
    the text that the run was pretrained on (or `text`) is trained on further, with the questions mixed in; with any
    other objective the questions are trained on alone.

    Args:
        run: The run to start from, or its folder; it is not changed.
        questions: File of question<TAB>answer lines, or pairs; only the answers are targets.
        out: Folder of the new run; it must hold no run, unless `resume` is true, and no other files of a run's names.
        settings: How to train.
        recipe: `cloze`, `course` or `custom`; None chooses by the rule above.
        text: The text that the run was pretrained on, if its file has moved or it was a list.
        minutes: Train for about this long.
        from_scratch: Start from new weights: a baseline that has read nothing, trained on questions only.
        resume: Continue the run in `out`, if there is one.
        callback: Called after each step with its number, the number of all steps, the loss and tokens per second.
        **changes: Single fields of TrainSettings.

    Returns:
        The step that was reached, with the last losses.

    Raises:
        QkvError: If data, options or folders cannot be used, or the loss is no longer finite.

    Example:
        >>> import tempfile, qkv
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> config = qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16)
        >>> _ = qkv.train.pretrain(["Ada was born in London."], folder / "base", config, steps=2, batch_size=2)
        >>> questions = [("Where was Ada born?", "London")]
        >>> qkv.train.finetune(folder / "base", questions, folder / "tuned", steps=2, batch_size=1).step
        2
    """
    folder = _folder(out)

    def create() -> Creation:
        parent = as_run(run)
        plan = plan_finetuning(recipe, parent.recipe, settings, minutes, from_scratch, changes)
        return _create_finetuned(parent, plan, questions, text, folder, from_scratch)

    def check() -> None:
        check_fields(changes, TrainSettings)
        given = {} if settings is None else settings.to_json()
        resuming.check_finetuning(
            folder, folder_of(run), lambda: _weights_checksum(as_run(run)), text, questions, from_scratch, recipe,
            minutes, given, changes,
        )  # fmt: skip

    return _create_and_train(folder, create, check, resume, (text, questions), callback)


def resume(
    run: RunOrFolder,
    data: TextSource | QuestionSource | None = None,
    questions: QuestionSource | None = None,
    callback: StepCallback | None = None,
) -> TrainResult:
    """Continue a run from its last checkpoint, to the same bits as if it had never stopped.

    Args:
        run: A run, or its folder.
        data: The texts (or, for a run finetuned on questions only, the questions) that it was started with; needed if
            they were a list or their file has moved.
        questions: The questions that are mixed in, likewise.
        callback: Called after each step with its number, the number of all steps, the loss and tokens per second.

    Returns:
        The step that was reached, with the last losses.

    Raises:
        QkvError: If the data is not what the run was started with, or the checkpoint is damaged.

    Example:
        >>> import tempfile, qkv
        >>> folder, texts = tempfile.mkdtemp(), ["Ada was born in London."]
        >>> config = qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16)
        >>> _ = qkv.train.pretrain(texts, folder, config, steps=2, batch_size=2)
        >>> qkv.train.resume(folder, texts).step
        2
    """
    folder = folder_of(run)
    read_description(folder)  # a folder without a run is refused before it is locked
    with process_group() as group, run_lock(folder) if group.is_first else nullcontext():
        if group.is_first:
            creation.remove_leftovers(folder)
            _convert_budget(folder, (data, questions), group.size)
        group.barrier()
        return train_locked(_job(folder, (data, questions), callback))


def load(run: str | Path) -> Run:
    """Open a run.

    Args:
        run: Folder of a run, of this version's format or of an older one.

    Returns:
        Its model in evaluation mode, its tokenizer, and what its config.json says.

    Raises:
        QkvError: If there is no run in the folder, or one of its files is damaged.

    Example:
        >>> import tempfile, qkv
        >>> folder = tempfile.mkdtemp()
        >>> config = qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16)
        >>> _ = qkv.train.pretrain(["Ada was born in London."], folder, config, steps=1, batch_size=2)
        >>> run = qkv.train.load(folder)
        >>> run.config.d_model, run.settings.steps, run.data["kind"]
        (16, 1, 'text')
    """
    folder = Path(run)
    found = read_description(folder)
    weights, step = checkpoint.read(folder / WEIGHTS_FILE)
    checkpoint.check_shapes(shapes(found.config), weights, folder)  # before a model of any size is built
    with torch.random.fork_rng(devices=[]):
        model = GPT(found.config)  # whose random initial weights are replaced
    checkpoint.load_weights(model, weights, folder)
    tokenizer = tokenizers.load_of_run(folder, found)
    return Run(folder, found.config, found.settings, found.data, tokenizer, model.eval(), step, found.recipe)


def as_run(run: RunOrFolder) -> Run:
    """A run as it is, or the one in a folder."""
    return run if isinstance(run, Run) else load(run)


def folder_of(run: RunOrFolder) -> Path:
    """The folder of a run, or the folder itself."""
    return run.folder if isinstance(run, Run) else Path(run)


def create_run(
    out: str | Path,
    config: ModelConfig,
    settings: TrainSettings,
    data: Mapping[str, Any],
    tokenizer: Tokenizer,
    model: GPT | None = None,
    *,
    recipe: str = CUSTOM,
    minutes: float | None = None,
) -> None:
    """Write the folder of a run that has taken no step yet. config.json is written last, and makes it a run.

    Args:
        out: Folder; it must not hold a run.
        config: Shape of the model, with its `vocab_size`.
        settings: How it will be trained.
        data: What it will be trained on; see RunDescription.
        tokenizer: Its tokenizer.
        model: Initial weights; None for random ones, by the seed of the settings.
        recipe: Name of its recipe.
        minutes: Time budget that training will convert to a number of steps.
    """
    with run_lock(Path(out)):
        creation.remove_leftovers(Path(out))
        _write_new_run(Path(out), config, settings, data, tokenizer, model, recipe, minutes, log=False)


def _write_new_run(
    folder: Path,
    config: ModelConfig,
    settings: TrainSettings,
    data: Mapping[str, Any],
    tokenizer: Tokenizer,
    model: GPT | None,
    recipe: str,
    minutes: float | None,
    text: TextSource | KeptText | None = None,
    log: bool = True,
) -> Creation:
    """`create_run` for callers that hold the lock of the folder already, with a text that the run is to keep.

    With `log`, its log is created too, while it is empty: so that no log of another run is continued.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = model or GPT(config)
    check_no_run(folder)
    with creation.creation(folder) as made:
        if isinstance(text, KeptText):
            text.write(made.writing)
        if log:
            write_text(folder / LOG_FILE, "", made.writing)
        tokenizer.save(folder, made.writing)
        checkpoint.save(folder, 0, checkpoint.weights_of(model), {}, made.writing)
        checksum = content_checksum((folder / TOKENIZER_FILE).read_bytes())
        budget = {} if minutes is None else {resuming.BUDGET: minutes}
        described = RunDescription(config, settings, {**data, **budget}, recipe, minutes, checksum)
        write_description(folder, described, made.writing)
    return made


def check_no_run(folder: Path, hint: str = "Give another folder, or resume") -> None:
    """Refuse to write a run over another (`hint` says what to do instead), or over files that are no run's."""
    request = f"starting a run in {folder}"
    if (folder / CONFIG_FILE).exists():
        raise QkvError(request, "there is one already", hint)
    names = (*NEW_RUN_FILES, checkpoint.OPTIMIZER_FILES, LOG_FILE, TENSORBOARD_FOLDER)
    creation.check_names_free(folder, names, request)


def with_vocabulary(config: ModelConfig, tokenizer: Tokenizer) -> ModelConfig:
    """A configuration whose vocabulary has room for a given tokenizer; 0 takes the tokenizer's own number."""
    if 0 < config.vocab_size < tokenizer.vocab_size:
        raise QkvError(
            "making a model",
            f"vocab_size is {config.vocab_size} and the tokenizer has {tokenizer.vocab_size} tokens",
            "Leave vocab_size at 0",
        )
    return dataclasses.replace(config, vocab_size=config.vocab_size or tokenizer.vocab_size)


def _with_tokenizer(plan: Plan, texts: Sequence[str]) -> tuple[ModelConfig, Tokenizer]:
    """The plan's tokenizer, trained here if it is given by name, and the configuration with its vocabulary."""
    if not isinstance(plan.tokenizer, str):
        return with_vocabulary(plan.config, plan.tokenizer), plan.tokenizer
    made = tokenizers.train(plan.tokenizer, texts, plan.config.vocab_size)
    return dataclasses.replace(plan.config, vocab_size=made.vocab_size), made


def _create_finetuned(
    parent: Run, plan: Plan, questions: QuestionSource, text: TextSource | None, folder: Path, from_scratch: bool
) -> Creation:
    """Create the run that finetunes a parent: on its text and the questions (cloze), or on the questions alone."""
    request = f"finetuning {parent.folder}"
    if not parent.tokenizer.special:
        raise QkvError(request, "its tokenizer lacks the sign ⁇", "Finetune a run that qkv pretrained")
    if plan.settings.objective == CLOZE:
        read = text if text is not None else recorded_path(parent.data, parent.folder)
        if read is None:
            raise QkvError(request, "the objective cloze needs the text that it read", "Give text")
        if text is None and run_data.origin(read)["sha256"] != parent.data.get("sha256"):
            raise QkvError(request, f"{read} is not the text that it read any more", "Give that text")
        data = run_data.data_record(read, questions, CLOZE)
    else:
        data = {
            "kind": "questions",
            **run_data.origin(questions),
            "frames": question_frames((), read_questions(questions)),
        }
    count = len(read_questions(questions)) if plan.epochs is not None else 0
    data |= {
        PARENT: str(parent.folder.resolve()),
        PARENT_WEIGHTS: _weights_checksum(parent),
        FROM_SCRATCH: from_scratch,
    }
    return _write_new_run(
        folder, parent.config, plan.settings_for(count), data, parent.tokenizer,
        None if from_scratch else parent.model, plan.recipe, plan.minutes,
    )  # fmt: skip


def _weights_checksum(run: Run) -> str:
    return checkpoint.weights_checksum(run.model, run.step)


def _create_and_train(
    folder: Path,
    create: Callable[[], Creation],
    check: Callable[[], None],
    resume: bool,
    given: tuple[Any, Any],
    callback: StepCallback | None,
) -> TrainResult:
    """Create a run in one process, or check one that is resumed, and train it in all; `given` is (text, questions).

    A run that is created here and cannot take a single step is removed again: the mended call may have the same folder.
    """
    taken: list[int] = []

    def after_step(step: int, steps: int, loss: float, speed: float) -> None:
        taken.append(step)
        if callback is not None:
            callback(step, steps, loss, speed)

    with process_group() as group, run_lock(folder) if group.is_first else nullcontext():
        created: Creation | None = None
        try:
            if group.is_first:
                creation.remove_leftovers(folder)
                if resume and is_run(folder):
                    check()
                else:
                    check_no_run(folder)
                    created = create()
                if _convert_budget(folder, _sources(folder, given), group.size) and created is not None:
                    created.rewritten(CONFIG_FILE)
            group.barrier()
            return train_locked(_job(folder, _sources(folder, given), after_step, announce=group.is_first))
        except Exception:  # not KeyboardInterrupt: a run that was stopped is there to be resumed
            if created is not None and not taken:
                remove_new_run(created)
            raise


def _sources(folder: Path, given: tuple[Any, Any]) -> tuple[Any, Any]:
    """(data, questions mixed in) of a run, out of the (text, questions) that its caller gave."""
    return (given[1], None) if read_description(folder).data["kind"] == "questions" else given


def _job(folder: Path, given: tuple[Any, Any], callback: StepCallback | None, announce: bool = False) -> Job:
    """The job that continues a run on its data, which must be what it was started with.

    With `announce`, a run that has taken no step warns of questions and texts that cannot be drilled.
    """
    run = load(folder)
    if run.data["kind"] == "imported":
        raise QkvError(f"resuming {folder}", "it was imported, not trained", "Export it, or generate from it")
    records = (run.data, run.data.get("questions"))
    data, questions = (
        None if record is None else run_data.same_data(folder, each, record)
        for each, record in zip(given, records, strict=True)
    )
    source, held_out = _examples(run, data, questions, announce and run.step == 0)
    return Job(folder, run.model, source, run.settings, held_out, callback)


def _convert_budget(folder: Path, given: tuple[Any, Any], processes: int) -> bool:
    """Convert a run's minutes, if it has any, to a number of steps, by timing steps on a copy of its model.

    On a machine that others use too, threads wait for each other, and a single one may be faster: both are timed.
    """
    found = read_description(folder)
    if found.minutes is None:
        return False
    loop.check_batch_size(found.settings, processes)
    job = _job(folder, given, None)
    began, timed = time.perf_counter(), {}
    for count in dict.fromkeys((job.settings.threads, 1)):
        with torch_threads(count):
            timed[count] = loop.seconds_per_step(job)
    best = min(timed, key=lambda count: timed[count])
    left = found.minutes * 60 * BUDGET_MARGIN - (time.perf_counter() - began)
    steps = max(MIN_BUDGET_STEPS, int(left / timed[best]))
    settings = dataclasses.replace(found.settings, steps=steps, threads=best)
    write_description(folder, dataclasses.replace(found, settings=settings, minutes=None))
    return True


def _examples(run: Run, data: Any, questions: Any, announce: bool) -> tuple[BatchSource, list[Example]]:
    """(examples of each step, held-out examples) of a run; `announce` warns of what cannot be drilled."""
    length, s, kind = run.config.context_length, run.settings, run.data["kind"]
    if kind == "cloze":
        pairs = [] if questions is None else read_questions(questions)
        cloze = ClozeSource(read_texts(data), pairs, run.tokenizer, length)
        if announce and str(cloze.coverage):
            warnings.warn(str(cloze.coverage), QkvWarning, stacklevel=2)
        return cloze.source(s), []
    if kind == "questions":
        made, goal = unchanged(question_examples(read_questions(data), run.tokenizer, length))
    else:
        made, goal = documents(read_texts(data), run.tokenizer, s.objective == "salient"), objective(s.objective)
    order = np.random.default_rng((s.seed, 2)).permutation(len(made))
    count = min(int(s.val_fraction * len(made)), len(made) - 1)
    random = np.random.default_rng((s.seed, 3))
    held_out = [goal(made[i], length, random) for i in order[:count]]
    return batches([made[i] for i in order[count:]], goal, length, s.batch_size, s.seed), held_out


def _check_objective(plan: Plan, questions: QuestionSource | None) -> None:
    """Refuse an unknown objective, and questions with one that does not mix them in."""
    if plan.settings.objective == CLOZE:
        return
    objective(plan.settings.objective)
    if questions is not None:
        raise QkvError(
            "pretraining",
            f"the objective {plan.settings.objective} has no place for questions",
            "Use the objective cloze, or give the questions to finetune",
        )
