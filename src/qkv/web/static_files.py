"""The page's own files, read once at start: no path of a request ever reaches the file system."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from qkv.viz.theme import css
from qkv.web.schemas import refusal

PAGES = ("", "lookup", "noise", "wiring", "claims", "knowledge")
"""Addresses that show index.html; what is on screen follows in the query or the fragment."""
TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
}
PACKED = ("text/", "application/json", "image/svg+xml")
DAY = 86_400
EMPTY = (
    b"<!doctype html><html lang=en><meta charset=utf-8><title>qkv</title><link rel=stylesheet href=/look.css>"
    b"<main><h1>qkv</h1><p>There is no page in this installation; /api/openapi.json describes the API.</main>"
)


@dataclass(frozen=True)
class Held:
    """A file in memory, and compressed where that helps."""

    body: bytes
    packed: bytes | None
    kind: str
    tag: str
    vendored: bool


def held(name: str, body: bytes) -> Held:
    """A file as it will be sent."""
    suffix = name[name.rfind(".") :]
    kind = TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    packed = gzip.compress(body, 9, mtime=0) if kind.startswith(PACKED) else None
    if packed is not None and len(packed) >= len(body):
        packed = None
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    return Held(body, packed, kind + charset, f'"{hashlib.sha256(body).hexdigest()[:20]}"', name.startswith("vendor/"))


def files() -> dict[str, Held]:
    """Every file under static/ by its path, the one look, and index.html for every page."""
    found = {name: held(name, body) for name, body in _walk(resources.files("qkv.web").joinpath("static"), "")}
    index = found.get("index.html") or held("index.html", EMPTY)
    out = {f"/static/{name}": file for name, file in found.items()}
    out["/look.css"] = held("look.css", css().encode())
    return out | {f"/{page}": index for page in PAGES}


def router() -> APIRouter:
    """Routes for what was read at start."""
    known = files()
    routes = APIRouter(include_in_schema=False)

    async def send(request: Request) -> Response:
        file = known.get(request.url.path)
        if file is None:
            asked = f"{request.method} {request.url.path[:200]}"
            api = request.url.path.startswith("/api")
            return refusal(404, asked, "there is no such page", "See /api/openapi.json" if api else "Start at /")
        age = f"public, max-age={DAY}" if file.vendored else "no-cache"
        headers = {"etag": file.tag, "cache-control": age, "vary": "accept-encoding"}
        if file.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = file.body
        if file.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["content-encoding"] = file.packed, "gzip"
        return Response(body, headers=headers, media_type=file.kind)

    for path in ("/", "/{path:path}"):
        routes.add_api_route(path, send, methods=["GET", "HEAD"])
    return routes


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    if not folder.is_dir():
        return []
    out = []
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            out += _walk(entry, f"{prefix}{entry.name}/")
        else:
            out.append((f"{prefix}{entry.name}", entry.read_bytes()))
    return out
