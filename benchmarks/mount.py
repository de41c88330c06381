"""Decoding of TiDB's rows to Python values, compared with loops written by hand for that one table.

The rows have eight columns of mixed types in TiDB's row format 2; names with `format_1` are of the same rows
in format 1. `mount` makes tuples, and `typed` the Arrow columns of Spark's typed reader. Names with `python`
are of the decoder in Python, the others of the one in use. The loops read the offsets of all values by one
`struct.unpack`, and the values by slices and `struct`; they assume the table's layout and check nothing.
`by_hand` produces the same values; `by_hand_packed` leaves dates packed and decimals as their bytes.
"""

from __future__ import annotations

import gc
import json
import statistics
import struct
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from ..codec.native import library
from ..codec.tidb.changes import ChangesDecoder
from ..codec.tidb.column_type import ColumnFlag, Type
from ..codec.tidb.row_encoder import RowEncoder
from ..codec.tidb.run import inserts
from ..codec.tidb.table_info import ColumnInfo, TableInfo
from ..spark.read.pick import Pick
from ..spark.read.typed import TypedEncoder

Pairs: TypeAlias = Sequence[tuple[bytes, bytes]]

_COLUMNS = (
    ("id", Type.LONGLONG, ColumnFlag.NOT_NULL | ColumnFlag.PRI_KEY, 20, 0),
    ("customer", Type.LONG, ColumnFlag.NOT_NULL, 11, 0),
    ("amount", Type.LONGLONG, ColumnFlag.UNSIGNED, 20, 0),
    ("price", Type.NEWDECIMAL, 0, 12, 2),
    ("ratio", Type.DOUBLE, 0, 22, -1),
    ("name", Type.VARCHAR, 0, 60, 0),
    ("at", Type.DATETIME, 0, 19, 0),
    ("note", Type.BLOB, 0, 65535, 0),
)


def run(*, rows: int = 200_000, batch: int = 1_000, rounds: int = 5) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share; figures are rows per second."""
    info = _table()
    pairs, old_pairs = _rows(info, rows, 2), _rows(info, rows, 1)
    batches, old_batches = _batches(pairs, batch), _batches(old_pairs, batch)
    works: dict[str, tuple[Callable[[Pairs], Any], list[Pairs]]] = {
        "by_hand": (_by_hand, batches),
        "by_hand_packed": (_by_hand_packed, batches),
    }
    for suffix in ("", "_python"):
        decode, typed = _decoders(info, in_use=library.in_use and not suffix)
        if not decode(pairs[:batch]) == decode(old_pairs[:batch]) == _by_hand(pairs[:batch]):
            raise RuntimeError("the loop by hand, or format 1, makes other values")
        works[f"mount{suffix}"] = decode, batches
        works[f"mount_format_1{suffix}"] = decode, old_batches
        works[f"typed{suffix}"] = typed, batches
        works[f"typed_format_1{suffix}"] = typed, old_batches
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):  # in turn, so that drift of the machine affects all
        for name, work in works.items():
            seconds[name].append(_seconds(*work))
    figures = {name: round(rows / statistics.median(taken)) for name, taken in seconds.items()}
    yardstick = {name: figures.pop(name) for name in ("by_hand", "by_hand_packed")}
    return {
        "bench": "mount",
        "settings": {"rows": rows, "batch": batch, "rounds": rounds, "columns": len(_COLUMNS)},
        "figures": figures,
        "yardstick": yardstick,
        "ratio": {
            "mount": round(figures["mount"] / yardstick["by_hand"], 3),
            "mount_packed": round(figures["mount"] / yardstick["by_hand_packed"], 3),
            **{
                f"{name}_to_python": round(figures[name] / figures[f"{name}_python"], 3)
                for name in ("mount", "mount_format_1", "typed", "typed_format_1")
            },
        },
    }


def _batches(pairs: Pairs, size: int) -> list[Pairs]:
    return [pairs[at : at + size] for at in range(0, len(pairs), size)]


def _decoders(info: TableInfo, *, in_use: bool) -> tuple[Callable[[Pairs], Any], Callable[[Pairs], Any]]:
    """Return a function to tuples, and one to Arrow columns."""
    was, library.in_use = library.in_use, in_use
    try:
        decoder = ChangesDecoder("bench", info)
        if (decoder.rows.layout is not None) != in_use:
            raise RuntimeError("the native decoder doesn't read this table")
    finally:
        library.in_use = was
    encoder = TypedEncoder(decoder.table, Pick())

    def typed(pairs: Pairs) -> Any:
        return encoder.images([inserts(decoder, 2, *map(list, zip(*pairs, strict=True)))])

    return decoder.rows.decode, typed


def _table() -> TableInfo:
    columns = [
        ColumnInfo(
            id=offset + 1,
            name=name,
            offset=offset,
            type=type_,
            flags=flags,
            length=length,
            decimal=decimal,
            charset="utf8mb4" if type_ in (Type.VARCHAR, Type.BLOB) else "binary",
            collation="utf8mb4_bin" if type_ in (Type.VARCHAR, Type.BLOB) else "binary",
        )
        for offset, (name, type_, flags, length, decimal) in enumerate(_COLUMNS)
    ]
    return TableInfo(id=104, name="mounted", columns=tuple(columns), pk_is_handle=True)


def _rows(info: TableInfo, count: int, row_format: Literal[1, 2]) -> Pairs:
    encoder = RowEncoder("bench", info, row_format=row_format)
    start = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001
    return [
        encoder.encode(
            (
                key,
                key * 7919 % 100_000,
                2**63 + key if key % 2 else key,
                Decimal(key * 104_729 % 1_000_000).scaleb(-2),
                key / 7,
                f"name of {key}",
                start.replace(minute=key % 60, day=key % 28 + 1),
                f"{key} " + "n" * (key % 40),
            )
        )
        for key in range(count)
    ]


_ENDS = struct.Struct("<7H").unpack_from
"""The ends of the values, after a head of 6 bytes and 7 ids."""

_HANDLE = struct.Struct(">Q").unpack_from
_DOUBLE = struct.Struct(">d").unpack_from
_WORDS = struct.Struct(">xxBIB").unpack_from


def _by_hand(pairs: Pairs) -> list[tuple[Any, ...]]:
    """Decode the rows by hand; the prices and the ratios are positive."""
    made = []
    for key, value in pairs:
        a, b, c, d, e, f, g = _ENDS(value, 13)
        data = value[27:]
        top, middle, low = _WORDS(data, b)
        at = int.from_bytes(data[e:f], "little")
        made.append(
            (
                _HANDLE(key, 11)[0] - (1 << 63),
                int.from_bytes(data[:a], "little", signed=True),
                int.from_bytes(data[a:b], "little"),
                Decimal((top - 128) * 10**11 + middle * 100 + low).scaleb(-2),
                -_DOUBLE(data, c)[0],
                data[d:e].decode(),
                datetime(  # noqa: DTZ001
                    (at >> 46) // 13,
                    (at >> 46) % 13,
                    at >> 41 & 31,
                    at >> 36 & 31,
                    at >> 30 & 63,
                    at >> 24 & 63,
                    at & 0xFFFFFF,
                ),
                data[f:g].decode(),
            )
        )
    return made


def _by_hand_packed(pairs: Pairs) -> list[tuple[Any, ...]]:
    made = []
    for key, value in pairs:
        a, b, c, d, e, f, g = _ENDS(value, 13)
        data = value[27:]
        made.append(
            (
                _HANDLE(key, 11)[0] - (1 << 63),
                int.from_bytes(data[:a], "little", signed=True),
                int.from_bytes(data[a:b], "little"),
                data[b + 2 : c],
                -_DOUBLE(data, c)[0],
                data[d:e].decode(),
                int.from_bytes(data[e:f], "little"),
                data[f:g].decode(),
            )
        )
    return made


def _seconds(work: Callable[[Pairs], Any], batches: Sequence[Pairs]) -> float:
    gc.collect()
    started = time.process_time()
    for batch in batches:
        work(batch)
    return time.process_time() - started


if __name__ == "__main__":
    print(
        json.dumps(run(**{name: int(value) for name, _, value in (a.partition("=") for a in sys.argv[1:])}))
    )
