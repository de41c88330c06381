"""Partitions by range or hash of a column: their definitions, and the partition of a row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Final

from msgspec.structs import replace

from ...codec.tidb.job import WRITE_ONLY
from ...codec.tidb.table_info import PartitionDefinition, PartitionInfo, TableInfo
from ...events import Row, Table
from .ddl import Step, TableChange, table_mutation
from .schema import Schema, SqlTable
from .tokens import Tokens

RANGE: Final = 1
HASH: Final = 2


def parse_partition(tokens: Tokens, new_id: Callable[[], int]) -> PartitionInfo:
    """Parse the text after PARTITION BY; `new_id` returns the partitions' ids. Raises ValueError."""
    if tokens.has("hash"):
        expression = tokens.enclosed()
        tokens.expect("partitions")
        definitions = tuple(PartitionDefinition(new_id(), f"p{n}") for n in range(tokens.number()))
        return PartitionInfo(type=HASH, expression=expression, definitions=definitions)
    tokens.expect("range")
    if tokens.has("columns"):
        columns, expression = tuple(tokens.names()), ""
    else:
        columns, expression = (), tokens.enclosed()
    definitions = parse_definitions(tokens, new_id)
    return PartitionInfo(type=RANGE, expression=expression, columns=columns, definitions=definitions)


def parse_definitions(tokens: Tokens, new_id: Callable[[], int]) -> tuple[PartitionDefinition, ...]:
    """Parse `(PARTITION p VALUES LESS THAN (x), …)`."""
    tokens.expect("(")
    definitions = []
    while True:
        tokens.expect("partition")
        name = tokens.name()
        tokens.expect("values", "less", "than")
        limit = "MAXVALUE" if tokens.has("maxvalue") else tokens.enclosed()
        definitions.append(PartitionDefinition(new_id(), name, (limit,)))
        if not tokens.has(","):
            tokens.expect(")")
            return tuple(definitions)


def physical_id(info: TableInfo, table: Table, row: Row) -> int:
    """Return the id in the row's key. Raises ValueError if no partition accepts the row."""
    partition = info.partition
    if partition is None:
        return info.id
    name = (partition.columns[0] if partition.columns else partition.expression).strip("`")
    places = [place for place, column in enumerate(table.columns) if column.name.lower() == name.lower()]
    if not places:
        raise ValueError(f"the emulator partitions by a column, not by {name}")
    return _definition(partition, info.name, row[places[0]]).id


def _definition(partition: PartitionInfo, table: str, value: Any) -> PartitionDefinition:
    if partition.type == HASH:
        return partition.definitions[abs(int(value)) % len(partition.definitions)]
    for definition in partition.definitions:
        if _is_below(value, definition.less_than[0]):
            return definition
    raise ValueError(f"{table} has no partition for {value!r}")


def _is_below(value: object, limit: str) -> bool:
    if limit.upper() == "MAXVALUE" or value is None:  # NULL belongs to the first partition
        return True
    if isinstance(value, int):
        return value < int(limit.replace(" ", ""))
    text = value.isoformat() if isinstance(value, date) else str(value)
    return text < limit.strip("'")


def exchange(schema: Schema, parted: SqlTable, name: str, other: SqlTable) -> tuple[TableChange, object]:
    """Return the change, and the arguments of its job. The job has the ids of the table without partitions,
    and the info of the one with partitions. Raises ValueError."""
    partition = parted.info.partition
    named = [d for d in partition.definitions if d.name.lower() == name.lower()] if partition else []
    if partition is None or not named or other.info.partition is not None:
        raise ValueError(f"{parted.info.name} has no partition {name}, or {other.info.name} has some")
    (left,) = named
    definitions = tuple(replace(d, id=other.info.id) if d is left else d for d in partition.definitions)
    change = TableChange(schema_id=other.database.id, table_id=other.info.id)
    change.steps = [Step(WRITE_ONLY, [table_mutation(other.database.id, other.info)])]
    came = replace(other.info, id=left.id)
    info = replace(parted.info, partition=replace(partition, definitions=definitions))

    def swap() -> None:
        change.delete_table(other.database.id, other.info.id)
        change.put_table(other.database.id, came)
        change.put_table(parted.database.id, info)
        schema.set_table(other.database, came)
        schema.set_table(parted.database, info)

    change.before_last = swap
    return change, [left.id, parted.database.id, parted.info.id, left.name, True]
