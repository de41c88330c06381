"""A run of a demo: its options, its folder, its private MariaDB and its exit status."""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..testing.compare import CopyComparison

if TYPE_CHECKING:
    from ..testing.mariadb import MariaDb


def parser(about: str, *, seconds: float, large: int, pause: float) -> argparse.ArgumentParser:
    """Return a parser of the options that all demos have, with these defaults."""
    flags = argparse.ArgumentParser(prog="tidemill-demo", description=about.splitlines()[0])
    flags.add_argument("--seconds", type=float, default=seconds, help="seconds during which the writers run")
    flags.add_argument("--large", type=int, default=large, help="rows of the one large transaction")
    flags.add_argument("--pause", type=float, default=pause, help="seconds between a writer's transactions")
    flags.add_argument("--spoil", action="store_true", help="change one copied row, to see it found")
    return flags


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder in `.demo` under the working directory, and remove it in the end."""
    Path(".demo").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=".demo", prefix="run-") as name:
        yield Path(name).absolute()


def with_mariadb(run: Callable[[Path, MariaDb], CopyComparison]) -> int:
    """Run with a folder and a running, empty server; return 0 if the copies are identical, 1 if not, and 2
    without MariaDB."""
    from ..testing.mariadb import MariaDb, missing

    if reason := missing():
        print(f"the demo needs MariaDB: {reason}", file=sys.stderr)
        return 2
    with folder() as directory, MariaDb(directory / "mariadb") as server:
        result = run(directory, server)
    print(result)
    return 0 if result.identical else 1


def spoil(copy: Path) -> None:
    """Change one account in a copy in SQLite."""
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute('UPDATE "bank.accounts" SET balance = balance + 1 WHERE id = 471')
        connection.commit()
