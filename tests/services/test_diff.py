"""`tidemill diff`: differences planted in a target are found, and none else, whatever the target is."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import zip_longest
from random import Random
from threading import Event, Thread

import duckdb
import pytest
from msgspec.structs import replace

from tidemill.compare import Difference, chunks, open_diff
from tidemill.compare import table as table_of_diff
from tidemill.compare.pace import ComparisonStopped
from tidemill.compare.report import line_of
from tidemill.dialects.mysql import server_rows as mysql_reader
from tidemill.dialects.registry import DIALECTS
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.errors import Retryable, SinkError
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import delete, insert, update
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import eventually, feed_ended, joined
from tidemill.testing.shop_copies import log_end, place

from ..dialects.places import MAKERS, SHARED, DuckDbPlace, MariaDbPlace, SqlitePlace, makers
from ..sink.sql_conformance import loaded


class Copy:
    """A feed from a database of MariaDB into one target, whose rows can be changed by hand."""

    def __init__(self, directory, mariadb, database, sink_url, tables, **sink):
        self.directory = directory
        self.given = {
            "name": "copy",
            "data_dir": str(directory / "state"),
            "source": {"url": mariadb.url(), "tables": [f"{database}.{table}" for table in tables]},
            "sink": [{"name": "copy", "url": sink_url, **sink}],
        }

    def run(self):
        """Apply everything up to the source's present end."""
        options = feed_options(self.given | {"until": "now"})
        feed = Feed(options, open_sinks(options))
        feed.start()
        feed_ended(feed)
        if feed.error is not None:
            raise feed.error

    def diff(self, *tables, **options):
        with open_diff(self.given, tables, **options) as found:
            return list(found)

    def repair(self):
        """Apply every repair; return the results."""
        with open_diff(self.given) as found:
            return [found.apply() for one in found if isinstance(one, Difference)]


class IntoPlace(Copy):
    """A copy in a place, whose rows can be changed by hand."""

    def __init__(self, directory, server, database, tables, place, name=""):
        self.place, self.database, self.name = place, database, name
        super().__init__(directory, server, database, place.url, tables, **place.options)

    def execute(self, *statements):
        """Run statements, with `{}item` for the name of a table; return the rows of the last one."""
        rows = []
        for statement in statements:
            named = re.sub(r"`\{\}(\w+)`", lambda found: self.place.named(self.database, found[1]), statement)
            rows = self.place.query(named)
        return rows


@pytest.fixture(scope="module")
def other_mariadb(tmp_path_factory, mariadb_template):
    """A target whose own changes aren't in the source's log."""
    with MariaDb(tmp_path_factory.mktemp("other"), template=mariadb_template) as server:
        yield server


@pytest.fixture
def target_mariadb(other_mariadb, database):
    schema = f"{database}_copy"
    with other_mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {schema}")
        yield other_mariadb, schema
        cursor.execute(f"DROP DATABASE {schema}")


@pytest.fixture(params=MAKERS)
def copy_of(request, tmp_path, mariadb, database):
    """Returns a function of the tables' names that makes the feed."""
    place = MAKERS[request.param](request)
    return lambda *tables: IntoPlace(tmp_path, mariadb, database, tables, place, request.param)


def table_of_every_kind(name, database, copy):
    """A table with the columns that the target can hold with the same values."""
    return replace(kinds.KEYED, name=name, schema=database)


VALUES = [
    [*(value for value in values if not isinstance(value, (str, bytes)) or len(value) < 1_000), None]
    for _, values in kinds.EVERY
]


def rows_of(random, count, first=1, values=VALUES):
    return [(number, *(random.choice(some) for some in values)) for number in range(first, first + count)]


def values_in(copy):
    """The values of each column that the target can hold."""
    rows = [copy.place.storable((0, *row)) for row in zip_longest(*VALUES)]
    columns = list(zip(*rows, strict=True))[1:]
    return [list({repr(value): value for value in column}.values()) for column in columns]


def plant(copy, random, table, rows, count):
    """Plant differences in rows of their own; return them as (kind, id, column)."""
    planted = set()
    changes = []
    for row in random.sample(rows, count):
        if random.randrange(5) == 0:
            changes.append(delete(table, *row))
            planted.add(("missing", row[0], ""))
            continue
        index = random.randrange(1, len(row))
        values = [value for value in values_in(copy)[index - 1] if value is not None]
        if table.columns[index].kind == "double":
            values.append(-0.0)
        others = [value for value in values if copy.place.tells_apart(value, row[index])]
        changes.append(update(table, row, (*row[:index], random.choice(others), *row[index + 1 :])))
        planted.add(("changed", row[0], table.columns[index].name))
    extra = rows_of(random, count // 5, len(rows) + 1, values_in(copy))
    copy.place.apply(*changes, *[insert(table, *row) for row in extra])
    return planted | {("extra", row[0], "") for row in extra}


def seen(findings):
    return {
        (one.kind, one.key["id"], ",".join(one.source or ()) if one.kind == "changed" else "")
        for one in findings
        if isinstance(one, Difference)
    }


@pytest.mark.parametrize("count", [450, pytest.param(3_000, marks=pytest.mark.soak)])
def test_differences_of_every_kind_are_found_and_none_else(copy_of, mariadb, database, count):
    random = Random(15)
    copy = copy_of("everything")
    table = table_of_every_kind("everything", database, copy)
    rows = rows_of(random, count, 1, values_in(copy))
    loaded(MariaDbPlace(mariadb, database), table, rows=rows)
    copy.run()
    (result,) = copy.diff()
    assert (result.state, result.rows, result.is_equal) == ("compared", count, True)
    planted = plant(copy, random, table, rows, count // 4)
    findings = copy.diff()
    assert seen(findings) == planted
    assert len(planted) == count // 4 + count // 4 // 5
    assert len(findings) == len(planted) + 1
    assert all(copy.repair())
    assert seen(copy.diff()) == set()


# --- keys, tables and values at the edge ---------------------------------------------------------


def differences(findings):
    """The differences, in order, as text."""
    return sorted(line_of(one).partition(" ")[2] for one in findings if isinstance(one, Difference))


OF_OTHER_DIALECTS = makers(dialect for dialect in DIALECTS if dialect.name != "MySQL")
"""Places outside the family of the source."""


@pytest.fixture(params=SHARED)
def shared_copy_of(request, tmp_path, mariadb, database):
    place = SHARED[request.param](request)
    return lambda *tables: IntoPlace(tmp_path, mariadb, database, tables, place, request.param)


def copied(copy, sql, *statements):
    sql(*statements)
    copy.run()
    assert [one.is_equal for one in copy.diff()] == [True]


def test_rows_of_a_table_without_a_key_are_compared_by_their_number(copy_of, sql):
    copy = copy_of("loose")
    copied(
        copy,
        sql,
        "CREATE TABLE loose (a INT, b VARCHAR(20))",
        "INSERT INTO loose VALUES (1, 'x'), (1, 'x'), (2, NULL), (3, ''), (4, 'y')",
    )
    copy.execute(
        "INSERT INTO `{}loose` VALUES (1, 'x')",
        "INSERT INTO `{}loose` VALUES (1, 'x')",
        "UPDATE `{}loose` SET b='' WHERE a=2",
        "DELETE FROM `{}loose` WHERE a=4",
    )
    assert differences(copy.diff()) == [
        "a=1, b='x': only in the target 2 times",
        "a=2, b='': only in the target",
        "a=2, b=NULL: missing in the target",
        "a=4, b='y': missing in the target",
    ]
    assert all(copy.repair())
    assert differences(copy.diff()) == []


def test_keys_of_text_are_compared_to_the_letter(copy_of, sql):
    copy = copy_of("word")
    copied(
        copy,
        sql,
        "CREATE TABLE word (word VARCHAR(20) COLLATE utf8mb4_general_ci, part INT, n INT, "
        "PRIMARY KEY (word, part))",
        "INSERT INTO word VALUES ('a', 1, 1), ('B', 1, 2), ('c', 1, 3), ('d''\\\\', 1, 4), ('é', 1, 5), "
        "('ZZ', 1, 6), ('ZZ', 2, 7)",
    )
    copy.execute(
        "UPDATE `{}word` SET word='A' WHERE n=1",
        "UPDATE `{}word` SET n=20 WHERE n=2",
        "UPDATE `{}word` SET word='c ' WHERE n=3",
        "DELETE FROM `{}word` WHERE n=4",
        "INSERT INTO `{}word` VALUES ('y', 0, 0)",
    )
    assert differences(copy.diff()) == [
        'word="d\'\\\\", part=1: missing in the target',
        "word='A', part=1: only in the target",
        "word='B', part=1: n is 2 in the source, 20 in the target",
        "word='a', part=1: missing in the target",
        "word='c ', part=1: only in the target",
        "word='c', part=1: missing in the target",
        "word='y', part=0: only in the target",
    ]
    assert all(copy.repair())
    assert differences(copy.diff()) == []


@pytest.mark.parametrize(
    ("definition", "keys"),
    [
        ("DECIMAL(10,3)", ["-12.5", "-2", "0", "3", "10", "100.001"]),
        ("ENUM('b','a','c')", ["a", "b", "c"]),
        ("SET('b','a')", ["", "a", "b", "b,a"]),
        ("TIME(3)", ["-100:00:00", "-00:00:00.5", "00:00:00", "9:00:00", "100:00:00"]),
        ("DATETIME", ["0000-00-00 00:00:00", "2024-02-29 00:00:00", "9999-12-31 23:59:59"]),
        ("BIGINT UNSIGNED", ["0", "1", "9223372036854775807", "18446744073709551615"]),
        ("VARBINARY(9)", ["", "a", "a ", "b"]),
        ("CHAR(9) COLLATE utf8mb4_nopad_bin", ["a\t", "a", "a\n", "b"]),
        ("DOUBLE", ["-1e300", "-0.1", "0", "1e-300", "2.5"]),
        ("UUID", ["00000000-0000-0000-0000-000000000001", "539bbeb9-3b11-164d-94fa-63d9fccb9825"]),
    ],
)
def test_keys_of_every_kind_bound_ranges(copy_of, sql, monkeypatch, definition, keys):
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 2)
    monkeypatch.setattr(chunks, "PAGE_ROWS", 1)
    monkeypatch.setattr(mysql_reader, "_PAGE_ROWS", 1)
    values = ", ".join(f"('{key}', {number})" for number, key in enumerate(keys))
    copy = copy_of("t")
    if copy.name in ("postgresql", "duckdb, native dates") and definition == "DATETIME":
        copy.given["sink"][0]["dates"] = "text"
    if copy.name == "mysql" and "nopad" in definition:
        copy.given["sink"][0]["collations"] = {"utf8mb4_nopad_bin": "utf8mb4_0900_bin"}
    statements = [f"CREATE TABLE t (k {definition} PRIMARY KEY, n INT)", f"INSERT INTO t VALUES {values}"]
    if copy.name.startswith("duckdb") and definition.startswith("TIME"):
        sql(*statements)
        with pytest.raises(SinkError, match=r"table shop_\d+\.t: column k: DuckDB has no keys of INTERVAL"):
            copy.run()
        return
    copied(copy, sql, "SET sql_mode=''", *statements)
    copy.execute("UPDATE `{}t` SET n=n+100", "DELETE FROM `{}t` WHERE n=101")
    found = [one for one in copy.diff() if isinstance(one, Difference)]
    assert [one.kind for one in found].count("missing") == 1
    assert len(found) == len(keys)
    assert all(copy.repair())
    assert differences(copy.diff()) == []


def test_tables_and_columns_that_one_side_lacks_are_named(copy_of, sql, database):
    copy = copy_of("*")
    copied_tables = ("CREATE TABLE a (id INT PRIMARY KEY, v INT, w INT)", "INSERT INTO a VALUES (1, 2, 3)",
                     "CREATE TABLE b (id INT PRIMARY KEY)")  # fmt: skip
    sql(*copied_tables)
    copy.run()
    copy.execute("ALTER TABLE `{}a` DROP COLUMN w", "UPDATE `{}a` SET v=5", "DROP TABLE `{}b`")
    a, found, b = copy.diff()[0], copy.diff()[1], copy.diff()[2]
    assert isinstance(a, Difference)
    assert (a.source, a.target) == ({"v": 2}, {"v": 5})
    assert (found.table, found.state, found.changed) == (f"{database}.a", "differs", 1)
    assert "lacks column w" in found.detail
    assert (b.table, b.state) == (f"{database}.b", "missing")


def test_a_file_of_duckdb_named_like_the_schema_is_compared(tmp_path, sql, mariadb, database):
    place = DuckDbPlace(tmp_path / f"{database}.duckdb")
    copy = IntoPlace(tmp_path, mariadb, database, ["item"], place)
    copied(copy, sql, "CREATE TABLE item (id INT PRIMARY KEY, n INT)", "INSERT INTO item VALUES (1, 2)")
    copy.execute("UPDATE `{}item` SET n=3")
    assert differences(copy.diff()) == ["id=1: n is 2 in the source, 3 in the target"]
    assert all(copy.repair())
    with duckdb.connect(str(place.path)), pytest.raises(Retryable, match="stop the feed and whatever else"):
        copy.diff()
    assert differences(copy.diff()) == []


@pytest.mark.parametrize("into", OF_OTHER_DIALECTS)
def test_a_mysql_source_is_compared(tmp_path, request, mysql97, mysql_database, into):
    copy = IntoPlace(tmp_path, mysql97, mysql_database, ["every", "loose"], MAKERS[into](request))
    with mysql97.connect(database=mysql_database) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE every (id BIGINT UNSIGNED PRIMARY KEY, d DOUBLE, j JSON, t TIMESTAMP(3) NULL, "
            "b VARBINARY(9), e ENUM('x', 'y'), n DECIMAL(10,3))"
        )
        cursor.execute(
            "INSERT INTO every VALUES (1, -0e0, '{\"b\": 1, \"a\": [1.0]}', '2024-02-29 13:00:00.120', "
            "'b', 'y', -1.5), (18446744073709551615, 1e-300, 'null', NULL, NULL, NULL, NULL)"
        )
        cursor.execute("CREATE TABLE loose (a INT, b VARCHAR(20))")
        cursor.execute("INSERT INTO loose VALUES (1, 'x'), (1, 'x'), (2, NULL)")
        connection.commit()
    copy.run()
    assert [(one.rows, one.is_equal) for one in copy.diff()] == [(2, True), (3, True)]
    copy.execute("UPDATE `{}every` SET d=0.5 WHERE id=1", "DELETE FROM `{}loose` WHERE a=2")
    found = differences(copy.diff())
    assert found[0] == "a=2, b=NULL: missing in the target"
    assert found[1].startswith("id=1: d is ")
    assert all(copy.repair())
    assert differences(copy.diff()) == []


def test_a_stop_ends_with_what_was_found_so_far(copy_of, sql, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 10)
    monkeypatch.setattr(chunks, "PAGE_ROWS", 10)
    monkeypatch.setattr(table_of_diff, "_CANDIDATES", 2)
    copy = copy_of("item")
    copied(
        copy,
        sql,
        "CREATE TABLE item (id INT PRIMARY KEY, n INT)",
        "INSERT INTO item SELECT seq, 0 FROM seq_1_to_100",
    )
    copy.execute("UPDATE `{}item` SET n=1 WHERE id IN (1, 2, 35, 91)")
    compared = open_diff(copy.given, wait=lambda _: compared.rows >= 50)
    found = []
    with compared, suppress(ComparisonStopped):
        for one in compared:
            found.append(one)
    assert differences(found) == [
        "id=1: n is 0 in the source, 1 in the target",
        "id=2: n is 0 in the source, 1 in the target",
    ]
    result = found[-1]
    assert (result.state, result.changed, result.is_equal) == ("stopped", 2, False)
    assert result.rows in (50, 60)
    assert result.detail == "stopped; 1 more rows may differ, and weren't read again"


def test_tables_of_several_sources_are_compared_with_their_own(
    tmp_path, mariadb, other_mariadb, database, sql
):
    sql("CREATE TABLE here (id INT PRIMARY KEY, n INT)", "INSERT INTO here VALUES (1, 1), (2, 2)")
    other_mariadb.execute(
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.there (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO {database}.there VALUES (1, 1), (2, 2), (3, 3)",
    )
    copy = IntoPlace(tmp_path, mariadb, database, [], SqlitePlace(tmp_path / "copy.db"))
    copy.given["source"] = [
        {"name": "a", "url": mariadb.url(), "tables": [f"{database}.here"]},
        {"name": "b", "url": other_mariadb.url(), "tables": [f"{database}.there"]},
    ]
    copy.run()
    assert [(one.table, one.rows, one.is_equal) for one in copy.diff()] == [
        (f"{database}.here", 2, True),
        (f"{database}.there", 3, True),
    ]
    copy.execute("UPDATE `{}here` SET n=7 WHERE id=1", "DELETE FROM `{}there` WHERE id=3")
    assert differences(copy.diff()) == [
        "id=1: n is 1 in the source, 7 in the target",
        "id=3: missing in the target",
    ]
    assert all(copy.repair())
    assert differences(copy.diff()) == []
    other_mariadb.execute(f"INSERT INTO {database}.there VALUES (4, 4)")
    found = [one for one in copy.diff() if isinstance(one, Difference)]
    assert [(one.key, one.settled) for one in found] == [({"id": 4}, False)]
    other_mariadb.execute(f"DROP DATABASE {database}")


# --- while both run ------------------------------------------------------------------------------


class Writer:
    """Writes transactions into the source until it is stopped: inserts, updates, deletes.

    It is never more than 200 ahead of the feed: a feed slower than its source would fall behind without end.
    """

    def __init__(self, mariadb, database, seed, feed):
        self._server, self._database, self._random = mariadb, database, Random(seed)
        self._feed = feed
        self.count = 0
        self.stopping = Event()
        self._thread = Thread(target=self._run)

    def _run(self):
        random = self._random
        with self._server.connect(database=self._database) as connection, connection.cursor() as cursor:
            while not self.stopping.is_set():
                key = random.randrange(1, 2_000)
                cursor.execute(
                    random.choice(
                        [
                            f"UPDATE item SET n=n+1 WHERE id={key}",
                            f"UPDATE item SET name='{random.randrange(3)}' WHERE id={key}",
                            f"DELETE FROM item WHERE id={key} AND id%7=0",
                            f"INSERT IGNORE INTO item VALUES ({key}, 0, 'new')",
                            f"INSERT INTO loose VALUES ({random.randrange(9)}, 'x')",
                            f"DELETE FROM loose WHERE a={random.randrange(9)} LIMIT 1",
                        ]
                    )
                )
                self.count += 1
                if self.count % 200 == 0:
                    self._until_applied()

    def _until_applied(self):
        end = log_end(self._server)
        eventually(lambda: self._applied() >= end or self.stopping.is_set(), sign=self._applied)

    def _applied(self):
        status = self._feed.status()
        return place(status.sinks[0].position) if status and status.sinks else ("", 0)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc_info):
        self.stopping.set()
        joined(self._thread)


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.soak)])
def test_only_true_differences_are_reported_while_hundreds_of_transactions_a_second_go_on(
    shared_copy_of, sql, mariadb, database, monkeypatch, count
):
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 500)
    copy = shared_copy_of("item", "loose", "still")
    sql(
        "CREATE TABLE item (id INT PRIMARY KEY, n INT, name VARCHAR(20))",
        "INSERT INTO item SELECT seq, 0, 'old' FROM seq_1_to_2000",
        "CREATE TABLE loose (a INT, b VARCHAR(20))",
        "INSERT INTO loose SELECT seq % 9, 'x' FROM seq_1_to_300",
        "CREATE TABLE still (id INT PRIMARY KEY, n INT)",
        "INSERT INTO still SELECT seq, 0 FROM seq_1_to_2000",
    )
    copy.run()
    copy.execute("UPDATE `{}still` SET n=1 WHERE id IN (7, 700)", "DELETE FROM `{}still` WHERE id=2000")
    options = feed_options(copy.given)
    feed = Feed(options, open_sinks(options))
    feed.start()
    try:
        with Writer(mariadb, database, 1, feed) as writer:
            looks = 0
            while writer.count < count or looks < 2:
                eventually(lambda before=writer.count: writer.count > before + 100)
                with open_diff(copy.given) as compared:
                    found = list(compared)
                assert differences(found) == [
                    "id=2000: missing in the target",
                    "id=700: n is 0 in the source, 1 in the target",
                    "id=7: n is 0 in the source, 1 in the target",
                ]
                looks += 1
    finally:
        feed.stop()
        feed.wait()
    assert feed.error is None
