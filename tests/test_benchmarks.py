"""docs/benchmarks.md is what `make bench` writes from the stored results; figures are kept, dated and filled in."""

import importlib.util
import json
import math
import tomllib
from pathlib import Path

import pytest

from faults.verbs import verbs

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_runner", ROOT / "benchmarks" / "__main__.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_page_is_what_the_stored_results_say(bench):
    assert (ROOT / "docs" / "benchmarks.md").read_text("utf-8") == bench.page(), (
        "run: make bench, or python -m benchmarks --page"
    )


def test_the_readmes_list_of_performance_is_what_the_stored_results_say(bench):
    text = bench.README.read_text("utf-8")
    assert bench.with_performance(text) == text, "run: python -m benchmarks --page"
    stale = text.replace("times as fast as one linear program", "times slower than one linear program")
    assert stale != text and bench.with_performance(stale) == text
    assert bench.with_performance(text).count("\n- `wire`: ") == 1


def test_every_script_has_an_entry_and_every_row_a_script(bench):
    described = tomllib.loads(bench.ROWS.read_text("utf-8"))
    names = {script["name"] for script in described["script"]}
    helpers = {"heads_peer", "noise_equal_steps", "peak_memory", "__main__"}
    assert names == {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - helpers
    assert {row["script"] for row in described["row"]} <= names


def test_a_result_replaces_what_was_copied_by_hand_and_a_missing_figure_is_no_error(bench):
    row = {
        "script": "x",
        "question": "how fast",
        "against": "",
        "measured": "{peer[ratio]:.0f} times, {sizes[64]:.1f} s",
    }
    copied = {
        "copied_by_hand": [{"question": "how fast", "measured": "3 times", "date": "2026-01-01"}],
        "figures": None,
    }
    assert bench.measured(row, copied) == ("3 times", "2026-01-01*")
    ran = {"date": "2026-02-02", "figures": {"peer": {"ratio": 7.2}, "sizes": {"64": 0.25}, "count": 5}}
    assert bench.measured(row, ran) == ("7 times, 0.2 s", "2026-02-02")
    assert bench.measured(row, {"date": "2026-02-02", "figures": {"count": 5}}) == ("count 5", "2026-02-02")
    assert bench.measured(row, None) is None


def test_a_script_that_fails_keeps_the_last_figures(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    monkeypatch.setattr(bench, "HERE", tmp_path)
    (tmp_path / "good.py").write_text("print('x'); print('{\"seconds\": 2}')")
    (tmp_path / "bad.py").write_text("print('{\"seconds\": 2}'); raise SystemExit(1)")
    assert bench.run("good", "") and not bench.run("bad", "")
    stored = json.loads((tmp_path / "good.json").read_text())
    assert stored["figures"] == {"seconds": 2} and stored["versions"]["python"] and not (tmp_path / "bad.json").exists()


@pytest.mark.slow
def test_the_power_of_a_curve_is_fitted(bench, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))  # as where the script is run
    spec = importlib.util.spec_from_file_location("scale", ROOT / "benchmarks" / "scale.py")
    scale = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scale)
    points = [{"size": n, "seconds": 1e-3 * math.sqrt(n) ** 3} for n in (10, 100, 1000)]
    assert scale.power(points, "seconds", 0.0) == 1.5 and scale.power(points, "seconds", 10.0) is None
    (verify,) = (curve for curve in scale.CURVES if curve.verb == "design verify")
    (point,) = scale.curve_of(verify, (200,))["points"]  # in a process of its own
    assert point["size"] == 200 and point["seconds"] > 0
    assert {curve.verb for curve in scale.CURVES} == set(scale.WORK)
    without = {"models get", "tour", "serve"}  # what has no size
    assert set(verbs()) == {curve.verb for curve in scale.CURVES} | without


def test_the_picture_of_scale_has_a_panel_for_every_curve_and_its_power(bench):
    curves = json.loads((bench.RESULTS / "scale.json").read_text("utf-8"))["figures"]["curves"]
    drawn = bench.PICTURE.read_text("utf-8")
    for curve in curves:
        assert f">{curve['verb']}<" in drawn, "run: python -m benchmarks --page"
        for key in ("time_power", "memory_power"):
            assert curve[key] is None or f">n^{bench.power_of(curve, key)}<" in drawn
    assert bench.power_of({"p": -0.01}, "p") == "0.0"
