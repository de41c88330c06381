"""Requests to a server, over the standard library."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from ..config.address import is_loopback
from ..errors import ConfigError, Fatal, Retryable
from ..server.model.failures import ErrorBody, ErrorDetail

T = TypeVar("T")

BASE: Final = "/api/v1"


class Refused(Fatal):
    """The server refuses a request."""

    def __init__(self, status: int, detail: ErrorDetail) -> None:
        super().__init__(detail.message)
        self.status = status
        self.code = detail.code
        self.field = detail.field


class Connection:
    """One request at a time, each with a connection of its own. Any thread."""

    def __init__(self, url: str, token: str, timeout: float, ca_file: Path | None) -> None:
        """Raises ConfigError for a URL that isn't a server's, and for a token that would be sent in clear."""
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise ConfigError(f'--server: expected a URL as "http://127.0.0.1:8300", not {url[:200]!r}')
        if token and parts.scheme == "http" and not is_loopback(host):
            raise ConfigError(f"--server: the token isn't sent to {host} in clear: use https://")
        self._where = parts.netloc.rpartition("@")[2]
        self._host, self._port, self._prefix = host, port, parts.path.rstrip("/")
        self._timeout = timeout
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            try:
                self._tls = ssl.create_default_context(cafile=ca_file)
            except OSError as error:
                raise ConfigError(f"--ca-file: {ca_file}: {error.strerror or error}") from None

    def call(
        self,
        answer: type[T],
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: object = None,
        timeout: float | None = None,
    ) -> T:
        """Return the answer to a request. Raises Refused, and Retryable if the server can't be reached."""
        with closing(self._connect(timeout or self._timeout)) as connection:
            response = self._request(connection, method, path, query, body)
            try:
                return msgspec.json.decode(response.read(), type=answer)
            except (msgspec.DecodeError, OSError, HTTPException) as error:
                raise self._unreachable(error) from None

    def events(self, path: str, query: Mapping[str, object]) -> Iterator[tuple[str, bytes]]:
        """Yield name and data of each server-sent event. Raises as `call` does."""
        with closing(self._connect(self._timeout)) as connection:
            response = self._request(connection, "GET", path, query, None)
            name = ""
            try:
                while line := response.readline():
                    key, _, value = line.rstrip(b"\n").partition(b": ")
                    if key == b"event":
                        name = value.decode()
                    elif key == b"data":
                        yield name, value
            except (OSError, HTTPException) as error:
                raise self._unreachable(error) from None

    def _connect(self, timeout: float) -> HTTPConnection:
        if self._tls is not None:
            return HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        return HTTPConnection(self._host, self._port, timeout=timeout)

    def _request(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        body: object,
    ) -> HTTPResponse:
        target = self._prefix + path
        if query:
            target += "?" + urlencode({name: _text(value) for name, value in query.items()})
        headers = dict(self._headers)
        content = None
        if method != "GET":
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode({} if body is None else body)
        try:
            connection.request(method, target, content, headers)
            response = connection.getresponse()
            if response.status < 400:
                return response
            text = response.read()
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from None
        raise self._refused(response, text)

    def _refused(self, response: HTTPResponse, text: bytes) -> Refused:
        try:
            detail = msgspec.json.decode(text, type=ErrorBody).error
        except msgspec.DecodeError:
            detail = ErrorDetail("", f"{self._where} answers {response.status} {response.reason}")
        return Refused(response.status, detail)

    def _unreachable(self, error: Exception) -> Retryable:
        return Retryable(f"{self._where}: no answer of a tidemill server: {error or type(error).__name__}")


def path_of(*parts: str) -> str:
    """Return a path below the API's, each part quoted."""
    return "/".join([BASE, *(quote(part, safe="") for part in parts)])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
