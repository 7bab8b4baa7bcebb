"""qkv check: exit codes, JSON, the page, and what is refused."""

import json

import pytest
from typer.testing import CliRunner

from qkv.cli import app
from qkv.errors import QkvError

GOOD, WRONG, BROKEN = "t > 0", "t < 0", "t >"


def run(tmp_path, text, *options):
    path = tmp_path / "claims.md"
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["check", str(path), *options])


@pytest.mark.parametrize(
    ("statements", "options", "code"),
    [
        ([GOOD], [], 0),
        ([GOOD, WRONG], [], 1),
        ([GOOD, BROKEN], [], 2),
        ([WRONG, BROKEN], [], 2),
        (["t > 1"], [], 0),
        (["t > 1"], ["--strict"], 1),
        ([GOOD], ["--strict"], 0),
    ],
)
def test_exit_codes(tmp_path, statements, options, code):
    text = "```claim x\ngiven t > 0\n" + "".join(f"then {s}\n" for s in statements) + "```"
    assert run(tmp_path, text, *options).exit_code == code


def test_json_has_exactly_the_agreed_fields(tmp_path):
    out = run(tmp_path, "```claim x\ngiven t > 0\nthen t > 0\nthen t < 0\n```", "--json")
    data = json.loads(out.stdout)
    assert list(data) == ["schema", "version", "documents", "counts", "verdicts"]
    assert [list(v) for v in data["verdicts"]] == [
        ["document", "id", "verdict", "says", "because", "derivation", "counterexample", "kernel"]
    ] * 2
    assert data["verdicts"][0]["counterexample"] is None
    assert "left = " in data["verdicts"][1]["counterexample"]


def test_a_page_holds_every_verdict(tmp_path):
    page = tmp_path / "report.html"
    run(tmp_path, "```claim my claim\ngiven t > 0\nthen t > 0\n```", "--html", str(page))
    assert "my claim" in page.read_text(encoding="utf-8")


def test_a_missing_file_is_refused(tmp_path):
    result = CliRunner().invoke(app, ["check", str(tmp_path / "none.md")])
    assert result.exit_code != 0 and "there is no such file" in str(result.exception)


def test_the_time_for_a_claim_is_finite_and_a_byte_order_mark_is_not_text(tmp_path):
    path = tmp_path / "claims.md"
    path.write_bytes(b"\xef\xbb\xbf```claim x\ngiven t > 1\nthen t > 0\n```\n")
    found = CliRunner().invoke(app, ["check", str(path)])
    assert found.exit_code == 0
    assert "1 proved" in found.output
    for seconds in ("inf", "nan", "0", "-1"):
        wrong = CliRunner().invoke(app, ["check", str(path), "--seconds", seconds])
        assert isinstance(wrong.exception, QkvError), wrong


@pytest.mark.parametrize("options", [[], ["--strict"], ["--json"]])
@pytest.mark.parametrize(
    "text", ["", "# Answers\n\nNo claims yet.\n", "```claims\nthen t > 0\n```\n", "```\nthen 1 = 1\n```"]
)
def test_a_file_without_a_claim_exits_2_and_says_why(tmp_path, text, options):
    found = run(tmp_path, text, *options)
    assert found.exit_code == 2
    assert "claims.md: there is no claim in it" in found.stderr and "```claim" in found.stderr


def test_one_file_without_a_claim_beside_another_exits_2(tmp_path):
    (tmp_path / "empty.md").write_text("nothing", encoding="utf-8")
    (tmp_path / "good.md").write_text("```claim x\ngiven t > 0\nthen t > 0\n```", encoding="utf-8")
    found = CliRunner().invoke(app, ["check", str(tmp_path / "good.md"), str(tmp_path / "empty.md")])
    assert found.exit_code == 2 and "empty.md: there is no claim" in found.stderr and "1 proved" in found.stdout
