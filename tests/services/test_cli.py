"""The command line against a running feed: what it shows, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import ended, eventually


@pytest.fixture
def place(tmp_path: Path, mariadb: MariaDb, database: str) -> CopiedTable:
    return CopiedTable(tmp_path, mariadb, database)


def test_flags_do_what_a_file_does(place):
    flags = ["--source", place.server.url(), "--sink", place.sqlite_url, "--table", f"{place.schema}.*"]
    flags += ["--name", "flags", "--data-dir", str(place.directory / "flags")]
    done = place.call("run", *flags, "--until", "now")
    assert done.status == 0, done
    assert place.copied() == place.present()
    said = place.call("status", "--data-dir", str(place.directory / "flags"))
    assert re.match(r"flags  finished  mariadb server \d+ at binlog\.\d+:\d+", said.out)


def test_flags_go_before_the_file(place):
    other = place.directory / "other.db"
    done = place.run("--sink", f"sqlite:///{other}")
    assert (done.status, other.exists(), place.copy.exists()) == (0, True, False)


def test_until_now_finishes_and_the_next_run_goes_on(place):
    assert place.run().status == 0
    assert place.status().state == "finished"
    place.insert(4)
    assert place.copied_ids() == [1, 2, 3]
    place.continues()


def test_names_with_control_characters_are_escaped(place):
    place.server.execute(
        "CREATE TABLE `two\nlines\x1b[1m` (id INT PRIMARY KEY)",
        "INSERT INTO `two\nlines\x1b[1m` VALUES (1)",
        database=place.schema,
    )
    name = f"{place.schema}.two\\nlines\\x1b[1m"
    found = place.call("check", str(place.config)).out.splitlines()
    assert next(line for line in found if "lines" in line).startswith(
        f"ok      source: follows {name} (id; about"
    )
    assert all(re.match(r"ok|warning|error", line) for line in found)
    assert place.run().status == 0
    assert f"{name}: 1 rows, no differences" in place.call("diff", str(place.config)).out.splitlines()


def test_json_is_a_status_a_line_and_nothing_else(place):
    done = place.run("--json")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [line["name"] for line in found] == ["copy"] * len(found)
    assert (found[-1]["state"], found[-1]["sinks"][0]["name"], done.err) == ("finished", "a", "")


def test_log_lines_elsewhere_than_on_a_terminal(place):
    done = place.run()
    assert done.out == ""
    assert all(
        re.match(r"timestamp=\S+Z level=info event=\w+ feed=copy ", line) for line in done.err.splitlines()
    )
    assert " event=finished " in done.err.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_checkpoint_saved(place, number):
    with place.start() as running:
        running.until(lambda status: status.sinks[0].position and not status.sinks[0].loading)
        place.insert(4)
        eventually(lambda: place.copied_ids() == [1, 2, 3, 4])
        ended = running.stop(number)
    assert (ended.status, " event=stopped " in ended.err.splitlines()[-1]) == (0, True)
    status = place.status()
    assert status.state == "stopped"
    assert place.call("explain", str(place.config)).out == "feed copy: stopped\n"
    place.continues()


def test_the_status_of_a_feed_that_was_killed(place):
    with place.start() as running:
        running.until(lambda status: status.sinks[0].position and not status.sinks[0].loading)
        running.process.kill()
        running.process.wait()
        said = place.call("status", str(place.config))
        as_json = json.loads(place.call("status", str(place.config), "--json").out)
    reason = f"process {running.process.pid} ended without stopping the feed; start it again to go on"
    assert said.status == 1
    assert said.out.startswith("copy  failed  mariadb server ")
    assert reason in said.out
    assert (as_json["state"], as_json["detail"], as_json["sinks"][0]["state"]) == (
        "failed",
        reason,
        "stopped",
    )
    assert place.call("explain", str(place.config)).out == f"feed copy: failed: {reason}\n"
    place.continues()


def test_a_directory_without_a_feed(place):
    for command in "status", "explain":
        assert place.call(command, str(place.config)).sentence.endswith("no feed has run here")


def test_a_terminal_shows_a_live_panel(place):
    ours, theirs = pty.openpty()
    with place.start(stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        running.until(lambda status: status.sinks[0].rows == 3)
        running.process.send_signal(signal.SIGINT)
        shown = read_all(ours)
        assert ended(running.process) == 0
    assert re.search(r"normal.*checkpoint.*stopped", shown, re.DOTALL)
    assert "3 rows" in shown
    assert "timestamp=" not in shown


def read_all(descriptor: int) -> str:
    """Until the other end of the terminal is closed."""
    found = b""
    with suppress(OSError):
        while part := os.read(descriptor, 65536):
            found += part
    os.close(descriptor)
    return found.decode()


# --- explain --------------------------------------------------------------------------------------


def test_a_sink_that_gets_no_answer_is_named_with_the_time_it_waits(place):
    copy = f"{place.schema}_copy"
    place.copy_server, place.copy_schema = place.server, copy
    place.configure(sinks=[place.server.url(copy)])
    with place.start() as running, place.server.connect() as other, other.cursor() as cursor:
        running.until(lambda status: status.sinks[0].position and not status.sinks[0].loading)
        cursor.execute(f"LOCK TABLES {copy}.item READ")
        place.insert(4)
        running.until(lambda status: status.waits)
        said = place.call("explain", str(place.config)).out
        assert re.search(
            r"^sink a worker \d has waited \d+\.\d s for the target to take commit ts \d+ "
            rf"\({place.schema}\.item",
            said,
            re.MULTILINE,
        )
        (line, *_) = json.loads(place.call("explain", str(place.config), "--json").out)
        assert line.startswith("feed copy: normal: sink a ")
        assert "look there for a lock or a slow statement (SHOW FULL PROCESSLIST, pg_stat_activity)" in line
        cursor.execute("UNLOCK TABLES")
        eventually(lambda: place.copied_ids() == [1, 2, 3, 4])
        running.until(lambda status: not status.waits)
        assert place.call("explain", str(place.config)).out.splitlines()[1] == "nothing waits"
        running.stop(signal.SIGTERM)
    place.execute(f"DROP DATABASE {copy}")


def test_a_target_that_is_locked_is_named_and_retried(place):
    assert place.run().status == 0
    with place.start() as running, closing(sqlite3.connect(place.copy, isolation_level=None)) as other:
        running.until(lambda status: status.state == "normal")
        other.execute("BEGIN IMMEDIATE")
        place.insert(4)
        running.until(lambda status: status.state == "warning")
        said = place.call("explain", str(place.config)).out.splitlines()
        wanted = r"sink a has waited \d+\.\d s for the next attempt, in \d+\.\d s: .*database is locked"
        assert re.match(f"feed copy: warning: {wanted}: find the process that has the file open", said[0])
        assert re.fullmatch(wanted, said[1])
        other.execute("ROLLBACK")
        running.until(lambda status: status.state == "normal")
        assert running.stop(signal.SIGTERM).status == 0
    assert place.copied() == place.present()


def test_a_target_that_does_not_answer_does_not_keep_it_from_stopping(place):
    copy = f"{place.schema}_copy"
    place.configure(sinks=[place.server.url(copy)])
    with place.start() as running, place.server.connect() as other, other.cursor() as cursor:
        running.until(lambda status: status.sinks[0].position and not status.sinks[0].loading)
        cursor.execute(f"LOCK TABLES {copy}.item READ")
        place.insert(4)
        running.until(lambda status: status.waits)
        ended = running.stop(signal.SIGTERM)
        assert (ended.status, place.status().state) == (0, "stopped")
        assert "still busy: sink a" in ended.err
    place.execute(f"DROP DATABASE {copy}")


def test_a_source_that_is_gone_is_named_with_the_next_attempt(tmp_path, private_mariadb):
    private_mariadb.start()
    private_mariadb.execute("CREATE DATABASE shop")
    place = CopiedTable(tmp_path, private_mariadb, "shop")
    with place.start() as running:
        running.until(lambda status: status.sinks[0].position and not status.sinks[0].loading)
        private_mariadb.kill()
        running.until(lambda status: status.state == "warning")
        said = place.call("explain", str(place.config)).out
        address = f"127.0.0.1:{private_mariadb.port}"
        wanted = rf"^source has waited \d+\.\d s for the next attempt, in \d+\.\d s: {address}: .+$"
        assert re.search(wanted, said, re.MULTILINE), said
        private_mariadb.start()
        place.insert(4)
        running.until(lambda status: status.state == "normal")
        eventually(lambda: place.copied_ids() == [1, 2, 3, 4])
        assert running.stop(signal.SIGTERM).status == 0


# --- check ----------------------------------------------------------------------------------------


def test_check_shows_what_is_followed_and_changes_nothing(place):
    place.configure(sinks=[place.sqlite_url, place.server.url(f"{place.schema}_copy")])
    files, schemas = sorted(place.directory.iterdir()), place.execute("SHOW DATABASES")
    done = place.call("check", str(place.config))
    assert (done.status, done.err) == (0, "")
    assert f"ok      source: follows {place.schema}.item (id; about 3 rows)\n" in done.out
    assert f"ok      sink a: {place.copy} will be made\n" in done.out
    assert "ok      sink b: 127.0.0.1 answers\n" in done.out
    assert sorted(place.directory.iterdir()) == files
    assert place.execute("SHOW DATABASES") == schemas


def test_check_says_what_a_copied_definition_leaves_out(place):
    place.configure(sinks=[place.server.url(f"{place.schema}_copy")])
    config = place.config.read_text()
    place.config.write_text(config.replace("[[sink]]", '[[sink]]\ncopy = "definition"'))
    done = place.call("check", str(place.config))
    assert (done.status, done.err) == (0, "")
    assert 'copy = "definition" leaves out foreign keys, triggers' in done.out


def test_check_names_tables_and_columns_that_postgresql_would_cut_off(place):
    long, wide = "t" * 64, "ü" * 32
    place.execute(f"CREATE TABLE {place.schema}.{long} (id INT PRIMARY KEY, {wide} INT)")
    place.configure(sinks=[place.sqlite_url, "postgresql://127.0.0.1:1/shop"])
    done = place.call("check", str(place.config))
    assert done.status == 1
    cut_off = "PostgreSQL would cut it off after 63: give it a shorter name in the source"
    table = f"sink b: table {place.schema}.{long}"
    assert [line for line in done.out.splitlines() if "cut it off" in line] == [
        f"error   {table}: the name '{long}' has 64 bytes, and {cut_off}",
        f"error   {table}, column {wide}: the name '{wide}' has 64 bytes, and {cut_off}",
    ]


def test_check_says_where_each_sink_goes_on(place):
    lines, archive = place.directory / "rows.ndjson", place.directory / "archive"
    copy = place.server.url(f"{place.schema}_copy")
    sinks = [place.sqlite_url, f"file://{lines}", copy, f"parquet://{archive}"]
    place.configure(sinks=sinks)
    assert f"ok      sink d: {archive} will be made\n" in place.call("check", str(place.config)).out
    assert place.run().status == 0
    before = {path: path.read_bytes() for path in place.directory.rglob("*") if path.is_file()}
    done = place.call("check", str(place.config), "--json")
    assert done.status == 0, done
    found = [json.loads(line) for line in done.out.splitlines()]
    texts = {line["about"]: line["text"] for line in found}
    for name in "abcd":
        assert re.fullmatch(r"goes on from binlog\.\d+:\d+ gtid=\S+ server=\d+", texts[f"sink {name}"])
    assert {path: path.read_bytes() for path in place.directory.rglob("*") if path.is_file()} == before
    place.execute(f"DROP DATABASE {place.schema}_copy")


@pytest.fixture
def reader(place: CopiedTable) -> Iterator[str]:
    name = f"reader_{place.schema}"
    place.execute(
        f"CREATE USER {name} IDENTIFIED BY 'tidemill'", f"GRANT SELECT ON {place.schema}.* TO {name}"
    )
    yield name
    place.execute(f"DROP USER {name}")


def test_check_finds_everything_at_once(place, reader):
    (place.directory / "not.db").write_text("This is no database. " * 100)
    sinks = [
        f"sqlite:///{place.directory}/none/copy.db",
        f"sqlite:///{place.directory}/not.db",
        "mysql://root@127.0.0.1:1/copy",
        place.server.url(place.schema, user=reader),
        f"parquet://{place.directory}/not.db",
    ]
    place.configure(url=place.server.url(user=reader), tables=[f"{place.schema}.*", "shopp.*"], sinks=sinks)
    done = place.call("check", str(place.config))
    assert (done.status, done.err) == (1, "")
    for wanted in (
        rf"error   source: '{reader}'@'%' may not read the binlog",
        rf"        run: GRANT REPLICATION SLAVE ON \*\.\* TO '{reader}'@'%'",
        r"error   source: source.tables: no table matches 'shopp\.\*'.*",
        rf"error   sink a: .*/none/copy\.db can't be made: there is no directory {place.directory}/none",
        rf"        run: mkdir -p {place.directory}/none",
        rf"error   sink b: sqlite:{place.directory}/not\.db: file is not a database",
        r"error   sink c: Can't connect to MySQL server on '127\.0\.0\.1'.*: see if the server runs, .*",
        rf"warning sink d: {reader}@% has no right to INSERT, UPDATE, DELETE, CREATE, ALTER, DROP on .*",
        rf"error   sink e: {place.directory}/not\.db is no directory: name another one, .*",
    ):
        assert re.search(rf"^{wanted}$", done.out, re.MULTILINE), (wanted, done.out)
