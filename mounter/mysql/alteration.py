"""Effects of ALTER TABLE on a table's columns and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...codec.mysql.alter import (
    Add,
    AddKey,
    AddUnique,
    Change,
    ChangeIndex,
    ChangeRows,
    Clause,
    Convert,
    Drop,
    DropKey,
    Rename,
    SetCharset,
    SetDefault,
)
from ...codec.mysql.collation import Charset
from ...codec.mysql.definition import Definition
from ...codec.mysql.entry import Query
from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.tokens import NO_AUTO_VALUE_ON_ZERO, NotUnderstood
from ...events import WITH_CHARSET, Action, AddColumn, ChangeColumn, ChangeKey, Column, DropColumn, Table
from .computed import check_computed
from .convert import converted
from .defaults import check_added, check_explicit, check_text, is_moment, same_definition

_PREFIX_KINDS: Final = frozenset(
    {"char", "varchar", "text", "binary", "varbinary", "blob", "json", "geometry"}
)
"""Kinds of which an index may have a prefix only."""


class Defaults(Struct, frozen=True):
    """Character sets of the tables in a database."""

    database: Charset | None = None
    collations: Mapping[str, str] = {}
    """Default collation by character set."""


class Altered(Struct, frozen=True):
    known: KnownTable
    """The table after the statement, under its old name."""
    actions: tuple[Action, ...]


def alter(
    known: KnownTable,
    clauses: Sequence[Clause],
    query: Query,
    defaults: Defaults,
    *,
    copies_generated: bool = True,
) -> Altered:
    """Return the table after an ALTER TABLE, and the effects. Raises NotUnderstood if they aren't known
    exactly.

    Without `copies_generated`, values of generated columns aren't needed: both tables are whole ones, of
    which `copies.without_generated` returns the effects on the copies.
    """
    return _Alteration(known, query, defaults, copies_generated).run(clauses)


class _Alteration:
    """One ALTER TABLE: clauses name columns as before the statement, places as after it."""

    def __init__(self, known: KnownTable, query: Query, defaults: Defaults, copies_generated: bool) -> None:
        table = known.complete
        self._copies_generated = copies_generated
        self._table = table
        self._query = query
        self._defaults = defaults
        self._auto_increment = known.auto_increment
        self._has_primary = known.has_primary
        self._has_unique = known.has_unique
        self._charset = Charset(table.charset, table.collation) if table.charset else defaults.database
        self._convert_to: Charset | None = None
        self._columns = {column.name.lower(): column for column in table.columns}
        self._actions: list[Action] = []
        self._changed: dict[str, int] = {}  # indexes of ChangeColumn in _actions, by the old name
        self._dropped: set[str] = set()
        self._added: set[str] = set()
        self._renamed: set[str] = set()  # new names of changed columns
        self._key: tuple[str, ...] | None = None  # by a clause
        self._drops_key = False

    def run(self, clauses: Sequence[Clause]) -> Altered:
        if clauses and self._table.row_end is not None:
            raise NotUnderstood("a system-versioned table")
        if sum(isinstance(clause, SetCharset | Convert) for clause in clauses) > 1:
            raise NotUnderstood("two clauses about the character set")
        for clause in clauses:
            self._set_charset(clause)
        for clause in clauses:
            self._apply(clause)
        if self._convert_to is not None:
            self._convert(self._convert_to)
        old_key = tuple(self._table.columns[i].name for i in self._table.key)
        followed = tuple(self._new_name(name) for name in old_key if self._keeps(name))
        if self._key is None and (not self._has_primary or self._drops_key or len(followed) < len(old_key)):
            self._check_unique(clauses)
        key = self._key if self._key is not None else () if self._drops_key else followed
        self._forbid_null(key)
        columns = self._placed()
        indexes = {column.name.lower(): i for i, column in enumerate(columns)}
        try:
            numbers = tuple(indexes[name.lower()] for name in key)
        except KeyError as name:
            raise NotUnderstood(f"column {name} of the key isn't known") from None
        if [name.lower() for name in key] != [self._new_name(name).lower() for name in old_key]:
            self._actions.append(ChangeKey(tuple(columns[i].name for i in numbers)))
        charset = self._charset
        table = Table(
            self._table.schema,
            self._table.name,
            tuple(columns),
            numbers,
            charset.name if charset else None,
            charset.collation if charset else None,
        )
        auto = self._new_name(self._auto_increment) if self._keeps(self._auto_increment) else ""
        actions = tuple(action for action in self._actions if not _is_idle(action))
        if self._copies_generated:
            check_computed(self._table, actions, self._query)
        has_primary = bool(key) and (self._has_primary or self._key is not None)
        has_unique = self._has_unique or AddUnique() in clauses
        return Altered(KnownTable(table, auto, has_primary, has_unique), actions)

    def _check_unique(self, clauses: Sequence[Clause]) -> None:
        """Raise NotUnderstood if the table has no primary key now and another unique key than before may take
        its place."""
        if AddUnique() in clauses:
            raise NotUnderstood("a unique key of a table without a primary key")
        if not self._has_unique:
            return
        if self._has_primary:
            raise NotUnderstood("DROP PRIMARY KEY of a table with a unique key")
        for clause in clauses:
            if isinstance(clause, ChangeIndex | DropKey | Drop):
                raise NotUnderstood("an index or column of a table without a primary key")
        for i in self._changed.values():
            action = self._actions[i]
            if isinstance(action, ChangeColumn) and not _is_alike(action):
                raise NotUnderstood("a column of a table whose unique key may be its key")

    def _set_charset(self, clause: Clause) -> None:
        if isinstance(clause, SetCharset | Convert):
            base = self._defaults.database if clause.charset.name == "default" else self._charset
            if clause.charset.is_database and self._query.schema != self._table.schema:
                raise NotUnderstood("CHARACTER SET DEFAULT in a session of another database")
            self._charset = clause.charset.resolve(base, self._defaults.collations)
            if isinstance(clause, Convert):
                if self._charset is None or self._charset.name == "binary":
                    raise NotUnderstood(f"CONVERT TO CHARACTER SET {clause.charset.name}")
                self._convert_to = self._charset

    # --- clauses -----------------------------------------------------------------------------------

    def _apply(self, clause: Clause) -> None:
        match clause:
            case Add(definition, after, unless_exists):
                self._add(definition, after, unless_exists)
            case Drop(name, if_exists):
                if self._has(name, if_exists):
                    self._dropped.add(name.lower())
                    self._actions.append(DropColumn(self._columns[name.lower()].name))
            case Change(name, definition, after, if_exists):
                if self._has(name, if_exists):
                    if definition.expression and self._copies_generated:
                        raise NotUnderstood("an expression of a column")
                    self._change(name, self._resolved(definition), after)
                    if definition.primary:
                        self._key = (definition.name,)
                    self._set_auto_increment(name, definition.auto_increment)
            case Rename(name, to, if_exists):
                if self._has(name, if_exists):
                    self._change(name, replace(self._columns[name.lower()], name=to), None)
            case SetDefault(name, default, if_exists):
                if self._has(name, if_exists):
                    column = self._columns[name.lower()]
                    # The server keeps both CURRENT_TIMESTAMPs of a column, or none.
                    on_update = None if is_moment(column.default) else column.on_update
                    column = replace(column, default=default, on_update=on_update)
                    check_text(column, self._query)
                    self._change(name, column, None)
            case AddKey(columns, unless_exists):
                if not (unless_exists and self._has_primary and self._table.key):
                    self._key = columns
            case DropKey():
                self._drops_key = True
            case ChangeRows(what):
                raise NotUnderstood(what)

    def _has(self, name: str, if_exists: bool) -> bool:
        """Return True if a clause about this column has an effect."""
        low = name.lower()
        if low not in self._columns:
            if if_exists:
                return False
            raise NotUnderstood(f"column {name} isn't known")
        if low in self._changed or low in self._dropped:
            if if_exists and low in self._dropped:
                return False
            raise NotUnderstood(f"two clauses about column {name}")
        return True

    def _add(self, definition: Definition, after: str | None, unless_exists: bool) -> None:
        low = definition.name.lower()
        if unless_exists and (low in self._columns.keys() | self._added | self._renamed):
            return
        if definition.auto_increment:
            raise NotUnderstood("AUTO_INCREMENT")
        column = self._resolved(definition)
        check_added(column, self._query)
        self._added.add(low)
        self._actions.append(AddColumn(column, after, expression=definition.expression))
        if definition.primary:
            self._key = (definition.name,)

    def _resolved(self, definition: Definition) -> Column:
        check_explicit(definition)
        column = definition.column(self._charset, self._defaults.collations)
        check_text(column, self._query)
        to = self._convert_to
        if to is not None and column.kind == "json":
            column = converted(column, to)
        if to is not None and column.kind in WITH_CHARSET and column.charset != to.name:
            raise NotUnderstood("CONVERT TO with a column of another CHARACTER SET")
        return column

    def _change(self, name: str, column: Column, after: str | None) -> None:
        before = self._columns[name.lower()]
        self._changed[name.lower()] = len(self._actions)
        self._renamed.add(column.name.lower())
        self._actions.append(ChangeColumn(before.name, column, before, after))

    def _set_auto_increment(self, name: str, auto_increment: bool) -> None:
        """Note a column that becomes or remains AUTO_INCREMENT, or doesn't."""
        low = name.lower()
        if auto_increment and low != self._auto_increment.lower():
            if not self._query.sql_mode & NO_AUTO_VALUE_ON_ZERO:
                raise NotUnderstood("AUTO_INCREMENT, which numbers the rows that have 0")
            self._auto_increment = name
        elif not auto_increment and low == self._auto_increment.lower():
            self._auto_increment = ""

    def _convert(self, charset: Charset) -> None:
        for column in self._table.columns:
            low = column.name.lower()
            if low in self._dropped:
                continue
            at = self._changed.get(low)
            if at is not None:
                change = self._actions[at]
                assert isinstance(change, ChangeColumn)
                self._actions[at] = replace(change, column=converted(change.column, charset))
            elif (after := converted(column, charset)) != column:
                self._change(column.name, after, None)

    # --- the result --------------------------------------------------------------------------------

    def _keeps(self, name: str) -> bool:
        low = name.lower()
        return low in self._columns and (low not in self._dropped or low in self._added)

    def _new_name(self, name: str) -> str:
        at = self._changed.get(name.lower())
        action = self._actions[at] if at is not None else None
        return action.column.name if isinstance(action, ChangeColumn) else name

    def _forbid_null(self, key: Sequence[str]) -> None:
        """Make the columns of the key NOT NULL."""
        wanted = {name.lower() for name in key}
        for low, column in self._columns.items():
            after = self._new_name(column.name)
            if low in self._dropped or after.lower() not in wanted:
                continue
            at = self._changed.get(low)
            if at is not None:
                action = self._actions[at]
                assert isinstance(action, ChangeColumn)
                self._actions[at] = replace(action, column=replace(action.column, nullable=False))
            elif column.nullable:
                self._change(column.name, replace(column, nullable=False), None)
        for i, action in enumerate(self._actions):
            if isinstance(action, AddColumn) and action.column.name.lower() in wanted:
                self._actions[i] = replace(action, column=replace(action.column, nullable=False))

    def _placed(self) -> list[Column]:
        """Return the columns in their order after the statement."""
        columns: list[Column] = []
        for low, column in self._columns.items():
            if low in self._dropped:
                continue
            action = self._actions[self._changed[low]] if low in self._changed else None
            if not isinstance(action, ChangeColumn):
                columns.append(column)
            elif action.after is None:
                columns.append(action.column)
        for action in self._actions:
            match action:
                case AddColumn(column, after):
                    _place(columns, column, after)
                case ChangeColumn(_, column, _, str(after)):
                    _place(columns, column, after)
        return columns


def _place(columns: list[Column], column: Column, after: str | None) -> None:
    if after is None:
        columns.append(column)
        return
    names = [one.name.lower() for one in columns]
    if after and after.lower() not in names:
        raise NotUnderstood(f"AFTER {after}, which isn't known")
    columns.insert(names.index(after.lower()) + 1 if after else 0, column)


def _is_idle(action: Action) -> bool:
    return (
        isinstance(action, ChangeColumn)
        and action.after is None
        and action.before is not None
        and same_definition(action.before, action.column)
    )


def _is_alike(action: ChangeColumn) -> bool:
    """Return True if a key has the column as before: whole or a prefix, and with or without NULL."""
    before, after = action.before, action.column
    assert before is not None
    if before.nullable != after.nullable:
        return False
    sizes = [(column.kind, column.length, column.charset) for column in (before, after)]
    return sizes[0] == sizes[1] or not {before.kind, after.kind} & _PREFIX_KINDS
