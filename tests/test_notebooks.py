"""The notebooks run from top to bottom, are written for readers of any machine, and are kept without outputs."""

import re
from pathlib import Path

import nbformat
import pytest
from marks import some
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [
    "design_and_certify",
    "grade_answer_sheets",
    "what_a_head_looks_up",
    "what_a_model_remembers",
    "what_noise_does",
]
FAST = ("what_noise_does",)
"""Run by `make test` too."""


def test_the_notebooks_are_there():
    assert [path.stem for path in NOTEBOOKS] == NAMES


@pytest.mark.parametrize("path", some(NOTEBOOKS, [p for p in NOTEBOOKS if p.stem in FAST]), ids=lambda p: p.stem)
def test_a_notebook_runs_and_shows_cards_and_figures(path, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert "image/png" in kinds, "no figure was shown as the last line of a cell"
    assert any("qkv-card" in "".join(o.get("data", {}).get("text/html", "")) for o in outputs), "no card was shown"
    assert not [o for o in outputs if o.get("name") == "stderr"]
    shown = "".join(o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in outputs)
    assert str(ROOT) not in shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_kept_without_outputs_and_paths_and_explains_every_step(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for before, cell in zip([None, *notebook.cells], notebook.cells, strict=False):
        assert not re.search(r"(/home/|/work/|/tmp/|/Users/|[A-Z]:\\\\)", cell.source)
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
            compile(cell.source, path.name, "exec")
            assert before is not None
    assert notebook.cells[0].cell_type == "markdown" and notebook.cells[0].source.startswith("# ")
    told = sum(cell.cell_type == "markdown" for cell in notebook.cells)
    assert told >= sum(cell.cell_type == "code" for cell in notebook.cells) - 2
