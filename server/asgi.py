"""The ASGI application: routes from the declared operations, the page, metrics and event streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, compile_path
from starlette.types import ASGIApp

from ..errors import TidemillError
from .api import Api
from .browser import PageFiles, index
from .events import Broadcast, EventStream
from .openapi import openapi
from .operation import BASE, JSON, Operation, operations
from .problem import Problem, problem_of
from .recent import RecentAnswers
from .registry import Registry
from .responses import json_response, refusal
from .security import Access, Guard
from .targets import TargetApi

log = logging.getLogger("tidemill")

HANDLER_THREADS: Final = 8
"""Threads in which operations run; further requests wait for one."""
SLOW_THREADS: Final = 4
"""Threads in which operations run that wait for databases."""
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
    broadcast = Broadcast(registry)
    pool = ThreadPoolExecutor(HANDLER_THREADS, "tidemill-http")
    slow = _Slow()
    declared = operations(Api(registry), TargetApi(registry), broadcast)

    async def in_pool(call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, call)

    @cache
    def document() -> bytes:
        return msgspec.json.encode(openapi(declared))

    async def described(_: Request) -> Response:
        return Response(await in_pool(document), media_type="application/json")

    async def page(_: Request) -> Response:
        return index()

    routes: list[Route | Mount] = [
        Route(one.path, _answering(_handler(one, slow.run if one.is_slow else in_pool)), methods=[one.method])
        for one in declared
    ]
    routes += [
        Route(f"{BASE}/openapi.json", _answering(described), methods=["GET"]),
        Route("/", _answering(page), methods=["GET"]),
        Mount("/page", PageFiles()),
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        broadcast.close()
        pool.shutdown(wait=False)
        slow.close()

    made = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _refused})
    views = [compile_path(one.path)[0] for one in declared if one.is_view]
    is_open = {"/", "/page/", *(one.path for one in declared if one.is_open)}
    recent = RecentAnswers(made, lambda path: any(one.match(path) for one in views), registry.clock)
    return Application(Guard(recent, access, is_open), broadcast)


class _Slow:
    """Threads of operations that wait for databases; a few more operations may wait for a thread."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(SLOW_THREADS, "tidemill-slow")
        self._count = 0

    async def run(self, call: Callable[[], T]) -> T:
        """Raises Problem if too many are running."""
        if self._count >= 4 * SLOW_THREADS:
            raise Problem(503, "too many requests wait for databases: try again later")
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, call)
        finally:
            self._count -= 1

    def close(self) -> None:
        self._pool.shutdown(wait=False)


def _handler(one: Operation, in_pool: Callable[[Callable[[], object]], Awaitable[object]]) -> Handler:
    async def handle(request: Request) -> Response:
        arguments: dict[str, Any] = dict(request.path_params)
        if one.query is not None:
            arguments["query"] = _query(request, one.query)
        if one.body is not None:
            arguments["body"] = await _body(request, one)
        if one.wants_by:
            arguments["by"] = request.scope["tidemill.by"]
        answer = await in_pool(partial(one.call, **arguments))
        if isinstance(answer, EventStream):
            return answer  # type: ignore[return-value] # Starlette only calls it
        if one.media != JSON:
            return Response(answer, one.status, media_type=one.media)
        return json_response(answer, one.status)

    return handle


def _query(request: Request, kind: type[T]) -> T:
    """Return the query's parameters. Raises Problem."""
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None


async def _body(request: Request, one: Operation) -> object:
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
