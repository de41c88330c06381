"""Tables rebuilt from topics of canal-json, by a consumer that sees committed transactions only."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from . import shop
from .compare import CopyComparison, Printed, PrintedColumn, Rows, compare, mariadb_rows, source_columns
from .kafka import messages
from .mariadb import MariaDb

_MEMBER: Final = re.compile(r"'((?:[^']|'')*)'")


def compare_topics(
    brokers: str, server: MariaDb, prefix: str = "shop", schema: str = "shop"
) -> CopyComparison:
    """Compare the shop's tables with the topics `PREFIX_TABLE`.

    Of messages with the same header `at`, which a feed writes at least once, the first is taken.
    """
    pairs = {}
    for table in shop.TABLES:
        with server.connect() as connection:
            columns = source_columns(connection, schema, table)
            members = _members(connection, schema, table)
        source = mariadb_rows(server.connect, schema, table, columns)
        pairs[f"{table} in Kafka"] = (source, _rebuilt(brokers, f"{prefix}_{table}", columns, members))
    return compare(pairs)


def _rebuilt(
    brokers: str, topic: str, columns: list[PrintedColumn], members: Mapping[str, list[str]]
) -> Rows:
    """Yield the rows of a topic's table, as the source prints them.

    Raises AssertionError if a change has no row to change: it came twice, or one before it is missing.
    """
    forms = [_form(column, members.get(column.name, [])) for column in columns]

    def rows() -> Iterator[Printed]:
        rows_now: Counter[str] = Counter()
        seen: set[object] = set()
        for message in messages(brokers, topic):
            if stamp := dict(message.headers() or ()).get("at"):
                if stamp in seen:
                    continue
                seen.add(stamp)
            document: dict[str, Any] = json.loads(message.value() or b"")
            if document["isDdl"] or document["type"] == "TIDB_WATERMARK":
                continue
            kind, data = document["type"], document["data"]
            gone = {"UPDATE": document["old"], "DELETE": data}.get(kind, [])
            rows_now.subtract(json.dumps(row, sort_keys=True) for row in gone)
            rows_now.update(json.dumps(row, sort_keys=True) for row in data if kind != "DELETE")
        assert min(rows_now.values(), default=0) >= 0, f"{topic}: a change has no row to change"
        for row in map(json.loads, rows_now.elements()):
            yield tuple(form(row[column.name]) for form, column in zip(forms, columns, strict=True))

    return rows


def _form(column: PrintedColumn, members: list[str]) -> Callable[[str | None], str | None]:
    """Return the function from a value of canal-json to its text in the source."""

    def form(text: str | None) -> str | None:
        if text is None:
            return None
        match column.data_type:
            case "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob":
                return text.encode("latin-1").hex().upper()
            case "float":
                return repr(struct.unpack("f", struct.pack("f", float(text)))[0])
            case "double":
                return repr(float(text))
            case "year":
                return f"{int(text):04d}"
            case "enum":
                return members[int(text) - 1] if int(text) else ""
            case "set":
                return ",".join(member for bit, member in enumerate(members) if int(text) >> bit & 1)
        return text

    return form


def _members(connection: Any, schema: str, table: str) -> dict[str, list[str]]:
    """Return the members of each enum and set."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, column_type FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s AND data_type IN ('enum', 'set')",
            (schema, table),
        )
        return {
            name: [member.replace("''", "'") for member in _MEMBER.findall(kind)]
            for name, kind in cursor.fetchall()
        }
