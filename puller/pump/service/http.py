"""HTTP/1 for small answers to small requests: one request a connection, and no bodies are read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

import msgspec

MAX_HEAD_BYTES: Final = 16 << 10


class HttpAnswer(NamedTuple):
    status: HTTPStatus
    body: bytes
    content_type: str = "application/json; charset=UTF-8"


Routes: TypeAlias = Callable[[str, str], HttpAnswer]
"""Returns the answer to a method and a path."""


def json_answer(value: object, status: HTTPStatus = HTTPStatus.OK) -> HttpAnswer:
    return HttpAnswer(status, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def text_answer(status: HTTPStatus, text: str) -> HttpAnswer:
    return HttpAnswer(status, f"{text}\n".encode(), "text/plain; charset=UTF-8")


async def serve(
    head: bytes, read: Callable[[], Awaitable[bytes]], writer: asyncio.StreamWriter, routes: Routes
) -> None:
    """Answer the request that begins with `head`; `read` returns what follows. The caller closes the
    connection."""
    while b"\r\n\r\n" not in head:
        if len(head) > MAX_HEAD_BYTES:
            return _send(writer, text_answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too large"))
        data = await read()
        if not data:
            return None
        head += data
    words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return _send(writer, text_answer(HTTPStatus.BAD_REQUEST, "this is not a request of HTTP/1.1"))
    answer = routes(words[0], words[1].partition("?")[0])
    return _send(writer, answer, head_only=words[0] == "HEAD")


def _send(writer: asyncio.StreamWriter, answer: HttpAnswer, *, head_only: bool = False) -> None:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + (b"" if head_only else answer.body))
