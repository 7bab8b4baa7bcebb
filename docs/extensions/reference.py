"""Reference pages from the software itself: commands from the objects of the command line, names from docstrings.

A document holds an empty block `{qkv-api} qkv.design` or `{qkv-commands}`; the builder puts Markdown in its place when
it reads the document, so nothing generated is ever committed or out of date.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import typer
from sphinx.application import Sphinx

BLOCK = re.compile(r"^```\{qkv-(api|commands)\} ?([\w.]*)\n```$", flags=re.M)
SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Example")
FENCE = "`" * 8


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _expand)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _expand(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = BLOCK.sub(lambda m: package_page(m[2]) if m[1] == "api" else commands_page(), source[0])


# ---- the command line ------------------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Every command with its full name, its click object and its context, groups before their commands."""
    from qkv.cli import app

    yield from _walk(typer.main.get_command(app), "qkv", None)


def _walk(command: Any, name: str, parent: Any) -> Iterator[tuple[str, Any, Any]]:
    context = command.make_context(name.split()[-1], [], parent=parent, resilient_parsing=True)
    yield name, command, context
    for child in getattr(command, "commands", {}).values():
        yield from _walk(child, f"{name} {child.name}", context)


def commands_page() -> str:
    """Markdown of all commands: usage, help, and every option with the default that its own help shows."""
    return "\n\n".join(_command(name, command, context) for name, command, context in commands())


def _command(name: str, command: Any, context: Any) -> str:
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    level = "#" * (name.count(" ") + 2)
    parts = [f"{level} {name}", f"```text\n{usage}\n```", _prose(inspect.cleandoc(command.help or ""))]
    rows = [row for row in (p.get_help_record(context) for p in command.get_params(context)) if row]
    if rows:
        parts.append("\n".join(f"`{term}`\n: {_prose(' '.join((text or ' ').split()))}\n" for term, text in rows))
    children = getattr(command, "commands", {})
    if children:
        named = ((f"{name} {child}", found.help) for child, found in children.items())
        listed = [f"- [{full}](#{full.replace(' ', '-')}): {_prose(_first_sentence(text))}" for full, text in named]
        parts.append("\n".join(listed))
    return "\n\n".join(part for part in parts if part)


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=\.)\s", inspect.cleandoc(text or "").replace("\n", " "))[0]


# ---- names in Python -------------------------------------------------------------------------------------------------


def package_page(package: str) -> str:
    """Markdown of every public name of a package, functions first."""
    module = importlib.import_module(package)
    things = [(name, getattr(module, name)) for name in module.__all__]
    things = [(name, thing) for name, thing in things if not inspect.ismodule(thing)]
    things.sort(key=lambda pair: (inspect.isclass(pair[1]), pair[0].lower()))
    intro = inspect.cleandoc(module.__doc__ or "").splitlines()[0]
    parts = [_prose(intro)]
    for name, thing in things:
        home = "" if "." in package else _home(name, thing)
        if home:
            parts.append(f"`{package}.{name}`\n: is [{home}.{name}](#{home}.{name}).")
            continue
        parts.append(_class(package, name, thing) if inspect.isclass(thing) else _function(package, name, thing))
    return "\n\n".join(parts)


def _home(name: str, thing: Any) -> str:
    """The package that documents a name which the whole offers too; "" if none does."""
    import qkv

    packages = [p for p in qkv.__all__ if inspect.ismodule(getattr(qkv, p))]
    homes = [f"qkv.{p}" for p in packages if getattr(getattr(qkv, p), name, None) is thing]
    return homes[0] if homes else ""


def _function(package: str, name: str, function: Any, kind: str = "function") -> str:
    body = _docstring(parse(inspect.getdoc(function) or ""))
    return f"{FENCE}{{py:{kind}}} {package}.{name}{_signature(function, method=kind != 'function')}\n{body}\n{FENCE}"


def _class(package: str, name: str, cls: Any) -> str:
    parsed = parse(inspect.getdoc(cls) or "")
    shown = _signature(cls) if issubclass(cls, BaseException) or _constructed(cls, parsed) else ""
    body = [_docstring(parsed)]
    for member, raw in vars(cls).items():
        if not member.startswith("_") and member not in parsed.entries.get("Attributes", {}):
            body.append(_member(name, member, raw))
    head = f"{FENCE}{{py:class}} {package}.{name}{shown}"
    return "\n".join([head, "", "\n\n".join(part for part in body if part), FENCE])


def _member(cls: str, name: str, raw: Any) -> str:
    """A method or property of a class with the first paragraph of its docstring; "" for anything else."""
    thing = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
    first = _prose((inspect.getdoc(thing) or "").split("\n\n")[0])
    if isinstance(raw, property):
        return f"```{{py:property}} {cls}.{name}\n\n{first}\n```"
    if not inspect.isfunction(thing):
        return ""
    option = f":{type(raw).__name__}:\n" if thing is not raw else ""
    signature = _signature(thing, method=not isinstance(raw, staticmethod))
    return f"```{{py:method}} {cls}.{name}{signature}\n{option}\n{first}\n```"


def _constructed(cls: Any, parsed: Docstring) -> bool:
    """Whether users make instances themselves; results, which functions return, are shown without their constructor."""
    from qkv.core.display import Displayable

    return "Args" in parsed.entries or not issubclass(cls, Displayable)


def _signature(thing: Any, method: bool = False) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = list(signature.parameters.values())
    parameters = parameters[1:] if method else parameters
    plain = []
    for p in parameters:
        default = p.default
        if default is not p.empty and (callable(default) or " at 0x" in repr(default) or "factory" in repr(default)):
            default = ...
        plain.append(p.replace(annotation=p.empty, default=default))
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    returns = signature.return_annotation
    if inspect.isclass(thing) or returns is inspect.Signature.empty:
        return text
    said = returns if isinstance(returns, str) else getattr(returns, "__name__", str(returns))
    return text + (f" -> {said}" if re.fullmatch(r"[\w.\[\], |]+", said) else "")


# ---- docstrings ------------------------------------------------------------------------------------------------------


@dataclass
class Docstring:
    """A docstring in parts: its text, and each section as entries or as text."""

    text: str
    entries: dict[str, dict[str, str]] = field(default_factory=dict)
    sections: dict[str, str] = field(default_factory=dict)


def parse(text: str) -> Docstring:
    """Split a docstring of Google's style at its sections."""
    pieces = re.split(rf"^({'|'.join(SECTIONS)}):[ ]*$", text, flags=re.M)
    out = Docstring(pieces[0].strip())
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        body = inspect.cleandoc("\n" + body)
        out.sections[title] = body
        if title in ("Args", "Attributes", "Raises"):
            out.entries[title] = dict(_entries(body))
    return out


def _entries(body: str) -> Iterator[tuple[str, str]]:
    for chunk in re.split(r"\n(?=\S)", body):
        name, _, text = chunk.partition(":")
        yield name.strip(), " ".join(text.split())


def _docstring(parsed: Docstring) -> str:
    parts = [_prose(parsed.text)]
    for title, word in (("Args", "Arguments"), ("Attributes", "Attributes")):
        if title in parsed.entries:
            rows = [f"`{name}`\n: {_prose(text) or '…'}\n" for name, text in parsed.entries[title].items()]
            parts.append(f"{word}:\n\n" + "\n".join(rows))
    if "Returns" in parsed.sections:
        parts.append("Returns: " + _prose(" ".join(parsed.sections["Returns"].split())))
    for name, text in parsed.entries.get("Raises", {}).items():
        parts.append(f"Raises `{name}`: {_prose(text)}")
    if "Example" in parsed.sections:
        parts.append(f"```pycon\n{parsed.sections['Example']}\n```")
    return "\n\n".join(part for part in parts if part.strip())


def _prose(text: str) -> str:
    """Plain text as Markdown: code in backticks stays, lines with a dash stay a list, nothing else is markup."""
    pieces = re.split(r"(`[^`\n]+`)", text)
    escaped = [p if p.startswith("`") else re.sub(r"([\\*_\[\]<>$|#~^{}])", r"\\\1", p) for p in pieces]
    return "".join(escaped)
