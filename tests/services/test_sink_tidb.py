"""The SQL sink into a TiDB: MySQL behind a gate that gives TiDB's answers where the two differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count

import pymysql
import pytest

from tidemill.compare import Difference
from tidemill.errors import NotReproducible, Retryable, SinkError
from tidemill.events import ChangeKey, Column, Table
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.sink.registry import open_dead_letters
from tidemill.testing import tidb_answers as tidb
from tidemill.testing.answers import Answer, Gate
from tidemill.testing.changes import LOOSE, ORDERS, alter, batch, create, delete, insert, transaction, update
from tidemill.testing.progress import eventually
from tidemill.testing.sink_conformance import feed

from ..dialects.places import MariaDbPlace
from ..sink.sql_conformance import SqlConformance, loaded
from .server_conformance import ServerConformance
from .test_diff import Copy

COLLATIONS = {
    "latin1_swedish_ci": "latin1_bin",
    "latin2_general_ci": "utf8mb4_bin",
    "utf8mb4_0900_ai_ci": "utf8mb4_bin",
}


class TidbPlace(MariaDbPlace):
    def __init__(self, gate, server, database):
        super().__init__(server, database)
        self.url = gate.url(database)

    def sink(self, **options):
        return super().sink(collations=COLLATIONS, **options)


@pytest.fixture
def gate(mysql97) -> Iterator[Gate]:
    with Gate(mysql97.port, tidb.dialect()) as gate:
        yield gate


@pytest.fixture
def place(gate, mysql97, mysql_database) -> TidbPlace:
    return TidbPlace(gate, mysql97, mysql_database)


class TestTidb(ServerConformance, SqlConformance):
    words = (*ServerConformance.words, "a\0")

    @pytest.fixture
    def place(self, place):
        return place


@pytest.fixture
def copy(gate, mysql_database, tmp_path, mariadb, database) -> Copy:
    """A copy of all tables of MariaDB's database."""
    return Copy(tmp_path, mariadb, database, gate.url(mysql_database), ["*"], collations=COLLATIONS)


def seen(place, table):
    return Counter(place.query(f"SELECT * FROM {table}"))


# --- the dialect ------------------------------------------------------------------------------------


def test_a_version_without_savepoints_is_refused(gate, place):
    gate.answers.insert(0, tidb.version("6.1.0"))
    with pytest.raises(
        SinkError, match=r"TiDB 6\.1\.0 has no SAVEPOINT, .*: a target needs TiDB 6\.2 or newer"
    ):
        place.sink().open()


def test_tables_without_a_key_are_copied_and_compared(gate, place, copy, sql):
    sql(
        "CREATE TABLE t (n INT, word VARCHAR(20), kind ENUM('it''s', 'a\\\\b'), doc LONGTEXT)",
        "INSERT INTO t SELECT seq DIV 3, seq DIV 5, 1 + seq % 2, REPEAT('x', 300) FROM seq_1_to_500",
    )
    copy.run()
    sql("DELETE FROM t WHERE n % 3 = 0", "UPDATE t SET word = CONCAT(word, '!') WHERE n % 3 = 1 LIMIT 50")
    copy.run()
    assert seen(place, "t") == Counter(sql("SELECT * FROM t"))
    assert [one for one in copy.diff() if isinstance(one, Difference)] == []
    place.query("DELETE FROM t WHERE n = 1 LIMIT 1")
    assert [one.kind for one in copy.diff() if isinstance(one, Difference)] == ["missing"]
    assert gate.given == []


def test_another_primary_key_of_a_clustered_table_loads_it_again(gate, place, copy, sql):
    sql("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)", "INSERT INTO t VALUES (1, 7), (2, 8)")
    copy.run()
    sql("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n)", "INSERT INTO t VALUES (1, 9)")
    copy.run()
    assert len(gate.given) == 1
    assert seen(place, "t") == Counter(sql("SELECT * FROM t"))
    assert place.query("SHOW KEYS FROM t")[0][4] == "n"


def test_a_refused_change_says_why_the_table_is_loaded_again(gate, place):
    table = Table(
        "shop", "t", (Column("id", "int", nullable=False), Column("n", "int", nullable=False)), (0,)
    )
    loaded(place, table)
    sink = place.sink(workers=1)
    sink.open()
    with pytest.raises(NotReproducible, match=r"the target refused the statement: .*8200.*clustered index"):
        sink.write(batch(alter(30, table, "", ChangeKey(("n",)))))
    sink.close()


def test_geometries_and_their_indexes_become_bytes(place, copy, sql):
    copy.given["sink"][0]["copy"] = "definition"
    sql(
        "CREATE TABLE t (id INT PRIMARY KEY, spot POINT NOT NULL, SPATIAL KEY (spot))",
        "INSERT INTO t VALUES (1, ST_GeomFromText('POINT(1 2)', 4326))",
    )
    copy.run()
    sql(
        "INSERT INTO t VALUES (2, POINT(3, 4))",
        "ALTER TABLE t ADD COLUMN area POLYGON",
        "DELETE FROM t WHERE id=1",
    )
    copy.run()
    sql("UPDATE t SET spot=POINT(5, 6)")
    copy.run()
    assert seen(place, "t") == Counter(sql("SELECT id, CAST(spot AS BINARY), area FROM t"))
    types = place.query("SELECT DATA_TYPE FROM information_schema.columns WHERE table_name='t' ORDER BY 1")
    assert types == [("int",), ("longblob",), ("longblob",)]


@pytest.mark.parametrize(
    ("collation", "advised"),
    [
        ("utf8mb4_0900_ai_ci", "utf8mb4_bin"),
        ("latin1_swedish_ci", "latin1_bin"),
        ("cp1250_czech_cs", "utf8mb4_bin"),
    ],
)
def test_the_advice_for_a_collation_is_one_that_the_target_has(place, collation, advised):
    word = Column("word", "varchar", length=9, charset=collation.partition("_")[0], collation=collation)
    table = Table("shop", "t", (Column("id", "int", nullable=False), word), (0,))
    with pytest.raises(SinkError, match=f"for instance {collation} = {advised}; it must tell apart"):
        feed(MariaDbPlace.sink(place), [create(1, table)])


def test_a_substitute_may_be_of_another_charset(place, copy, sql):
    sql(
        "CREATE TABLE t (id INT PRIMARY KEY, w VARCHAR(9)) CHARSET latin2", "INSERT INTO t VALUES (1, 'Łódź')"
    )
    copy.run()
    sql("ALTER TABLE t ADD COLUMN v VARCHAR(9) DEFAULT 'ż'", "INSERT INTO t VALUES (2, 'ę', 'ś')")
    copy.run()
    assert seen(place, "t") == {(1, "Łódź", "ż"): 1, (2, "ę", "ś"): 1}


def test_a_default_that_it_cannot_have_is_left_out(place, copy, sql):
    sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    copy.run()
    sql("ALTER TABLE t ADD COLUMN note TEXT DEFAULT 'new'", "INSERT INTO t (id) VALUES (2)")
    copy.run()
    assert seen(place, "t") == {(1, "new"): 1, (2, "new"): 1}


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["INSERT INTO `[^;]*orders`", "^COMMIT$"], ids=["rows", "commit"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [8028, 9005])
def test_a_transaction_that_may_be_repeated_is_repeated(gate, place, number, workers, where):
    loaded(place, ORDERS)
    sink = place.sink(workers=workers)
    work, clock = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0)), count(1000, 10)
    gate.answers.insert(0, Answer(where, (number, tidb.TRY_AGAIN[number]), "ROLLBACK", times=2))
    work.accept([transaction(30, insert(ORDERS, 1, "x"), insert(ORDERS, 2, "y"))])

    def has_come() -> bool:
        with suppress(Retryable):
            work.run(next(clock))
        return len(place.rows(ORDERS)) == 2

    eventually(has_come)
    sink.close()
    assert len(gate.given) == 2
    assert place.rows(ORDERS) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("number", tidb.TRY_AGAIN)
def test_errors_of_a_cluster_that_is_busy_or_away_are_waited_for(gate, place, number):
    sink = place.sink(workers=1)
    sink.open()
    error = pymysql.OperationalError(number, tidb.TRY_AGAIN[number])
    explained = sink._database.explain(error, "writing")
    assert isinstance(explained, Retryable)
    assert str(explained).endswith(f": writing: {tidb.TRY_AGAIN[number]}")
    sink.close()


LIMIT = 6 << 20
LUMP = b"x" * (7 << 19)
"""Its hexadecimal digits in a statement, and its base64 in a letter, are above the limit."""
LUMPS = Table(
    "shop",
    "lumps",
    (Column("id", "int", nullable=False), Column("lump", "blob", length=4), Column("n", "int")),
    key=(0,),
)
TOO_LARGE = Answer(f"INSERT INTO .{{{LIMIT}}}", tidb.TOO_LARGE)


def test_a_row_above_the_limit_of_an_entry_is_named(gate, place):
    loaded(place, LUMPS)
    gate.answers.insert(0, TOO_LARGE)
    rows = [insert(LUMPS, n, LUMP if n == 7 else b"fits", n) for n in range(20)]
    with pytest.raises(SinkError, match=r"insert of shop\.lumps \(id=7\): entry too large, the max"):
        feed(place.sink(), [transaction(30, *rows)], max_rows=1000)
    assert place.rows(LUMPS) == []


@pytest.mark.parametrize("workers", [1, 4])
def test_a_row_above_the_limit_of_an_entry_becomes_a_dead_letter(gate, place, workers):
    """The letter lacks its value, which is as large there; so does one of a later change."""
    loaded(place, LUMPS)
    gate.answers.insert(0, TOO_LARGE)
    rows = [insert(LUMPS, n, LUMP * 2 if n == 7 else b"fits", n) for n in range(20)]
    later = update(LUMPS, (7, LUMP * 2, 7), (7, b"fits", 8))
    options = {"on_error": "dead letters", "workers": workers}
    feed(place.sink(**options), [transaction(30, *rows), transaction(31, later)], max_rows=1000)
    assert len(place.rows(LUMPS)) == 19
    reason = f"{tidb.TOO_LARGE[1]} (the target can't store the letter with its values of lump)"
    with closing(open_dead_letters(place.url, feed=place.feed)) as letters:
        first, second = letters.list()
        assert (first.key, first.after, first.reason) == ("id=7", (7, None, 7), reason)
        assert (second.before, second.after) == ((7, None, 7), (7, None, 8))
        assert "can't store the letter with its values of lump" in second.reason
        (failed,) = letters.retry().left
    assert failed.reason.startswith("the letter lacks values that the target couldn't store")
    assert len(place.rows(LUMPS)) == 19


def test_a_delete_of_many_rows_without_a_key_is_few_statements(gate, place):
    loaded(place, LOOSE, rows=[(1, "a")] * 9)
    feed(place.sink(), [transaction(30, *[delete(LOOSE, 1, "a")] * 7)], max_rows=1000)
    assert place.rows(LOOSE) == [(1, "a")] * 2
    assert gate.given == []
