"""The statements that `check` prints correct what it finds: once they are run, it finds nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.config import Finding, read
from tidemill.engine.options import feed_options
from tidemill.engine.preflight import check_feed
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mysql import MySql

BAD = (
    "CREATE TABLE shop.keyless (a INT, row_id INT)",
    "INSERT INTO shop.keyless VALUES (5, 6)",
    "CREATE TABLE shop.counted (n INT NOT NULL AUTO_INCREMENT, KEY (n))",
    "CREATE TABLE shop.plain (id INT PRIMARY KEY) ENGINE = MyISAM",
    "CREATE TABLE shop.child (id INT PRIMARY KEY, item INT, CONSTRAINT `of` FOREIGN KEY (item) "
    "REFERENCES item (id) ON DELETE CASCADE)",
    "CREATE USER 'low'@'%' IDENTIFIED BY 'word'",
    "GRANT SELECT ON shop.item TO 'low'@'%'",
    "GRANT INSERT ON shop.keyless TO 'low'@'%'",
    "CREATE DATABASE hidden",
    "CREATE TABLE hidden.secret (id INT PRIMARY KEY)",
    "SET GLOBAL binlog_format = MIXED",
    "SET GLOBAL binlog_row_image = MINIMAL",
)


class Checked(CopiedTable):
    """A feed of a user without rights."""

    def check(self) -> list[Finding]:
        return [one for one in check_feed(feed_options(read(self.config))) if one.level != "ok"]

    @property
    def source_url(self) -> str:
        return f"mysql://low:word@127.0.0.1:{self.server.port}"

    def correct(self) -> list[Finding]:
        """Run the remedies until they are all run; return what is found then."""
        run: set[str] = set()
        while statements := [each for one in self.check() for each in one.remedy if each not in run]:
            self.execute(*statements)
            run.update(statements)
        return self.check()


@pytest.fixture(params=["mariadb", "mysql"])
def checked(request: pytest.FixtureRequest, tmp_path: Path) -> Checked:
    server: MariaDb | MySql = request.getfixturevalue(f"private_{request.param}")
    server.start()
    server.execute("CREATE DATABASE shop")
    place = Checked(tmp_path, server, "shop")
    place.execute("USE shop", *BAD)
    place.configure(
        tables=["shop.*", "hidden.secret"],
        sinks=[place.sqlite_url, f"mysql://low:word@127.0.0.1:{server.port}/shop_copy"],
    )
    return place


def test_the_statements_correct_what_is_found(checked: Checked) -> None:
    found = checked.check()
    assert len(found) > 6
    assert [one.text for one in found if one.level == "error" and not one.remedy] == []
    assert checked.correct() == []
    done = checked.run()
    assert done.status == 0, done
    with closing(sqlite3.connect(checked.copy)) as copy:
        assert copy.execute('SELECT a, row_id FROM "shop.keyless"').fetchall() == [(5, 6)]
    without_sink = checked.call("check", "--source", checked.source_url, "--table", "shop.*")
    assert (without_sink.status, without_sink.err) == (0, "")
    assert "ok      source: follows shop.item (id; " in without_sink.out
    assert "ok      feed: has no sink: only the source was checked\n" in without_sink.out
