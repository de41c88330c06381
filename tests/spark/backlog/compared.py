"""Every change that a stream wrote against those of the workload, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from .workload import OPERATIONS, TABLES, Changes

_PRICE: Final = "({v} % 100000 + 0.25)::DECIMAL(12,2)"
_NAME: Final = "'row ' || {v} || ' ' || repeat('x', {v} % 50)"
_TYPED: Final = f"{{{{'id': id, 'v': {{v}}, 'price': {_PRICE}, 'name': {_NAME}}}}}"
_RAW: Final = (
    """'{{"id":"' || id || '","v":"' || {v} || '","price":"' || """
    f"""{_PRICE} || '","name":"' || {_NAME} || '"}}}}'"""
)
_KEY_ORDER: Final = (
    "op <> 'delete'",
    f'list_position({[*TABLES]}, "table")',
    "json_extract_string(coalesce(after, before), '$.id')::BIGINT",
)
"""The order of the changes in a transaction of TiKV."""
_COLUMNS: Final = ("rank", "sequence", "table", "op", "before", "after", "ends")
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The columns that a stream wrote."""

    table: int | None = None
    """Typed columns of a table, or the raw envelope of all of them."""
    numbered: bool = True
    """True if changes have their number in the transaction; otherwise they are those of TiKV in several
    partitions."""
    whole: bool = True
    """True if transactions are in a single partition: the last change has a position."""


def differences(rows: Path, changes: Changes, form: Form) -> list[Any]:
    """Return some changes that differ, as found and expected, and some out of commit order in their file."""
    with duckdb.connect() as sql:
        sql.register("wanted", _wanted(changes if form.table is None else changes.of(form.table)))
        _tabulate(sql, f"read_parquet('{rows}/*.parquet')", form)
        distinct = [f'found."{name}" IS DISTINCT FROM expected."{name}"' for name in _COLUMNS]
        unequal = sql.execute(
            "SELECT found, expected FROM found FULL JOIN expected USING (place) "
            f"WHERE {' OR '.join(distinct)} ORDER BY place LIMIT {_SHOWN}"
        ).fetchall()
        unordered = sql.execute(
            f"""SELECT filename, previous, here FROM (
                SELECT filename, (commit_ts, start_ts, sequence) AS here,
                lag(here) OVER (PARTITION BY filename ORDER BY file_row_number) AS previous
                FROM read_parquet('{rows}/*.parquet', filename = true, file_row_number = true)
            ) WHERE previous >= here LIMIT {_SHOWN}"""
        ).fetchall()
    return [*unequal, *unordered]


def _tabulate(sql: duckdb.DuckDBPyConnection, files: str, form: Form) -> None:
    """Make the tables `expected` and `found`, with the same columns."""
    is_typed = form.table is not None
    sequence = "sequence" if form.numbered else "NULL"
    has_ends = form.whole and not is_typed
    image = _TYPED if is_typed else _RAW
    before, after = (
        f"CASE WHEN {v} > 0 THEN {image.format(v=v)} END AS {name}"
        for v, name in (("old", "before"), ("new", "after"))
    )
    sql.execute(
        f"""CREATE TABLE expected AS SELECT place, rank, {sequence} AS sequence, "table", op,
        {before}, {after}, {"ends" if has_ends else "NULL"} AS ends FROM wanted"""
    )
    order = ", ".join(["commit_ts", "start_ts", *(["sequence"] if form.numbered else _KEY_ORDER)])
    table = '"table"' if form.table is None else f"'{TABLES[form.table]}'"
    sql.execute(
        f"""CREATE TABLE found AS SELECT row_number() OVER (ORDER BY {order}) AS place,
        dense_rank() OVER (ORDER BY commit_ts, start_ts) AS rank, {sequence} AS sequence,
        {table} AS "table", op, before, after,
        {"position IS NOT NULL" if has_ends else "NULL"} AS ends FROM {files}"""
    )


def _wanted(changes: Changes) -> pa.Table:
    _, firsts, ranks = np.unique(changes.txn, return_index=True, return_inverse=True)
    places = np.arange(len(changes.txn))
    ends = np.zeros(len(places), bool)
    ends[[*firsts[1:] - 1, -1]] = True
    return pa.table(
        {
            "place": places + 1,
            "rank": ranks + 1,
            "sequence": places - firsts[ranks],
            "table": pa.DictionaryArray.from_arrays(changes.table, [*TABLES]).cast(pa.string()),
            "op": pa.DictionaryArray.from_arrays(changes.op, [*OPERATIONS]).cast(pa.string()),
            "id": changes.id,
            "old": changes.before,
            "new": changes.after,
            "ends": ends,
        }
    )
