"""Cells are measured once and survive an interruption; the card of a study."""

import json

import pytest

from qkv.errors import QkvError
from qkv.knowledge.studies.experiment import Cell, Study, run_cells, save_study


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
        run_cells(tmp_path, cells(log), callback=lambda name, at, of: None)
    found = run_cells(tmp_path, cells(log))
    assert log == [0, 1, 1, 2] and [found[f"cell-{i}"]["value"] for i in range(3)] == [0, 1, 4]
    assert run_cells(tmp_path, cells(log)) == found and len(log) == 4
    assert not any((tmp_path / "runs").iterdir())


def test_time_ends_a_study_between_cells_and_other_settings_are_refused(tmp_path):
    log = []
    run_cells(tmp_path, cells(log, 1))
    assert set(run_cells(tmp_path, cells(log), minutes=-1)) == {"cell-0"}
    with pytest.raises(QkvError, match="no time"):
        run_cells(tmp_path / "other", cells(log), minutes=-1)
    with pytest.raises(QkvError, match="other settings"):
        run_cells(tmp_path, [Cell("cell-0", {"i": 7}, lambda folder: {})])
    (tmp_path / "cells" / "cell-0.json").write_text("{")
    with pytest.raises(QkvError, match="damaged"):
        run_cells(tmp_path, cells(log))


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
    run_cells(tmp_path, cells(log, 1))
    run_cells(tmp_path, cells([*log, 9], 3), callback=lambda *call: calls.append(call))
    assert calls == [("cell-1", 1, 3), ("cell-2", 2, 3)]


def test_a_saved_study_is_its_json(tmp_path):
    found = Study("extraction", "T", ({"what": "x", "accuracy": 0.5},), (), 1, 1)
    assert save_study(tmp_path, found) is found
    assert json.loads((tmp_path / "study.json").read_text("utf-8")) == found.to_json()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(QkvError, match="running a study"):
        run_cells(tmp_path / "file", cells([]))


def measured(tmp_path):
    cell = Cell("cell", {"seed": 3, "people": 300}, lambda folder: {"accuracy": 0.8125, "interval": [0.75, 0.875]})
    return lambda: run_cells(tmp_path, [cell])["cell"]


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


def test_a_cell_of_the_version_without_a_checksum_is_read(tmp_path):
    read, path = measured(tmp_path), tmp_path / "cells" / "cell.json"
    wanted = read()
    data = json.loads(path.read_text())
    path.write_text(json.dumps({name: data[name] for name in ("settings", "result")}))
    assert read() == wanted
    path.write_text(json.dumps({name: data[name] for name in ("format", "settings", "result")}))
    with pytest.raises(QkvError, match="its checksum is missing"):
        read()
    path.write_text(json.dumps({**data, "result": {"accuracy": 0.9}, "checksum": "edited"}))
    assert read() == {"accuracy": 0.9}
