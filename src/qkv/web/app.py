"""The application: the guard, the routes, and what they share."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from qkv import __version__
from qkv.errors import QkvError
from qkv.web import limits, static_files
from qkv.web.claim_workers import ClaimWorkers
from qkv.web.compute_pool import ComputePool
from qkv.web.job_manager import Jobs
from qkv.web.middleware.fair_queue import FairQueueMiddleware
from qkv.web.middleware.security import LOOPBACK, SecurityMiddleware
from qkv.web.model_registry import Models
from qkv.web.routes import claims, defaults, jobs, knowledge, lookup, noise, wiring
from qkv.web.schemas import refusal

ABOUT = (
    "What attention looks up, and when to trust it. Every number comes from the library; each reply carries the "
    "Python that gives the same numbers. A refusal has one shape: error, with asked, came and try."
)


def application(
    models: Mapping[str, Path] | None = None, token: str | None = None, hosts: Iterable[str] = LOOPBACK
) -> FastAPI:
    """The explorer, ready to be served."""
    named = Models(models or {})

    @contextlib.asynccontextmanager
    async def alive(app: FastAPI) -> AsyncIterator[None]:
        app.state.work, app.state.checkers = ComputePool(), ClaimWorkers()
        app.state.jobs, app.state.models = Jobs(named.add), named
        try:
            yield
        finally:
            app.state.jobs.close()
            app.state.checkers.close()
            app.state.work.close()

    app = FastAPI(
        title="qkv explorer",
        version=__version__,
        description=ABOUT,
        lifespan=alive,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.connections = lambda: 0  # told by what serves it
    for module in (defaults, lookup, noise, wiring, claims, knowledge, jobs):
        app.include_router(module.router)
    app.include_router(static_files.router())
    app.add_exception_handler(QkvError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=1)
    app.add_middleware(FairQueueMiddleware)
    app.add_middleware(SecurityMiddleware, hosts=tuple(hosts), token=token)
    return app


async def _refused(request: Request, why: Exception) -> Response:
    assert isinstance(why, QkvError)
    status = why.status if isinstance(why, limits.HttpRefusal) else 422
    return refusal(status, why.request, why.problem, why.hint)


async def _invalid(request: Request, why: Exception) -> Response:
    assert isinstance(why, RequestValidationError)
    found: list[Any] = list(why.errors())
    first = found[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    came = f"{where[:200]}: {str(first['msg'])[:300]}{more}"
    return refusal(422, _asked(request), came, "See /api/openapi.json for what each field may be")


async def _http(request: Request, why: Exception) -> Response:
    assert isinstance(why, HTTPException)
    remedy = "See /api/openapi.json" if request.url.path.startswith("/api") else "Start at /"
    out = refusal(why.status_code, _asked(request), str(why.detail)[:300], remedy)
    out.headers.update(why.headers or {})
    return out


def _asked(request: Request) -> str:
    return f"{request.method} {request.url.path[:200]}"
