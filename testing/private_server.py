"""The life of a private database server on loopback: its data directory, its port, its process."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from itertools import count
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import pymysql

from ..dialects.mysql.client import Session
from ..events import Row
from .progress import RetryDelay, Stalled, ended

PASSWORD: Final = "tidemill"
START_SECONDS: Final = 60
"""Limit for a start or a stop without progress."""
_LOOK_SECONDS: Final = 0.02
_SERVER_IDS = count(1)


class PrivateServer:
    """A server with its own data directory, port and socket, listening on loopback only.

    It keeps its port over stop(), kill() and restart(). `options` go to the server's program last, so they
    override the defaults of the subclass. A server of another protocol than MySQL's replaces `connect`, `url`
    and `silence`, and has no `execute`.
    """

    stop_signal = signal.SIGTERM
    """Signal for a clean shutdown that doesn't wait for clients."""

    def __init__(self, directory: Path, *options: str, template: Path | None = None) -> None:
        """`template` is a directory for a fresh data directory: created by the first server of any process,
        copied by the others."""
        self.directory = directory.absolute()
        self.options = options
        self.template = template
        self.host = "127.0.0.1"
        self.port = 0
        self.server_id = os.getpid() % 100_000 * 1_000 + next(_SERVER_IDS)
        self._process: subprocess.Popen[bytes] | None = None
        self._reserved: socket.socket | None = None

    @property
    def data_directory(self) -> Path:
        return self.directory / "data"

    @property
    def log_path(self) -> Path:
        return self.directory / "server.log"

    def install_to(self, data_directory: Path) -> None:
        """Make a fresh data directory, with the user root and PASSWORD. Implemented by the subclass."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """Return the command that runs the server. Implemented by the subclass."""
        raise NotImplementedError

    def start(self) -> Self:
        """Install the data directory if there is none, and wait until the server answers."""
        if not self.data_directory.exists():
            self._install()
        if self._reserved is None:
            self._reserved = reserve(self.port)
            self.port = self._reserved.getsockname()[1]
        try:
            self._launch()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Shut down cleanly and release the port; does nothing if it isn't running."""
        self._shut_down()
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    def kill(self) -> None:
        """Kill the server (-9). The port stays reserved for the next start(); stop() releases it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stop the process, so that it is silent until resume() or stop()."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Shut down cleanly if it runs, then start on the same port."""
        self._shut_down()
        self.start()

    def connect(self, **options: Any) -> Any:
        """Return a connection as root with autocommit; `options` are the driver's."""
        return Session(
            **{
                "host": self.host,
                "port": self.port,
                "user": "root",
                "password": PASSWORD,
                "charset": "utf8mb4",
                "autocommit": True,
                "connect_timeout": START_SECONDS,
                **options,
            }
        )

    def execute(self, *statements: str, database: str = "") -> list[Row]:
        """Run statements in a session of their own, in a database; return the rows of the last one."""
        with self.connect(database=database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def silence(self) -> str:
        """Return why the server doesn't answer yet; empty if it does."""
        try:
            self.connect(connect_timeout=5, read_timeout=5).close()
        except pymysql.err.OperationalError as error:
            return str(error)
        return ""

    def url(
        self, database: str = "", *, user: str = "root", password: str = PASSWORD, scheme: str = "mysql"
    ) -> str:
        return f"{scheme}://{quote(user)}:{quote(password)}@{self.host}:{self.port}/{database}"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _shut_down(self) -> None:
        if self._process is not None:
            self._process.send_signal(self.stop_signal)
            self._process.send_signal(signal.SIGCONT)  # if it is paused
            try:
                ended(self._process, START_SECONDS)
            except Stalled:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _install(self) -> None:
        (self.directory / "tmp").mkdir(parents=True, exist_ok=True)
        if self.template is None:
            self.install_to(self.data_directory)
            return
        with locked(self.template):
            if not self.template.exists():
                fresh = self.template.with_suffix(".new")
                self.install_to(fresh)
                fresh.rename(self.template)
        shutil.copytree(self.template, self.data_directory)

    def _launch(self) -> None:
        if self._process is not None:
            raise RuntimeError("the server is already running")
        with self.log_path.open("wb") as log:
            # A session of its own: a Ctrl-C must not end it before its user has stopped.
            self._process = subprocess.Popen(
                [*self.command(), *self.options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until_it_answers(self._process, self.silence, self.log_path)


def until_it_answers(process: subprocess.Popen[bytes], silence: Callable[[], str], log: Path) -> None:
    """Wait until `silence` returns no reason any more.

    Raises RuntimeError with the log's end if the server ends, or if its log doesn't grow.
    """
    delay = RetryDelay(lambda: log.stat().st_size, START_SECONDS)
    while reason := silence():
        try:
            code = process.wait(timeout=_LOOK_SECONDS)
            failure = f"the server ended with status {code}"
        except subprocess.TimeoutExpired:
            try:
                delay.check()
                continue
            except Stalled:
                failure = f"the server doesn't answer ({reason})"
        raise RuntimeError(f"{failure}:\n{log.read_text(errors='replace')[-2000:]}")


@contextmanager
def locked(template: Path) -> Iterator[None]:
    """Let one process at a time look for the template, and make it."""
    template.parent.mkdir(parents=True, exist_ok=True)
    with template.with_suffix(".lock").open("w") as file:
        flock(file, LOCK_EX)
        yield


def as_user() -> list[str]:
    """Return the option without which the programs refuse to run as root."""
    return ["--user=root"] if os.geteuid() == 0 else []


def unpacked(home: Path, program: str) -> list[str]:
    """Return the start of the command of a server whose packages were unpacked into `home`.

    It runs with its own loader, as its libraries are newer than the machine's.
    """
    libraries = home / "usr/lib/x86_64-linux-gnu"
    return [
        str(libraries / "ld-linux-x86-64.so.2"),
        "--library-path",
        str(libraries),
        str(home / "usr/sbin" / program),
        "--no-defaults",
        *as_user(),
    ]


def run(command: list[str]) -> None:
    """Run a program to its end. Raises RuntimeError with the end of its output if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout.decode(errors='replace')[-2000:]}")


def reserve(port: int) -> socket.socket:
    """Reserve `port` (0: any free one): bound with SO_REUSEADDR and not listening, so that only a server that
    requests this very port can bind it too."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", port))
    return held
