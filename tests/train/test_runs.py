"""Run folders: created once, finetuned, loaded and resumed on their own data only."""

import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from qkv.errors import QkvError
from qkv.model.gpt import GPT
from qkv.train import loop, run_files, runs
from qkv.train.generation import generate
from qkv.train.metrics_log import read_log
from qkv.train.run_data import data_record
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import Characters


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_a_run_is_a_folder_and_opens_as_what_was_trained(text, config, settings, tmp_path):
    out = tmp_path / "run"
    done = runs.pretrain(text, out, config, settings)
    names = {path.name for path in out.iterdir()}
    assert names == {"config.json", "tokenizer.json", "model.safetensors", "optimizer-12.safetensors", "log.jsonl"}
    run = runs.load(out)
    assert run.step == done.step == 12 and run.config.vocab_size == run.tokenizer.vocab_size
    assert done.val_loss is not None and done.to_json()["folder"] == str(out)
    assert read_log(out)[-1]["loss"] == done.loss
    assert not run.model.training


def test_finetuning_teaches_answers_and_leaves_the_pretrained_run_alone(text, questions, config, tmp_path):
    quick = TrainSettings(steps=150, batch_size=16, lr=1e-2, val_fraction=0.0)
    runs.pretrain(text, tmp_path / "base", config, replace(quick, steps=5))
    before = weights(tmp_path / "base")
    few = [("Where was Ada born?", "Rome"), ("Where was Bo born?", "Łódź")] * 8
    runs.finetune(tmp_path / "base", few, tmp_path / "tuned", replace(quick, steps=60))
    assert same(before, weights(tmp_path / "base"))
    tuned = runs.load(tmp_path / "tuned")
    got = generate(tuned, [q for q, _ in few[:2]], max_new_tokens=10, ask=True, log_probabilities=True)
    assert got.texts == ("Rome", "Łódź")
    assert all(-0.5 < sum(each) <= 0 for each in got.log_probabilities)


def test_a_run_is_not_written_over_nor_continued_on_other_data(text, config, settings, tmp_path):
    out = tmp_path / "run"
    runs.pretrain(text, out, config, replace(settings, steps=2))
    with pytest.raises(QkvError, match="there is one already"):
        runs.pretrain(text, out, config, settings)
    text.write_text("something else\n")
    with pytest.raises(QkvError, match="not what it began with"):
        runs.resume(out)


def test_bad_data_is_refused_with_its_lines(config, settings, tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text("what?\tthis\nno tab\n\nanother?\t\n")
    runs.pretrain(["some text that is long enough"], tmp_path / "run", config, replace(settings, steps=1))
    with pytest.raises(QkvError, match="line 2, 4 is not question<TAB>answer"):
        runs.finetune(tmp_path / "run", path, tmp_path / "tuned", settings)
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(QkvError, match="not UTF-16-LE"):
        runs.pretrain(path, tmp_path / "other", config, settings)
    with pytest.raises(QkvError, match="there are none"):
        runs.pretrain(["", " "], tmp_path / "other", config, settings)


def test_a_run_or_its_folder_is_taken_everywhere(text, questions, config, settings, tmp_path):
    short = replace(settings, steps=2)
    runs.pretrain(text, tmp_path / "base", config, short)
    run = runs.load(tmp_path / "base")
    assert runs.as_run(run) is run and runs.as_run(str(run.folder)).step == 2
    for name, given in (("a", run), ("b", run.folder)):
        runs.finetune(given, questions, tmp_path / name, short)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert same(weights(run.folder), {name: p.detach() for name, p in run.model.named_parameters()})
    assert runs.resume(run).step == 2


def test_a_run_that_has_ended_reports_the_losses_of_its_last_step(text, config, settings, tmp_path):
    done = runs.pretrain(text, tmp_path / "run", config, settings)
    again = runs.resume(tmp_path / "run")
    assert (again.step, again.loss, again.val_loss, again.tokens) == (12, done.loss, done.val_loss, 0)


def test_a_run_is_created_without_a_step_and_not_over_another(config, settings, tmp_path):
    tokenizer = Characters.train(["abc"])
    config = replace(config, vocab_size=tokenizer.vocab_size)
    runs.create_run(tmp_path / "run", config, settings, {"kind": "text"}, tokenizer, recipe="course")
    run = runs.load(tmp_path / "run")
    assert (run.step, run.config, run.settings, run.recipe) == (0, config, settings, "course")
    torch.manual_seed(settings.seed)
    assert same({n: p.detach() for n, p in GPT(config).named_parameters()}, weights(tmp_path / "run"))
    with pytest.raises(QkvError, match="there is one already"):
        runs.create_run(tmp_path / "run", config, settings, {"kind": "text"}, tokenizer)
    with pytest.raises(QkvError, match="its data was not a file"):
        runs.resume(tmp_path / "run")


def test_vocab_size_is_asked_of_a_tokenizer_that_is_trained_and_checked_against_one_that_is_given(
    text, config, settings, tmp_path
):
    short = replace(settings, steps=1)
    occur = 259 + len(set(text.read_text("utf-8")) - {"\n"})
    for number, (tokenizer, asked, found) in enumerate(
        [("bytepairs", 300, 300), ("characters", 262, 262), ("characters", 5000, occur), ("characters", 0, occur)]
    ):
        out = tmp_path / str(number)
        runs.pretrain(text, out, replace(config, vocab_size=asked), short, tokenizer=tokenizer)
        run = runs.load(out)
        assert run.config.vocab_size == run.tokenizer.vocab_size == found
    given = Characters.train(["abc"])
    runs.pretrain(text, tmp_path / "padded", config, short, tokenizer=given, vocab_size=272)
    assert runs.load(tmp_path / "padded").config.vocab_size == 272 > given.vocab_size
    with pytest.raises(QkvError, match="vocab_size is 260 and the tokenizer has 262"):
        runs.pretrain(text, tmp_path / "small", config, short, tokenizer=given, vocab_size=260)


def test_options_that_contradict_a_run_that_is_resumed_are_refused(text, questions, config, settings, tmp_path):
    short = replace(settings, steps=2)
    runs.pretrain(text, tmp_path / "run", config, short, vocab_size=2000)
    assert runs.pretrain(None, tmp_path / "run", resume=True).step == 2
    assert runs.pretrain(text, tmp_path / "run", config, short, vocab_size=2000, resume=True).step == 2
    for options, why in (
        ({"lr": 0.5}, "lr is 0.001 there and 0.5 here"),
        ({"settings": replace(short, steps=9)}, "steps is 2 there and 9 here"),
        ({"config": replace(config, n_layer=7)}, "n_layer is 2 there and 7 here"),
        ({"recipe": "course"}, "recipe is custom there and course here"),
        ({"vocab_size": 260}, "vocab_size is 289 there and 260 here"),
    ):
        with pytest.raises(QkvError, match=why):
            runs.pretrain(text, tmp_path / "run", resume=True, **options)
    runs.finetune(tmp_path / "run", questions, tmp_path / "tuned", short)
    assert runs.finetune(tmp_path / "run", questions, tmp_path / "tuned", resume=True).step == 2
    with pytest.raises(QkvError, match="seed is 0 there and 3 here"):
        runs.finetune(tmp_path / "run", questions, tmp_path / "tuned", seed=3, resume=True)


UNTITLED = ["a text without a title", "and another one, without one too"]


@pytest.mark.parametrize(
    ("texts", "changes"),
    [
        (UNTITLED, {"steps": 3, "context_length": 2}),  # refused while the first batch is made
        (UNTITLED, {"steps": 3, "objective": "cloze"}),  # refused while the examples are made
        (UNTITLED, {"minutes": 0.1}),  # the recipe, while its steps are timed
        (UNTITLED, {"steps": 3, "batch_size": 2, "grad_accum": 4}),  # refused by the training loop
    ],
)
def test_a_refused_run_leaves_its_folder_as_it_was(texts, changes, tmp_path):
    out = tmp_path / "new" / "run"
    with pytest.raises(QkvError):
        runs.pretrain(texts, out, **changes)
    assert not out.parent.exists()
    out.mkdir(parents=True)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(QkvError):
        runs.pretrain(texts, out, **changes)
    assert [path.name for path in out.iterdir()] == ["notes.txt"] and (out / "notes.txt").read_text() == "mine"
    assert runs.pretrain(texts, out, steps=1, batch_size=2, n_layer=1, n_head=2, d_model=16).step == 1


def test_a_refusal_never_removes_a_run_that_was_there(text, config, settings, tmp_path):
    out = tmp_path / "run"
    runs.create_run(out, replace(config, vocab_size=300), settings, {"kind": "imported"}, Characters.train(["abc"]))
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for resume in (False, True):
        with pytest.raises(QkvError):
            runs.pretrain(text, out, resume=resume)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_run_that_diverged_after_its_first_step_is_kept(text, config, settings, tmp_path):
    with pytest.raises(QkvError, match=r"at step \d+.*the checkpoint of step 0 is untouched"):
        runs.pretrain(text, tmp_path / "run", config, replace(settings, steps=30, checkpoint_every=30, lr=1e30))
    assert runs.load(tmp_path / "run").step == 0


RUN_NAMES = [
    "log.jsonl", "tokenizer.json", "model.safetensors", "optimizer-0.safetensors", "optimizer-700.safetensors",
    "tensorboard", ".qkv-lock", ".qkv-creating",
]  # fmt: skip


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", RUN_NAMES)
def test_a_new_run_never_replaces_a_file_that_was_there_not_even_one_that_it_reads(
    name, resume, text, questions, config, settings, tmp_path, contents
):
    out, short = tmp_path / "out", replace(settings, steps=1)
    runs.pretrain(text, tmp_path / "base", config, short)
    out.mkdir()
    for data, call in (
        (text, lambda path: runs.pretrain(path, out, config, short, resume=resume)),
        (questions, lambda path: runs.finetune(tmp_path / "base", path, out, short, resume=resume)),
    ):
        (out / name).write_bytes(data.read_bytes())
        before = contents(out)
        with pytest.raises(QkvError, match=rf"{name} is there already"):
            call(out / name)
        with pytest.raises(QkvError, match=rf"{name} is there already"):
            call(data)
        assert contents(out) == before


def test_links_without_a_file_are_not_replaced_either(text, config, tmp_path, contents):
    out = tmp_path / "out"
    out.mkdir()
    (out / "tokenizer.json").symlink_to(tmp_path / "nothing")
    with pytest.raises(QkvError, match=r"tokenizer\.json is there already"):
        runs.pretrain(text, out, config, steps=1)
    assert contents(out) == {"tokenizer.json": tmp_path / "nothing"} and not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("moment", ["while it is created", "before its first step"])
def test_a_run_that_fails_leaves_what_others_put_into_its_folder_meanwhile(
    moment, text, config, settings, tmp_path, monkeypatch, contents
):
    out = tmp_path / "new" / "out"

    def fail(*args, **options):
        (out / "other").mkdir()
        (out / "other" / "config.json").write_text("mine")
        (out / "notes.txt").write_text("mine")
        raise QkvError("training", "something is wrong", "Mend it")

    monkeypatch.setattr(runs, "write_description" if moment == "while it is created" else "train_locked", fail)
    with pytest.raises(QkvError, match="something is wrong"):
        runs.pretrain(text, out, config, replace(settings, tensorboard=True))
    assert {path for path in contents(out) if (out / path).is_file()} == {"other/config.json", "notes.txt"}


def test_finetuning_continues_no_run_that_it_did_not_create(text, questions, config, settings, tmp_path, contents):
    base = tmp_path / "base"
    with pytest.raises(ZeroDivisionError):
        runs.pretrain(text, base, config, settings, callback=lambda step, *rest: 1 // (step < 5))
    before = contents(base)
    with pytest.raises(QkvError, match="the run there was not made by finetuning"):
        runs.finetune(base, questions, base, resume=True)
    assert contents(base) == before


def test_an_interrupt_while_a_run_is_created_leaves_nothing(config, settings, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "write_description", interrupt)
    tokenizer = Characters.train(["abc"])
    with pytest.raises(KeyboardInterrupt):
        runs.create_run(tmp_path / "out", replace(config, vocab_size=300), settings, {"kind": "text"}, tokenizer)
    assert not list(tmp_path.iterdir())


def test_a_batch_that_cannot_be_shared_is_refused_before_its_steps_are_timed(tmp_path):
    texts = [f"Ada {i} was born in London in {1800 + i}." for i in range(30)]
    options = {"minutes": 1, "grad_accum": 8, "batch_size": 4, "n_layer": 1, "d_model": 16, "n_head": 2}
    with pytest.raises(QkvError, match="a batch of 4 cannot be shared by 1 processes in 8 parts"):
        runs.pretrain(texts, tmp_path / "run", recipe="cloze", vocab_size=400, **options)
    assert not list(tmp_path.iterdir())


def test_a_run_that_was_killed_before_its_minutes_were_steps_is_resumed_for_these_minutes(
    text, config, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop, "seconds_per_step", lambda job: 0.05)
    tokenizer = Characters.train(text.read_text("utf-8").split("\n"))
    shape = replace(config, vocab_size=tokenizer.vocab_size)
    data = data_record(text, None, settings.objective)
    runs.create_run(tmp_path / "run", shape, settings, data, tokenizer, minutes=0.02)
    assert runs.resume(tmp_path / "run").step == runs.load(tmp_path / "run").settings.steps == 22


CONTRADICTIONS = {
    "threads alone": ("pretrain", {"threads": 7}, "threads is 0 there and 7 here"),
    "a time budget": ("pretrain", {"minutes": 5.0}, "no time budget there and 5 minutes here"),
    "a time budget of finetune": ("finetune", {"minutes": 5.0}, "no time budget there and 5 minutes here"),
    "another text": ("pretrain", {"text": "other"}, "text is not what it began with"),
    "people left out": ("pretrain", {"text": "derived"}, "without gives another text"),
    "questions mixed in": ("pretrain", {"questions": "questions"}, "questions were given, and it began without any"),
    "a tokenizer by name": ("pretrain", {"tokenizer": "bytepairs"}, "tokenizer is characters there and bytepairs here"),
    "a tokenizer": ("pretrain", {"tokenizer": Characters.train(["abc"])}, "tokenizer is not the one that it began"),
    "pretraining of a finetuned run": ("pretrain", {"out": "tuned"}, "the run there was made by finetuning"),
    "another parent": ("finetune", {"run": "second"}, "parent is .*base there and .*second here"),
    "a parent that does not exist": ("finetune", {"run": "nothing"}, "nothing.*there is no such folder"),
    "other questions": ("finetune", {"questions": "others"}, "questions are not what it began with"),
    "from scratch": ("finetune", {"from_scratch": True}, "from_scratch was given"),
    "a text beside questions": ("finetune", {"text": "text"}, "text was given, and it is trained on questions alone"),
    "another text of a cloze run": ("finetune", {"text": "other", "out": "cloze"}, "text is not what it began with"),
    "other questions of a cloze run": ("finetune", {"questions": "others", "out": "cloze"}, "questions are not"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Runs that were pretrained and finetuned, and texts and questions that they did not begin with."""
    here = tmp_path_factory.mktemp("begun")
    texts = [
        "Ada Lee. Ada Lee was born in Rome .",
        "Bo Roy. Bo Roy was born in Oslo .",
        "Cy Fox. Cy Fox was born in Rome .",
    ]
    (here / "text").write_text("\n".join(texts))
    (here / "other").write_text("\n".join([*texts, "Di Ott. Di Ott was born in Oslo ."]))
    (here / "questions").write_text("Where was Ada Lee born?\tRome\nWhere was Bo Roy born?\tOslo\n")
    (here / "others").write_text("Where was Ada Lee born?\tOslo\n")
    tiny = {"n_layer": 1, "n_head": 2, "d_model": 16, "steps": 1, "batch_size": 2}
    runs.pretrain(here / "text", here / "base", **tiny)
    runs.pretrain(here / "text", here / "second", **tiny, seed=5)
    runs.finetune(here / "base", here / "questions", here / "tuned", steps=1)
    runs.finetune(here / "base", here / "questions", here / "cloze", steps=1, batch_size=2, objective="cloze")
    return here


def call(here, verb, changes, resume):
    out = {"pretrain": "base", "finetune": "tuned"}[verb]
    given = {"text": None} if verb == "pretrain" else {"run": "base", "questions": "questions"}
    given |= {"out": out, "resume": resume} | changes
    for name in ("run", "text", "questions", "out"):
        if given.get(name) is not None:
            given[name] = here / given[name]
    if changes.get("text") == "derived":
        given["text"] = runs.DerivedText(lambda: ["Ada Lee. Ada Lee was born in Rome ."])
    return getattr(runs, verb)(**given)


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_whatever_is_given_with_resume_must_be_what_the_run_began_with(name, begun, contents):
    verb, changes, told = CONTRADICTIONS[name]
    before = contents(begun)
    with pytest.raises(QkvError, match=told):
        call(begun, verb, changes, resume=True)
    assert contents(begun) == before


def test_a_run_is_resumed_with_all_that_it_began_with_also_where_its_parent_has_moved(begun, tmp_path):
    assert call(begun, "pretrain", {"text": "text", "tokenizer": "characters"}, resume=True).step == 1
    assert call(begun, "finetune", {"out": "cloze", "text": "text"}, resume=True).step == 1
    shutil.copytree(begun / "base", tmp_path / "moved")
    given = {"out": begun / "tuned", "resume": True, "questions": begun / "questions"}
    assert runs.finetune(tmp_path / "moved", **given).step == 1
    assert runs.finetune(runs.load(tmp_path / "moved"), **given).step == 1


def test_a_run_with_a_time_budget_is_resumed_with_the_same_one(begun, tmp_path):
    given = {"n_layer": 1, "n_head": 2, "d_model": 16, "batch_size": 2, "minutes": 0.001, "recipe": "custom"}
    runs.pretrain(begun / "text", tmp_path / "run", **given)
    runs.pretrain(begun / "text", tmp_path / "run", **given, resume=True)
    with pytest.raises(QkvError, match=r"minutes is 0\.001 there and 2 minutes here"):
        runs.pretrain(begun / "text", tmp_path / "run", **{**given, "minutes": 2.0}, resume=True)
    with pytest.raises(QkvError, match=r"steps were given, and a time budget of 0\.001 minutes there"):
        runs.pretrain(None, tmp_path / "run", steps=500, resume=True)


def test_a_parent_is_known_by_its_weights_not_by_its_path(begun, tmp_path, monkeypatch):
    """The same words, "base", name another run in another working folder, and after another run took its place."""
    for project in ("a", "b"):
        shutil.copytree(begun / ("base" if project == "a" else "second"), tmp_path / project / "base")
    monkeypatch.chdir(tmp_path / "a")
    runs.finetune("base", begun / "questions", "tuned", steps=1)
    tuned = tmp_path / "a" / "tuned"
    monkeypatch.chdir(tmp_path / "b")
    data = runs.load(tuned).data
    assert run_files.parent_of(data) == tmp_path / "a" / "base"
    with pytest.raises(QkvError, match=r"parent is .* there and base here"):
        runs.finetune("base", begun / "questions", tuned, resume=True)
    shutil.rmtree(tmp_path / "a" / "base")
    shutil.copytree(begun / "second", tmp_path / "a" / "base")
    assert run_files.parent_of(data) is None
    with pytest.raises(QkvError, match=r"the weights in .* are not those there"):
        runs.finetune(tmp_path / "a" / "base", begun / "questions", tuned, resume=True)


def test_a_run_that_keeps_its_text_is_resumed_and_finetuned_where_it_has_moved(begun, tmp_path):
    made = runs.DerivedText(lambda: ["Ada Lee. Ada Lee was born in Rome ."])
    tiny = {"n_layer": 1, "n_head": 2, "d_model": 16, "steps": 2, "batch_size": 2}
    runs.pretrain(made, tmp_path / "run", **tiny, callback=None)
    shutil.move(tmp_path / "run", tmp_path / "moved")
    assert runs.pretrain(made, tmp_path / "moved", **tiny, resume=True).step == 2
    assert runs.pretrain(None, tmp_path / "moved", resume=True).step == 2
    cloze = {"steps": 1, "batch_size": 2, "objective": "cloze"}
    assert runs.finetune(tmp_path / "moved", begun / "questions", tmp_path / "tuned", **cloze).step == 1


def test_a_killed_creation_with_a_derived_text_gives_way_to_another(tmp_path, monkeypatch):
    from qkv.train import creation

    tiny = {"n_layer": 1, "n_head": 2, "d_model": 16, "steps": 1, "batch_size": 2}
    first, other = (runs.DerivedText(lambda n=n: [f"Ada {i} was born in Rome." for i in range(n)]) for n in (3, 4))
    with monkeypatch.context() as patched:  # as a kill after the text and before config.json leaves it
        patched.setattr(creation, "_forget", lambda folder: None)
        patched.setattr(creation.Creation, "remove", lambda self: None)
        patched.setattr(Characters, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            runs.pretrain(first, tmp_path / "run", **tiny)
    assert (tmp_path / "run" / "text.txt").is_file() and (tmp_path / "run" / ".qkv-creating").is_file()
    shutil.copytree(tmp_path / "run", tmp_path / "again")
    assert runs.pretrain(other, tmp_path / "run", **tiny).step == 1
    assert len((tmp_path / "run" / "text.txt").read_text().splitlines()) == 4
    assert runs.pretrain(["Ada was born in Rome."], tmp_path / "again", **tiny).step == 1
    assert not (tmp_path / "again" / "text.txt").exists()


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_a_run_with_people_left_out_is_resumed_without_these_people(tmp_path):
    made = [runs.DerivedText(lambda n=n: [f"Ada {i} was born in Rome." for i in range(n)]) for n in (3, 4)]
    tiny = {"n_layer": 1, "n_head": 2, "d_model": 16, "steps": 1, "batch_size": 2}
    runs.pretrain(made[0], tmp_path / "run", **tiny)
    assert runs.pretrain(made[0], tmp_path / "run", **tiny, resume=True).step == 1
    assert runs.pretrain(None, tmp_path / "run", resume=True).step == 1
    with pytest.raises(QkvError, match="with another content"):
        runs.pretrain(made[1], tmp_path / "run", **tiny, resume=True)


def test_a_moved_run_reads_its_own_text_though_another_run_is_where_it_was(begun, tmp_path):
    made = [runs.DerivedText(lambda n=n: [f"Ada Lee. Ada Lee was born in Rome {n} ."]) for n in (1, 2)]
    tiny = {"n_layer": 1, "n_head": 2, "d_model": 16, "steps": 1, "batch_size": 2}
    runs.pretrain(made[0], tmp_path / "run", **tiny)
    shutil.move(tmp_path / "run", tmp_path / "moved")
    runs.pretrain(made[1], tmp_path / "run", **tiny)
    assert runs.pretrain(made[0], tmp_path / "moved", **tiny, resume=True).step == 1
    cloze = {"steps": 1, "batch_size": 2, "objective": "cloze"}
    runs.finetune(tmp_path / "moved", begun / "questions", tmp_path / "tuned", **cloze)
    assert runs.load(tmp_path / "tuned").data["sha256"] == runs.load(tmp_path / "moved").data["sha256"]


def test_a_text_that_has_changed_since_is_not_read_again(begun, tmp_path):
    shutil.copy(begun / "text", tmp_path / "text")
    runs.pretrain(tmp_path / "text", tmp_path / "run", n_layer=1, n_head=2, d_model=16, steps=1, batch_size=2)
    (tmp_path / "text").write_text("Bo Roy. Bo Roy was born in Oslo .\n")
    with pytest.raises(QkvError, match="is not the text that it read any more"):
        runs.finetune(tmp_path / "run", begun / "questions", tmp_path / "t", steps=1, batch_size=2, objective="cloze")


def test_a_baseline_from_scratch_has_read_no_text(begun, tmp_path):
    from qkv.knowledge.confidence.invented import _training_questions, _training_texts

    runs.finetune(begun / "base", begun / "questions", tmp_path / "tuned", steps=1)
    runs.finetune(begun / "base", begun / "questions", tmp_path / "scratch", steps=1, from_scratch=True)
    assert _training_texts(runs.load(tmp_path / "tuned")) == _training_texts(runs.load(begun / "base"))
    assert _training_texts(runs.load(tmp_path / "scratch")) is None
    assert len(_training_questions(runs.load(tmp_path / "scratch"))) == 2
