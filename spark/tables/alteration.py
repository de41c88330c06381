"""The effect of a schema change on a copy: exactly that of the source, or an error."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec.structs import replace
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ...chain.selection.tables import TablePattern, TablePatterns
from ...codec.mysql.column_defaults import NotComputable, default_for_existing_rows
from ...codec.mysql.entry import Query
from ...codec.mysql.known_table import KnownTable
from ...dialects.conversion import keeps_values
from ...errors import SourceError
from ...events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    ChangeKey,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    RenameTables,
    Table,
    TruncateTable,
)
from ...mounter.mysql.catalog import Catalog
from ...mounter.mysql.ddl import Statements
from ..read.schema import column_type
from ..read.typed import text_of
from ..read.widening import holds
from .last_changes import quoted

_HARMLESS: Final = re.compile(r"\s*CREATE\s+(TABLE|((UNIQUE|FULLTEXT|SPATIAL)\s+)?INDEX)\b", re.IGNORECASE)
"""Statements that change no row of a table that exists."""
_BRINGS_ROWS: Final = re.compile(r"\b(EXCHANGE|CONVERT|IMPORT|RENAME)\b", re.IGNORECASE)
"""Words of an ALTER TABLE that puts rows into a table without logging them."""
_ALTER: Final = re.compile(r"\s*ALTER\s", re.IGNORECASE)
_QUOTED_CHARACTERS: Final = 200


class Added(NamedTuple):
    column: Column
    value: str
    """The value of the rows that there are, as an expression of Spark SQL."""

    @property
    def is_null(self) -> bool:
        return self.value.startswith("CAST(NULL ")


class Changed(NamedTuple):
    name: str
    """Name before the statement."""
    column: Column
    replaces_null: bool
    """True if the source replaced NULL by another value."""

    @property
    def renames(self) -> bool:
        return self.name != self.column.name


class Alteration(NamedTuple):
    """Effects on a copy, applied in the order of the fields."""

    empties: bool = False
    drops: tuple[str, ...] = ()
    changes: tuple[Changed, ...] = ()
    adds: tuple[Added, ...] = ()
    key: tuple[str, ...] | None = None
    """The new primary key; None if it stays."""

    def definition(self, table: Table) -> Table:
        """Return the table after the statement; the order of its columns may differ from the source's."""
        changed = {change.name.lower(): change.column for change in self.changes}
        dropped = {name.lower() for name in self.drops}
        left = [column for column in table.columns if column.name.lower() not in dropped]
        columns = [changed.get(column.name.lower(), column) for column in left]
        columns += [added.column for added in self.adds]
        key = self.key
        if key is None:
            names = [table.columns[index].name.lower() for index in table.key]
            key = tuple(
                [changed[name].name if name in changed else name for name in names if name not in dropped]
            )
        places = {column.name.lower(): place for place, column in enumerate(columns)}
        return replace(table, columns=tuple(columns), key=tuple([places[name.lower()] for name in key]))

    def applied(self, frame: DataFrame) -> DataFrame:
        """Return the rows of `frame` after the schema change: none if it empties the table."""
        frame = frame.limit(0) if self.empties else frame
        dropped = {name.lower() for name in self.drops}
        changed = {change.name.lower(): change.column for change in self.changes}
        columns = []
        for name in frame.columns:
            column, value = changed.get(name.lower()), f.col(quoted(name))
            if column is not None:
                columns.append(value.cast(column_type(column)).alias(column.name))
            elif name.lower() not in dropped:
                columns.append(value)
        return frame.select(*columns, *[f.expr(added.value).alias(added.column.name) for added in self.adds])

    def check_nulls(self, frame: DataFrame, ddl: Ddl) -> None:
        """Raise SourceError if a column that becomes NOT NULL has a NULL, as the source put a value there."""
        for change in self.changes:
            if change.replaces_null and not frame.where(f.col(quoted(change.name)).isNull()).isEmpty():
                raise SourceError(
                    f"{ddl.full_name}, column {change.name}: the value that replaced NULL isn't known; load "
                    f"the table into another copy: {ddl.query[:_QUOTED_CHARACTERS]}"
                )


NONE: Final = Alteration()


def check_creation(ddl: Ddl) -> None:
    """Check a schema change before a copy's first rows. Raises SourceError if it may put rows into the table
    that aren't among the changes."""
    is_known = not (ddl.refusal or ddl.reload)
    if is_known and not any(isinstance(action, RenameTables) for action in ddl.actions):
        return
    is_alter = _ALTER.match(ddl.query) and not _BRINGS_ROWS.search(ddl.query)
    if is_known or ddl.refusal or not (is_alter or _HARMLESS.match(ddl.query)):
        raise _cannot(ddl, "there is no copy, and it may have put rows into the table")


def alteration(ddl: Ddl, known: Table | None, columns: Collection[str]) -> Alteration:
    """Return the effect on a copy with `columns`, whose definition is `known`.

    Raises SourceError if it isn't known, or if only the source can compute it.
    """
    actions = ddl.actions
    if ddl.refusal or ddl.reload:
        if _HARMLESS.match(ddl.query):
            return NONE
        understood = None if ddl.refusal or known is None else _understood(ddl, known)
        if understood is None:
            raise _cannot(ddl, "what it does to the rows isn't known")
        actions = understood
    had = {name.lower() for name in columns}
    effect = NONE
    for action in actions:
        match action:
            case CreateTable(replaces=False) | ChangeDetails():
                pass
            case TruncateTable():
                effect = effect._replace(empties=True)
            case AddColumn(column, unless_exists=unless_exists):
                dropped = [name.lower() for name in effect.drops]
                if column.name.lower() in had and column.name.lower() not in dropped:
                    if unless_exists:
                        continue
                    raise _cannot(ddl, f"the copy has a column {column.name} already")
                effect = effect._replace(adds=(*effect.adds, _added(ddl, action)))
            case DropColumn(name, if_exists) | ChangeColumn(name, if_exists=if_exists) if (
                name.lower() not in had
            ):
                if not if_exists:
                    raise _cannot(ddl, f"the copy has no column {name}")
            case DropColumn(name):
                effect = effect._replace(drops=(*effect.drops, name))
            case ChangeColumn():
                effect = effect._replace(changes=(*effect.changes, _changed(ddl, action, known)))
            case ChangeKey(key):
                effect = effect._replace(key=key)
            case _:
                raise _cannot(ddl, "the copy keeps the table's name and rows")
    return effect


def _understood(ddl: Ddl, known: Table) -> tuple[Action, ...] | None:
    """Return the actions of a statement that couldn't be read without the table's definition; None if it
    can't be read with it either."""
    if not ddl.source.startswith(("mysql ", "mariadb ")):
        return None
    own = replace(known, schema=ddl.schema, name=ddl.table, **_charset(known))
    catalog = Catalog()
    catalog.put(KnownTable(own))
    statements = Statements(_only(own), catalog, of_mysql=ddl.source.startswith("mysql "))
    query = Query(
        ddl.schema,
        ddl.query,
        ddl.epoch_seconds,
        ddl.sql_mode,
        converts_strings=True,  # which isn't known
        utc_offset_seconds=ddl.utc_offset_seconds,
    )
    parsed = statements.changes(query)
    if len(parsed) > 1 or any(one.reload or one.refusal for one in parsed):
        return None
    return parsed[0].actions if parsed else ()


def _charset(table: Table) -> dict[str, object]:
    """Return the character set of all texts: that of the table isn't logged. Rows after the statement show if
    it was another one."""
    charsets = {(column.charset, column.collation) for column in table.columns if column.charset}
    return dict(zip(("charset", "collation"), *charsets, strict=True)) if len(charsets) == 1 else {}


def _only(table: Table) -> TablePatterns:
    name = table.schema, table.name
    pattern = TablePattern(table.full_name, lambda *one: one == name, lambda schema: schema == table.schema)
    return TablePatterns([pattern])


def _added(ddl: Ddl, action: AddColumn) -> Added:
    column = action.column
    if action.expression:
        raise _cannot(ddl, f"column {column.name}: only the source computes its values")
    try:
        value = default_for_existing_rows(column, ddl.epoch_seconds, ddl.utc_offset_seconds)
    except NotComputable as error:
        raise _cannot(ddl, str(error)) from None
    kind = column_type(column)
    if isinstance(value, str) and not isinstance(kind, t.StringType):
        raise _cannot(ddl, f"column {column.name}: Spark has no {value!r} as {kind.simpleString()}")
    return Added(column, _expression(column, value, kind))


def _changed(ddl: Ddl, action: ChangeColumn, known: Table | None) -> Changed:
    """Return the change of a column that keeps all values but NULL."""
    after, before = action.column, action.before
    if before is None and known is not None:
        before = next((one for one in known.columns if one.name.lower() == action.name.lower()), None)
    if before is None:
        raise _cannot(ddl, f"column {action.name}: its type before the statement isn't known")
    if after.generated or before.generated:
        raise _cannot(ddl, f"column {action.name}: only the source computes its values")
    kinds = column_type(before), column_type(after)
    if before.charset != after.charset or not keeps_values(before, after) or not holds(kinds[1], kinds[0]):
        names = f"from {before.kind}({before.length}) to {after.kind}({after.length})"
        raise _cannot(ddl, f"column {action.name}: its values may not stay the same {names}")
    return Changed(action.name, after, before.nullable and not after.nullable)


def _cannot(ddl: Ddl, why: str) -> SourceError:
    return SourceError(
        f"{ddl.full_name} was changed in a way that its copy can't follow ({why}): "
        f"{ddl.query[:_QUOTED_CHARACTERS]}; nothing of this batch was merged into the copy: leave the table "
        "out in your function, load it into another copy, and follow that by a query of its own"
    )


def _expression(column: Column, value: object, kind: t.DataType) -> str:
    """Return a value in Spark SQL."""
    if value is None:
        return f"CAST(NULL AS {kind.simpleString()})"
    if isinstance(value, Decimal) and isinstance(kind, t.StringType):
        value = text_of(column.scale, value)
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return f"CAST(X'{value.hex()}' AS {kind.simpleString()})"
    if isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
        return f"CAST(make_dt_interval(0, 0, 0, {micros} / 1000000) AS {kind.simpleString()})"
    text = str(value)  # of a datetime with its UTC offset, if it has one
    return f"CAST('{text}' AS {kind.simpleString()})"
