"""A private MariaDB on loopback, for tests, benchmarks and the demo."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pymysql

PASSWORD: Final = "tidemill"
START_SECONDS: Final = 60
_LOOK_SECONDS: Final = 0.02
_SERVER_IDS = count(1)

_OPTIONS: Final = (
    "--server-id={server_id}",
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-row-metadata=FULL",
    "--binlog-row-image=FULL",
    "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--innodb-lock-wait-timeout=10",
    "--max-allowed-packet=64M",
    "--skip-name-resolve",
    "--performance-schema=OFF",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
)

# Before the first start no login is possible: the password is written to the table itself.
_ROOT: Final = f"""
UPDATE mysql.global_priv SET priv = json_set(
  priv, '$.plugin', 'mysql_native_password', '$.authentication_string', PASSWORD('{PASSWORD}'));
INSERT IGNORE INTO mysql.global_priv
  SELECT '127.0.0.1', User, Priv FROM mysql.global_priv WHERE Host = 'localhost';
"""


def missing() -> str:
    """Return the reason why no MariaDB can be started on this machine; empty if one can."""
    lost = [name for name in ("mariadbd", "mariadb-install-db") if _program(name) is None]
    return f"{' and '.join(lost)} not found: apt-get install mariadb-server" if lost else ""


class MariaDb:
    """A server with its own data directory, port and socket, listening on loopback only.

    It keeps its port over stop(), kill() and restart(). `options` go to mariadbd last, so they override the
    defaults here: row binlog with full metadata and images, little memory, relaxed fsync.
    """

    def __init__(self, directory: Path, *options: str, template: Path | None = None) -> None:
        """`template` is a directory for a fresh data directory: created by the first server, copied by the
        others."""
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

    def start(self) -> MariaDb:
        """Install the data directory if there is none, and wait until the server answers."""
        if not self.data_directory.exists():
            self._install()
        if self._reserved is None:
            self._reserved = _reserve(self.port)
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

    def restart(self) -> None:
        """Shut down cleanly if it runs, then start on the same port."""
        self._shut_down()
        self.start()

    def connect(self, **options: Any) -> pymysql.connections.Connection[Any]:
        """Return a connection as root with autocommit; `options` are pymysql's."""
        return pymysql.connect(
            **{
                "host": self.host,
                "port": self.port,
                "user": "root",
                "password": PASSWORD,
                "charset": "utf8mb4",
                "autocommit": True,
                **options,
            }
        )

    def url(
        self, database: str = "", *, user: str = "root", password: str = PASSWORD, scheme: str = "mysql"
    ) -> str:
        return f"{scheme}://{quote(user)}:{quote(password)}@{self.host}:{self.port}/{database}"

    def __enter__(self) -> MariaDb:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _shut_down(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=START_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _install(self) -> None:
        (self.directory / "tmp").mkdir(parents=True, exist_ok=True)
        if self.template is None:
            self._install_to(self.data_directory)
            return
        if not self.template.exists():
            self._install_to(self.template)
        shutil.copytree(self.template, self.data_directory)

    def _install_to(self, data_directory: Path) -> None:
        root_sql = self.directory / "root.sql"
        root_sql.write_text(_ROOT)
        command = [
            _program("mariadb-install-db") or "mariadb-install-db",
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--innodb-log-file-size=32M",
            f"--datadir={data_directory}",
            f"--tmpdir={self.directory / 'tmp'}",
            f"--extra-file={root_sql}",
        ]
        done = subprocess.run(
            [*command, *_as_user()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode:
            raise RuntimeError(f"mariadb-install-db failed: {done.stdout.decode(errors='replace')[-2000:]}")

    def _launch(self) -> None:
        if self._process is not None:
            raise RuntimeError("the server is already running")
        command = [
            _program("mariadbd") or "mariadbd",
            "--no-defaults",
            *_as_user(),
            f"--datadir={self.data_directory}",
            f"--tmpdir={self.directory / 'tmp'}",
            "--socket=server.sock",  # in the data directory; relative, as a socket's path is short
            f"--pid-file={self.directory / 'server.pid'}",
            f"--bind-address={self.host}",
            f"--port={self.port}",
            *(option.format(server_id=self.server_id) for option in _OPTIONS),
            *self.options,
        ]
        with self.log_path.open("wb") as log:
            # A session of its own: a Ctrl-C must not end it before its user has stopped.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        for _ in range(int(START_SECONDS / _LOOK_SECONDS)):
            try:
                self.connect(connect_timeout=5, read_timeout=5).close()
                return
            except pymysql.err.OperationalError as error:
                reason = str(error)
            try:
                code = self._process.wait(timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            self._process = None
            raise RuntimeError(f"mariadbd ended with status {code}:\n{self._log_tail()}")
        self.kill()
        raise RuntimeError(f"mariadbd doesn't answer after {START_SECONDS} s ({reason}):\n{self._log_tail()}")

    def _log_tail(self) -> str:
        return self.log_path.read_text(errors="replace")[-2000:]


def _program(name: str) -> str | None:
    # Debian puts the server into /usr/sbin, which isn't on every user's PATH.
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin")


def _as_user() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


def _reserve(port: int) -> socket.socket:
    """Reserve `port` (0: any free one): bound with SO_REUSEADDR and not listening, so that only a server that
    requests this very port can bind it too."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", port))
    return held
