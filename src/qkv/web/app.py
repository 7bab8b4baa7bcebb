"""The FastAPI application: middleware, routes, what they share, and error handlers."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from qkv import __version__
from qkv.errors import QkvError
from qkv.web import static_files
from qkv.web.claim_workers import ClaimWorkers
from qkv.web.compute_pool import ComputePool
from qkv.web.head_worker import HeadWorker
from qkv.web.job_manager import JobManager
from qkv.web.limits import HttpRefusal
from qkv.web.middleware.fair_queue import FairQueueMiddleware
from qkv.web.middleware.security import LOOPBACK_HOSTS, SecurityMiddleware
from qkv.web.model_registry import DEFAULT_RUNS, ModelRegistry
from qkv.web.routes import claims, defaults, heads, jobs, knowledge, lookup, noise, sheets, wiring
from qkv.web.schemas import refusal_reply
from qkv.web.sheet_workers import SheetWorkers

_TYPE_NAME = re.compile(r"(?:constrained-)?(?:str|int|float)|[a-z-]+\[.*\]")
"""What pydantic puts among the names of fields where a field has one of several types."""
PRELOAD_SECONDS = 2.0
"""Time after which the server imports torch, unless a request has needed it before: the first page is served first."""
DESCRIPTION = (
    "Attention as a lookup memory: read it, design queries for it, and measure it under noise. The qkv library "
    "computes every number, and each reply contains the Python code that computes the same numbers. Every refusal is "
    "JSON of one form: error, with request, problem and hint."
)


def application(
    models: Mapping[str, Path] | None = None,
    token: str | None = None,
    hosts: Iterable[str] = LOOPBACK_HOSTS,
    runs: Path = DEFAULT_RUNS,
) -> FastAPI:
    """The explorer as an ASGI application.

    Args:
        models: Folders of runs that can be asked, and of models of transformers whose heads can be looked at, by name.
        token: If given, every request must carry it.
        hosts: Host names that requests may be addressed to; all names if empty.
        runs: Folder for models that are trained on the page and kept; those that it has can be asked.

    Returns:
        The application. What serves it sets `app.state.connections` to a function that counts open connections.

    Raises:
        QkvError: A folder holds no model.

    Example:
        >>> "/api/lookup" in application().openapi()["paths"]
        True
    """
    registry = ModelRegistry(models or {}, runs)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.claim_workers = ClaimWorkers()
        app.state.claim_workers.start()
        app.state.sheet_workers = SheetWorkers()
        app.state.compute_pool = ComputePool(warm_up=noise.warm_up)
        preloading = asyncio.get_running_loop().call_later(PRELOAD_SECONDS, app.state.compute_pool.preload)
        app.state.job_manager = JobManager(on_trained=registry.add)
        app.state.model_registry = registry
        app.state.head_worker = HeadWorker()
        try:
            yield
        finally:
            preloading.cancel()
            app.state.job_manager.close()
            app.state.claim_workers.close()
            app.state.sheet_workers.close()
            app.state.compute_pool.close()
            app.state.head_worker.close()

    app = FastAPI(
        title="qkv explorer",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.connections = lambda: 0
    for module in (defaults, lookup, noise, wiring, claims, sheets, heads, knowledge, jobs):
        app.include_router(module.router)
    app.include_router(static_files.router())
    app.add_exception_handler(QkvError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    # The middleware added last sees a request first.
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=1)
    app.add_middleware(FairQueueMiddleware)
    app.add_middleware(SecurityMiddleware, hosts=tuple(hosts), token=token)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, QkvError)
    if not isinstance(error, HttpRefusal):
        error = HttpRefusal(422, error.request, error.problem, error.hint)
    return refusal_reply(error)


async def _invalid_request(request: Request, error: Exception) -> Response:
    """A body that does not fit its pydantic model."""
    assert isinstance(error, RequestValidationError)
    errors: list[Any] = list(error.errors())
    first = errors[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    field = ".".join(part for part in place if not _TYPE_NAME.fullmatch(part)) or "the body"
    more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    problem = f"{field[:200]}: {str(first['msg'])[:300]}{more}"
    return refusal_reply(
        HttpRefusal(422, _request_line(request), problem, "See /api/openapi.json for the fields and their ranges")
    )


async def _http_error(request: Request, error: Exception) -> Response:
    """What FastAPI refuses: unknown methods, bodies that are not JSON."""
    assert isinstance(error, HTTPException)
    hint = "See /api/openapi.json" if request.url.path.startswith("/api") else "Start at /"
    reply = refusal_reply(HttpRefusal(error.status_code, _request_line(request), str(error.detail)[:300], hint))
    reply.headers.update(error.headers or {})
    return reply


def _request_line(request: Request) -> str:
    return f"{request.method} {request.url.path[:200]}"
