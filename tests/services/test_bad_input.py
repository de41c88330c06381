"""Each failure is reported in one sentence; after its repair the same feed continues without loss."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.testing.disk import hidden_disk
from tidemill.testing.feeds import CopiedTable, Running
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import eventually

from .pulling import VERSIONED_BY_TRANSACTIONS

mounts = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, mariadb_template: Path) -> Iterator[MariaDb]:
    """A server for tests that change its settings and its binlog; each test restores them."""
    with MariaDb(tmp_path_factory.mktemp("mariadb"), template=mariadb_template) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, server: MariaDb, request: pytest.FixtureRequest) -> Iterator[CopiedTable]:
    schema = re.sub(r"\W", "_", request.node.name)[5:60]
    server.execute(f"CREATE DATABASE {schema}")
    place = CopiedTable(tmp_path, server, schema)
    yield place
    place.execute(f"DROP DATABASE {schema}", f"DROP DATABASE IF EXISTS {schema}_copy")


# --- the source -----------------------------------------------------------------------------------


def test_a_wrong_password(place):
    place.configure(url=place.server.url(password="guessed"))
    assert "Access denied for user 'root'@'127.0.0.1' (using password: YES)" in place.run().sentence
    place.configure()
    place.continues()


@pytest.mark.parametrize("others", [[], ["{schema}.*"]], ids=["alone", "among_others"])
def test_a_pattern_that_matches_nothing(place, others):
    place.configure(tables=[*(other.format(schema=place.schema) for other in others), "shopp.*"])
    assert "no table matches 'shopp.*'" in place.run().sentence
    place.configure()
    place.continues()


def test_tables_that_are_all_excluded(place):
    place.configure(tables=[f"{place.schema}.*", f"!{place.schema}.item"])
    assert "no table matches" in place.run().sentence
    place.configure()
    place.continues()


def test_a_server_without_a_binlog(tmp_path, private_mariadb):
    private_mariadb.options = ("--skip-log-bin",)
    private_mariadb.start()
    private_mariadb.execute("CREATE DATABASE shop")
    place = CopiedTable(tmp_path, private_mariadb, "shop")
    assert "the server writes no binlog" in place.run().sentence
    private_mariadb.options = ()
    private_mariadb.restart()
    place.continues()


@pytest.mark.parametrize(
    ("setting", "bad", "good"),
    [
        ("binlog_format", "STATEMENT", "ROW"),
        ("binlog_row_image", "MINIMAL", "FULL"),
    ],
)
def test_a_setting_that_rows_can_not_be_read_with(place, setting, bad, good):
    place.execute(f"SET GLOBAL {setting} = {bad}")
    said = place.run().sentence
    assert f"{setting} is {bad}, not {good}: " in said
    assert f": SET GLOBAL {setting} = {good}" in said
    place.execute(f"SET GLOBAL {setting} = {good}")
    place.continues()


def test_a_table_that_is_not_supported(place):
    place.execute(f"CREATE TABLE {place.schema}.site {VERSIONED_BY_TRANSACTIONS}")
    sentence = place.run().sentence
    assert f"{place.schema}.site is system-versioned by transactions" in sentence
    place.configure(tables=[f"{place.schema}.*", f"!{place.schema}.site"])
    place.continues()


def test_a_position_that_was_purged(place):
    place.continues()
    place.insert(4)
    place.execute("FLUSH BINARY LOGS")
    ((last, *_),) = place.execute("SHOW MASTER STATUS")
    purge = f"PURGE BINARY LOGS TO '{last}'"  # which spares what the server still uses itself
    eventually(lambda: place.execute(purge, "SHOW BINARY LOGS")[0][0] == last)
    sentence = place.run().sentence
    assert "can't read the binlog from binlog.000" in sentence
    assert f"the server holds {last} to {last}" in sentence
    assert place.copied_ids() == [1, 2, 3]
    place.begins_again()


def test_a_binlog_that_ends_before_the_checkpoint(place):
    place.execute("FLUSH BINARY LOGS")
    place.continues()
    place.execute("RESET MASTER")
    sentence = place.run().sentence
    assert re.search(
        r"sink a is at binlog\.\d+:\d+ gtid=.*, and the binlog of .* ends before, at binlog\.000001:",
        sentence,
    )
    assert place.copied_ids() == [1, 2, 3]
    place.begins_again()


def test_a_position_behind_the_end_of_the_binlog(place):
    place.configure(source='position = "binlog.000999:4"')
    assert "can't read the binlog from binlog.000999:4" in place.run().sentence
    place.configure()
    place.continues()


def test_a_server_with_another_id_and_the_same_history_is_followed(place):
    place.continues()
    place.insert(4)
    place.execute("SET GLOBAL server_id = 99")
    try:
        place.continues()
    finally:
        place.execute(f"SET GLOBAL server_id = {place.server.server_id}")
    place.continues()


def test_a_statement_at_which_the_feed_is_to_stop(place):
    place.continues()
    place.configure(sorter='[[on_ddl]]\ntables = ["*.*"]\naction = "stop"')
    place.insert(4)
    statement = f"ALTER TABLE {place.schema}.item RENAME COLUMN name TO title"
    place.execute(statement)
    place.insert(5)
    for _ in range(2):
        sentence = place.run().sentence
        assert sentence.count(statement) == 1
        assert "to go on without it: tidemill resume FEED --skip-ddl binlog." in sentence
        assert place.copied_ids() == [1, 2, 3, 4]
    place.begins_again()


# --- the options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "right", "sentence"),
    [
        ("[sorterr]", "[sorter]", "sorterr: no such key; did you mean 'sorter'?"),
        ("tabels =", "tables =", "source.tabels: no such key; did you mean 'tables'?"),
        ("retry_longst", "retry_longest", "did you mean 'retry_longest_seconds'?"),
        ("memory_byte =", "memory_bytes =", "sorter.memory_byte: no such key; did you mean 'memory_bytes'?"),
        ('memory_bytes = "1MB"', 'memory_bytes = "1MiB"', "sorter.memory_bytes: '1MB' is not a size"),
        ("urll =", "url =", "source.urll: no such key; did you mean 'url'?"),
        ('urll = "sqlite', 'url = "sqlite', "sink a: urll: no such key; did you mean 'url'?"),
    ],
)
def test_a_typo(place, wrong, right, sentence):
    text = place.config.read_text()
    place.config.write_text(text.replace(f"\n{right}", f"\n{wrong}", 1))
    ended = place.run()
    assert sentence in ended.sentence
    assert ended.status == 2


def test_two_sinks_with_one_target(place):
    place.configure(sinks=[place.sqlite_url, f"sqlite:///{place.directory}/./copy.db"])
    assert f"two sinks write to 'sqlite:{place.copy}'" in place.run().sentence


def test_two_feeds_in_one_directory(place):
    with place.start() as running:
        running.until(lambda status: status.state == "normal")
        sentence = place.run().sentence
        assert f"a feed is running in {place.directory}/state already" in sentence
        status = place.status()
        assert status is not None
        assert (status.pid, status.state) == (running.process.pid, "normal")
        assert running.stop(signal.SIGTERM).status == 0
    place.continues()


def test_two_feeds_with_one_scratch_directory(place):
    scratch = f'directory = "{place.directory}/scratch"'
    place.configure(sorter=scratch)
    with place.start() as running:
        running.until(lambda status: status.state == "normal")
        place.configure(sorter=scratch, state="other", sinks=[f"sqlite:///{place.directory}/other.db"])
        assert re.search(rf"scratch.* is in use by pid {running.process.pid}", place.run().sentence)


# --- the targets ----------------------------------------------------------------------------------


def mariadb_copy(place: CopiedTable, server: MariaDb, user: str = "root") -> None:
    place.copy_server, place.copy_schema = server, f"{place.schema}_copy"
    place.configure(sinks=[server.url(place.copy_schema, user=user)])


def test_a_target_that_is_not_there_yet_is_tried_again_until_it_is(place, private_mariadb):
    private_mariadb.start()
    private_mariadb.kill()
    mariadb_copy(place, private_mariadb)
    with place.start() as running:
        status = running.until(lambda status: status.state == "warning")
        assert re.search(r"^sink a: .*Can't connect.*; trying again in \d+\.\d s$", status.detail)
        private_mariadb.start()
        running.until(lambda status: status.state == "normal" and status.sinks[0].position)
        private_mariadb.kill()
        place.insert(4)
        running.until(lambda status: status.state == "warning" and status.sinks[0].state == "warning")
        private_mariadb.start()
        running.until(lambda status: status.state == "normal")
        eventually(lambda: place.copied_ids() == [1, 2, 3, 4])
        assert running.stop(signal.SIGTERM).status == 0
    place.continues()


def test_a_server_that_is_read_only(place):
    place.execute(
        f"CREATE DATABASE {place.schema}_copy",
        "CREATE OR REPLACE USER writer IDENTIFIED BY 'tidemill'",
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER ON *.* TO writer",
    )
    mariadb_copy(place, place.server, user="writer")
    place.continues()
    place.insert(4)
    place.execute("SET GLOBAL read_only = 1")
    try:
        sentence = place.run().sentence
    finally:
        place.execute("SET GLOBAL read_only = 0")
    assert "running with the --read-only option" in sentence
    assert place.copied_ids() == [1, 2, 3]
    place.continues()


@mounts
def test_a_file_that_is_read_only(place):
    place.continues()
    place.insert(4)
    bind = f"mount --bind {place.directory} {place.directory} && mount -o remount,bind,ro {place.directory}"
    place.configure(state="../state")
    place.inside = ["unshare", "--mount", "sh", "-c", f'{bind} && exec "$@"', "sh"]
    sentence = place.run().sentence
    assert str(place.copy) in sentence
    place.inside = []
    assert place.copied_ids() == [1, 2, 3]
    place.continues()


@mounts
def test_a_full_disk_under_the_copy(place):
    with hidden_disk(place.directory / "disk", "400k") as inside:
        place.inside, place.copy = inside, place.directory / "disk" / "copy.db"
        place.configure()
        assert place.run().status == 0
        place.insert(*range(100, 20_000))
        assert "database or disk is full: make room, then start again" in place.run().sentence
        place.shell(f"mount -o remount,size=64m {place.copy.parent}")
        assert place.run().status == 0
        place.shell(f"cp {place.copy}* {place.directory}")
    place.inside, place.copy = [], place.directory / "copy.db"
    assert place.copied() == place.present()


def held_back(place: CopiedTable, running: Running, megabytes: int) -> sqlite3.Connection:
    """Keep the feed's sink from writing, and give the feed so much to hold, in one transaction."""
    running.until(lambda status: status.sinks[0].position and not status.sinks[0].loading)
    other = sqlite3.connect(place.copy, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    table = f"{place.schema}.item"
    with place.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for number in range(megabytes):
            cursor.execute(f"INSERT INTO {table} VALUES (%s, REPEAT('x', 1000000))", (100 + number,))
        cursor.execute("COMMIT")
    return other


@mounts
def test_a_full_disk_under_the_sorter(place):
    place.execute(f"ALTER TABLE {place.schema}.item MODIFY name LONGTEXT")
    with hidden_disk(place.directory / "disk", "8m") as inside:
        place.inside = inside
        place.configure(sorter=f'memory_bytes = 0\ndirectory = "{place.directory}/disk"')
        with place.start() as running, closing(held_back(place, running, 150)) as other:
            sentence = running.ended().sentence
            other.execute("ROLLBACK")
    assert re.search(rf"^store {place.directory}/disk/\S+ has no space left on its disk", sentence)
    ids = place.copied_ids()
    assert ids == [row[0] for row in place.present()][: len(ids)]
    place.inside = []
    place.configure()
    place.continues()


def test_a_damaged_block_on_disk(place):
    place.execute(f"ALTER TABLE {place.schema}.item MODIFY name LONGTEXT")
    place.configure(sorter="memory_bytes = 0")
    with place.start() as running, closing(held_back(place, running, 150)) as other:
        running.until(lambda status: status.waits and status.sorter_disk_bytes > 100e6)
        files = (place.directory / "state" / "scratch").glob("store-*/*.sst")
        assert sum([flip(file) for file in files]) > 1
        other.execute("ROLLBACK")
        sentence = running.ended().sentence
    assert re.search(r"^table 1: \d+ changes of commit ts \d+ to \d+ can't be read back from", sentence)
    ids = place.copied_ids()
    assert ids == [row[0] for row in place.present()][: len(ids)]
    assert len(ids) < 3 + 150
    place.continues()


def flip(file: Path) -> bool:
    """Change a byte in every thousand, in place; return False if a compaction has removed the file."""
    try:
        with file.open("r+b") as opened:
            data = bytearray(opened.read())
            data[500:-1000:1000] = bytes(byte ^ 0xFF for byte in data[500:-1000:1000])
            opened.seek(0)
            opened.write(data)
    except FileNotFoundError:
        return False
    return True


def test_a_truncated_checkpoint(place):
    lines = place.directory / "rows.ndjson"
    place.configure(sinks=[f"file://{lines}"])
    assert place.run().status == 0
    place.insert(4)
    stored = place.directory / "state" / "copy.a.checkpoint"
    whole, written = stored.read_bytes(), lines.read_bytes()
    stored.write_bytes(whole[:60])
    assert f"the checkpoint in {stored} is damaged: it is incomplete" in place.run().sentence
    assert (stored.read_bytes(), lines.read_bytes()) == (whole[:60], written)
    stored.write_bytes(whole)
    assert place.run().status == 0
    found = [int(number) for number in re.findall(r'"after":\{"id":(\d+)', lines.read_text())]
    assert found == [1, 2, 3, 4]
