"""Temporary directories."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tidemill.store.temporary import temporary_directory


def test_it_goes_with_its_user_also_after_a_failure(tmp_path: Path) -> None:
    def work() -> None:
        with temporary_directory("t", tmp_path) as directory:
            (directory / "file").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next(tmp_path: Path) -> None:
    program = (
        "import os; from pathlib import Path\n"
        "from tidemill.store.temporary import temporary_directory\n"
        f"with temporary_directory('t', Path({str(tmp_path)!r})) as directory:\n"
        "    os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    (left,) = tmp_path.iterdir()
    with temporary_directory("t", tmp_path) as directory:
        assert list(tmp_path.iterdir()) == [directory]
        assert directory != left


def test_what_another_process_holds_stays(tmp_path: Path) -> None:
    with temporary_directory("t", tmp_path) as one, temporary_directory("t", tmp_path) as other:
        assert sorted(tmp_path.iterdir()) == sorted([one, other])


def test_one_that_is_swept_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(lock: int, how: int) -> None:
        monkeypatch.undo()
        with temporary_directory("t", tmp_path):  # another process that sweeps now
            locked(lock, how)

    locked = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", flock)
    with temporary_directory("t", tmp_path) as directory:
        (directory / "file").write_text("x")
        assert list(tmp_path.iterdir()) == [directory]


def test_directories_of_another_purpose_stay(tmp_path: Path) -> None:
    left = tmp_path / "tidemill-other-1"
    left.mkdir()
    (left / "lock").touch()
    with temporary_directory("t", tmp_path):
        assert left.exists()
