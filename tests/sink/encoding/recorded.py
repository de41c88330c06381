"""Messages that the originals wrote, with the events that they wrote them for, as tidemill's."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from struct import pack, unpack
from typing import Any, NamedTuple

from msgspec.structs import replace

from tidemill.codec.tidb.table import to_table
from tidemill.codec.tidb.table_info import TableInfo, decode_table_info
from tidemill.events import (
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    Column,
    CreateTable,
    Ddl,
    Details,
    DropColumn,
    DropTable,
    Index,
    RenameTables,
    RowChange,
    Table,
    TruncateTable,
)
from tidemill.sink.encoding.definition import Definition, TableIndex

VECTORS = Path(__file__).parents[2] / "vectors" / "encodings"
NOW = 1_700_000_000_000

_VECTOR = 225


class Recorded(NamedTuple):
    """One message of an original, or the fact that it wrote none."""

    number: int
    encoding: str
    options: dict[str, Any]
    time_zone: str
    events: list[dict[str, Any]]
    key: bytes | None
    value: bytes | None
    rows: int
    error: str
    batched: bool

    def __str__(self) -> str:
        options = ",".join(f"{name}={value}" for name, value in self.options.items())
        tables = {event.get("table", "") for event in self.events}
        return f"{self.number}:{self.encoding}:{'+'.join(tables)}:{self.events[0]['op']}:{options}"


@cache
def recorded(file: str) -> list[Recorded]:
    found = []
    for number, line in enumerate(lines(file)):
        event = line["event"]
        found.append(
            Recorded(
                number,
                line["encoding"],
                line["options"],
                line["time_zone"],
                event if isinstance(event, list) else [event],
                _bytes(line.get("key")),
                _bytes(line.get("value")),
                line.get("rows", 0),
                line.get("error", ""),
                isinstance(event, list),
            )
        )
    return found


def lines(file: str) -> Iterator[Any]:
    with gzip.open(VECTORS / f"{file}.jsonl.gz", "rt") as stream:
        yield from map(json.loads, stream)


def _bytes(found: dict[str, str] | None) -> bytes | None:
    if found is None:
        return None
    return bytes.fromhex(found["hex"]) if "hex" in found else found["text"].encode()


# --- tables


@cache
def _definitions() -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for line in lines("tables"):
        created = line.get("create_sql", line.get("after_ddl"))
        if "table_info" in line:
            info = json.dumps(line["table_info"]).encode()
            found[created] = _definition(line["schema"], info, line["table_id"], line["table_version"])
    return found


def definition_for(event: dict[str, Any]) -> Definition:
    return _definitions()[event["create_sql"]]


@cache
def definition_of_table(table: Table) -> Definition:
    known = (one for one in _definitions().values() if one.table is table or one.table == table)
    return next(known, Definition(table))


def _definition(schema: str, encoded: bytes, table_id: int, version: int) -> Definition:
    raw = json.loads(encoded)
    vectors = {
        column["name"]["O"]: column["type"] for column in raw["cols"] if column["type"]["Tp"] == _VECTOR
    }
    for column in raw["cols"]:
        if column["name"]["O"] in vectors:
            column["type"] = {**column["type"], "Tp": 252}  # a type that tidemill's TiKV source knows
    info = decode_table_info(json.dumps(raw).encode())
    table = to_table(schema, info)
    columns = tuple(
        Column(c.name, "vector", length=max(vectors[c.name]["Flen"], 0), nullable=c.nullable)
        if c.name in vectors
        else c
        for c in table.columns
    )
    table = replace(table, columns=columns)
    return _described(table, info, table_id, version)


def _described(table: Table, info: TableInfo, table_id: int, version: int) -> Definition:
    places = {column.name: place for place, column in enumerate(table.columns)}
    indexes = []
    for index in info.indexes:
        columns = tuple(places[part.name] for part in index.columns)
        indexes.append(TableIndex(index.name, columns, unique=index.unique, primary=index.primary))
    if info.pk_is_handle:
        indexes.append(TableIndex("primary", table.key, unique=True, primary=True))
    handle = table.key
    if not handle:
        for index in indexes:
            if index.unique and not any(table.columns[place].nullable for place in index.columns):
                handle = index.columns
                break
    return Definition(
        table,
        handle_key=handle,
        indexes=tuple(indexes),
        table_id=table_id,
        version=version,
    )


# --- rows


def row_change(event: dict[str, Any]) -> RowChange:
    table = definition_for(event).table
    return RowChange(
        event["commit_ts"],
        event["start_ts"],
        table,
        event["op"],
        _row(table, event["before"]),
        _row(table, event["after"]),
    )


def _row(table: Table, texts: dict[str, Any] | None) -> tuple[Any, ...] | None:
    if texts is None:
        return None
    return tuple(_value(column, texts[column.name]) for column in table.columns)


def _value(column: Column, text: Any) -> Any:
    if text is None:
        return None
    if isinstance(text, dict):
        found = bytes.fromhex(text["hex"])
        return int.from_bytes(found, "big") if column.kind == "bit" else found
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" | "bit":
            return int(text)
        case "float":
            return unpack("<f", pack("<f", float(text)))[0]
        case "double":
            return float(text)
        case "decimal":
            return Decimal(text)
        case "date":
            return text if text.startswith("0000") else date.fromisoformat(text)
        case "datetime":
            return text if text.startswith("0000") else datetime.fromisoformat(text)
        case "timestamp":
            return text if text.startswith("0000") else datetime.fromisoformat(text).replace(tzinfo=UTC)
        case "time":
            hours, minutes, seconds = text.lstrip("-").split(":")
            whole, _, fraction = seconds.partition(".")
            found = timedelta(
                hours=int(hours),
                minutes=int(minutes),
                seconds=int(whole),
                microseconds=int(fraction.ljust(6, "0") or 0),
            )
            return -found if text.startswith("-") else found
        case "vector":
            numbers = json.loads(text)
            return pack(f"<{len(numbers)}f", *numbers)
    return text


# --- schema changes

_X = Column("x", "int")
_INDEX = Index("i", ())


def ddl_of(event: dict[str, Any]) -> Ddl | None:
    """Return the statement as a source delivers it; None for one that no source delivers."""
    schema, table = event["schema"], event["table"]
    old = (event["old_schema"], event["old_table"])
    actions: dict[int, tuple[Any, ...]] = {
        3: (CreateTable(Table(schema, table, ())),),
        4: (DropTable(),),
        5: (AddColumn(_X),),
        6: (DropColumn("x"),),
        7: (ChangeDetails(Details(), Details(indexes=(_INDEX,)), Table(schema, table, ())),),
        8: (ChangeDetails(Details(indexes=(_INDEX,)), Details(), Table(schema, table, ())),),
        11: (TruncateTable(),),
        12: (ChangeColumn("x", Column("x", "bigint"), _X),),
        14: (RenameTables(((old, (schema, table)),)),),
        15: (ChangeColumn("x", replace(_X, default="4"), _X),),
        17: (ChangeDetails(Details(), Details(comment="c"), Table(schema, table, ())),),
        61: (AddColumn(_X), AddColumn(_X)),
    }
    if event["type"] not in actions:
        return None
    if event["type"] == 14:
        schema, table = old
    return Ddl(
        event["commit_ts"],
        event["start_ts"],
        "source",
        schema,
        table,
        event["query"],
        actions[event["type"]],
    )
