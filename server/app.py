"""The ASGI application: routes from the declared operations, the page, metrics and event streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ..engine.metrics import metrics_text
from ..errors import TidemillError
from .api import Api
from .events import Broadcast, EventsQuery
from .operation import BASE, Operation, operations
from .problem import Problem, problem_of, refusal
from .registry import Registry
from .security import Access, Guard

log = logging.getLogger("tidemill")

PAGE: Final = Path(__file__).parent / "page"
HANDLER_THREADS: Final = 8
"""Threads in which operations run; further requests wait for one."""
BODY_SECONDS: Final = 30.0
"""Time in which a request's body must have come."""

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Application:
    """An ASGI application, and its open streams."""

    asgi: ASGIApp
    broadcast: Broadcast


def application(registry: Registry, access: Access) -> Application:
    """Return the application for the feeds of a registry, which the caller starts and closes."""
    api, broadcast = Api(registry), Broadcast(registry)
    pool = ThreadPoolExecutor(HANDLER_THREADS, "tidemill-http")
    declared = operations(api)

    async def events(request: Request) -> Response:
        return broadcast.stream(_query(request, EventsQuery))  # type: ignore[return-value] # is only called

    async def in_pool(call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, call)

    async def ready(_: Request) -> Response:
        state = await in_pool(api.readiness)
        return _json(state, 200 if state.ready else 503)

    async def metrics(_: Request) -> Response:
        text = await in_pool(lambda: "\n".join(metrics_text(feed.status()) for feed in registry.feeds()))
        return Response(text + "\n", media_type="text/plain; version=0.0.4")

    async def page(_: Request) -> Response:
        return Response((PAGE / "index.html").read_bytes(), media_type="text/html")

    routes: list[Route | Mount] = [
        Route(one.path, _answering(_handler(one, in_pool)), methods=[one.method]) for one in declared
    ]
    routes += [
        Route(f"{BASE}/events", _answering(events), methods=["GET"]),
        Route("/ready", _answering(ready), methods=["GET"]),
        Route("/metrics", _answering(metrics), methods=["GET"]),
        Route("/", _answering(page), methods=["GET"]),
        Mount("/page", StaticFiles(directory=PAGE)),
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        broadcast.close()
        pool.shutdown(wait=False)

    made = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _refused})
    is_open = {"/", "/page/", *(one.path for one in declared if one.is_open)}
    return Application(Guard(made, access, is_open), broadcast)


def _handler(one: Operation, in_pool: Callable[[Callable[[], Any]], Awaitable[Any]]) -> Handler:
    async def handle(request: Request) -> Response:
        arguments: dict[str, Any] = dict(request.path_params)
        if one.query is not None:
            arguments["query"] = _query(request, one.query)
        if one.body is not None:
            arguments["body"] = await _body(request, one)
        if one.wants_by:
            arguments["by"] = request.scope["tidemill.by"]
        return _json(await in_pool(partial(one.call, **arguments)), one.status)

    return handle


def _query(request: Request, kind: type[T]) -> T:
    """Return the query's parameters. Raises Problem."""
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None


async def _body(request: Request, one: Operation) -> Any:
    """Return the body. Raises Problem."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            text = await request.body()
    except TimeoutError:
        raise Problem(408, "the body didn't come in time") from None
    if not text.strip() and one.body_is_optional:
        text = b"{}"
    try:
        return msgspec.json.decode(text, type=one.body)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body isn't JSON: {error}") from None


def _invalid(error: msgspec.ValidationError) -> Problem:
    said, _, where = str(error).partition(" - at ")
    field = where.strip("`").removeprefix("$").lstrip(".") or None
    return Problem(422, f"{field}: {said}" if field else said, field)


def _json(answer: object, status: int) -> Response:
    return Response(
        msgspec.json.encode(answer), status, {"Cache-Control": "no-store"}, media_type="application/json"
    )


def _answering(handle: Handler) -> Handler:
    """Return the handler with errors as refusals."""

    async def answer(request: Request) -> Response:
        try:
            return await handle(request)
        except Problem as problem:
            return refusal(problem)
        except TidemillError as error:
            return refusal(problem_of(error))
        except Exception:
            log.exception("%s %s", request.method, request.url.path)
            return refusal(Problem(500, "an error of the server itself, which its log describes"))

    return answer


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return refusal(Problem(404, f"there is nothing at {request.url.path[:200]!r}"))
    if error.status_code == 405:
        return refusal(Problem(405, f"{request.url.path[:200]!r} doesn't take {request.method}"))
    return refusal(Problem(error.status_code, error.detail))
