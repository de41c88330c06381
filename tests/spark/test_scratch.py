"""A task's directory."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tidemill.errors import StoreError
from tidemill.spark.read.scratch import scratch


def test_it_goes_with_the_task_also_after_a_failure(tmp_path: Path) -> None:
    def task() -> None:
        with scratch(str(tmp_path)) as directory:
            (directory / "file").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        task()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_task_left_goes_with_the_next(tmp_path: Path) -> None:
    program = (
        "import os; from tidemill.spark.read.scratch import scratch\n"
        f"with scratch({str(tmp_path)!r}) as directory:\n"
        "    os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    (left,) = tmp_path.iterdir()
    with scratch(str(tmp_path)) as directory:
        assert list(tmp_path.iterdir()) == [directory]
        assert directory != left


def test_what_another_task_holds_stays(tmp_path: Path) -> None:
    with scratch(str(tmp_path)) as one, scratch(str(tmp_path)) as other:
        assert sorted(tmp_path.iterdir()) == sorted([one, other])


def test_one_that_is_swept_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(lock: int, how: int) -> None:
        monkeypatch.undo()
        with scratch(str(tmp_path)):  # a task that begins now takes it for one that was left
            locked(lock, how)

    locked = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", flock)
    with scratch(str(tmp_path)) as directory:
        (directory / "file").write_text("x")
        assert list(tmp_path.iterdir()) == [directory]


def test_a_place_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreError, match="option scratchDir: no directory for a task under"),
        scratch(str(tmp_path / "file" / "below")),
    ):
        pass
