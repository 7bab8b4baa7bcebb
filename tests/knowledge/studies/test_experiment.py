"""Cells are measured once and survive an interruption; the card of a study."""

import json
from dataclasses import replace

import pytest

from qkv.core.json_files import verified, with_checksum
from qkv.errors import QkvError
from qkv.knowledge.studies import study
from qkv.knowledge.studies.experiment import Cell, Study, run_cells
from qkv.knowledge.studies.study_files import check_files_of_study, save_figure, save_study
from qkv.train import pretrain


def cells(log, count=3):
    def measure(i, folder):
        assert folder.is_dir()
        log.append(i)
        if i == 1 and len(log) == 2:
            raise KeyboardInterrupt
        return {"value": i * i}

    return [Cell(f"cell-{i}", {"i": i}, lambda folder, i=i: measure(i, folder)) for i in range(count)]


def test_a_stopped_study_continues_with_the_next_cell(tmp_path):
    log = []
    with pytest.raises(KeyboardInterrupt):
        run_cells(tmp_path, "test", cells(log), callback=lambda name, at, of: None)
    found = run_cells(tmp_path, "test", cells(log))
    assert log == [0, 1, 1, 2] and [found[f"cell-{i}"]["value"] for i in range(3)] == [0, 1, 4]
    assert run_cells(tmp_path, "test", cells(log)) == found and len(log) == 4
    assert not any((tmp_path / "runs").iterdir())


def test_time_ends_a_study_between_cells_and_other_settings_are_refused(tmp_path):
    log = []
    run_cells(tmp_path, "test", cells(log, 1))
    assert set(run_cells(tmp_path, "test", cells(log), minutes=-1)) == {"cell-0"}
    with pytest.raises(QkvError, match="no time"):
        run_cells(tmp_path / "other", "test", cells(log), minutes=-1)
    with pytest.raises(QkvError, match="other settings"):
        run_cells(tmp_path, "test", [Cell("cell-0", {"i": 7}, lambda folder: {})])
    (tmp_path / "cells" / "cell-0.json").write_text("{")
    with pytest.raises(QkvError, match="damaged"):
        run_cells(tmp_path, "test", cells(log))


def test_the_card_shows_the_table_and_the_cells_that_are_left():
    found = Study(
        "extraction", "T", ({"what": "x", "accuracy": 0.5, "interval": (0.4, 0.6)}, {"what": "y"}), ("Said.",), 1, 3
    )
    card = found.card()
    assert card.columns == ("what", "accuracy", "interval") and card.rows == (
        ("x", "0.5", "0.4 to 0.6"),
        ("y", "–", "–"),
    )
    assert "2 of 3 cells are left" in card.note and not found.complete


def test_the_callback_gets_name_index_and_number_of_each_measured_cell(tmp_path):
    calls, log = [], []
    run_cells(tmp_path, "test", cells(log, 1))
    run_cells(tmp_path, "test", cells([*log, 9], 3), callback=lambda *call: calls.append(call))
    assert calls == [("cell-1", 1, 3), ("cell-2", 2, 3)]


def test_a_saved_study_is_its_json(tmp_path):
    found = Study("extraction", "T", ({"what": "x", "accuracy": 0.5},), (), 1, 1)
    assert save_study(tmp_path, found) is found
    stored = verified(json.loads((tmp_path / "study.json").read_text("utf-8")))
    assert stored == {"format": "qkv-study-1", **found.to_json()}


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(QkvError, match="running a study"):
        run_cells(tmp_path / "file", "test", cells([]))


def measured(tmp_path):
    cell = Cell("cell", {"seed": 3, "people": 300}, lambda folder: {"accuracy": 0.8125, "interval": [0.75, 0.875]})
    return lambda: run_cells(tmp_path, "test", [cell])["cell"]


def test_a_damaged_cell_is_refused_or_means_the_same(tmp_path, damaged_copies):
    read, path = measured(tmp_path), tmp_path / "cells" / "cell.json"
    wanted, refused = read(), 0
    for copy in damaged_copies(path.read_bytes(), 600):
        path.write_bytes(copy)
        try:
            assert read() == wanted
        except QkvError:
            refused += 1
    assert refused > 400


def test_cells_of_earlier_versions_which_do_not_name_their_cell_are_refused(tmp_path):
    read, path = measured(tmp_path), tmp_path / "cells" / "cell.json"
    read()
    data = json.loads(path.read_text())
    old = {name: data[name] for name in ("settings", "result")}
    for other in (old, {"format": "qkv-cell-2", **old}, with_checksum({"format": "qkv-cell-2", **old})):
        path.write_text(json.dumps(other))
        with pytest.raises(QkvError, match="its format is not qkv-cell-3"):
            read()
    path.write_text(json.dumps({name: data[name] for name in data if name != "checksum"}))
    with pytest.raises(QkvError, match="its checksum is missing"):
        read()
    path.write_text(json.dumps({**data, "result": {"accuracy": 0.9}, "checksum": "edited"}))
    assert read() == {"accuracy": 0.9}


FOUND = Study("extraction", "T", ({"what": "x", "accuracy": 0.5},), (), 1, 1)
OTHERS = {
    "a text": "mine",
    "another table": json.dumps({"name": "extraction", "rows": []}),
    "another study": json.dumps(replace(FOUND, name="capacity").to_json()),
    "a table with a false checksum": json.dumps(
        {"format": "qkv-study-1", **FOUND.to_json(), "checksum": "0123456789abcdef"}
    ),
    "a table that was edited by hand": json.dumps({"format": "qkv-study-1", **FOUND.to_json(), "checksum": "edited"}),
}


@pytest.mark.parametrize("kind", [*OTHERS, "a folder", "a link to nothing", "a link to a study"])
def test_a_table_that_is_not_of_this_study_is_refused_before_anything_is_measured(kind, tmp_path):
    path = tmp_path / "out" / "study.json"
    path.parent.mkdir()
    if kind == "a folder":
        path.mkdir()
    elif kind.startswith("a link"):
        if kind == "a link to a study":
            save_study(tmp_path, FOUND)
        path.symlink_to(tmp_path / "study.json")
    else:
        path.write_text(OTHERS[kind])
    before = path.is_file() and path.read_text()
    told = "belongs to the study 'capacity'" if kind == "another study" else "qkv did not write it"
    with pytest.raises(QkvError, match=told):
        study("extraction", tmp_path / "out")
    with pytest.raises(QkvError, match=told):
        save_study(tmp_path / "out", FOUND)
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["study.json"]
    assert (path.is_file() and path.read_text()) == before and path.is_symlink() == kind.startswith("a link")


def test_tables_of_this_study_are_replaced_also_those_of_versions_without_a_checksum(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps(FOUND.to_json()))
    for done in (2, 3):
        save_study(tmp_path, replace(FOUND, done=done))
        assert json.loads((tmp_path / "study.json").read_text())["done"] == done


def test_a_figure_is_replaced_only_if_it_is_as_this_study_drew_it(tmp_path):
    path = tmp_path / "extraction.svg"
    for text in ("<svg>1</svg>\n", "<svg>2</svg>"):
        save_figure(tmp_path, "extraction", text)
        check_files_of_study(tmp_path, "extraction")
        assert path.read_text().startswith(text.strip())
    drawn = path.read_text()
    others = ("<svg>2</svg>", drawn.replace("2", "3", 1), drawn.replace("extraction", "capacity"), "", "é")
    told = r"extraction\.svg is there already, and (qkv did not write it|belongs to the study 'capacity')"
    for other in others:
        path.write_text(other, "latin-1")
        with pytest.raises(QkvError, match=told):
            save_figure(tmp_path, "extraction", "<svg/>")
        with pytest.raises(QkvError, match=told):
            check_files_of_study(tmp_path, "extraction")
        assert path.read_text("latin-1") == other


def test_a_cell_replaces_no_file_that_appears_while_it_is_measured_and_no_link(tmp_path):
    path = tmp_path / "cells" / "cell.json"
    with pytest.raises(QkvError, match="it is there already"):
        run_cells(tmp_path, "test", [Cell("cell", {}, lambda folder: {"n": path.write_text("mine")})])
    assert path.read_text() == "mine"
    path.unlink()
    path.symlink_to(tmp_path / "nothing")
    with pytest.raises(QkvError, match="it is there already"):
        run_cells(tmp_path, "test", [Cell("cell", {}, lambda folder: 1 / 0)])
    assert path.is_symlink()


def test_only_the_runs_of_a_cell_are_removed_when_it_is_measured(tmp_path):
    runs = tmp_path / "runs" / "cell"
    kept = {
        "notes.txt": "mine",
        "run/notes.txt": "mine",
        "mine/config.json": "{}",
        "base/optimizer-3.safetensors": "mine",
    }
    for name, text in kept.items():
        (runs / name).parent.mkdir(parents=True, exist_ok=True)
        (runs / name).write_text(text)

    def measure(folder):
        for name in ("run", "tuned"):
            pretrain(["Ada was born in London."], folder / name, n_layer=1, n_head=2, d_model=16, steps=1, batch_size=2)
        return {}

    run_cells(tmp_path, "test", [Cell("cell", {}, measure)])
    left = {str(path.relative_to(runs)): path.read_text() for path in runs.rglob("*") if path.is_file()}
    assert left == kept and not (runs / "tuned").exists()


def test_two_calls_at_once_are_not_mixed(tmp_path):
    def measure(folder):
        with pytest.raises(QkvError, match="is writing to it"):
            run_cells(tmp_path, "test", [Cell("other", {}, lambda folder: {})])
        return {}

    run_cells(tmp_path, "test", [Cell("cell", {}, measure)])
    assert {path.name for path in tmp_path.iterdir()} == {"cells", "runs"}


def as_a_model(folder):
    """Files of a Hugging Face model, as far as their names and first fields go."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    (folder / "model.safetensors").write_text("weights")
    (folder / "tokenizer.json").write_text("{}")


def as_a_run(folder):
    pretrain(["Bo was born in Rome."], folder, n_layer=1, n_head=2, d_model=16, steps=1, batch_size=2)


@pytest.mark.parametrize("name", ["run", "base", "tuned"])
@pytest.mark.parametrize("make", [as_a_model, as_a_run])
@pytest.mark.parametrize("linked", ["", "the cell's folder", "the run's folder"])
def test_models_and_runs_that_a_study_did_not_make_are_refused_before_a_cell_is_started(
    name, make, linked, tmp_path, contents
):
    out, started = tmp_path / "out", []
    folder = out / "runs" / "cell-1"
    if linked:
        make(tmp_path / "mine" / name)
        link = folder if linked.startswith("the cell") else folder / name
        link.parent.mkdir(parents=True)
        link.symlink_to(tmp_path / "mine" / ("" if link == folder else name))
    else:
        make(folder / name)
    before = contents(tmp_path)
    with pytest.raises(QkvError, match=r"cell-1.*is there already"):
        run_cells(out, "test", [Cell(f"cell-{i}", {}, lambda each: started.append(each) or {}) for i in range(2)])
    left = contents(tmp_path)
    assert not started and {path: left.get(path) for path in before} == before


def test_a_model_in_a_folder_that_a_cell_does_not_train_in_stays(tmp_path, contents):
    as_a_model(tmp_path / "runs" / "cell" / "base")
    before = contents(tmp_path / "runs")
    run_cells(tmp_path, "test", [Cell("cell", {}, lambda folder: as_a_run(folder / "run") or {}, ("run",))])
    assert contents(tmp_path / "runs") == before


def test_a_cell_that_was_stopped_is_continued_by_its_own_study_alone(tmp_path, contents):
    def stop(folder):
        as_a_run(folder / "run")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cells(tmp_path, "test", [Cell("cell", {"seed": 0}, stop)])
    before = contents(tmp_path)
    for study_name, settings in (("other", {"seed": 0}), ("test", {"seed": 1})):
        with pytest.raises(QkvError, match="not the record of this cell"):
            run_cells(tmp_path, study_name, [Cell("cell", settings, lambda folder: {})])
        assert contents(tmp_path) == before
    run_cells(tmp_path, "test", [Cell("cell", {"seed": 0}, lambda folder: {})])
    assert not list((tmp_path / "runs").iterdir())


def test_a_file_in_place_of_the_folder_of_runs_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(QkvError, match="running the study 'test'"):
        run_cells(tmp_path, "test", cells([], 1))
    assert (tmp_path / "runs").read_text() == "mine"


def test_results_of_cells_that_were_exchanged_are_refused(tmp_path):
    made = [Cell(f"{kind}-seed-0", {"seed": 0}, lambda folder, kind=kind: {"kind": kind}) for kind in ("one", "two")]
    run_cells(tmp_path, "test", made)
    one, two = (tmp_path / "cells" / f"{kind}-seed-0.json" for kind in ("one", "two"))
    texts = one.read_text(), two.read_text()
    one.write_text(texts[1])
    two.write_text(texts[0])
    with pytest.raises(QkvError, match="it belongs to the cell 'two-seed-0', not to 'one-seed-0'"):
        run_cells(tmp_path, "test", made)
    one.write_text(texts[0])
    two.write_text(texts[1])
    with pytest.raises(QkvError, match="it belongs to the study 'test', not to 'other'"):
        run_cells(tmp_path, "other", made)
    assert run_cells(tmp_path, "test", made)["one-seed-0"]["kind"] == "one"
