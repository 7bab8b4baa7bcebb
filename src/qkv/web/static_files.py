"""The files of the page, read into memory at start: no path of a request reaches the file system."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from qkv.viz.theme import css
from qkv.web.documents import document_files
from qkv.web.limits import HttpRefusal
from qkv.web.schemas import refusal_reply

PAGES = ("", "home", "lookup", "noise", "wiring", "claims", "sheets", "heads", "knowledge")
"""Addresses that show index.html; the state of a page follows in the fragment."""
DOCUMENTS = "/docs/"
"""Address of the index of the documents; links in it are relative to it."""
MEDIA_TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
}
COMPRESSED_TYPES = ("text/", "application/json", "image/svg+xml")
VENDOR_MAX_AGE = 86_400
"""Seconds that a browser may keep a vendored file without asking again."""
NOT_FOUND = (
    b"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    b"<title>Not found: qkv</title><link rel=stylesheet href=/theme.css><main><h1>There is no such page</h1>"
    b"<p>Start at <a href=/>Home</a>. The other pages are "
    b"<a href=/lookup>Lookup</a>, <a href=/noise>Noise</a>, <a href=/wiring>Wiring</a>, "
    b"<a href=/claims>Claims</a>, <a href=/sheets>Sheets</a>, <a href=/heads>Heads</a>, "
    b"<a href=/knowledge>Knowledge</a> and the <a href=/docs/>documents</a>.</main>"
)
"""The reply to a path that is none; it does not repeat the path."""
NO_PAGE = (
    b"<!doctype html><html lang=en><meta charset=utf-8><title>qkv</title><link rel=stylesheet href=/theme.css>"
    b"<main><h1>qkv</h1><p>This installation has no page; /api/openapi.json describes the API.</main>"
)


@dataclass(frozen=True)
class StaticFile:
    """A file in memory.

    Attributes:
        body: Its content.
        gzipped: The content compressed, or None where that would not make it smaller.
        media_type: The value of its Content-Type header.
        etag: The value of its ETag header.
        vendored: Whether it belongs to a library, and so hardly ever changes.
    """

    body: bytes
    gzipped: bytes | None
    media_type: str
    etag: str
    vendored: bool

    @classmethod
    def of(cls, name: str, body: bytes) -> StaticFile:
        """The file of this name, relative to static/, and content."""
        suffix = name[name.rfind(".") :]
        media_type = MEDIA_TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        gzipped = gzip.compress(body, 9, mtime=0) if media_type.startswith(COMPRESSED_TYPES) else None
        if gzipped is not None and len(gzipped) >= len(body):
            gzipped = None
        charset = "; charset=utf-8" if media_type.startswith("text/") else ""
        etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        return cls(body, gzipped, media_type + charset, etag, name.startswith("vendor/"))


def read_files() -> dict[str, StaticFile]:
    """All files by URL path: those under static/, the documents, the theme, and index.html for every page."""
    files = {name: StaticFile.of(name, body) for name, body in _walk(resources.files("qkv.web").joinpath("static"), "")}
    index = files.get("index.html") or StaticFile.of("index.html", NO_PAGE)
    return {
        **{f"/static/{name}": file for name, file in files.items()},
        **{f"{DOCUMENTS}{name}": StaticFile.of(_page_name(name), body) for name, body in document_files().items()},
        "/theme.css": StaticFile.of("theme.css", css().encode()),
        **{f"/{page}": index for page in PAGES},
    }


def router() -> APIRouter:
    """Routes for all files; the reply to every other path is 404."""
    files = read_files()
    routes = APIRouter(include_in_schema=False)

    async def send(request: Request) -> Response:
        path = request.scope["path"]  # as sent: request.url drops line breaks
        if path == DOCUMENTS.rstrip("/"):
            return Response(status_code=307, headers={"location": DOCUMENTS.removeprefix("/")})
        file = files.get(path)
        if file is None:
            others = _api_methods(request.app.openapi(), path) if path.startswith("/api/") else []
            if others:
                raise HTTPException(405, headers={"allow": ", ".join(others)})
            return not_found(request.method, path)
        cache = f"public, max-age={VENDOR_MAX_AGE}" if file.vendored else "no-cache"
        headers = {"etag": file.etag, "cache-control": cache, "vary": "accept-encoding"}
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = file.body
        if file.gzipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["content-encoding"] = file.gzipped, "gzip"
        return Response(body, headers=headers, media_type=file.media_type)

    for path in ("/", "/{path:path}"):
        routes.add_api_route(path, send, methods=["GET", "HEAD"])
    return routes


def not_found(method: str, path: str) -> Response:
    """404: JSON under /api, elsewhere a page."""
    if path == "/api" or path.startswith("/api/"):
        request = f"{method} {path[:200]}"
        return refusal_reply(HttpRefusal(404, request, "there is no such page", "See /api/openapi.json"))
    return Response(NOT_FOUND, 404, media_type="text/html")


def _api_methods(document: dict[str, Any], path: str) -> list[str]:
    """The methods that a path of the API has, by the OpenAPI document; none if there is no such path."""
    for template, methods in document["paths"].items():
        fixed = [re.escape(part) for part in re.split(r"\{[^}]*\}", template)]
        if re.fullmatch("[^/]+".join(fixed), path):
            return sorted(method.upper() for method in methods)
    return []


def _page_name(path: str) -> str:
    """The path of a document with the suffix that tells its type: a document is an HTML page unless it has another."""
    return path if "." in path.rsplit("/", 1)[-1] else f"{path}.html"


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    """Names, relative to the first folder, and contents of all files below it; hidden ones are left out."""
    if not folder.is_dir():
        return []
    found = []
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        else:
            found.append((f"{prefix}{entry.name}", entry.read_bytes()))
    return found
