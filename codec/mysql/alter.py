"""Parsing of the clauses of ALTER TABLE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from ...events import TableName
from .charset_name import accept_charset, read_charset, read_collation
from .constant import read_default
from .create import CharsetChoice, read_charset_option, read_constraint, read_key, skip_condition
from .definition import Definition, read_definition
from .tokens import NotUnderstood, Tokens


class Add(Struct, frozen=True):
    definition: Definition
    after: str | None = None
    """The column it follows; "" puts it first, None last."""
    unless_exists: bool = False


class Drop(Struct, frozen=True):
    name: str
    if_exists: bool = False


class Change(Struct, frozen=True):
    """MODIFY or CHANGE."""

    name: str
    definition: Definition
    after: str | None = None
    """The column it is moved after; "" moves it to the front, None leaves it where it is."""
    if_exists: bool = False


class Rename(Struct, frozen=True):
    """RENAME COLUMN."""

    name: str
    to: str
    if_exists: bool = False


class SetDefault(Struct, frozen=True):
    """ALTER COLUMN ... SET DEFAULT or DROP DEFAULT."""

    name: str
    default: str | None
    if_exists: bool = False


class AddKey(Struct, frozen=True):
    """ADD PRIMARY KEY."""

    columns: tuple[str, ...]
    unless_exists: bool = False


class DropKey(Struct, frozen=True):
    """DROP PRIMARY KEY."""


class AddUnique(Struct, frozen=True):
    """A unique index, also that of a column with UNIQUE. It may take the place of a missing primary key, and
    ALTER IGNORE TABLE deletes rows for it."""


class ChangeIndex(Struct, frozen=True):
    """An index is dropped, hidden or shown: it may be one that takes the place of the primary key."""


class RenameTo(Struct, frozen=True):
    table: TableName


class Convert(Struct, frozen=True):
    """CONVERT TO CHARACTER SET."""

    charset: CharsetChoice


class SetCharset(Struct, frozen=True):
    """The default character set of columns added later."""

    charset: CharsetChoice


class ChangeRows(Struct, frozen=True):
    """A clause that changes rows which aren't logged."""

    what: str
    other: TableName | None = None
    """The table that it exchanges rows with."""


Clause: TypeAlias = (
    Add | Drop | Change | Rename | SetDefault | AddKey | DropKey | AddUnique | ChangeIndex | RenameTo
    | Convert | SetCharset | ChangeRows
)  # fmt: skip

_INDEXES: Final = frozenset(
    {"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "CONSTRAINT"}
)
_PARTITION_VERBS: Final = ("REORGANIZE", "COALESCE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR")
"""Verbs of operations on partitions that keep all rows."""
_OPTIONS: Final = frozenset({
    "AUTOEXTEND_SIZE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM", "PAGE_CHECKSUM",
    "COMMENT", "COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE", "TYPE",
    "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "INSERT_METHOD", "KEY_BLOCK_SIZE",
    "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PASSWORD", "ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES", "TABLESPACE", "STORAGE", "TRANSACTIONAL",
})  # fmt: skip
"""Options of a table whose "=" may be left out."""


def read_clauses(tokens: Tokens, schema: str, *, explicit_timestamps: bool = True) -> list[Clause]:
    """Read the clauses of an ALTER TABLE up to its end, without those that have no effect on rows.

    `schema` is the session's. Raises NotUnderstood for a clause that isn't known or isn't supported.
    """
    clauses: list[Clause] = []
    while tokens.next.kind != "end" and not tokens.accept(";"):
        clauses += _read_clause(tokens, schema, explicit_timestamps)
        if tokens.accept(",") and tokens.next.kind == "end":
            raise tokens.unexpected()
    if tokens.next.kind != "end":
        raise tokens.unexpected()
    return clauses


def _read_clause(tokens: Tokens, schema: str, explicit_timestamps: bool) -> Iterator[Clause]:
    if charset := read_charset_option(tokens, CharsetChoice()):
        while more := read_charset_option(tokens, charset):
            charset = more
        yield SetCharset(charset)
        return
    verb = tokens.accept_any(
        "ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME", "CONVERT", "TRUNCATE", "EXCHANGE", "IMPORT",
        "DISCARD",
    )  # fmt: skip
    match verb:
        case "ADD":
            yield from _read_add(tokens, explicit_timestamps)
        case "DROP":
            yield from _read_drop(tokens)
        case "MODIFY" | "CHANGE":
            yield from _read_change(tokens, verb, explicit_timestamps)
        case "ALTER":
            yield from _read_alter_column(tokens)
        case "RENAME":
            yield from _read_rename(tokens, schema)
        case "CONVERT" if tokens.accept("TO"):
            yield _read_convert(tokens)
        case "CONVERT" if tokens.accept("TABLE"):
            yield ChangeRows("CONVERT TABLE TO PARTITION", tokens.qualified_name(schema))
            _skip_to_end(tokens)
        case "CONVERT":
            tokens.expect("PARTITION")
            yield ChangeRows("CONVERT PARTITION", _other_table(tokens, schema))
        case "TRUNCATE" | "IMPORT" | "DISCARD":
            yield ChangeRows(f"{verb} {tokens.take().text}")
            _skip_to_end(tokens)
        case "EXCHANGE":
            tokens.expect("PARTITION")
            yield ChangeRows("EXCHANGE PARTITION", _other_table(tokens, schema))
        case _:
            yield from _skip_without_effect(tokens)


def _read_add(tokens: Tokens, explicit_timestamps: bool) -> Iterator[Clause]:
    ahead = tokens.next
    if tokens.accept("PARTITION"):
        _skip_to_end(tokens)
    elif tokens.accept("PRIMARY", "KEY"):
        unless_exists = skip_condition(tokens)
        yield AddKey(read_key(tokens), unless_exists)
        tokens.skip_clause()
    elif ahead.kind == "word" and ahead.value in _INDEXES:
        yield from _read_index(tokens)
    elif tokens.accept("PERIOD") or tokens.accept("SYSTEM", "VERSIONING"):
        raise NotUnderstood(f"ADD {ahead.value}")
    elif tokens.accept("VECTOR", "INDEX") or tokens.accept("VECTOR", "KEY"):
        tokens.skip_clause()
    else:
        tokens.accept("COLUMN")
        unless_exists = skip_condition(tokens)
        if tokens.accept("("):
            yield from _read_elements(tokens, unless_exists, explicit_timestamps)
        else:
            definition = read_definition(tokens, explicit_timestamps=explicit_timestamps)
            yield Add(definition, _read_place(tokens), unless_exists)
            if definition.unique:
                yield AddUnique()


def _read_elements(tokens: Tokens, unless_exists: bool, explicit_timestamps: bool) -> Iterator[Clause]:
    """Read columns and indexes of an ADD in parentheses."""
    while True:
        if tokens.next.kind == "word" and tokens.next.value in _INDEXES | {"PRIMARY"}:
            yield from _read_index(tokens)
        else:
            definition = read_definition(tokens, explicit_timestamps=explicit_timestamps)
            yield Add(definition, None, unless_exists)
            if definition.unique:
                yield AddUnique()
        if not tokens.accept(","):
            break
    tokens.expect(")")


def _read_index(tokens: Tokens) -> Iterator[Clause]:
    """Read an added index or constraint."""
    if key := read_constraint(tokens):
        yield AddKey(key.columns) if key.primary else AddUnique()


def _read_drop(tokens: Tokens) -> Iterator[Clause]:
    ahead = tokens.next
    if tokens.accept("PARTITION"):
        yield ChangeRows("DROP PARTITION")
        _skip_to_end(tokens)
    elif tokens.accept("PRIMARY", "KEY"):
        yield DropKey()
    elif tokens.accept("FOREIGN", "KEY"):
        tokens.skip_clause()
    elif tokens.accept("CHECK"):
        skip_condition(tokens)
        tokens.name()
    elif tokens.accept_any("INDEX", "KEY", "CONSTRAINT"):
        skip_condition(tokens)
        yield DropKey() if tokens.name().upper() == "PRIMARY" else ChangeIndex()
    elif tokens.accept("SYSTEM", "VERSIONING") or tokens.accept("PERIOD", "FOR"):
        raise NotUnderstood(f"DROP {ahead.value}")
    else:
        tokens.accept("COLUMN")
        if_exists = skip_condition(tokens)
        yield Drop(tokens.name(), if_exists)
        tokens.accept_any("RESTRICT", "CASCADE")


def _read_change(tokens: Tokens, verb: str, explicit_timestamps: bool) -> Iterator[Clause]:
    tokens.accept("COLUMN")
    if_exists = skip_condition(tokens)
    name = tokens.name() if verb == "CHANGE" else ""
    definition = read_definition(tokens, explicit_timestamps=explicit_timestamps)
    yield Change(name or definition.name, definition, _read_place(tokens), if_exists)
    if definition.unique:
        yield AddUnique()


def _read_place(tokens: Tokens) -> str | None:
    if tokens.accept("FIRST"):
        return ""
    return tokens.name() if tokens.accept("AFTER") else None


def _read_alter_column(tokens: Tokens) -> Iterator[Clause]:
    if tokens.accept_any("INDEX", "KEY"):
        tokens.skip_clause()
        yield ChangeIndex()
        return
    if tokens.accept_any("CHECK", "CONSTRAINT"):
        tokens.skip_clause()
        return
    tokens.accept("COLUMN")
    if_exists = skip_condition(tokens)
    name = tokens.name()
    if tokens.accept("SET", "DEFAULT"):
        yield SetDefault(name, read_default(tokens), if_exists)
    elif tokens.accept("DROP", "DEFAULT"):
        yield SetDefault(name, None, if_exists)
    elif not (tokens.accept("SET", "VISIBLE") or tokens.accept("SET", "INVISIBLE")):
        raise tokens.unexpected()


def _read_rename(tokens: Tokens, schema: str) -> Iterator[Clause]:
    if tokens.accept_any("INDEX", "KEY"):
        tokens.skip_clause()
    elif tokens.accept("COLUMN"):
        if_exists = skip_condition(tokens)
        name = tokens.name()
        tokens.expect("TO")
        yield Rename(name, tokens.name(), if_exists)
    else:
        tokens.accept_any("TO", "AS", "=")
        yield RenameTo(tokens.qualified_name(schema))


def _read_convert(tokens: Tokens) -> Convert:
    if not accept_charset(tokens):
        raise tokens.unexpected()
    name = read_charset(tokens)
    if not tokens.accept("COLLATE"):
        return Convert(CharsetChoice(name, is_database=name == "default" and tokens.of_mysql))
    tokens.accept("=")
    return Convert(CharsetChoice(name, read_collation(tokens)))


def _skip_without_effect(tokens: Tokens) -> Iterator[Clause]:
    """Skip a clause that changes no rows. Raises NotUnderstood for one that isn't known."""
    if tokens.accept_any("ALGORITHM", "LOCK"):
        tokens.accept("=")
        tokens.take()
    elif tokens.accept_any("FORCE", "NOWAIT"):
        pass
    elif tokens.accept("WAIT"):
        tokens.number()
    elif tokens.accept_any("DISABLE", "ENABLE"):
        tokens.expect("KEYS")
    elif tokens.accept_any("WITH", "WITHOUT"):
        tokens.expect("VALIDATION")
    elif (
        tokens.accept("ORDER", "BY")
        or tokens.accept("PARTITION", "BY")
        or tokens.accept("REMOVE", "PARTITIONING")
        or any(tokens.accept(verb, "PARTITION") for verb in _PARTITION_VERBS)
    ):
        _skip_to_end(tokens)
    elif tokens.accept_any("DATA", "INDEX"):
        tokens.expect("DIRECTORY")
        tokens.accept("=")
        tokens.take()
    elif tokens.accept("UNION"):
        tokens.accept("=")
        tokens.skip_clause()
    elif tokens.next.kind == "word" and tokens.next.value in _OPTIONS:
        option = tokens.take().value
        tokens.accept("=")
        if option == "ENGINE" and tokens.next.value.upper() == "BLACKHOLE":
            yield ChangeRows("ENGINE=BLACKHOLE")
        tokens.take()
    elif not tokens.skip_setting():
        raise tokens.unexpected()


def _other_table(tokens: Tokens, schema: str) -> TableName | None:
    """Read the table after the word TABLE, and the rest of the statement."""
    name = None
    while tokens.next.kind != "end":
        if name is None and tokens.accept("TABLE"):
            name = tokens.qualified_name(schema)
        else:
            tokens.take()
    return name


def _skip_to_end(tokens: Tokens) -> None:
    while tokens.next.kind != "end":
        tokens.take()
