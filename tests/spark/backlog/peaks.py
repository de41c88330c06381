"""The most memory that the processes of Spark take, by what they do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Final, Self

LOOK_SECONDS: Final = 0.1
KINDS: Final = {
    "pyspark.worker": "task",
    "python_streaming_source_runner": "planner",
    "SparkSubmit": "driver's JVM",
    "CoarseGrainedExecutorBackend": "executor",
    "backlog/driver.py": "driver",
    "backlog/fill.py": "driver",
    "capture/running.py": "capture",
}
"""Kinds of processes by a word of their command line."""

JVMS: Final = ("driver's JVM", "executor")


class Peaks:
    """Looks at the processes of some sessions until the block ends."""

    def __init__(self, sessions: Sequence[int], of: dict[str, int] | None = None) -> None:
        """`of`: the peaks until then."""
        self.of = {} if of is None else of
        """Peak in bytes of a single process of each kind."""
        self._sessions = sessions
        self._stop = Event()
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            for pid in processes(self._sessions):
                kind = kind_of(pid)
                if kind:
                    self.of[kind] = max(self.of.get(kind, 0), peak(pid))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def kind_of(pid: int) -> str:
    """Return what a process does; empty: nothing that is of interest."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
    return next((kind for word, kind in KINDS.items() if word in command), "")


def processes(sessions: Sequence[int]) -> list[int]:
    """Return the living processes of some sessions."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) in sessions and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def peak(pid: int) -> int:
    """Return the most memory that the process has had, in bytes."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in text.splitlines() if line[:6] == "VmHWM:"), 0)
