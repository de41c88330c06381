"""Acknowledgements and frozen objects of Spark's Python workers."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tidemill.spark import worker
from tidemill.spark.worker import acknowledge

TASKS = 10
CALLS = 100
COMMAND, INPUT = b"command", b"input"
QUICK = (socket.IPPROTO_TCP, socket.TCP_QUICKACK)


@contextmanager
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield the JVM's end and a worker's, which has answered quickly before."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as jvm,
        server.accept()[0] as python,
    ):
        answer(jvm, python)
        yield jvm, python


def answer(jvm: socket.socket, python: socket.socket) -> None:
    """Linux then delays acknowledgements: since 6.8 after one answer, before after three."""
    for _ in range(3):
        jvm.sendall(b"question")
        python.recv(8, socket.MSG_WAITALL)
        python.sendall(b"answer")
        jvm.recv(6, socket.MSG_WAITALL)


def tasks_without_wait(between: Callable[[], None]) -> int:
    """Return the number of tasks whose input has come when `between`, called after its command, returns."""
    found = 0
    with connection() as (jvm, python):
        for _ in range(TASKS):
            jvm.sendall(COMMAND)
            jvm.sendall(INPUT)
            python.recv(len(COMMAND), socket.MSG_WAITALL)
            between()
            with suppress(BlockingIOError):
                found += python.recv(len(INPUT), socket.MSG_PEEK | socket.MSG_DONTWAIT) == INPUT
            python.recv(len(INPUT), socket.MSG_WAITALL)
            answer(jvm, python)
    return found


def test_a_tasks_input_comes_at_once_after_an_acknowledgement() -> None:
    # Not all or none: a busy machine may interrupt the test for longer than the delay.
    assert tasks_without_wait(lambda: None) < TASKS / 2
    assert tasks_without_wait(acknowledge) > TASKS / 2


def descriptors() -> dict[int, tuple[str, int]]:
    """Return the target and the flags of each descriptor."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the listing itself
            number = int(path.name)
            found[number] = str(path.readlink()), fcntl.fcntl(number, fcntl.F_GETFL)
    return found


def test_no_descriptor_is_opened_closed_or_changed(tmp_path: Path) -> None:
    one, other = socket.socketpair()
    with (
        connection() as (jvm, python),
        one,
        other,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        (tmp_path / "file").open("w") as file,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat,
    ):
        before = descriptors()
        default = socket.getdefaulttimeout()
        socket.setdefaulttimeout(9)
        try:
            for _ in range(CALLS):
                acknowledge()
        finally:
            socket.setdefaulttimeout(default)
        after = descriptors()
        for each in (jvm, python, one, other, udp, file, cat.stdin):
            assert after[each.fileno()] == before[each.fileno()]
        assert len(after) < len(before) + CALLS  # other threads may open some
        assert python.getsockopt(*QUICK) == 1


def no_linux(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")


def no_proc(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(worker, "_DESCRIPTORS", path / "proc")


def no_ctypes(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ctypes", None)


@pytest.mark.parametrize("lack", [no_linux, no_proc, no_ctypes])
def test_elsewhere_nothing_is_set(
    lack: Callable[[pytest.MonkeyPatch, Path], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with connection() as (_, python):
        with monkeypatch.context() as changed:
            lack(changed, tmp_path)
            acknowledge()
        assert python.getsockopt(*QUICK) == 0


COUNTS = """
import gc, json
from pyspark.serializers import CPickleSerializer
from tidemill.spark.data_source import TidemillSource

pickled = CPickleSerializer().dumps(TidemillSource({}))
counts = []
for _ in range(3):
    copy = CPickleSerializer().loads(pickled)
    counts.append(gc.get_freeze_count())
    later = [[] for _ in range(1000)]
print(json.dumps(counts))
"""


def freeze_counts(**more: str) -> list[int]:
    """Return the number of frozen objects after each of three copies of a data source, made in a process."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTS], env=os.environ | more, capture_output=True, text=True, check=True
    )
    counts: list[int] = json.loads(done.stdout)
    return counts


def test_a_reused_worker_freezes_its_objects_once_for_each_class() -> None:
    first, *later = freeze_counts(SPARK_REUSE_WORKER="1")
    assert first > 10_000  # the original was the first use
    assert first - 100 < min(later) <= max(later) <= first


def test_other_processes_freeze_nothing() -> None:
    assert freeze_counts() == [0, 0, 0]
