"""A private MySQL 9.7 on loopback, run from the directory that tests/services/mysql97 makes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from .private_server import PASSWORD as PASSWORD
from .private_server import PrivateServer, run, unpacked

HOME: Final = Path(os.environ.get("TIDEMILL_MYSQL97") or Path(__file__).parents[1] / "build/mysql97")
"""Where the packages were unpacked."""

_OPTIONS: Final = (
    "--server-id={server_id}",
    "--log-bin=binlog",
    "--binlog-row-metadata=FULL",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0",
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=32M",
    "--innodb-lock-wait-timeout=60",
    "--max-allowed-packet=64M",
    "--local-infile=ON",  # as MariaDB by default
    "--skip-name-resolve",
    "--performance-schema=OFF",
    "--mysqlx=OFF",
    "--secure-file-priv=",
    "--character-set-server=utf8mb4",
)
_ROOT: Final = f"""
ALTER USER root@localhost IDENTIFIED BY '{PASSWORD}';
CREATE USER root@127.0.0.1 IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO root@127.0.0.1 WITH GRANT OPTION;
"""


def missing() -> str:
    """Return the reason why no MySQL can be started on this machine; empty if one can."""
    if (HOME / "usr/sbin/mysqld").exists():
        return ""
    return f"{HOME} doesn't hold MySQL 9.7: run tests/services/mysql97, which says why it can't"


class MySql(PrivateServer):
    """A MySQL with GTIDs, a row binlog of full metadata, little memory, relaxed fsync.

    Its users log in with caching_sha2_password.
    """

    def install_to(self, data_directory: Path) -> None:
        root_sql = self.directory / "root.sql"
        root_sql.write_text(_ROOT)
        run(
            [
                *self._program(),
                f"--datadir={data_directory}",
                "--initialize-insecure",
                f"--init-file={root_sql}",
            ]
        )
        (data_directory / "auto.cnf").unlink()  # copies of it would be the same server

    def command(self) -> list[str]:
        return [
            *self._program(),
            f"--datadir={self.data_directory}",
            "--socket=server.sock",  # in the data directory; relative, as a socket's path is short
            f"--pid-file={self.directory / 'server.pid'}",
            f"--bind-address={self.host}",
            f"--port={self.port}",
            *(option.format(server_id=self.server_id) for option in _OPTIONS),
        ]

    def _program(self) -> list[str]:
        return [
            *unpacked(HOME, "mysqld"),
            f"--tmpdir={self.directory / 'tmp'}",
            f"--lc-messages-dir={HOME / 'usr/share/mysql'}",
            f"--plugin-dir={HOME / 'usr/lib/mysql/plugin'}",
        ]
