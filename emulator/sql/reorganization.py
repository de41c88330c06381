"""REORGANIZE PARTITION: rows are copied into new partitions, with the same handles."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ...codec.tidb.action import Action
from ...codec.tidb.key import decode_record_key, record_key
from ...codec.tidb.table_info import TableInfo
from .alter import AlterResult
from .partition import parse_definitions, physical_id
from .rewriting import Storage
from .schema import SqlTable
from .tokens import Tokens


def reorganized(tokens: Tokens, info: TableInfo, new_id: Callable[[], int]) -> AlterResult:
    """Parse `a, b INTO (PARTITION …)`; the partitions must be neighbours. Raises ValueError."""
    partition = info.partition
    names = [tokens.name().lower()]
    while tokens.has(","):
        names.append(tokens.name().lower())
    tokens.expect("into")
    made = parse_definitions(tokens, new_id)
    existing = [d.name.lower() for d in partition.definitions] if partition else []
    if partition is None or names[0] not in existing:
        raise ValueError(f"{info.name} has no partition {names[0]}")
    start = existing.index(names[0])
    if existing[start : start + len(names)] != names:
        raise ValueError(f"partitions {', '.join(names)} of {info.name} aren't neighbours")
    definitions = (*partition.definitions[:start], *made, *partition.definitions[start + len(names) :])
    return AlterResult(
        Action.REORGANIZE_PARTITION, replace(info, partition=replace(partition, definitions=definitions))
    )


def copy_rows(storage: Storage, table: SqlTable, info: TableInfo) -> None:
    """Write the rows of partitions that `info` doesn't have into those that it has instead."""
    assert info.partition is not None
    kept = {definition.id for definition in info.partition.definitions}
    pairs = storage.pairs(table.info, storage.tso())
    rows = table.decoder.decode(pairs)
    mutations = []
    for (key, value), row in zip(pairs, rows, strict=True):
        old_id, handle = decode_record_key(key)
        if old_id not in kept:
            new_id = physical_id(info, table.decoder.table, row)
            mutations.append(("put", record_key(new_id, handle), value))
    if mutations:
        storage.write(mutations)
