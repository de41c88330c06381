"""CPU time of the processes of a Spark session, by what they do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_TICK: Final = os.sysconf("SC_CLK_TCK")
_TASKS: Final = {"pyspark.daemon", "pyspark.worker"}
"""Arguments of the process whose children are the tasks."""


class SparkTimes(NamedTuple):
    """CPU seconds, of system calls too."""

    jvm: float
    tasks: float
    """The Python of tasks."""
    others: float
    """The driver, and the Python that plans queries and batches."""

    def since(self, before: SparkTimes) -> SparkTimes:
        return SparkTimes(*[now - then for now, then in zip(self, before, strict=True)])


class _Process(NamedTuple):
    parent: int
    seconds: float
    ended_seconds: float
    """Time of its children that have ended, and of theirs."""


def spark_times(jvm: int) -> SparkTimes:
    """Return the times of this process, the driver, and of the JVM and its descendants."""
    processes = dict(_processes())
    own = processes[jvm]
    tasks, others = 0.0, processes[os.getpid()].seconds + own.ended_seconds
    for child, process in processes.items():
        if process.parent == jvm:
            if _TASKS.issubset(_arguments(child)):
                tasks += _tree_seconds(processes, child)
            else:
                others += _tree_seconds(processes, child)
    return SparkTimes(own.seconds, tasks, others)


def children(pid: int) -> set[int]:
    """Return the processes that a process has started."""
    return {child for child, process in _processes() if process.parent == pid}


def tree_seconds(pid: int) -> float:
    """Return the time of a process with its descendants, also of those that have ended."""
    return _tree_seconds(dict(_processes()), pid)


def _tree_seconds(processes: dict[int, _Process], pid: int) -> float:
    below = [child for child, process in processes.items() if process.parent == pid]
    return (
        processes[pid].seconds
        + processes[pid].ended_seconds
        + sum(_tree_seconds(processes, child) for child in below)
    )


def _processes() -> Iterator[tuple[int, _Process]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended: its parent has its time
            continue
        user, system, ended_user, ended_system = map(int, fields[11:15])
        yield (
            int(folder.name),
            _Process(int(fields[1]), (user + system) / _TICK, (ended_user + ended_system) / _TICK),
        )


def _arguments(pid: int) -> set[str]:
    try:
        return set(Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0"))
    except (FileNotFoundError, ProcessLookupError):
        return set()
