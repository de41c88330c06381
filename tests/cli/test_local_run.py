"""A feed of this process: its modules, and the way from the command line to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tidemill.emulator.sql.sql import Tidb

RUN = """
import sys
from tidemill.cli import app
app(sys.argv[1:], standalone_mode=False)
print([name for name in sys.modules if name.startswith(("tidemill.spark", "pyspark", "pyarrow"))])
"""

FEED = """\
data_dir = "{directory}/state"
until = "now"

[source]
url = "tikv://{address}"
tables = ["shop.*"]

[[sink]]
url = "sqlite:///{directory}/copy.db"
"""


def test_commands_of_a_local_feed_import_nothing_of_spark(tmp_path: Path) -> None:
    file = tmp_path / "feed.toml"
    with Tidb(stores=1, tick_seconds=0.02) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.item (id int primary key)")
        file.write_text(FEED.format(directory=tmp_path, address=tidb.pd_address))
        for command in ("run", "check", "status", "explain"):
            arguments = [sys.executable, "-c", RUN, command, str(file)]
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["[]"]), done.stderr
