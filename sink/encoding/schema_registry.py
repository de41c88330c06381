"""Client of a schema registry with Confluent's interface, and the frame of messages that name a schema.

Source: Confluent's documentation of Schema Registry.
"""

from __future__ import annotations

import json
from base64 import b64encode
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from ...config.url import redacted
from ...errors import ConfigError, Retryable, SinkError

SchemaKind: TypeAlias = Literal["AVRO", "JSON"]

_CONTENT: Final = "application/vnd.schemaregistry.v1+json"
_BUSY: Final = frozenset((408, 425, 429))


class SchemaRegistry:
    """Registers schemas; keeps their ids, which never change. Not thread-safe."""

    def __init__(self, url: str, timeout_seconds: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"schema-registry = {redacted(url)!r}: the URL of a schema registry, such as http://registry:8081"
            )
        self._connection: Final = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host: Final = parts.hostname
        self._port: Final = parts.port
        self._path: Final = parts.path.rstrip("/")
        self._shown: Final = f"schema registry {parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._timeout: Final = timeout_seconds
        self._headers: Final = {"Content-Type": _CONTENT, "Accept": f"{_CONTENT}, application/json"}
        if parts.username:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        self._ids: Final[dict[tuple[str, str], int]] = {}

    def id_of(self, subject: str, schema: str, kind: SchemaKind = "AVRO") -> int:
        """Return the id of a schema, which is registered under the subject if it isn't yet.

        Raises Retryable if the registry can't answer, SinkError if it rejects the schema or the credentials.
        """
        known = self._ids.get((subject, schema))
        if known is None:
            known = self._ids[subject, schema] = self._register(subject, schema, kind)
        return known

    def frame_of(self, subject: str, schema: str, kind: SchemaKind = "AVRO") -> bytes:
        """Return the frame of messages with this schema. Raises as id_of does."""
        return frame(self.id_of(subject, schema, kind))

    def _register(self, subject: str, schema: str, kind: SchemaKind) -> int:
        content = {"schema": schema} | ({} if kind == "AVRO" else {"schemaType": kind})
        status, body = self._post(f"/subjects/{quote(subject, safe='')}/versions", content)
        if status == 200:
            try:
                return int(json.loads(body)["id"])
            except (ValueError, KeyError, TypeError) as error:
                raise Retryable(f"{self._shown} answered without a schema's id: {body[:200]!r}") from error
        raise self._rejected(subject, status, _reason(body))

    def _post(self, path: str, content: dict[str, Any]) -> tuple[int, bytes]:
        connection = self._connection(self._host, self._port, timeout=self._timeout)
        try:
            connection.request("POST", self._path + path, json.dumps(content), self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise Retryable(f"{self._shown} doesn't answer: {reason}; the feed waits for it") from error
        finally:
            connection.close()

    def _rejected(self, subject: str, status: int, reason: str) -> Exception:
        if status >= 500 or status in _BUSY:
            return Retryable(f"{self._shown} is unavailable: HTTP {status}, {reason}; the feed waits for it")
        match status:
            case 409:
                return SinkError(
                    f"{self._shown}: the schema of subject {subject} isn't compatible with its earlier ones "
                    f"({reason}): write to another topic, or set the subject's compatibility to NONE"
                )
            case 401 | 403:
                return SinkError(
                    f"{self._shown}: HTTP {status}, {reason}: put a user and password that may register "
                    f"subject {subject} into the URL of schema-registry"
                )
            case 404:
                return SinkError(f"{self._shown}: HTTP 404, {reason}: check the URL of schema-registry")
        return SinkError(f"{self._shown} rejects the schema of subject {subject}: HTTP {status}, {reason}")


def _reason(body: bytes) -> str:
    """Return the message in a registry's answer."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode(errors="replace") or "no message"


def frame(schema_id: int) -> bytes:
    """Return the bytes before a message's body: a zero and the id of its schema."""
    return b"\0" + schema_id.to_bytes(4)
