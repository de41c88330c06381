"""An emulated TiKV with the workload, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Self

from ..cluster.pythons import ROOT
from .workload import Workload


class TikvServer:
    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.spark.backlog.tikv_server"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.workload = Workload()
        """The model of its rows."""
        self.ts = 0
        """After the latest transaction."""
        self.url = ""
        self._ask(0)

    def run(self, rows: int) -> None:
        """Make about `rows` further changes."""
        self._ask(rows)
        self.workload.run(rows)

    def _ask(self, rows: int) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{rows}\n")
        stdin.flush()
        found = json.loads(stdout.readline())
        self.url, self.ts = f"tikv://{found['pd']}", found["ts"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.kill()
        self._process.communicate()
