"""EXCHANGE PARTITION: a partition and a table swap their ids, and so their rows."""

from __future__ import annotations

from msgspec.structs import replace

from ...codec.tidb.job import WRITE_ONLY
from .ddl import Step, TableChange, table_mutation
from .schema import Schema, SqlTable


def exchange(schema: Schema, parted: SqlTable, name: str, other: SqlTable) -> tuple[TableChange, object]:
    """Return the change, and the arguments of its job. The job has the ids of the table without partitions,
    and the info of the one with partitions. Raises ValueError."""
    partition = parted.info.partition
    found = [d for d in partition.definitions if d.name.lower() == name.lower()] if partition else []
    if partition is None or not found or other.info.partition is not None:
        raise ValueError(f"{parted.info.name} has no partition {name}, or {other.info.name} has some")
    (left,) = found
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
