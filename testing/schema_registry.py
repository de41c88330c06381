"""A small schema registry on loopback: Confluent's interface, kept in memory, with faults."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote

Fault: TypeAlias = Literal["silent", "closed", "half"]
"""No answer, a closed connection, or an answer that is cut off; a number is an HTTP status."""


class SchemaRegistryServer:
    """Gives equal schemas equal ids, and checks that a subject's new schema reads data of its last one."""

    def __init__(self) -> None:
        self.schemas: Final[dict[int, str]] = {}
        self.kinds: Final[dict[int, str]] = {}
        """Of schemas: AVRO or JSON."""
        self.subjects: Final[dict[str, list[int]]] = {}
        self.requests = 0
        self.user = ""
        """Credentials that requests must have, as user:password; empty: none."""
        self.faults: Final[list[int | Fault]] = []
        """Answers of the next requests."""
        self.closing: Final = Event()
        self.compatibility = "BACKWARD"
        self.url = ""
        self._lock: Final = Lock()

    def register(self, subject: str, schema: str, kind: str = "AVRO") -> tuple[int, object]:
        """Return a status and an answer."""
        with self._lock:
            try:
                parsed = json.loads(schema)
            except ValueError:
                return 422, {"error_code": 42201, "message": f"Input schema is an invalid {kind} schema"}
            versions = self.subjects.get(subject, [])
            if versions and self.compatibility != "NONE":
                last = json.loads(self.schemas[versions[-1]])
                compare = invalid_for if kind == "JSON" else unreadable
                difference = compare(parsed, last, subject)
                if self.kinds[versions[-1]] != kind:
                    difference = f"{subject}: a schema of another type"
                if difference:
                    return 409, {"error_code": 409, "message": difference}
            number = next(
                (one for one, text in self.schemas.items() if text == schema and self.kinds[one] == kind), 0
            )
            if not number:
                number = len(self.schemas) + 1
                self.schemas[number], self.kinds[number] = schema, kind
            if number not in versions:
                self.subjects[subject] = [*versions, number]
            return 200, {"id": number}

    def schema_of(self, number: int) -> tuple[int, object]:
        if number not in self.schemas:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        kind = self.kinds[number]
        return 200, {"schema": self.schemas[number]} | ({} if kind == "AVRO" else {"schemaType": kind})


_WIDER: Final = {"int": {"long", "float", "double"}, "long": {"float", "double"}, "float": {"double"}}
"""Types as which a reader may read a type."""


def unreadable(reader: Any, writer: Any, where: str) -> str:
    """Return why data of the schema `writer` can't be read by `reader`; empty if it can."""
    if isinstance(reader, list) or isinstance(writer, list):
        readers = reader if isinstance(reader, list) else [reader]
        writers = writer if isinstance(writer, list) else [writer]
        for branch in writers:
            reasons = [unreadable(one, branch, where) for one in readers]
            if all(reasons):
                return reasons[0]
        return ""
    new, old = _kind(reader), _kind(writer)
    if new != old and new not in _WIDER.get(old, ()):
        return f"{where}: {old} can't be read as {new}"
    if new != "record":
        return ""
    known = {field["name"]: field["type"] for field in writer["fields"]}
    for field in reader["fields"]:
        name = f"{where}.{field['name']}"
        if field["name"] not in known:
            if "default" not in field:
                return f"{name}: a new field has no default"
        elif reason := unreadable(field["type"], known[field["name"]], name):
            return reason
    return ""


def invalid_for(reader: Any, writer: Any, where: str) -> str:
    """Return why data of the JSON Schema `writer` may be invalid for `reader`; empty if all is valid.

    An object that may have further properties may have had one of the name of a new property, of any type.
    """
    if "oneOf" in reader:
        parts = [one for one in writer.get("oneOf", [writer]) if one["type"] != "null"]
        return invalid_for(reader["oneOf"][1], parts[0], where)
    if "oneOf" in writer:
        return f"{where}: null was allowed"
    if reader["type"] != writer["type"]:
        return f"{where}: {writer['type']} isn't {reader['type']}"
    known, wanted = writer.get("properties", {}), reader.get("properties", {})
    is_open = reader.get("additionalProperties", True)
    if (fresh := sorted(wanted.keys() - known.keys())) and writer.get("additionalProperties", True):
        return f"{where}.{fresh[0]}: PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
    if not is_open and (gone := sorted(known.keys() - wanted.keys())):
        return f"{where}.{gone[0]}: PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    return next(
        (
            reason
            for name in known.keys() & wanted.keys()
            if (reason := invalid_for(wanted[name], known[name], f"{where}.{name}"))
        ),
        "",
    )


def _kind(schema: object) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)


@contextmanager
def schema_registry() -> Iterator[SchemaRegistryServer]:
    """Run a registry at `url` until the end of the block."""
    registry = SchemaRegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            registry.requests += 1
            if registry.faults:
                fault = registry.faults.pop(0)
                match fault:
                    case "silent":
                        registry.closing.wait()
                        self.close_connection = True
                    case "closed":
                        self.close_connection = True
                    case "half":
                        self._send(200, {"id": 1}, missing=10)
                        self.close_connection = True
                    case _:
                        self._send(fault, {"error_code": fault, "message": "a fault"})
                return
            if registry.user and self.headers.get("Authorization") != _basic(registry.user):
                self._send(401, {"error_code": 401, "message": "Unauthorized"})
                return
            match self.command, [unquote(part) for part in self.path.strip("/").split("/")]:
                case "POST", ["subjects", subject, "versions"]:
                    request = json.loads(body)
                    kind = request.get("schemaType", "AVRO")
                    self._send(*registry.register(subject, request["schema"], kind))
                case "GET", ["schemas", "ids", number]:
                    self._send(*registry.schema_of(int(number)))
                case "GET", ["subjects"]:
                    self._send(200, sorted(registry.subjects))
                case _:
                    self._send(404, {"error_code": 404, "message": "HTTP 404 Not Found"})

        def _send(self, status: int, content: object, missing: int = 0) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + missing))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="schema-registry")
    thread.start()
    try:
        yield registry
    finally:
        registry.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _basic(user: str) -> str:
    return f"Basic {b64encode(user.encode()).decode()}"
