"""A private MariaDB 11.8 on loopback, run from the directory that tests/services/mariadb118 makes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from .mariadb import ROOT, MariaDb
from .private_server import unpacked

HOME: Final = Path(os.environ.get("TIDEMILL_MARIADB118") or Path(__file__).parents[1] / "build/mariadb118")
"""Where the packages were unpacked."""

_SCRIPTS: Final = ("mariadb_system_tables", "mariadb_system_tables_data", "maria_add_gis_sp_bootstrap")


def missing() -> str:
    """Return the reason why no MariaDB 11.8 can be started on this machine; empty if one can."""
    if (HOME / "usr/sbin/mariadbd").exists():
        return ""
    return f"{HOME} doesn't hold MariaDB 11.8: run tests/services/mariadb118, which says why it can't"


class MariaDb118(MariaDb):
    """As MariaDb, of version 11.8."""

    def install_to(self, data_directory: Path) -> None:
        (data_directory / "mysql").mkdir(parents=True)
        scripts = [HOME / "usr/share/mariadb" / f"{name}.sql" for name in _SCRIPTS]
        sql = "\n".join(["USE mysql;", *(script.read_text() for script in scripts), ROOT])
        done = subprocess.run(
            [
                *self.program(),
                f"--datadir={data_directory}",
                "--bootstrap",
                "--innodb-log-file-size=32M",
                "--skip-log-bin",
            ],
            input=sql.encode(),
            capture_output=True,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"mariadbd --bootstrap failed:\n{done.stderr.decode(errors='replace')[-2000:]}"
            )

    def program(self) -> list[str]:
        return [
            *unpacked(HOME, "mariadbd"),
            f"--tmpdir={self.directory / 'tmp'}",
            f"--lc-messages-dir={HOME / 'usr/share/mariadb'}",
            f"--character-sets-dir={HOME / 'usr/share/mariadb/charsets'}",
            f"--plugin-dir={HOME / 'usr/lib/mysql/plugin'}",
        ]
