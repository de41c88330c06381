"""docs/tutorial/spark.md does what it says."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidemill.testing.mariadb import MariaDb

from ..tutorials import follow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_stream_goes_on_after_a_restart(
    spark: SparkSession,
    private_mariadb: MariaDb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = private_mariadb.start()
    monkeypatch.setenv("SHOP", server.url())

    def run(command: str) -> str:
        """Run a program in this process, which has a session: a JVM takes seconds to start."""
        program = (tmp_path / command.removeprefix("python ")).read_text()
        place = f'"{tmp_path}/lake'
        (tmp_path / "moved.py").write_text(program.replace('"lake', place))
        runpy.run_path(str(tmp_path / "moved.py"))
        return capsys.readouterr().out

    with server.connect() as connection, connection.cursor() as cursor:
        follow("spark", tmp_path, cursor.execute, run)
