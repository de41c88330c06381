"""canal-protobuf: packets hold what canal-json's recorded messages of the same events say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemill.codec.proto import canal
from tidemill.events import Column, CreateTable, Ddl, RowChange, Table, compose_ts
from tidemill.sink.encoding.encoder import Message, NotEncodable
from tidemill.sink.encoding.encodings import make_encoder
from tidemill.sink.encoding.numbers import java_number

from .recorded import Recorded, definition_of_table, recorded, row_change

pytestmark = pytest.mark.usefixtures("decoder")

T = Table("s", "t", (Column("id", "int", nullable=False), Column("v", "varchar", length=9)), key=(0,))
TS = compose_ts(1_700_000_000_000)


def entries(messages: list[Message]) -> list[list[Any]]:
    """Return the entries of each message."""
    packets = [canal.Packet.FromString(message.value or b"") for message in messages]
    assert all(packet.type == canal.PacketType.MESSAGES for packet in packets)
    found = [canal.Messages.FromString(packet.body).messages for packet in packets]
    return [list(map(canal.Entry.FromString, batch)) for batch in found]


def change(entry: Any) -> Any:
    return canal.RowChange.FromString(entry.storeValue)


def insert(key: int, value: str | None = "", ts: int = TS) -> RowChange:
    return RowChange(ts, ts, T, "insert", None, (key, value))


def encoder(**options: Any) -> Any:
    return make_encoder("canal-protobuf", options, lambda: 0, definition_of_table)


def compatible() -> list[Recorded]:
    """Return the rows that canal-json was recorded for in the form that is most like Canal's."""
    found = [one for one in recorded("canal-json") if one.options == {"content-compatible": True}]
    return [one for one in found if one.events[0]["op"] in ("insert", "update", "delete")]


def test_rows_are_what_canal_json_has_for_the_same_events() -> None:
    rows = compatible()
    assert len(rows) > 20
    for one in rows:
        flat = json.loads(one.value or b"")
        [[entry]] = entries(encoder(**{"time-zone": one.time_zone}).rows([row_change(one.events[0])]))
        header, content = entry.header, change(entry)
        assert (header.schemaName, header.tableName) == (flat["database"], flat["table"])
        assert header.executeTime == flat["es"]
        assert header.eventType == content.eventType == getattr(canal.EventType, flat["type"])
        [row] = content.rowDatas
        columns = row.beforeColumns if flat["type"] == "DELETE" else row.afterColumns
        assert {c.name: value(c) for c in columns} == {name: java(flat, name) for name in flat["data"][0]}
        assert {c.name: c.sqlType for c in columns} == flat["sqlType"]
        assert {c.name: c.mysqlType for c in columns} == flat["mysqlType"]
        assert [c.name for c in columns if c.isKey] == flat["pkNames"]
        if flat["type"] == "UPDATE":
            assert {c.name for c in columns if c.updated} == set(flat["old"][0])
            before = {c.name: value(c) for c in row.beforeColumns}
            assert all(before[name] == java(flat, name, "old") for name in flat["old"][0])


def value(column: Any) -> str | None:
    return None if column.isNull else column.value


def java(flat: dict[str, Any], name: str, which: str = "data") -> str | None:
    """Return a value of canal-json with numbers as Java prints them."""
    text: str | None = flat[which][0][name]
    kind = flat["mysqlType"][name].partition("(")[0].split()[0]
    if text is None or kind not in ("float", "double"):
        return text
    return java_number(repr(float(text)))


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0.0"), (-0.0, "-0.0"), (1.5, "1.5"), (1e-3, "0.001"), (9.99e-4, "9.99E-4"),
     (9999999.0, "9999999.0"), (1e7, "1.0E7"), (-1.25e300, "-1.25E300"), (12345678.5, "1.23456785E7")],
)  # fmt: skip
def test_numbers_are_printed_as_java_prints_them(number: float, text: str) -> None:
    assert java_number(repr(number)) == text


def test_rows_of_a_table_and_transaction_are_one_entry() -> None:
    [[entry]] = entries(encoder().rows([insert(1), insert(2)]))
    assert [row.afterColumns[0].value for row in change(entry).rowDatas] == ["1", "2"]
    assert [(pair.key, pair.value) for pair in entry.header.props] == [("rowsCount", "2")]
    assert (entry.header.serverenCode, entry.header.sourceType) == ("UTF-8", canal.Type.MYSQL)


def test_a_packet_has_at_most_the_options_rows() -> None:
    messages = encoder(**{"max-batch-size": 2}).rows([insert(1), insert(2, ts=TS + 1), insert(3, ts=TS + 1)])
    assert [message.rows for message in messages] == [2, 1]
    found = [[len(change(entry).rowDatas) for entry in packet] for packet in entries(messages)]
    assert found == [[1, 1], [1]]


def test_a_packet_has_at_most_the_options_bytes() -> None:
    changes = [insert(n, "x" * 40) for n in range(20)]
    messages = encoder(**{"max-message-bytes": 600}).rows(changes)
    assert sum(message.rows for message in messages) == 20
    sizes = [len(message.value or b"") + 36 for message in messages]
    assert 400 < max(sizes) <= 600
    assert [change(e).rowDatas[0].afterColumns[0].index for packet in entries(messages) for e in packet] == [
        0
    ] * len(messages)


def test_a_transaction_in_parts_begins_and_ends_once() -> None:
    marked = encoder(**{"filter-transaction-entry": False})
    messages = [
        *marked.rows([insert(1)], last=False),
        *marked.rows([insert(2)]),
        *marked.rows([insert(3, ts=TS + 1)]),
    ]
    kinds = [canal_kind(entry) for packet in entries(messages) for entry in packet]
    assert kinds == ["BEGIN", "ROWDATA", "ROWDATA", "END", "BEGIN", "ROWDATA", "END"]
    end = entries(messages)[1][-1]
    assert canal.TransactionEnd.FromString(end.storeValue).transactionId == str(TS)


def canal_kind(entry: Any) -> str:
    return {1: "BEGIN", 2: "ROWDATA", 3: "END", 4: "HEARTBEAT"}[entry.entryType]


def test_a_schema_change_is_an_entry_without_rows() -> None:
    ddl = Ddl(TS, TS, "source", "s", "t", "CREATE TABLE t (id INT)", (CreateTable(T),))
    [[entry]] = entries(encoder().ddl(ddl))
    assert entry.header.eventType == canal.EventType.CREATE
    content = change(entry)
    assert (content.isDdl, content.sql, content.ddlSchemaName) == (True, "CREATE TABLE t (id INT)", "s")


def test_a_watermark_is_a_heartbeat_with_its_ts() -> None:
    assert encoder().watermark(TS) == []
    [[entry]] = entries(encoder(**{"enable-tidb-extension": True}).watermark(TS))
    assert (canal_kind(entry), entry.header.eventType) == ("HEARTBEAT", canal.EventType.MHEARTBEAT)
    assert [(pair.key, pair.value) for pair in entry.header.props] == [("watermarkTs", str(TS))]


def test_a_row_beyond_the_limit_is_refused_also_after_smaller_ones() -> None:
    with pytest.raises(NotEncodable, match=r"table s\.t: a row takes"):
        encoder(**{"max-message-bytes": 300}).rows([insert(1), insert(2, "x" * 300)])


def test_a_float_whose_sign_of_zero_changes_is_updated() -> None:
    table = Table("s", "f", (Column("d", "double"),))
    [[entry]] = entries(encoder().rows([RowChange(TS, TS, table, "update", (0.0,), (-0.0,))]))
    assert change(entry).rowDatas[0].afterColumns[0].updated
