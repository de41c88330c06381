"""A server of the test's own on loopback; each of its responses is checked against the OpenAPI document."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from jsonschema.validators import Draft202012Validator

from tidemill import cli
from tidemill.client import Client
from tidemill.server.api import Api
from tidemill.server.asgi import Application, application
from tidemill.server.events import Broadcast
from tidemill.server.openapi import openapi
from tidemill.server.operation import operations
from tidemill.server.registry import Registry
from tidemill.server.security import Access
from tidemill.server.serving import HttpServer
from tidemill.server.targets import TargetApi
from tidemill.testing.progress import eventually


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


class Seen:
    """ASGI middleware that checks what the application answers."""

    def __init__(self, app: Any, document: dict[str, Any]) -> None:
        self._app = app
        self._document = document
        self.wrong: list[str] = []
        self.operations: set[str] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        parts: list[Any] = []

        async def sent(message: Any) -> None:
            parts.append(message)
            await send(message)

        await self._app(scope, receive, sent)
        if scope["type"] == "http" and scope["path"].startswith(("/api/", "/health", "/ready", "/metrics")):
            start, *bodies = parts
            media = dict(start["headers"]).get(b"content-type", b"").decode().partition(";")[0]
            text = b"".join(one.get("body", b"") for one in bodies)
            self._check(scope["method"].lower(), scope["path"], start["status"], media, text)

    def _check(self, method: str, path: str, status: int, media: str, text: bytes) -> None:
        where = f"{method} {path} {status}"
        described = self._operation(method, path)
        if described is None:
            if path != "/api/v1/openapi.json" and status not in (401, 403, 404, 405, 415):
                self.wrong.append(f"{where}: not described")
            return
        self.operations.add(described["operationId"])
        content = described["responses"].get(str(status), {}).get("content", {})
        if media not in content:
            self.wrong.append(f"{where}: {media} isn't described")
        elif media == "application/json":
            schema = {**content[media]["schema"], "components": self._document["components"]}
            try:
                Draft202012Validator(schema).validate(json.loads(text))
            except jsonschema.ValidationError as error:
                self.wrong.append(f"{where}: {error.message}")

    def _operation(self, method: str, path: str) -> dict[str, Any] | None:
        found = None
        for known, methods in self._document["paths"].items():
            pattern = re.sub(r"\\\{(table|lock)\\\}", "(.+)", re.escape(known))
            pattern = re.sub(r"\\\{\w+\\\}", "([^/]+)", pattern)
            if re.fullmatch(pattern, path) and method in methods:
                found = methods[method] if found is None or "tables/{table}" in known else found
        return found


class Served:
    """A running server."""

    def __init__(
        self, url: str, registry: Registry, client: Client, seen: Seen, broadcast: Broadcast
    ) -> None:
        self.broadcast = broadcast
        self.url = url
        self.registry = registry
        self.client = client
        self.seen = seen

    def request(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a request as it is given; a body that isn't bytes is sent as JSON."""
        connection = HTTPConnection(self.url.partition("://")[2], timeout=60)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
                given.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, given)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        is_json = (response.getheader("Content-Type") or "").startswith("application/json")
        return Answer(response.status, json.loads(text) if is_json else text, dict(response.getheaders()))

    def until(self, feed: str, *states: str) -> None:
        """Wait until the feed is in one of these states."""

        def state() -> str:
            return self.client.feed(feed).feed.state

        eventually(lambda: state() in states, sign=lambda: self.client.feed(feed).status.updated)


Serve = Callable[..., Served]


@pytest.fixture(scope="session")
def openapi_document() -> dict[str, Any]:
    """The document of the API: the same for every registry."""
    registry = Registry()
    return openapi(operations(Api(registry), TargetApi(registry), Broadcast(registry)))


@pytest.fixture
def serve(tmp_path: Path, openapi_document: dict[str, Any]) -> Iterator[Serve]:
    """Return a function that starts a server of a directory, or of given feeds."""
    with ExitStack() as stack:
        servers: list[Seen] = []

        def start(directory: Path | None = tmp_path / "feeds", **options: Any) -> Served:
            access = Access(**options.pop("access", {}))
            token = next(iter(access.tokens), "")
            registry = Registry(directory=directory, **options)
            made = application(registry, access)
            seen = Seen(made.asgi, openapi_document)
            servers.append(seen)
            stack.enter_context(registry)
            server = HttpServer(Application(seen, made.broadcast), "127.0.0.1:0")
            stack.callback(server.close)
            stack.enter_context(server)
            return Served(server.url, registry, Client(server.url, token), seen, made.broadcast)

        yield start
    for seen in servers:
        assert seen.wrong == []


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve()


@pytest.fixture
def call(monkeypatch, capsys):
    """Run a command; its status, what it printed, and what it said on stderr."""

    def run(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["tidemill", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run
