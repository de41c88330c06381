"""Recent answers: what many clients ask for at the same time is made once, for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..actors import Clock
from .security import READING

FRESH_SECONDS: Final = 0.25
"""Maximum age of an answer; a feed's own status is up to half a second old."""
MAX_BYTES: Final = 8 << 20
"""Maximum size of all answers since they were last dropped, ..."""
ENTRY_BYTES: Final = 1 << 10
"""... each with this in addition."""

_Key: TypeAlias = tuple[str, bytes]  # a path and its query


class _Answer(NamedTuple):
    messages: list[Message]
    until: float


class RecentAnswers:
    """ASGI middleware that answers views by the last answer of the same path and query, while it is fresh.

    A request that may change something makes all answers stale, when it begins and when it ends. Used in one
    event loop.
    """

    def __init__(self, app: ASGIApp, is_view: Callable[[str], bool], clock: Clock) -> None:
        """`is_view` is true for paths that GET only looks at, with the same answer for all clients."""
        self._app = app
        self._is_view = is_view
        self._clock = clock
        self._answers: dict[_Key, _Answer] = {}
        self._bytes = 0
        self._making: dict[_Key, asyncio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] not in READING:
            self._forget()
            try:
                await self._app(scope, receive, send)
            finally:
                self._forget()
        elif scope["method"] == "GET":
            await self._look(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _forget(self) -> None:
        self._answers, self._bytes = {}, 0
        self._making = {}  # who makes an answer now doesn't keep it

    async def _look(self, scope: Scope, receive: Receive, send: Send) -> None:
        key: _Key = scope["path"], scope["query_string"]
        making = self._making.get(key)
        if making is not None:
            await making.wait()
        answer = self._answers.get(key)
        if answer is not None and (making is not None or answer.until > self._clock.now()):
            for message in answer.messages:
                await send(message)
        elif making is None and self._is_view(_path(scope)):
            await self._make(key, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _make(self, key: _Key, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application answer, and keep a success."""
        made = self._making[key] = asyncio.Event()
        until = self._clock.now() + FRESH_SECONDS
        messages: list[Message] = []

        def end(*, complete: bool) -> None:
            if self._making.get(key) is made:
                del self._making[key]
                if complete and messages[0]["status"] == 200:
                    self._keep(key, _Answer(messages, until))
            made.set()

        async def keep(message: Message) -> None:
            messages.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                end(complete=True)  # before it is sent: the others don't wait for this one's reader
            await send(message)

        try:
            await self._app(scope, receive, keep)
        finally:
            end(complete=False)

    def _keep(self, key: _Key, answer: _Answer) -> None:
        self._bytes += sum(len(message.get("body", b"")) for message in answer.messages) + ENTRY_BYTES
        if self._bytes > MAX_BYTES:
            self._forget()
        else:
            self._answers[key] = answer


def _path(scope: Scope) -> str:
    """Return the path below that of a mount."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
