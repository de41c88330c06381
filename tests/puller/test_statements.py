"""Statements in query events: what they are and what they change."""

from __future__ import annotations

from struct import pack
from zoneinfo import available_timezones

import pytest

from tidemill.codec.mysql.effect import read_effect
from tidemill.codec.mysql.tokens import NotUnderstood, Tokens
from tidemill.dialects.mysql.zone import ServerZone
from tidemill.errors import SourceError
from tidemill.puller.mysql.dml import changed_tables
from tidemill.puller.mysql.query import LoggedStatement


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("INSERT INTO t VALUES (1)", [("", "t")]),
        ("/* x */ insert low_priority ignore t set a = 'INTO TABLE u'", [("", "t")]),
        ("REPLACE DELAYED INTO `a b`.`c.d` SELECT * FROM u", [("a b", "c.d")]),
        ("UPDATE s . t SET a = 1", [("s", "t")]),
        ("UPDATE t AS x LEFT JOIN s.u ON x.a = u.b SET a = 1", [("", "t"), ("s", "u")]),
        ("UPDATE t x SET x.a = 1", [("", "t")]),
        ("UPDATE t PARTITION (p, q) AS x, `u` `y` SET x.a = 1", [("", "t"), ("", "u")]),
        ("UPDATE t IGNORE INDEX (i, j) JOIN (u y, v) ON f(t.a, u.b) AND c SET a = 1", [
            ("", "t"), ("", "u"), ("", "v"),
        ]),
        ("UPDATE t STRAIGHT_JOIN u ON t.a IN (SELECT b FROM w, x), v SET a = 1", [
            ("", "t"), ("", "u"), ("", "v"),
        ]),
        ("UPDATE t, JSON_TABLE(a, '$' COLUMNS (b INT PATH '$')) j, LATERAL (SELECT 1) k SET c = 1", [
            ("", "t"),
        ]),
        ("UPDATE t AS u JOIN u AS t SET t.a = 1", [("", "t"), ("", "u")]),
        ("DELETE FROM t", [("", "t")]),
        ("DELETE QUICK FROM t WHERE a IN (SELECT b FROM u)", [("", "t")]),
        ("DELETE t, u FROM t JOIN u WHERE t.a = 1", [("", "t"), ("", "u"), ("", "t"), ("", "u")]),
        ("DELETE x.*, s.u FROM t AS x JOIN s.u ON x.a = b", [("s", "u"), ("", "t"), ("s", "u")]),
        ("DELETE FROM X USING t x, u WHERE 1", [("", "t"), ("", "u")]),
        ("DELETE FROM x USING u", [("", "x"), ("", "u")]),
        ("DELETE HISTORY FROM t BEFORE SYSTEM_TIME '2026-01-01'", [("", "t")]),
        ("LOAD DATA INFILE 'f' REPLACE INTO TABLE s.t FIELDS TERMINATED BY ','", [("s", "t")]),
        ("SELECT `s`.`f`()", None),
        ("UPDATE u, /* x SET */ s.t SET a = 1", [("", "u"), ("s", "t")]),
        ("UPDATE u JOIN t USING (a) SET b = 1", [("", "u"), ("", "t")]),
        ("UPDATE/**/`s`/**/./**/t/**/SET a = 1", [("s", "t")]),
        ("DELETE x FROM (SELECT 1 FROM v WHERE 1) y JOIN s.t x", [("s", "t")]),
        ("DELETE FROM t.* USING t JOIN u", [("", "t"), ("", "t"), ("", "u")]),
        ("WITH c AS (SELECT 1), d AS (UPDATE) UPDATE s.t, c SET a = 1", [("s", "t")]),
        ("WITH c AS (SELECT 1) UPDATE s.c, t SET a = 1", [("s", "c"), ("", "t")]),
        ("with recursive c (a) as (select 1) delete from t", [("", "t")]),
        ("WITH c AS (SELECT 1) SELECT f()", None),
        ("ANALYZE UPDATE t SET a = 1", [("", "t")]),
        ("ANALYZE FORMAT=JSON DELETE FROM s.t", [("s", "t")]),
        ("ANALYZE SELECT f()", None),
        ("--\nUPDATE t SET a = 1", [("", "t")]),
        ("/*!50000 INSERT */ /*+ hint */ IGNORE t SELECT 1", [("", "t")]),
        ("VALUES ROW(f())", None),
        ("SET STATEMENT a=1 FOR UPDATE t SET a = 1", [("", "t")]),
    ],
)  # fmt: skip
def test_the_tables_that_a_statement_may_change(statement: str, tables: list[tuple[str, str]] | None) -> None:
    tokens = Tokens(statement)
    assert read_effect(tokens) == "rows"
    assert changed_tables(tokens) == tables


def test_a_part_of_a_period_is_unclear() -> None:
    tokens = Tokens("DELETE FROM t FOR PORTION OF p FROM '2026-01-01' TO '2026-02-01' WHERE a = 1")
    assert read_effect(tokens) == "rows"
    with pytest.raises(NotUnderstood):
        changed_tables(tokens)


def logged(text: bytes, *variables: bytes) -> LoggedStatement:
    status = b"".join(variables)
    return LoggedStatement(pack("<IIBHH", 1, 0, 4, 0, len(status)) + status + b"shop\0" + text)


def zone(name: bytes) -> bytes:
    return b"\x05" + bytes([len(name)]) + name


def test_a_statement_comes_with_its_session() -> None:
    found = logged(
        b"ALTER TABLE \xfc ADD c INT",
        b"\x00" + pack("<I", 1 << 24),
        b"\x01" + pack("<Q", 4),
        b"\x06\x03std",
        b"\x04" + pack("<HHH", 8, 8, 8),
        zone(b"-02:30"),
        b"\x80" + (250_000).to_bytes(3, "little"),
    )
    query = found.as_query(100, ServerZone(((0, 3600),)))
    assert (query.schema, query.query) == ("shop", "ALTER TABLE ü ADD c INT")
    assert query.sql_mode == 4
    assert query.explicit_timestamps
    assert not query.converts_strings
    assert query.epoch_seconds == 100.25
    assert (query.time_zone, query.utc_offset_seconds) == ("-02:30", -9000)


@pytest.mark.parametrize(
    ("client", "connection", "converts"),
    [(8, 8, False), (8, 45, False), (45, 8, True), (33, 192, False), (45, 54, True), (8, 9999, True)],
)
def test_strings_may_be_converted(client: int, connection: int, converts: bool) -> None:
    found = logged(b"DROP TABLE t", b"\x04" + pack("<HHH", client, connection, 8))
    assert found.as_query(0, ServerZone()).converts_strings is converts


def test_a_session_may_be_in_the_server_s_time_zone() -> None:
    server = ServerZone(((100, 3600), (200, 3600), (300, 7200)))
    for found in (logged(b"DROP TABLE t"), logged(b"DROP TABLE t", zone(b"SYSTEM"))):
        query = found.as_query(150, server)
        assert (query.time_zone, query.utc_offset_seconds) == ("SYSTEM", 3600)
        assert not query.explicit_timestamps


def test_the_server_s_clock_is_known_where_it_does_not_change() -> None:
    server = ServerZone(((100, 3600), (200, 3600), (300, 7200)))
    moments = (99, 100, 150, 200, 201, 299, 300, 301)
    assert [server.offset_at(moment) for moment in moments] == [
        None, 3600, 3600, 3600, None, None, 7200, None,
    ]  # fmt: skip
    assert ServerZone(((100, 3600), (200, 3600))).offset_at(5000) == 3600
    assert logged(b"DROP TABLE t").as_query(100, ServerZone()).time_zone == "+00:00"


@pytest.mark.skipif(not available_timezones(), reason="no time zones found: apt-get install tzdata")
def test_a_session_may_be_in_a_named_time_zone() -> None:
    summer = 1_750_000_000
    assert (
        logged(b"DROP TABLE t", zone(b"Europe/Berlin")).as_query(summer, ServerZone()).utc_offset_seconds
        == 7200
    )
    with pytest.raises(SourceError, match="'Nowhere/At_all', which isn't known here: install tzdata"):
        logged(b"DROP TABLE t", zone(b"Nowhere/At_all")).as_query(0, ServerZone())
