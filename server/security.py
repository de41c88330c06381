"""Checks of every request before it is read: host, origin, token, size."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..config.address import host_and_port, is_loopback
from ..config.token import read_tokens
from ..errors import ConfigError
from .problem import Problem
from .responses import refusal

MAX_BODY_BYTES: Final = 1 << 20
READING: Final = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Clients that are let in."""

    tokens: dict[str, str] = field(default_factory=dict, repr=False)
    """Names of clients by their token; empty: no token is needed."""
    hosts: Collection[str] = ()
    """Names that clients may use for this server, besides those of loopback; empty with tokens: any."""

    def admits_host(self, host: str) -> bool:
        """Return True unless the request may come from a page whose name was rebound to this address."""
        name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
        name = name.strip("[]").lower()
        return (bool(self.tokens) and not self.hosts) or is_loopback(name) or name in self.hosts

    def client(self, authorization: str) -> str | None:
        """Return the name of the client with this header; None if its token is unknown."""
        if not self.tokens:
            return ""
        scheme, _, shown = authorization.partition(" ")
        matching = None
        for token, name in self.tokens.items():  # all, in constant time each
            if hmac.compare_digest(shown.strip().encode(), token.encode()):
                matching = name
        return matching if scheme.lower() == "bearer" else None


def access(listen: str, token_file: Path | None, hosts: Collection[str] = (), *, has_tls: bool) -> Access:
    """Return the access of a server that listens on host:port.

    Raises ConfigError if it could be reached from outside without a token, or over TLS without one.
    """
    host, _ = host_and_port(listen)
    if token_file is None and not is_loopback(host):
        raise ConfigError(
            f"--http {listen}: it can be reached from outside: give --token-file, best with --tls-cert and "
            "--tls-key, or listen on 127.0.0.1"
        )
    if token_file is None and has_tls:
        raise ConfigError("--tls-cert: give --token-file too: TLS alone lets every client in")
    tokens = read_tokens(token_file, "--token-file") if token_file is not None else {}
    return Access(tokens=tokens, hosts=frozenset(name.lower() for name in hosts))


class Guard:
    """ASGI middleware that refuses requests; the application below sees only those that are let in."""

    def __init__(self, app: ASGIApp, access: Access, is_open: Collection[str]) -> None:
        """`is_open` are the paths that need no token; one that ends in "/" is a folder."""
        self._app = app
        self._access = access
        self._open = frozenset(is_open)
        self._folders = tuple(path for path in is_open if path.endswith("/") and path != "/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            who = self._check(scope)
        except Problem as problem:
            await refusal(problem)(scope, receive, send)
            return
        peer = scope.get("client")
        scope["tidemill.by"] = who or (peer[0] if peer else "local")
        await self._app(scope, _Bounded(receive), send)

    def _check(self, scope: Scope) -> str:
        """Return the client's name. Raises Problem."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._access.admits_host(host):
            raise Problem(
                403, f"host {host[:100]!r} isn't a name of this server: add it with --allowed-host", "host"
            )
        path: str = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
        is_open = path in self._open or path.startswith(self._folders)
        who = self._access.client(headers.get("authorization", ""))
        if who is None and not is_open:
            raise Problem(401, "the header Authorization: Bearer TOKEN is missing, or its token is unknown")
        if scope["method"] not in READING:
            _check_mutation(scope["method"], headers, host)
        return who or ""


def _check_mutation(method: str, headers: Headers, host: str) -> None:
    """Raise Problem for what a foreign page could have sent."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        raise Problem(
            403, f"origin {origin[:100]!r} isn't this server's: its pages can't change anything here"
        )
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Problem(403, "pages of other sites can't change anything here")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method != "DELETE" and kind != "application/json":
        raise Problem(415, "the header Content-Type: application/json is missing")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > MAX_BODY_BYTES:
        raise _too_large()


def _too_large() -> Problem:
    return Problem(413, f"the body is larger than {MAX_BODY_BYTES:,} bytes")


class _Bounded:
    """The messages of a request, until its body is too large."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._bytes = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._bytes += len(message.get("body", b""))
        if self._bytes > MAX_BODY_BYTES:
            raise _too_large()
        return message
