"""A stream in a process of its own, up to what the source has, and the memory that its processes took."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

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


def streamed(
    directory: Path,
    options: Mapping[str, Any],
    *,
    master: str = "local[2]",
    environment: Mapping[str, str] = os.environ,
    config: Mapping[str, str] | None = None,
    hosts: Sequence[int] = (),
) -> Streamed:
    """Run the driver to its end; `hosts` are further sessions whose processes work for it."""
    directory.mkdir()
    local = {"spark.local.dir": str(directory / "local")} if master.startswith("local") else {}
    given = {
        "master": master,
        "config": {**CONFIG, **local, **(config or {})},
        "options": {name: str(value) for name, value in options.items()},
        "directory": str(directory),
    }
    begun = monotonic()
    written = directory / "rows"
    log = directory / "log"
    with Session([sys.executable, DRIVER, json.dumps(given)], log, env={**environment}) as driver:
        with Peaks([driver.process.pid, *hosts]) as peaks:
            status = ended(driver.process, sign=lambda: (len([*written.glob("*")]), log.stat().st_size))
        assert status == 0, driver.log()[-5000:]
    lines = [line for line in log.read_text().splitlines() if line.startswith('{"batch')]
    batches = json.loads(lines[-1])["batches"]
    return Streamed(written, batches, monotonic() - begun, peaks.of)


def check_memory(small: Streamed, large: Streamed) -> None:
    """No process took more memory for more rows; a JVM's heap grows up to its own limit."""
    for kind, size in large.peaks.items():
        is_java = kind in JVMS
        assert size <= (MOST_JVM_BYTES if is_java else small.peaks[kind] * MOST_GROWTH + SLACK_BYTES), (
            f"{kind}: {small.peaks[kind] >> 20} MiB, then {size >> 20} MiB"
        )
