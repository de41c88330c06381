"""`init` writes a feed file of a live MariaDB, which `check` and `run` take as it is."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.config import read_as_written
from tidemill.testing.child import CLI
from tidemill.testing.feeds import Ended
from tidemill.testing.mariadb import PASSWORD, MariaDb
from tidemill.testing.progress import completed

HIDDEN = "mysql://root:${{SOURCE_PASSWORD}}@127.0.0.1:{port}/"


class Beginner:
    """Someone with a database and an empty folder."""

    def __init__(self, folder: Path, server: MariaDb, database: str) -> None:
        self.folder = folder
        self.server = server
        self.database = database
        self.file = folder / "feed.toml"

    def execute(self, *statements: str) -> None:
        self.server.execute(*statements, database=self.database)

    def call(self, *arguments: str) -> Ended:
        done = completed([*CLI, *arguments], cwd=self.folder, env=dict(os.environ))
        return Ended(done.returncode, done.stdout, done.stderr)

    def init(self, *more: str) -> Ended:
        done = self.call("init", self.server.url(), "--table", f"{self.database}.*", *more)
        assert done.status == 0, done
        return done

    def copied(self, table: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.folder / "copy.db")) as copy:
            return copy.execute(f'SELECT * FROM "{self.database}.{table}"').fetchall()


@pytest.fixture
def beginner(tmp_path: Path, mariadb: MariaDb, database: str) -> Beginner:
    one = Beginner(tmp_path, mariadb, database)
    one.execute(
        "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(10))",
        "INSERT INTO item VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE log (at INT)",
        "INSERT INTO log VALUES (7)",
        "CREATE TABLE `odd ${name}.\n~` (id INT PRIMARY KEY)",
        "CREATE TABLE `child [1].*` (id INT PRIMARY KEY, item INT, CONSTRAINT f "
        "FOREIGN KEY (item) REFERENCES item (id) ON DELETE CASCADE)",
        "CREATE TABLE `child1` (id INT PRIMARY KEY)",
    )
    return one


def test_the_file_runs_as_it_is_written(beginner: Beginner, monkeypatch: pytest.MonkeyPatch) -> None:
    said = beginner.init()
    monkeypatch.setenv("SOURCE_PASSWORD", PASSWORD)
    assert said.out.splitlines()[-3:] == [
        f"feed.toml is written: it follows 4 tables; left out: {beginner.database}.child [1].*",
        "the file has ${SOURCE_PASSWORD} in place of the secret: set it to the text that the URL has there",
        "next: tidemill check feed.toml, then tidemill run feed.toml",
    ]
    checked = beginner.call("check", "feed.toml")
    assert (checked.status, checked.err) == (0, "")
    ran = beginner.call("run", "feed.toml", "--until", "now")
    assert ran.status == 0, ran
    assert (beginner.copied("item"), beginner.copied("log")) == ([(1, "a"), (2, "b")], [(7,)])


def test_it_tells_what_was_found(beginner: Beginner) -> None:
    beginner.init()
    text, database = beginner.file.read_text(), beginner.database
    for comment in (
        "#   warning source: no primary key, and no unique key of NOT NULL columns: ",
        f"# mariadb server {beginner.server.server_id}\n",
        f"#   {database}.item (id; about 2 rows)\n",
        f"#   {database}.log (no key; about 1 rows)\n",
        f"#   {database}.odd ${{name}}.\\n~ (id; about 0 rows)\n",
        f"    # constraint f of {database}.child [1].* changes its rows ",
        '\n# position = "binlog.0',
        f" gtid=0-{beginner.server.server_id}-",
    ):
        assert comment in text


def test_it_has_no_password(beginner: Beginner) -> None:
    beginner.init(
        "--sink", "postgresql://etl:s%40cret@127.0.0.1:1/shop", "--sink", "mariadb://k:hidden@127.0.0.1:1/"
    )
    text = beginner.file.read_text()
    assert not [secret for secret in (PASSWORD, "s%40cret", "hidden") if f":{secret}@" in text]
    document = read_as_written(beginner.file)
    assert document["source"]["url"] == HIDDEN.format(port=beginner.server.port)
    assert [sink["url"] for sink in document["sink"]] == [
        "postgresql://etl:${SINK_PASSWORD}@127.0.0.1:1/shop",
        "mariadb://k:${SINK_2_PASSWORD}@127.0.0.1:1/",
    ]


def test_variables_of_the_environment_stay_as_they_are_given(
    beginner: Beginner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_OWN", PASSWORD)
    url = f"mysql://root:${{MY_OWN}}@127.0.0.1:{beginner.server.port}"
    said = beginner.call("init", url)
    assert (said.status, "in place of the secret" in said.out) == (0, False)
    assert read_as_written(beginner.file)["source"]["url"] == url
    monkeypatch.delenv("MY_OWN")
    unset = beginner.call("init", url, "--out", "other.toml")
    assert unset.sentence == "source.url: the environment has no variable MY_OWN"


def test_without_patterns_it_follows_every_schema(beginner: Beginner) -> None:
    assert beginner.call("init", beginner.server.url()).status == 0
    assert f"{beginner.database}.*" in read_as_written(beginner.file)["source"]["tables"]


def test_nothing_is_written_if_there_is_no_table(beginner: Beginner) -> None:
    user = f"nobody_{beginner.database}"
    beginner.execute(f"CREATE USER {user}@127.0.0.1 IDENTIFIED BY 'x'")
    said = beginner.call("init", f"mysql://{user}:x@127.0.0.1:{beginner.server.port}")
    beginner.execute(f"DROP USER {user}@127.0.0.1")
    assert said.sentence.endswith(
        "this user sees no table: create one, or GRANT SELECT on those that are there"
    )
    assert not beginner.file.exists()
