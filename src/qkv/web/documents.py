"""The documents, read offline under /docs/: the built site where there is one, else the Markdown files as HTML."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from qkv.core.display import html_text
from qkv.web.document_formulas import with_formulas

INDEX = "index.html"
SITE = ("_build", "html")
"""Where Sphinx puts the site, below the folder of the documents."""
PICTURES = "pictures"
PICTURE_SUFFIXES = (".png", ".svg")
CONTENTS = "index"
"""The document that lists the others, with a line on each; the list alone is served in its place."""
README = "readme"
README_SUMMARY = "What qkv does, how it is installed, an example of each part, and its limits."
_ENTRY = re.compile(r"\[(?P<title>[^]]+)\]\((?P<name>[\w-]+)\.md\): (?P<summary>.+)", re.DOTALL)
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · qkv documents</title>
<link rel="icon" href="../static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="../theme.css">
<link rel="stylesheet" href="../static/explorer.css">
</head>
<body>
<header class="bar"><a class="mark" href="../"><b>qkv</b> <span>explorer</span></a>
<nav aria-label="Documents"><a href="./"{here}>Documents</a></nav></header>
<main class="document">
{body}
</main>
</body>
</html>
"""


@dataclass(frozen=True)
class Document:
    """A Markdown file that is served.

    Attributes:
        name: Its address below /docs/: the name of the file in lower case, without its suffix.
        title: Its first heading.
        body: The whole text, as HTML.
    """

    name: str
    title: str
    body: str


def document_files() -> dict[str, bytes]:
    """The content of every file below /docs/, by its path there; the index has the path "".

    Returns:
        The files of the site if it has been built, else a page for every Markdown document, an index and the pictures;
        nothing where the documents are neither installed nor beside the source.
    """
    folder = _folder()
    if folder is None:
        return {}
    site = folder.joinpath(*SITE)
    if site.joinpath(INDEX).is_file():
        return _site_files(dict(_walk(site, "")))
    texts = {name: text for name, text in _markdown(folder) if NAME.fullmatch(name)}
    pictures = dict(_walk(folder.joinpath(PICTURES), f"{PICTURES}/", PICTURE_SUFFIXES))
    contents = texts.pop(CONTENTS, "")
    served = {name: render(name, text, [CONTENTS, *texts], pictures.keys()) for name, text in texts.items()}
    pages = {d.name: _page(d.title, d.body, index=False) for d in served.values()}
    index = _page("Documents", _index(served, table_of_contents(contents)), index=True)
    return {"": index, CONTENTS: index, **pages, **pictures} if served else {}


@dataclass(frozen=True)
class Entry:
    """A line of the table of contents.

    Attributes:
        name: The name of the document.
        title: What it is called in the list.
        section: The heading above the line; empty for the first lines.
        summary: What the document is for, as HTML.
    """

    name: str
    title: str
    section: str
    summary: str


def table_of_contents(text: str) -> list[Entry]:
    """The list of all documents in a Markdown text: items of the form `[title](name.md): summary`.

    Args:
        text: The Markdown text.

    Returns:
        The entries, in their order.

    Example:
        >>> table_of_contents("- [A](a.md): say `a`.\\n\\n### More\\n\\n- [B](b.md): one.\\n")[1]
        Entry(name='b', title='B', section='More', summary='One.')
    """
    parser = MarkdownIt("commonmark", {"html": False})
    entries, section, in_item = [], "", False
    for before, token in pairwise(parser.parse(text)):
        if token.type in ("list_item_open", "list_item_close"):
            in_item = token.type == "list_item_open"
        if before.type == "heading_open":
            section = _plain(token) if before.tag == "h3" else ""
        elif token.type == "inline" and in_item and (found := _ENTRY.fullmatch(token.content)):
            summary = parser.renderInline(found["summary"])
            entries.append(Entry(found["name"], found["title"], section, summary[:1].upper() + summary[1:]))
    return entries


def render(name: str, text: str, documents: Collection[str], pictures: Collection[str]) -> Document:
    """A Markdown text as HTML in which every link leads to something that is served.

    HTML in the text is shown as text. Links to files that are not served become their text, pictures their description,
    and directives for Sphinx are left out.

    Args:
        name: The name of the document.
        text: The Markdown text.
        documents: Names of all documents.
        pictures: Paths of all pictures below /docs/.

    Returns:
        The document.

    Example:
        >>> render("a", "# A *b*\\n\\nSee [c](c.md#d) and [e](../e.py).", ["a", "c"], []).body
        '<h1 id="a-b">A <em>b</em></h1>\\n<p>See <a href="c#d">c</a> and e.</p>\\n'
    """
    parser = with_formulas(MarkdownIt("commonmark", {"html": False}).enable("table"))
    for kind in ("text", "code_inline"):
        parser.add_render_rule(kind, _render_text)
    base = "docs" if name != README else ""
    tokens = [t for t in parser.parse(text) if not (t.type == "fence" and t.info.startswith("{"))]
    title = ""
    seen: dict[str, int] = {}
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following is not None:
            plain = _plain(following)
            title = title or plain
            token.attrSet("id", _anchor(plain, seen))
        elif token.type == "inline":
            token.children = list(_linked(token.children or [], base, documents, pictures))
        elif token.type in ("fence", "code_block", "table_open"):
            token.attrSet("tabindex", "0")  # it may scroll, which the keyboard must reach
    body = parser.renderer.render(tokens, parser.options, {})
    body = re.sub(r"<pre>(<code[^>]*?) tabindex=\"0\"", r'<pre tabindex="0">\1', body)
    return Document(name, title or name, body)


def _render_text(_self: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    text = html_text(tokens[at].content)
    return f"<code>{text}</code>" if tokens[at].type == "code_inline" else text


def _linked(
    tokens: Sequence[Token], base: str, documents: Collection[str], pictures: Collection[str]
) -> Iterator[Token]:
    """The tokens with links that lead to what is served, and without those that do not."""
    open_links: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            target = _target(str(token.attrGet("href") or ""), base, documents, pictures)
            open_links.append(target is not None)
            if target is not None:
                token.attrSet("href", target)
                yield token
        elif token.type == "link_close":
            if open_links.pop():
                yield token
        elif token.type == "image":
            target = _target(str(token.attrGet("src") or ""), base, (), pictures)
            if target is None:
                yield Token("text", "", 0, content=token.content)
            else:
                token.attrSet("src", target)
                yield token
        else:
            yield token


def _target(address: str, base: str, documents: Collection[str], pictures: Collection[str]) -> str | None:
    """A link as it reads below /docs/; None if it leads to nothing that is served."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return address if parts.scheme in ("http", "https") and documents else None
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    if not parts.path:
        return fragment or None
    path = posixpath.normpath(posixpath.join(base, parts.path))
    if path == "README.md":
        return f"{README}{fragment}" if README in documents else None
    if not path.startswith("docs/"):
        return None
    below = path.removeprefix("docs/")
    if below in pictures:
        return below
    name = below.removesuffix(".md")
    return f"{name}{fragment}" if name != below and name in documents else None


def _anchor(heading: str, seen: dict[str, int]) -> str:
    """The id of a heading as GitHub forms it: lower case, hyphens for spaces, a number from the second one on."""
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") or "section"
    seen[anchor] = seen.get(anchor, -1) + 1
    return anchor if not seen[anchor] else f"{anchor}-{seen[anchor]}"


def _plain(token: Token) -> str:
    """The text of an inline token, without its markup."""
    return "".join(
        " " if t.type in ("softbreak", "hardbreak") else t.content for t in token.children or [] if t.type != "image"
    ).strip()


def _index(documents: Mapping[str, Document], entries: Sequence[Entry]) -> str:
    """The table of contents as HTML, by section, with the README in the first one; what has no entry comes last."""
    readme = Entry(README, "README", "", README_SUMMARY)
    first = [entry for entry in entries if not entry.section]
    listed = [entry for entry in [*first, readme, *entries[len(first) :]] if entry.name in documents]
    missing = sorted(documents.keys() - {entry.name for entry in listed})
    listed += [Entry(name, documents[name].title, "More", "") for name in missing]
    parts = ["<h1>Documents</h1>"]
    for section, group in groupby(listed, key=lambda entry: entry.section):
        rows = "\n".join(
            f'<li><a href="{entry.name}">{html.escape(entry.title)}</a>'
            + (f"<p>{entry.summary}</p></li>" if entry.summary else "</li>")
            for entry in group
        )
        parts.append((f"<h2>{html.escape(section)}</h2>\n" if section else "") + f"<ul class=documents>\n{rows}\n</ul>")
    return "\n".join(parts)


def _page(title: str, body: str, index: bool) -> bytes:
    here = ' aria-current="page"' if index else ""
    return TEMPLATE.format(title=html.escape(title), body=body, here=here).encode()


def _folder() -> Traversable | None:
    """Where the documents are: in the installed package, or beside the source in a checkout."""
    checkout = Path(__file__).resolve().parents[3] / "docs"
    for folder in (resources.files("qkv.web").joinpath("documents"), checkout):
        if folder.is_dir():
            return folder
    return None


def _markdown(folder: Traversable) -> Iterator[tuple[str, str]]:
    """Names and texts of the Markdown files in the folder, and of the README in it or beside it."""
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_file() and entry.name.endswith(".md"):
            yield entry.name.removesuffix(".md").lower(), entry.read_text(encoding="utf-8")
    if isinstance(folder, Path) and (readme := folder.parent / "README.md").is_file():
        yield README, readme.read_text(encoding="utf-8")


def _site_files(files: dict[str, bytes]) -> dict[str, bytes]:
    """Files of a built site; a path that ends in a slash is the index of its folder, and `a` is `a.html`."""
    indices = {path.removesuffix(INDEX): body for path, body in files.items() if posixpath.basename(path) == INDEX}
    pages = {path.removesuffix(".html"): body for path, body in files.items() if path.endswith(".html")}
    return {**pages, **files, **indices}


def _walk(folder: Traversable, prefix: str, suffixes: tuple[str, ...] = ("",)) -> Iterator[tuple[str, bytes]]:
    """Paths and contents of the files below a folder; hidden ones are left out."""
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/", suffixes)
        elif entry.name.endswith(suffixes):
            yield f"{prefix}{entry.name}", entry.read_bytes()
