"""Both decoders against a live MariaDB: of a row they make the same values, and those it prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address
from random import Random
from struct import pack, unpack_from
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace
from pymysql.constants.COMMAND import COM_STMT_EXECUTE, COM_STMT_PREPARE

from tidemill.codec.images import read_images
from tidemill.codec.mysql.charset import max_bytes, text_decoder
from tidemill.codec.mysql.collation import collation
from tidemill.codec.mysql.known_table import KnownTable
from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.result_rows import SESSION, select_expression
from tidemill.codec.mysql.schema import table_from_information_schema
from tidemill.codec.mysql.table_map import parse_table_map
from tidemill.errors import SourceError
from tidemill.events import Row, Table
from tidemill.snapshot.mysql.definitions import describe
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.shop import TABLES, VALUES, every_type

from ..codec.vectors import Vector, load, outcome, save

TABLE_MAP = 19
ROWS = (23, 24, 25)


class Source:
    """A database of a MariaDB, and its binlog as it is in the server's files."""

    def __init__(self, server: MariaDb, database: str) -> None:
        self._directory = server.data_directory
        self.database = database
        self._connection = server.connect(database=database)
        self.cursor = self._connection.cursor()
        self.query(f"{SESSION}, sql_mode = 'ALLOW_INVALID_DATES'")

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        self.cursor.execute(statement, values or None)
        return list(self.cursor.fetchall())

    @contextmanager
    def recorded(self) -> Iterator[list[bytes]]:
        """Binlog events of what is done inside, without checksums; the list is filled at the end."""
        events: list[bytes] = []
        self.query("FLUSH BINARY LOGS")
        file = self.query("SHOW MASTER STATUS")[0][0]
        yield events
        self.query("FLUSH BINARY LOGS")
        log = (self._directory / file).read_bytes()
        at = 4
        while at < len(log):
            size = int.from_bytes(log[at + 9 : at + 13], "little")
            events.append(log[at : at + size - 4])
            at += size

    def packets(self, statement: str) -> bytes:
        """The row packets of a result in the binary protocol, with their headers."""
        connection: Any = self._connection
        connection._execute_command(COM_STMT_PREPARE, statement)

        def packet() -> bytes:
            header = connection._read_bytes(4)
            return bytes(header + connection._read_bytes(int.from_bytes(header[:3], "little")))

        number, columns = unpack_from("<IH", packet(), 5)
        for _ in range(columns + 1):  # and the packet that ends their list
            packet()
        connection._execute_command(COM_STMT_EXECUTE, pack("<IBI", number, 0, 1))
        for _ in range(1 + columns + 1):
            packet()
        rows = []
        while (row := packet())[4] != 0xFE or len(row) > 12:
            rows.append(row)
        return b"".join(rows)

    def table(self, name: str, *, has_catalog: bool = False) -> Table:
        where = (self.database, name)
        found = describe(self._connection, *where)[name]
        return table_from_information_schema(
            *where, found.columns, found.key, found.checks, has_catalog=has_catalog
        )


@pytest.fixture
def source(mariadb: MariaDb, database: str) -> Iterator[Source]:
    source = Source(mariadb, database)
    yield source
    source._connection.close()


def selection(table: Table) -> str:
    """The SELECT of a snapshot, in the order of the key."""
    return f"SELECT {', '.join(map(select_expression, table.columns))} FROM {table.name} ORDER BY id"


def capture(source: Source, vector: Vector) -> Vector:
    """The vector's rows as this server writes and prints them."""
    rows = ", ".join(f"({i}, {literal}, {-i})" for i, literal in enumerate(vector.literals))
    source.query(
        "CREATE OR REPLACE TABLE v "
        f"(id INT NOT NULL PRIMARY KEY, c {vector.definition}, z TINYINT NOT NULL) CHARSET utf8mb4"
    )
    with source.recorded() as events:
        source.query(f"INSERT IGNORE INTO v VALUES {rows}")
    table = source.table("v")
    text = table.columns[1].kind not in ("binary", "varbinary", "blob", "bit")
    printed = source.query(f"SELECT {'CONCAT(c)' if text else 'c'} FROM v ORDER BY id")
    return Vector(
        vector.definition,
        vector.literals,
        next(event[27:] for event in events if event[4] == TABLE_MAP),
        tuple(event for event in events if event[4] in ROWS),
        source.packets(selection(table)),
        tuple(value for (value,) in printed),
    )


@pytest.fixture
def captured(source: Source, rewrite: bool) -> list[Vector]:
    vectors = [capture(source, vector) for vector in load()]
    if rewrite:
        save(vectors)
    return vectors


def test_the_recorded_rows_are_what_this_server_writes(captured: list[Vector]) -> None:
    for recorded, vector in zip(load(), captured, strict=True):
        assert outcome(vector) == recorded.outcome, vector.definition
        assert vector.packets == recorded.packets, vector.definition
        assert [event[27:] for event in vector.events] == [event[27:] for event in recorded.events]


def test_a_table_is_the_same_in_the_schema_and_in_the_binlog(source: Source) -> None:
    for vector in load():
        if vector.definition == "JSON":
            continue  # the binlog calls it a text
        source.query(
            f"CREATE OR REPLACE TABLE v (a INT, c {vector.definition}, b CHAR(20), PRIMARY KEY (b, a)) "
            "CHARSET utf8mb4"
        )
        with source.recorded() as events:
            source.query("INSERT IGNORE INTO v VALUES (1, 0, 'x')")
        (payload,) = (event[27:] for event in events if event[4] == TABLE_MAP)
        assert parse_table_map(payload).table == _as_logged(source.table("v")), vector.definition


def _as_logged(table: Table) -> Table:
    """Return a table without the parts of its columns' types that no Table_map tells."""
    return replace(
        table,
        columns=tuple(
            replace(
                column,
                width=0,
                zerofill=False,
                subtype="",
                length=0 if column.kind in ("float", "double") else column.length,
                scale=0 if column.kind in ("float", "double") else column.scale,
            )
            for column in table.columns
        ),
    )


@pytest.mark.parametrize(
    ("definition", "key"),
    [
        ("x INT, y INT NOT NULL, z CHAR(5) NOT NULL, UNIQUE b (z), UNIQUE a (y), UNIQUE (x)", ["z"]),
        ("x INT NOT NULL, y INT NOT NULL, UNIQUE (y, x), UNIQUE (x)", ["y", "x"]),
        ("x INT, y INT NOT NULL, z INT, UNIQUE (y), PRIMARY KEY (z, x)", ["z", "x"]),
        ("x INT, y INT NOT NULL, UNIQUE (x), UNIQUE (x, y), KEY (y)", []),
        ("z VARCHAR(50) NOT NULL, UNIQUE (z(5))", []),
    ],
)
def test_a_unique_key_takes_the_place_of_a_primary_key(
    source: Source, definition: str, key: list[str]
) -> None:
    source.query(f"CREATE TABLE v ({definition})")
    with source.recorded() as events:
        source.query(f"INSERT INTO v VALUES ({', '.join('1' for _ in source.table('v').columns)})")
    (payload,) = (event[27:] for event in events if event[4] == TABLE_MAP)
    table = source.table("v")
    assert [table.columns[i].name for i in table.key] == key
    assert parse_table_map(payload).table.key == table.key


def test_both_decoders_agree_on_random_changes_of_every_type(source: Source) -> None:
    rng = Random(7)
    layouts = Layouts()
    source.query(f"CREATE TABLE t ({TABLES['every_type']}) CHARSET utf8mb4")
    columns = ["id", *VALUES]
    with source.recorded() as events:
        insert = f"INSERT INTO t ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"
        source.cursor.executemany(insert, [every_type(rng, i) for i in range(300)])
        update = f"UPDATE t SET {', '.join(f'{column} = %s' for column in VALUES)} WHERE id = %s"
        for i in range(100):
            source.query(update, *every_type(rng, i)[1:], i)
        source.query("DELETE FROM t WHERE id % 6 = 5")
    layout = layouts.layout(layouts.number_of(next(e[27:] for e in events if e[4] == TABLE_MAP)))
    rows: dict[int, Row] = {}
    for change in (c for e in events if e[4] in ROWS for c in layout.decode_rows(e, 1, 1)):
        if change.before is not None:
            assert repr(rows.pop(change.before[0])) == repr(change.before)
        if change.after is not None:
            rows[change.after[0]] = change.after
    table = source.table("t")
    assert table.columns[-1].kind == "json"
    snapshot = (
        layouts.layout(layouts.add_table(table)).result_run(source.packets(selection(table)), 1, 1).changes()
    )
    assert len(snapshot) == 250
    for change in snapshot:
        assert change.after is not None
        assert repr(change.after) == repr(rows.pop(change.after[0]))
    assert not rows


def test_a_wrong_enum_value_differs_from_an_empty_member(source: Source) -> None:
    layouts = Layouts()
    source.query(
        "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('', '0', 'x') NOT NULL, f ENUM('x')) CHARSET utf8mb4"
    )
    with source.recorded() as events:
        source.query("INSERT IGNORE INTO t VALUES (1, '', 'x'), (2, 'wrong', 'wrong'), (3, 'x', NULL)")
    wanted = [(1, "", "x"), (2, "00", ""), (3, "x", None)]
    layout = layouts.layout(layouts.number_of(next(e[27:] for e in events if e[4] == TABLE_MAP)))
    logged = [c.after for e in events if e[4] in ROWS for c in layout.decode_rows(e, 1, 1)]
    assert logged == wanted
    table = source.table("t")
    packets = source.packets(selection(table))
    snapshot = layouts.layout(layouts.add_table(table)).result_run(packets, 1, 1).changes()
    assert [change.after for change in snapshot] == wanted


SPECIAL = """
    id INT PRIMARY KEY, u UUID, four INET4, six INET6, place GEOMETRY, dot POINT,
    short VARCHAR(300) COMPRESSED, bytes VARBINARY(70) COMPRESSED,
    long_text MEDIUMTEXT COMPRESSED, lump BLOB COMPRESSED,
    twice INT AS (id * 2) VIRTUAL, thrice INT AS (id * 3) STORED, quiet INT INVISIBLE DEFAULT 7,
    words TEXT, UNIQUE (words)
"""
"""Columns of which a Table_map event doesn't tell everything, and one more in the rows for the UNIQUE key."""


def special(rng: Random, number: int) -> tuple[Any, ...]:
    """Values for them; UUIDs and addresses are full of zeros and of the bits that choose their form."""

    def raw(size: int) -> bytes:
        edges = (0, 0, 1, 0x10, 0x60, 0x7F, 0x80, 0xFF, rng.randrange(256))
        return bytes(rng.choice(edges) for _ in range(size))

    def words(length: int) -> str:
        return "".join(rng.choice("aé€ 'x") for _ in range(rng.randint(0, length)))

    mapped = rng.choice((b"", bytes(10) + b"\xff\xff", bytes(12)))
    values: list[Any] = [
        UUID(bytes=raw(16)),
        str(IPv4Address(raw(4))),
        str(IPv6Address(mapped + raw(16 - len(mapped)))),
        f"POINT({number} -1.5)",
        "POINT(1 2)",
        words(300),
        raw(rng.randint(0, 70)),
        words(3000),
        rng.randbytes(rng.randint(0, 3000)),
    ]
    return (number, *(None if rng.random() < 0.1 else value for value in values), f"{number} {words(20)}")


def test_types_that_only_the_schema_tells(source: Source) -> None:
    rng = Random(3)
    source.query(f"CREATE TABLE t ({SPECIAL}) CHARSET utf8mb4")
    names = "id, u, four, six, place, dot, short, bytes, long_text, lump, words"
    holes = "%s, %s, %s, %s, ST_GeomFromText(%s), ST_GeomFromText(%s), %s, %s, %s, %s, %s"
    with source.recorded() as events:
        for number in range(1000):
            source.query(f"INSERT INTO t ({names}) VALUES ({holes})", *special(rng, number))
        source.query("UPDATE t SET id = id + 1000 WHERE id % 3 = 0")
        source.query("DELETE FROM t WHERE id % 5 = 0")
    table = source.table("t", has_catalog=True)
    layouts = Layouts()
    (payload,) = {e[27:] for e in events if e[4] == TABLE_MAP}
    layout = layouts.layout(layouts.number_of(payload)).with_schema(KnownTable(table))
    rows: dict[int, Row] = {}
    for event in (e for e in events if e[4] in ROWS):
        run = layout.block().add(event, 1, 1)
        for change in run.changes():
            if change.before is not None:
                assert rows.pop(change.before[0]) == change.before
            if change.after is not None:
                rows[change.after[0]] = change.after
        before, after = read_images([run]) or (None, None)
        assert before is not None
        assert after is not None
        for image, of in ((before, "before"), (after, "after")):
            if image.columns is not None:
                listed = list(zip(*(column.to_pylist() for column in image.columns), strict=True))
                assert listed == [getattr(change, of) for change in run.changes()]
    packets = source.packets(selection(table))
    snapshot = layouts.layout(layouts.add_table(table)).result_run(packets, 1, 1).changes()
    assert len(snapshot) == len(rows) > 700
    for change in snapshot:
        assert change.after is not None
        assert change.after == rows[change.after[0]]


def test_collations_have_the_ids_of_the_server(source: Source) -> None:
    listed = source.query(
        "SELECT ID, CHARACTER_SET_NAME, FULL_COLLATION_NAME "
        "FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    )
    assert len(listed) > 1000
    for number, charset, name in listed:
        assert collation(number) == (charset, name)


def test_characters_are_those_of_the_server(source: Source) -> None:
    """Every byte of the one-byte sets, every pair of bytes that is a character of the others."""
    unsupported = []
    charsets = source.query("SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS")
    for charset, width in charsets:
        assert max_bytes(charset) == width
        try:
            decode = text_decoder(charset)
        except LookupError:
            unsupported.append(charset)
            continue
        characters = [bytes((byte,)) for byte in range(256)]
        if width > 1:
            characters = [bytes((high, low)) for high in range(0x81, 0xFF) for low in range(0x40, 0xFF)]
        if charset in ("ujis", "eucjpms"):
            euc = range(0xA1, 0xFF)
            characters += [bytes((0x8F, row, cell)) for row in euc for cell in euc]
        if charset == "utf32":
            characters = [one.rjust(4, b"\0") for one in characters]
        for start in range(0, len(characters), 2000):
            some = characters[start : start + 2000]
            texts = (f"HEX(CONVERT(CONVERT(x'{one.hex()}' USING {charset}) USING utf8mb4))" for one in some)
            for one, utf8 in zip(some, source.query(f"SELECT {', '.join(texts)}")[0], strict=True):
                text = bytes.fromhex(utf8 or "").decode(errors="ignore")  # half of a pair in UTF-16
                if len(text) != 1 or (text == "?" and width > 1):
                    continue  # no character of the set
                assert decode(one) == text, (charset, one)
    assert unsupported == ["binary"]


@pytest.mark.parametrize(
    ("definition", "what"),
    [
        ("c UUID", "type uuid looks like others in a binlog and needs the local engine; without, it"),
        ("c INET6", "type inet6 looks like others in a binlog and needs the local engine; without, it"),
        ("c YEAR(2)", "YEAR(2)"),
        ("c ENUM('a') CHARACTER SET binary", "enum with CHARACTER SET binary"),
    ],
)
def test_an_unsupported_column_is_an_error_that_names_it(source: Source, definition: str, what: str) -> None:
    source.query(f"CREATE TABLE t (id INT, {definition})")
    with pytest.raises(SourceError) as raised:
        source.table("t")
    assert f"column c of table {source.database}.t is " in str(raised.value)
    assert f": {what} isn't supported" in str(raised.value)
    assert "tinyint, smallint" in str(raised.value)


def test_defaults_are_those_of_the_schema(source: Source) -> None:
    source.query(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, i INT NOT NULL DEFAULT -5, "
        "v VARCHAR(9) DEFAULT 'it''s', e INT DEFAULT (1 + 1), b BIT(3) DEFAULT b'101', "
        "d DATETIME(3) DEFAULT NOW(3) ON UPDATE NOW(3), h INT INVISIBLE DEFAULT 3)"
    )
    columns = {c.name: (c.nullable, c.default, c.on_update) for c in source.table("t").columns}
    assert columns == {
        "id": (False, None, None),
        "n": (True, None, None),
        "i": (False, "-5", None),
        "v": (True, "'it''s'", None),
        "e": (True, "(1 + 1)", None),
        "b": (True, "b'101'", None),
        "d": (True, "current_timestamp(3)", "CURRENT_TIMESTAMP(3)"),
        "h": (True, "3", None),
    }
