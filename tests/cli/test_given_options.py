"""No output of a command replaces one of its inputs, nor another output."""

import os

import pytest
import typer
from typer.testing import CliRunner

from qkv.cli import app
from qkv.cli.given_options import OUTPUTS
from qkv.cli.help_format import Command
from qkv.errors import QkvError

CALLS = {
    "a sheet and its claims": ("grade {0} --claims {0}", "FILES"),
    "a sheet and its table": ("grade {0} --csv {0}", "FILES"),
    "one of several sheets": ("grade {1} {0} --csv {0}", "FILES"),
    "claims and their page": ("check {0} --html {0}", "FILES"),
    "a memory and a design": ("design copy {0} --item 1 --save {0}", "MEMORY"),
    "a memory and a picture": ("design copyable {0} --plot {0}", "MEMORY"),
    "questions and answers": ("evaluate run --questions {0} --answers {0}", "--questions"),
    "a text and a table of heads": ("heads model --text {0} --csv {0}", "--text"),
    "two outputs": ("grade {1} --html new.html --csv new.html", "--html"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("other", ["same", "relative", "link"])
def test_an_output_that_is_read_or_written_already_is_refused_and_nothing_is_changed(
    name, other, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    call, option = CALLS[name]
    for file in ("given.html", "second.md"):
        (tmp_path / file).write_text("1,2\n3,4\n")
    written = call.format(tmp_path / "given.html", tmp_path / "second.md").split()
    if other == "relative":
        written[-1] = os.path.relpath(written[-1])
    elif other == "link" and name != "two outputs":
        (tmp_path / "link.html").symlink_to("given.html")
        written[-1] = "link.html"
    result = CliRunner().invoke(app, written)
    assert isinstance(result.exception, QkvError) and option in str(result.exception)
    assert "Give another path" in str(result.exception)
    assert (tmp_path / "given.html").read_text() == "1,2\n3,4\n" and not (tmp_path / "new.html").exists()


def commands(command):
    """All commands below one."""
    return [
        each for own in command.commands.values() for each in (commands(own) if hasattr(own, "commands") else [own])
    ]


def test_every_parameter_that_names_a_file_to_write_is_known():
    found = commands(typer.main.get_command(app))
    assert len(found) > 25 and all(isinstance(command, Command) for command in found)
    for command in found:
        for parameter in command.params:
            words = (getattr(parameter, "help", "") or "").lower()
            if parameter.name not in (*OUTPUTS, "tensorboard") and not parameter.name.startswith("save"):
                assert not words.startswith(("write ", "save ", "folder to write", "draw ")), (
                    command.name,
                    parameter.name,
                )
