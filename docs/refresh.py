"""Update the documents: output under each `$ qkv …`, verdicts under examples of claims, the code map, and the JSON Schemas."""

import ast
import contextlib
import re
import shlex
import sys
from pathlib import Path

from typer.testing import CliRunner

from qkv.cli import app
from qkv.cli.json_schemas import write_schemas

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.relative_to(ROOT).parts),
]
CLAIMS = re.compile(r"(````claims\n(.*?)````\n\n```text\n).*?```", flags=re.S)
"""An example of claims, and the block with its verdicts that follows it."""


def output_of(command: str, folder: Path) -> str:
    """What a command prints, run in `folder` at a width of 96 characters."""
    words = shlex.split(command)
    if words[0] != "qkv":
        raise ValueError(f"only qkv commands are run, not: {command}")
    link = folder / "examples"
    if not link.exists():
        link.symlink_to(ROOT / "examples")
    with contextlib.chdir(folder):
        result = CliRunner(env={"COLUMNS": "96", "NO_COLOR": "1"}).invoke(app, words[1:], prog_name="qkv")
    if result.exception and not isinstance(result.exception, SystemExit):
        return f"qkv: {result.exception}"
    return "\n".join(line.rstrip() for line in result.stdout.splitlines()).strip()


def refreshed(text: str, folder: Path) -> str:
    """A document with every console block run again and the code map written again."""

    def block(match: re.Match[str]) -> str:
        lines = []
        for line in match[1].splitlines():
            if line.startswith("$ "):
                lines += [line, *output_of(line[2:], folder).splitlines(), ""]
        return "```console\n" + "\n".join(lines).strip() + "\n```"

    text = re.sub(r"```console\n(.*?)\n?```", block, text, flags=re.S)
    return re.sub(r"```tree\n.*?```", lambda _: f"```tree\n{tree()}\n```", text, flags=re.S)


def with_verdicts(text: str) -> str:
    """A document with the verdicts under every example of claims decided again."""
    from qkv.claims import check

    def block(match: re.Match[str]) -> str:
        verdicts = check(match[2], seconds=60)
        return match[1] + "".join(f"{v.id}: {v.verdict}\n" for v in verdicts) + "```"

    return CLAIMS.sub(block, text)


def tree() -> str:
    """Every module of the package with its one line."""
    source = ROOT / "src" / "qkv"
    paths = sorted(source.rglob("*.py"), key=lambda p: (p.parent != source, p.parent, p.name != "__init__.py", p.name))
    width = max(len(str(p.relative_to(source))) for p in paths)
    return "\n".join(f"{p.relative_to(source)!s:<{width}}  {_docstring(p)}" for p in paths)


def _docstring(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for document in DOCUMENTS:
            text = refreshed(document.read_text(encoding="utf-8"), Path(folder))
            document.write_text(with_verdicts(text), encoding="utf-8")
            sys.stdout.write(f"refreshed {document.relative_to(ROOT)}\n")
    for path in write_schemas(ROOT / "docs" / "schemas"):
        sys.stdout.write(f"refreshed {path.relative_to(ROOT)}\n")
