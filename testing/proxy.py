"""A TCP proxy whose network can be frozen: connections stay open and pass nothing."""

from __future__ import annotations

import socket
from contextlib import suppress
from select import select
from threading import Event, Thread
from typing import Final, Self

LOOK_SECONDS: Final = 0.05


class Proxy:
    """Passes connections on to an address, from a port of its own on loopback."""

    host = "127.0.0.1"

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._stopping = Event()
        self._open = Event()
        self._open.set()
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[Thread] = []

    def freeze(self) -> None:
        """Pass nothing from now on, also for new connections."""
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    def __enter__(self) -> Self:
        self._begin(Thread(target=self._accept, name="proxy", daemon=True))
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self._stopping.set()
        self._open.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _begin(self, thread: Thread) -> None:
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            if not select([self._listener], [], [], LOOK_SECONDS)[0]:
                continue
            client, _ = self._listener.accept()
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            self._begin(Thread(target=self._pass, args=(client, server), name="proxy-pair", daemon=True))

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        others = {client: server, server: client}
        with client, server, suppress(OSError):
            while not self._stopping.is_set():
                self._open.wait(LOOK_SECONDS)
                if not self._open.is_set():
                    continue
                for end in select([client, server], [], [], LOOK_SECONDS)[0]:
                    if not (data := end.recv(1 << 16)):
                        return
                    others[end].sendall(data)
