"""The time that a new user takes, without reading: python -m tidemill.benchmarks.new_user

Each way begins in an empty environment, with packages downloaded as they are for everybody. A private MariaDB
stands for the user's database, and the wheel is built before, as if it was downloaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..actors import SystemClock
from ..testing.mariadb import PASSWORD, MariaDb

ROOT: Final = Path(__file__).parents[1]
_FIRST_ROW = """
import tidemill

with tidemill.open(source={url!r}, tables=["shop.*"], data_dir="state") as feed:
    for txn in feed:
        for row in txn.rows:
            print(row.after_dict())
        feed.ack(txn)
        if txn.rows:
            break
"""
_now = SystemClock().now


def main() -> None:
    """Go each way once and print its seconds. Raises CalledProcessError with the output of a step that
    fails."""
    with tempfile.TemporaryDirectory(prefix="tidemill-new-user-") as name:
        directory = Path(name)
        _run(directory, sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", "wheels", str(ROOT))
        (wheel,) = (directory / "wheels").glob("*.whl")
        with MariaDb(directory / "mariadb") as server:
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE shop")
                cursor.execute("CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(20))")
                cursor.execute("INSERT INTO shop.orders VALUES (1, 'first')")
                connection.commit()
            url = server.url()
            _timed("wheel to first row", lambda: _first_row(directory, wheel, url))
            _timed("feed file to an equal copy", lambda: _copy(directory, url))
        _timed("clone to the end of make demo", lambda: _demo(directory))


def _timed(what: str, way: Callable[[], str]) -> None:
    started = _now()
    seen = way()
    print(f"{what}: {_now() - started:.0f} s ({seen})", flush=True)


def _first_row(directory: Path, wheel: Path, url: str) -> str:
    _run(directory, sys.executable, "-m", "venv", "env")
    _run(directory, "env/bin/pip", "install", "-q", f"{wheel}[mysql]")
    return _run(
        directory, "env/bin/python", "-c", _FIRST_ROW.format(url=url.replace("${SHOP_PASSWORD}", PASSWORD))
    )


def _copy(directory: Path, url: str) -> str:
    _run(
        directory, "env/bin/tidemill", "init", url.replace(PASSWORD, "${SHOP_PASSWORD}"), "--table", "shop.*"
    )
    _run(directory, "env/bin/tidemill", "run", "feed.toml", "--until", "now")
    _run(directory, "env/bin/tidemill", "diff", "feed.toml")
    return "tidemill diff: equal"


def _demo(directory: Path) -> str:
    _run(directory, "git", "clone", "-q", str(ROOT), "clone")
    return _run(directory / "clone", "make", "demo").splitlines()[-1]


def _run(directory: Path, *command: str) -> str:
    """Run a step and return its output, which is shown if it fails."""
    environment = {**os.environ, "SHOP_PASSWORD": PASSWORD}
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(command, cwd=directory, env=environment, text=True, capture_output=True)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
    return done.stdout.strip()


if __name__ == "__main__":
    main()
