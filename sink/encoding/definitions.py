"""Definitions of tables in a stream of changes: numbered, and before and after each statement."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ...events import (
    ChangeDetails,
    CreateTable,
    Ddl,
    Details,
    DropTable,
    RenameTables,
    Table,
    TableName,
    TruncateTable,
    altered,
)
from .definition import Definition, Describe

_MOST: Final = 1000
"""Maximum number of tables that are known."""
_BYTES: Final = 6
"""JSON readers parse numbers as doubles, which hold integers of 53 bits."""


class Effect(NamedTuple):
    """A table before and after a statement; None if it doesn't exist or isn't known."""

    before: Definition | None
    after: Definition | None


class TableDefinitions:
    """Knows the tables of the rows and statements that it was asked for, in their order.

    Encoders share it with their copies: a statement that is encoded again has the effect that it had.
    """

    def __init__(self, describe: Describe) -> None:
        self._describe: Final = describe
        self._present: Final[dict[TableName, Definition]] = {}
        self._last: tuple[Ddl, Sequence[Effect]] | None = None

    def of(self, table: Table) -> Definition:
        """Return a table's definition. Without numbers of the source's own, its `table_id` depends on the
        table's name, and its `version` on its columns: equal tables have equal ones, over restarts too."""
        known = self._present.get((table.schema, table.name))
        if known is None or known.table != table:
            known = self._describe(table)
            if not known.version:
                name = "\0".join((table.source_name, table.schema, table.name)).encode()
                known = replace(known, table_id=_number(name), version=_number(msgspec.json.encode(table)))
            self._set(known)
        return known

    def effects(self, ddl: Ddl) -> Sequence[Effect]:
        """Return the effects of a statement on its tables, as far as these are known."""
        if self._last is None or self._last[0] != ddl:
            self._last = ddl, self._effects(ddl)
        return self._last[1]

    def _effects(self, ddl: Ddl) -> Sequence[Effect]:
        name = ddl.schema, ddl.table
        match ddl.actions:
            case [DropTable()]:
                gone = self._present.pop(name, None)
                return [Effect(gone, gone)]
            case [RenameTables(pairs)]:
                olds = [(self._present.pop(old, None), new) for old, new in pairs]
                return [
                    Effect(old, self._made(replace(old.table, schema=new[0], name=new[1]), old.details))
                    for old, new in olds
                    if old is not None
                ]
        before = self._present.get(name)
        match ddl.actions:
            case [TruncateTable()]:
                return [Effect(None, before)]
            case [CreateTable(), ChangeDetails(after=details, table=table)]:
                return [Effect(None, self._made(table, details))]
            case [CreateTable(table)]:
                return [Effect(None, self.of(table))]
            case [*_, ChangeDetails(after=details, table=table)] if table.columns:
                return [Effect(before, self._made(table, details))]
            case [_, *_] if before is not None:
                return [Effect(before, self._made(altered(before.table, ddl.actions), before.details))]
        return []

    def _made(self, table: Table, details: Details) -> Definition:
        definition = replace(self.of(table), details=details)
        self._set(definition)
        return definition

    def _set(self, definition: Definition) -> None:
        name = definition.table.schema, definition.table.name
        if name not in self._present and len(self._present) >= _MOST:
            del self._present[next(iter(self._present))]
        self._present[name] = definition


def _number(text: bytes) -> int:
    return int.from_bytes(sha256(text).digest()[:_BYTES])
