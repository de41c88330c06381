"""A stream in a process of its own, up to what the source has, and the memory that its processes took."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple, Self

from tidemill.testing.progress import ended

from ..cluster.standalone import Session
from .peaks import JVMS, Peaks

DRIVER: Final = Path(__file__).with_name("driver.py")
HEAP_MIB: Final = 512
CONFIG: Final = {"spark.driver.memory": f"{HEAP_MIB}m", "spark.sql.streaming.metricsEnabled": "false"}
MOST_JVM_BYTES: Final = (HEAP_MIB + 384) << 20
"""Its heap, and what it has besides."""
SLACK_BYTES: Final = 32 << 20
"""Difference between two runs of the same."""
MOST_GROWTH: Final = 1.2


class Streamed(NamedTuple):
    rows: Path
    batches: list[int]
    """Rows of each."""
    seconds: float
    peaks: dict[str, int]

    def __str__(self) -> str:
        rate = sum(self.batches) / self.seconds
        peaks = ", ".join(f"{kind} {size >> 20} MiB" for kind, size in sorted(self.peaks.items()))
        done = f"{sum(self.batches):,} rows in {len(self.batches)} batches, {self.seconds:.0f} s"
        return f"{done}, {rate:,.0f} rows/s: {peaks}"


class Stream:
    """A driver from the begin of the block until its end."""

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, Any],
        *,
        master: str = "local[2]",
        environment: Mapping[str, str] = os.environ,
        hosts: Sequence[int] = (),
        is_endless: bool = False,
    ) -> None:
        """`hosts` are further sessions whose processes work for it.

        One that `is_endless` reads on until `finished` is called; others end at the source's present end.
        """
        directory.mkdir()
        self.rows = directory / "rows"
        self.checkpoint = directory / "checkpoint"
        self._until = directory / "until"
        local = {"spark.local.dir": str(directory / "local")} if master.startswith("local") else {}
        given = {
            "master": master,
            "config": {**CONFIG, **local},
            "options": {name: str(value) for name, value in options.items()},
            "directory": str(directory),
            **({"until": str(self._until)} if is_endless else {}),
        }
        self._planned = 0
        self._begun = monotonic()
        self._log = directory / "log"
        command = [sys.executable, DRIVER, json.dumps(given)]
        self.driver = Session(command, self._log, env={**environment})
        self._peaks = Peaks([self.driver.process.pid, *hosts])

    def has_begun_another(self) -> bool:
        """True if a batch was planned since the last time that this was true."""
        assert self.driver.process.poll() is None, self.driver.log()[-5000:]
        planned = len([*(self.checkpoint / "offsets").glob("[0-9]*")])
        begun, self._planned = planned > self._planned, planned
        return begun

    def finished(self) -> Streamed:
        """Wait for its end."""
        self._until.touch()
        status = ended(
            self.driver.process, sign=lambda: (len([*self.rows.glob("*")]), self._log.stat().st_size)
        )
        assert status == 0, self.driver.log()[-5000:]
        lines = [line for line in self.driver.log().splitlines() if line.startswith('{"batch')]
        batches = json.loads(lines[-1])["batches"]
        return Streamed(self.rows, batches, monotonic() - self._begun, self._peaks.of)

    def __enter__(self) -> Self:
        self._peaks.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._peaks.__exit__()
        self.driver.kill()


def streamed(directory: Path, options: Mapping[str, Any], **more: Any) -> Streamed:
    """Read up to the source's end; `more` as for Stream."""
    with Stream(directory, options, **more) as stream:
        return stream.finished()


def check_memory(small: Streamed, large: Streamed) -> None:
    """No process took more memory for more rows; a JVM's heap grows up to its own limit."""
    for kind, size in large.peaks.items():
        is_java = kind in JVMS
        assert size <= (MOST_JVM_BYTES if is_java else small.peaks[kind] * MOST_GROWTH + SLACK_BYTES), (
            f"{kind}: {small.peaks[kind] >> 20} MiB, then {size >> 20} MiB"
        )
