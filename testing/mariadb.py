"""A private MariaDB on loopback, for tests, benchmarks and the demo."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from .private_server import PASSWORD as PASSWORD
from .private_server import PrivateServer, as_user, run

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
    "--innodb-lock-wait-timeout=60",
    "--max-allowed-packet=64M",
    "--skip-name-resolve",
    "--performance-schema=OFF",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
)

# Before the first start no login is possible: the password is written to the table itself.
ROOT: Final = f"""
UPDATE mysql.global_priv SET priv = json_set(
  priv, '$.plugin', 'mysql_native_password', '$.authentication_string', PASSWORD('{PASSWORD}'));
INSERT IGNORE INTO mysql.global_priv
  SELECT '127.0.0.1', User, Priv FROM mysql.global_priv WHERE Host = 'localhost';
"""


def missing() -> str:
    """Return the reason why no MariaDB can be started on this machine; empty if one can."""
    lost = [name for name in ("mariadbd", "mariadb-install-db") if _program(name) is None]
    return f"{' and '.join(lost)} not found: apt-get install mariadb-server" if lost else ""


class MariaDb(PrivateServer):
    """A MariaDB with a row binlog of full metadata and images, little memory, relaxed fsync."""

    def install_to(self, data_directory: Path) -> None:
        root_sql = self.directory / "root.sql"
        root_sql.write_text(ROOT)
        run(
            [
                _program("mariadb-install-db") or "mariadb-install-db",
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--innodb-log-file-size=32M",
                f"--datadir={data_directory}",
                f"--tmpdir={self.directory / 'tmp'}",
                f"--extra-file={root_sql}",
                *as_user(),
            ]
        )

    def program(self) -> list[str]:
        """Return the server's program with the options that it needs anyway."""
        return [
            _program("mariadbd") or "mariadbd",
            "--no-defaults",
            *as_user(),
            f"--tmpdir={self.directory / 'tmp'}",
        ]

    def command(self) -> list[str]:
        return [
            *self.program(),
            f"--datadir={self.data_directory}",
            "--socket=server.sock",  # in the data directory; relative, as a socket's path is short
            f"--pid-file={self.directory / 'server.pid'}",
            f"--bind-address={self.host}",
            f"--port={self.port}",
            *(option.format(server_id=self.server_id) for option in _OPTIONS),
        ]


def _program(name: str) -> str | None:
    # Debian puts the server into /usr/sbin, which isn't on every user's PATH.
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin")
