"""Parsing of CREATE TABLE after the table's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ...events import TableName
from .charset_name import accept_charset, read_charset, read_collation
from .collation import Charset
from .definition import Definition, read_definition
from .tokens import NotUnderstood, Tokens

_ELEMENTS: Final = frozenset({
    "PRIMARY", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK",
})  # fmt: skip
"""Reserved words that begin an element other than a column."""
_QUERIES: Final = ("AS", "SELECT", "IGNORE", "REPLACE", "WITH", "VALUES", "TABLE", "(")
"""Words that begin the query of CREATE TABLE ... SELECT; some of them occur in options too."""


class CharsetChoice(Struct, frozen=True):
    """A character set as written in the options of a table or database."""

    name: str = ""
    collation: str = ""
    is_database: bool = False
    """True for that of the session's database, with its collation."""

    def resolve(self, default: Charset | None, collations: Mapping[str, str]) -> Charset | None:
        """Return the character set, `default` if none was written; None if it isn't known."""
        if self.is_database:
            return default
        name, collation = self.name, self.collation
        if "default" in (name, collation):  # a default collation of the character set, not of a database
            name = (default.name if default else "") if name in ("", "default") else name
            collation = "" if collation == "default" else collation
            if not name:
                return None
            if self.name == "default" and not collation and "uca1400" in collations.get(name, ""):
                collation = f"{name}_general_ci"  # the built-in one, whatever character_set_collations says
        if collation.startswith("uca1400"):
            name = name or (default.name if default else "")
            collation = f"{name}_{collation}"
        if not name and not collation:
            if default is not None and default.collation is None:
                return Charset(default.name, collations.get(default.name))
            return default
        name = name or collation.partition("_")[0]
        return Charset(name, collation or collations.get(name)) if name else None

    def __bool__(self) -> bool:
        return bool(self.name or self.collation)


class Key(Struct, frozen=True):
    """A primary or unique key."""

    columns: tuple[str, ...]
    """Their names in key order; of a unique key that isn't plain, none."""
    primary: bool = False


class TableDefinition(Struct, frozen=True):
    """A table as CREATE TABLE defines it."""

    columns: tuple[Definition, ...] = ()
    key: tuple[str, ...] = ()
    """Names of the primary key's columns in key order."""
    unique: tuple[Key, ...] = ()
    """The unique keys."""
    charset: CharsetChoice = CharsetChoice()
    like: TableName | None = None
    """The table of CREATE TABLE ... LIKE."""
    is_sequence: bool = False


def read_table(tokens: Tokens, schema: str, *, explicit_timestamps: bool = True) -> TableDefinition:
    """Read the rest of a CREATE TABLE, whose session's schema is `schema`.

    Raises NotUnderstood for a type or attribute that isn't supported, and for CREATE TABLE ... SELECT, whose
    rows aren't logged if it is logged as such.
    """
    if tokens.accept("LIKE"):
        return TableDefinition(like=tokens.qualified_name(schema))
    columns: list[Definition] = []
    keys: list[Key] = []
    if tokens.accept("("):
        if tokens.accept("LIKE"):
            return TableDefinition(like=tokens.qualified_name(schema))
        if tokens.next.value == "SELECT":
            raise NotUnderstood("CREATE TABLE ... SELECT")
        while True:
            keys += _read_element(tokens, columns, explicit_timestamps)
            if not tokens.accept(","):
                break
        tokens.expect(")")
    if not columns:
        raise NotUnderstood("CREATE TABLE ... SELECT")
    charset, is_sequence = _read_options(tokens)
    key = next((one.columns for one in keys if one.primary), ())
    unique = tuple(one for one in keys if not one.primary)
    return TableDefinition(tuple(columns), key, unique, charset, is_sequence=is_sequence)


def _read_element(tokens: Tokens, columns: list[Definition], explicit_timestamps: bool) -> list[Key]:
    """Read a column, index or constraint; return its primary and unique keys."""
    ahead = tokens.next
    if ahead.kind == "word" and ahead.value in _ELEMENTS:
        constraint = read_constraint(tokens)
        return [constraint] if constraint is not None else []
    if tokens.accept("PERIOD", "FOR"):
        raise NotUnderstood("PERIOD")
    column = read_definition(tokens, explicit_timestamps=explicit_timestamps)
    columns.append(column)
    kinds = [primary for primary, has in ((True, column.primary), (False, column.unique)) if has]
    return [Key((column.name,), primary) for primary in kinds]


def read_constraint(tokens: Tokens) -> Key | None:
    """Read an index or constraint; return a primary or unique key, None for any other."""
    if tokens.accept("CONSTRAINT") and not (
        tokens.next.kind == "word" and tokens.next.value in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")
    ):
        skip_condition(tokens)
        tokens.name()
    key = None
    if tokens.accept("PRIMARY", "KEY"):
        key = Key(read_key(tokens), primary=True)
    elif tokens.accept("UNIQUE"):
        key = _read_unique(tokens)
    tokens.skip_clause()
    return key


def _read_unique(tokens: Tokens) -> Key:
    """Read a unique key; if it isn't plainly one of whole columns, its columns aren't read."""
    tokens.accept_any("KEY", "INDEX")
    skip_condition(tokens)
    if not (tokens.next.kind == "mark" and tokens.next.value == "("):
        tokens.name()
    if not tokens.accept("("):  # USING BTREE
        return Key(())
    names = []
    while tokens.next.kind in ("word", "name"):
        names.append(tokens.name())
        if not tokens.accept(","):
            break
    if not tokens.accept(")"):  # the length of a prefix, an order or an expression
        tokens.skip_to_closing()
        return Key(())
    ends = tokens.next.kind == "end" or (tokens.next.kind == "mark" and tokens.next.value in ",)")
    return Key(tuple(names) if ends else ())


def read_key(tokens: Tokens) -> tuple[str, ...]:
    """Read the columns of a primary key."""
    while not tokens.accept("("):  # USING BTREE
        if tokens.take().kind == "end":
            raise tokens.unexpected()
    names = []
    while True:
        names.append(tokens.name())
        if tokens.accept("WITHOUT"):
            raise NotUnderstood("WITHOUT OVERLAPS")
        tokens.skip_clause()  # the length of a prefix, and the order
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return tuple(names)


def skip_condition(tokens: Tokens) -> bool:
    """Skip IF EXISTS or IF NOT EXISTS; return True if there was one."""
    return tokens.accept("IF", "NOT", "EXISTS") or tokens.accept("IF", "EXISTS")


def read_charset_option(tokens: Tokens, choice: CharsetChoice) -> CharsetChoice | None:
    """Read an option that sets the default character set or collation; None if none comes next."""
    start = tokens.next
    tokens.accept("DEFAULT")
    if accept_charset(tokens):
        return CharsetChoice(read_charset(tokens), choice.collation)
    if tokens.accept("COLLATE"):
        tokens.accept("=")
        return CharsetChoice(choice.name, read_collation(tokens))
    tokens.step_back_to(start)
    return None


def _read_options(tokens: Tokens) -> tuple[CharsetChoice, bool]:
    """Read the options after the columns: the default character set, and True for a sequence."""
    charset = CharsetChoice()
    is_sequence = False
    partitions = False
    while tokens.next.kind != "end":
        if not partitions and (named := read_charset_option(tokens, charset)):
            charset = named
        elif tokens.accept("WITH", "SYSTEM", "VERSIONING"):
            raise NotUnderstood("SYSTEM VERSIONING")
        elif tokens.accept("PARTITION", "BY"):
            partitions = True
        elif tokens.accept("SEQUENCE"):
            tokens.accept("=")
            is_sequence = tokens.take().value not in ("0", "NO")
        elif tokens.accept("UNION"):
            tokens.accept("=")
            tokens.skip_clause()
        elif partitions and tokens.accept("("):
            tokens.skip_to_closing()
        elif (tokens.next.kind == "word" and tokens.next.value in _QUERIES) or tokens.accept("("):
            raise NotUnderstood("CREATE TABLE ... SELECT")
        else:
            _skip_option(tokens)
    return charset, is_sequence


def _skip_option(tokens: Tokens) -> None:
    if not tokens.skip_setting():
        tokens.take()
