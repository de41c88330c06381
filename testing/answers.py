"""A gate before a MySQL server that gives another server's answers to some statements."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Final, Self

from msgspec import Struct

from .private_server import PASSWORD

_QUERY: Final = b"\x03"
_TLS: Final = 0x0800
_PIECE_BYTES: Final = 1 << 16


class Answer(Struct):
    """An error, or the answer to another statement, for statements that match `pattern`."""

    pattern: str
    """A regular expression, in any letters, for a part of a packet of statements."""
    error: tuple[int, str] | None = None
    instead: str = ""
    """Replaces what matches, unless there is an error. With an error it is run before that is sent."""
    times: int = -1
    """Number of statements left that get the answer; -1: all."""


class Gate:
    """Listens on loopback; each connection has one of its own to the server, without TLS."""

    def __init__(self, server_port: int, answers: Sequence[Answer]) -> None:
        self._server_port = server_port
        self.answers = list(answers)
        self.given: list[str] = []
        """Statements that got an error."""
        self._lock = Lock()
        self._threads: list[Thread] = []
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def url(self, database: str) -> str:
        return f"mysql://root:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        # A shutdown wakes the threads that wait; a close alone doesn't.
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in (self._listener, *self._open):
            one.close()

    def _run(self, what, *args) -> None:  # type: ignore[no-untyped-def]
        thread = Thread(target=what, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._open += [client, server]
                pending: list[bytes] = []
                self._run(self._answer, server, client, pending)
                self._run(self._ask, client, server, pending)

    def _answer(self, server: socket.socket, client: socket.socket, pending: list[bytes]) -> None:
        """Pass on what the server sends; a pending error takes the place of the next answer."""
        with suppress(OSError):
            client.sendall(_without_tls(server.recv(_PIECE_BYTES)))
            while data := server.recv(_PIECE_BYTES):
                client.sendall(pending.pop() if pending else data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _ask(self, client: socket.socket, server: socket.socket, pending: list[bytes]) -> None:
        with suppress(OSError), client.makefile("rb") as packets:
            while header := packets.read(4):
                body = packets.read(int.from_bytes(header[:3], "little"))
                if header[3] or not body.startswith(_QUERY):
                    server.sendall(header + body)
                    continue
                statements, error = self._changed(body[1:].decode("utf-8", "surrogateescape"))
                changed = _QUERY + statements.encode("utf-8", "surrogateescape")
                packet = len(changed).to_bytes(3, "little") + b"\0" + changed
                if error is None:
                    server.sendall(packet)
                elif statements:
                    pending.append(error)
                    server.sendall(packet)
                else:
                    client.sendall(error)
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    def _changed(self, statements: str) -> tuple[str, bytes | None]:
        """Return the statements to run, empty for none, and the error to send in place of their answer."""
        with self._lock:
            for one in self.answers:
                if not one.times or not re.search(one.pattern, statements, re.I | re.S):
                    continue
                one.times -= 1
                if one.error is not None:
                    self.given.append(statements)
                    return one.instead, _packet(*one.error)
                instead = one.instead
                statements = re.sub(one.pattern, lambda _: instead, statements, flags=re.I | re.S)  # noqa: B023
        return statements, None


def _without_tls(greeting: bytes) -> bytes:
    """Return the server's first packet without its capability of TLS."""
    # After the header come protocol, version, thread id (4), salt (8) and a zero, then the capabilities.
    place = greeting.index(b"\0", 5) + 1 + 4 + 8 + 1
    capabilities = int.from_bytes(greeting[place : place + 2], "little") & ~_TLS
    return greeting[:place] + capabilities.to_bytes(2, "little") + greeting[place + 2 :]


def _packet(number: int, message: str) -> bytes:
    body = b"\xff" + number.to_bytes(2, "little") + b"#HY000" + message.encode()
    return len(body).to_bytes(3, "little") + b"\1" + body
