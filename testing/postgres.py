"""A private PostgreSQL on loopback, for tests and benchmarks."""

from __future__ import annotations

import os
import pwd
import select
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import psycopg

from ..events import Row
from .private_server import PASSWORD as PASSWORD
from .private_server import PrivateServer, locked

USER: Final = "root"
DATABASE: Final = "postgres"
"""A database that every server has."""

_OPTIONS: Final = {
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "max_connections": "40",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_parallel_workers": "0",
    "lc_messages": "C",
}
_PLACES: Final = ("/usr/lib/postgresql", "/usr/local/pgsql", "/usr")
"""Directories below which distributions have the server's programs."""


def missing() -> str:
    """Return the reason why no PostgreSQL can be started on this machine; empty if one can."""
    lost = [name for name in ("initdb", "postgres") if _program(name) is None]
    return f"{' and '.join(lost)} not found: apt-get install postgresql" if lost else ""


class PostgreSql(PrivateServer):
    """A PostgreSQL with UTF-8 databases, little memory, no fsync.

    Its programs refuse to run as root: then they run as another user, in a directory of /tmp that exists from
    start() to stop().
    """

    stop_signal = signal.SIGINT

    def __init__(self, directory: Path, *options: str, template: Path | None = None) -> None:
        super().__init__(directory, *options, template=template)
        self._home: Path | None = None if os.geteuid() == 0 else self.directory

    @property
    def data_directory(self) -> Path:
        return (self._home or self.directory) / "data"

    def start(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._home is None:  # others can't enter the directories of a test
            self._home = Path(tempfile.mkdtemp(prefix="tidemill-postgres-"))
            os.chown(self._home, *_owner())
        return super().start()

    def stop(self) -> None:
        super().stop()
        if self._home is not None and self._home != self.directory:
            shutil.rmtree(self._home)
            self._home = None

    def kill(self) -> None:
        """Kill the server (-9) and its children, which would keep its shared memory."""
        if self._process is None:
            return
        self.pause()  # so that it makes no more of them
        children = _children(self._process.pid)
        super().kill()
        for child in children:
            with suppress(ProcessLookupError):
                ended = os.pidfd_open(child)
                try:
                    os.kill(child, signal.SIGKILL)
                    select.select([ended], [], [])
                finally:
                    os.close(ended)

    def connect(self, **options: Any) -> psycopg.Connection[Row]:
        """Return a connection as root with autocommit; `options` are psycopg's."""
        wanted: dict[str, Any] = {"user": USER, "password": PASSWORD, "dbname": DATABASE, **options}
        return psycopg.connect(**{"host": self.host, "port": self.port, "autocommit": True, **wanted})

    def silence(self) -> str:
        try:
            self.connect(connect_timeout=5).close()
        except psycopg.OperationalError as error:
            return str(error)
        return ""

    def url(
        self,
        database: str = DATABASE,
        *,
        user: str = USER,
        password: str = PASSWORD,
        scheme: str = "postgresql",
    ) -> str:
        return f"{scheme}://{quote(user)}:{quote(password)}@{self.host}:{self.port}/{database}"

    def command(self) -> list[str]:
        settings = _OPTIONS | {"listen_addresses": self.host, "port": str(self.port)}
        return [
            *_as_other(),
            _program("postgres") or "postgres",
            "-D",
            str(self.data_directory),
            *[f"--{name}={value}" for name, value in settings.items()],
        ]

    def install_to(self, data_directory: Path) -> None:
        """Make a fresh data directory, which must be in a directory of the server's user."""
        password = data_directory.with_name("password")
        password.write_text(PASSWORD)
        password.chmod(0o644)
        done = subprocess.run(
            [
                *_as_other(),
                _program("initdb") or "initdb",
                f"--pgdata={data_directory}",
                f"--username={USER}",
                f"--pwfile={password}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ],
            cwd=data_directory.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        password.unlink()
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stdout.decode(errors='replace')[-2000:]}")

    def _install(self) -> None:
        if self.template is None:
            self.install_to(self.data_directory)
            return
        with locked(self.template):
            if not self.template.exists():
                self.install_to(self.data_directory)
                fresh = self.template.with_suffix(".new")
                shutil.copytree(self.data_directory, fresh)
                fresh.rename(self.template)
                return
        shutil.copytree(self.template, self.data_directory)
        for path in (self.data_directory, *self.data_directory.rglob("*")):
            os.chown(path, *_owner())


def _program(name: str) -> str | None:
    """Return a program of the newest version; Debian doesn't put them on the PATH."""
    paths = [path for place in _PLACES for path in Path(place).glob(f"*/bin/{name}")]
    newest = max(paths, key=lambda path: _version(path.parts[-3]), default=None)
    return str(newest) if newest is not None else shutil.which(name)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _owner() -> tuple[int, int]:
    """Return the ids of the user and group whose server runs: our own, or of another user for root."""
    if os.geteuid():
        return os.geteuid(), os.getegid()
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    raise RuntimeError("neither postgres nor nobody is a user of this machine")


def _as_other() -> list[str]:
    """Return the beginning of a command that runs it as the owner of the data directory."""
    if os.geteuid():
        return []
    user, group = _owner()
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
