"""Parsing of what CREATE TABLE says besides columns and the primary key: the definition's details.

This is a second reading of a statement that `create` understood: here an unknown part makes only the details
unknown.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...events import Check, ColumnDetails, Details, Index, IndexPart
from .tokens import NotUnderstood, Token, Tokens, literal, quoted

ELEMENTS: Final = frozenset({
    "PRIMARY", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "VECTOR",
    "PERIOD",
})  # fmt: skip
"""Words that begin an element other than a column; VECTOR and PERIOD only before another such word."""
_ROW_FORMATS: Final = frozenset({"DYNAMIC", "COMPACT", "REDUNDANT", "COMPRESSED"})


class Reference(Struct, frozen=True):
    """A foreign key, by its columns."""

    columns: tuple[str, ...]


class Primary(Struct, frozen=True):
    """A primary key."""


class ColumnElement(Struct, frozen=True):
    """A column's details, and what its definition makes besides: UNIQUE, PRIMARY KEY, REFERENCES, and in
    MySQL CHECK."""

    details: ColumnDetails
    made: tuple[Index | Check | Reference | Primary, ...] = ()


Element = Index | Check | Reference | Primary


def read_details(tokens: Tokens, *, is_whole: bool = False) -> Details:
    """Return the details of a CREATE TABLE after the table's name; `unknown` names an unknown part.

    `is_whole` is True if a server printed it, with the indexes that foreign keys have made.
    """
    try:
        tokens.expect("(")
        elements: list[Element] = []
        columns: list[ColumnDetails] = []
        while True:
            if is_element(tokens):
                elements.append(read_element(tokens))
            else:
                column = read_column(tokens)
                elements += column.made
                if column.details != ColumnDetails(column.details.name):
                    columns.append(column.details)
            if not tokens.accept(","):
                break
        tokens.expect(")")
        details = Details(columns=tuple(columns), has_primary=Primary() in elements)
        for element in elements:
            if is_whole and isinstance(element, Reference):
                details = replace(details, references=(*details.references, element.columns))
            else:
                details = added(details, element)
        while tokens.next.kind != "end":
            details = read_option(tokens, details) or details
    except NotUnderstood as what:
        return Details(unknown=str(what))
    return details


def added(details: Details, element: Element) -> Details:
    """Return the details with one more element. Raises NotUnderstood if its effect isn't known."""
    if isinstance(element, Primary):
        return replace(details, has_primary=True)
    if isinstance(element, Check):
        if not element.name:
            raise NotUnderstood("the name that the server gives to a CHECK")
        return replace(details, checks=(*details.checks, element))
    if isinstance(element, Reference):
        if not any(_covers(index, element.columns) for index in details.indexes):
            raise NotUnderstood("the index that a FOREIGN KEY makes")
        return replace(details, references=(*details.references, element.columns))
    if any(_covers(element, columns) for columns in details.references):
        raise NotUnderstood("an index that may take the place of that of a FOREIGN KEY")
    if not element.name:
        element = replace(element, name=_free_name(details, element))
    return replace(details, indexes=(*details.indexes, element))


def _covers(index: Index, columns: tuple[str, ...]) -> bool:
    """Return True if an index begins with these columns."""
    if index.kind in ("FULLTEXT", "SPATIAL", "VECTOR"):
        return False
    parts = [part.column.lower() for part in index.parts if not part.length]
    return parts[: len(columns)] == [column.lower() for column in columns]


def _free_name(details: Details, index: Index) -> str:
    """Return the name that the server gives to an index without one."""
    base = index.parts[0].column or "functional_index"
    taken = {one.name.lower() for one in details.indexes} | {"primary"}
    names = [base, *(f"{base}_{number}" for number in range(2, 100))]
    return next(name for name in names if name.lower() not in taken)


def is_element(tokens: Tokens) -> bool:
    """Return True if an index or constraint comes next, not a column."""
    ahead = tokens.next
    if ahead.kind != "word" or ahead.value not in ELEMENTS:
        return False
    if ahead.value not in ("VECTOR", "PERIOD"):
        return True
    tokens.take()
    is_key = tokens.next.kind == "word" and tokens.next.value in ("KEY", "INDEX", "FOR")
    tokens.step_back_to(ahead)
    return is_key


def read_element(tokens: Tokens) -> Element:
    """Read an index or constraint. Raises NotUnderstood if it isn't supported."""
    name = ""
    if tokens.accept("CONSTRAINT") and not (
        tokens.next.kind == "word" and tokens.next.value in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")
    ):
        _skip_condition(tokens)
        name = tokens.name()
    if tokens.accept("PRIMARY", "KEY"):
        tokens.skip_clause()
        return Primary()
    if tokens.accept("CHECK"):
        condition = in_parentheses(tokens)
        return Check(name, condition, enforced=_is_enforced(tokens))
    if tokens.accept("FOREIGN", "KEY"):
        while not tokens.accept("("):
            if tokens.take().kind == "end":
                raise tokens.unexpected()
        columns = [tokens.name()]
        while tokens.accept(","):
            columns.append(tokens.name())
        tokens.skip_clause()
        return Reference(tuple(columns))
    kind = tokens.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
    if not tokens.accept_any("KEY", "INDEX") and not kind:
        raise NotUnderstood(tokens.next.text)
    _skip_condition(tokens)
    return read_index(tokens, kind, name)


def read_index(tokens: Tokens, kind: str, name: str) -> Index:
    """Read an index after its kind, with its name."""
    method = ""
    if not _is_mark(tokens.next, "(") and tokens.next.value != "USING":
        name = tokens.name()
    if tokens.accept_any("USING", "TYPE"):
        method = tokens.take().value
    return read_index_parts(tokens, Index(name, (), kind, method))


def read_index_head(tokens: Tokens, kind: str) -> Index:
    """Read an index of CREATE INDEX: its name, its table and the rest."""
    name, method = tokens.name(), ""
    if tokens.accept_any("USING", "TYPE"):
        method = tokens.take().value
    tokens.expect("ON")
    tokens.qualified_name("")
    return read_index_parts(tokens, Index(name, (), kind, method))


def read_index_parts(tokens: Tokens, index: Index) -> Index:
    """Read an index from its columns on."""
    tokens.expect("(")
    parts = [_read_part(tokens)]
    while tokens.accept(","):
        parts.append(_read_part(tokens))
    tokens.expect(")")
    index = replace(index, parts=tuple(parts))
    while tokens.next.kind != "end" and not _is_mark(tokens.next, ",", ")", ";"):
        index = _read_index_option(tokens, index)
    return index


def _read_part(tokens: Tokens) -> IndexPart:
    if _is_mark(tokens.next, "("):
        expression = in_parentheses(tokens)
        return IndexPart(expression=expression, descending=_is_descending(tokens))
    column, length = tokens.name(), 0
    if tokens.accept("WITHOUT"):
        raise NotUnderstood("WITHOUT OVERLAPS")
    if tokens.accept("("):
        length = tokens.number()
        tokens.expect(")")
    return IndexPart(column, length, _is_descending(tokens))


def _is_descending(tokens: Tokens) -> bool:
    return tokens.accept_any("ASC", "DESC") == "DESC"


def _read_index_option(tokens: Tokens, index: Index) -> Index:
    if tokens.accept_any("USING", "TYPE"):
        return replace(index, method=tokens.take().value)
    if tokens.accept("COMMENT"):
        tokens.accept("=")
        return replace(index, comment=tokens.string())
    if tokens.accept("WITH", "PARSER"):
        return replace(index, parser=tokens.name())
    if tokens.accept("INVISIBLE") or tokens.accept("IGNORED"):
        return replace(index, hidden=True)
    if tokens.accept("VISIBLE") or tokens.accept("NOT", "IGNORED"):
        return replace(index, hidden=False)
    if tokens.accept_any("ALGORITHM", "LOCK"):  # of CREATE INDEX
        tokens.accept("=")
        tokens.take()
        return index
    if tokens.accept_any("KEY_BLOCK_SIZE", "CLUSTERING", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
        tokens.accept("=")
        tokens.take()
        return index
    if index.kind == "VECTOR" and tokens.next.value.upper() in ("M", "DISTANCE"):
        option = tokens.take().value.upper()  # the server prints it in quotes
        tokens.accept("=")
        return replace(index, options=f"{index.options} {option}={tokens.take().value.lower()}")
    raise NotUnderstood(f"{tokens.next.text} of an index")


def read_column(tokens: Tokens) -> ColumnElement:
    """Read a column's definition, up to its place or the comma after it."""
    details = ColumnDetails(tokens.name())
    made: list[Index | Check | Reference | Primary] = []
    is_text = tokens.next.value in ("JSON", "TEXT", "LONGTEXT", "MEDIUMTEXT", "TINYTEXT")
    if tokens.next.value == "SERIAL":
        details = replace(details, auto_increment=True)
        made.append(_unique(details.name))
    while tokens.next.kind != "end" and not _is_mark(tokens.next, ",", ")", ";"):
        if tokens.accept("("):
            tokens.skip_to_closing()
        elif tokens.accept("COMMENT"):
            tokens.accept("=")
            details = replace(details, comment=tokens.string())
        elif word := tokens.accept_any("INVISIBLE", "VISIBLE"):
            details = replace(details, invisible=word == "INVISIBLE")
        elif tokens.of_mysql and (tokens.next.value in ("CHECK", "CONSTRAINT")):
            made.append(_read_table_check(tokens))
        elif tokens.accept("AUTO_INCREMENT"):
            details = replace(details, auto_increment=True)
        elif tokens.accept("SERIAL", "DEFAULT", "VALUE"):
            details = replace(details, auto_increment=True)
            made.append(_unique(details.name))
        elif tokens.accept("UNIQUE"):
            tokens.accept("KEY")
            made.append(_unique(details.name))
        elif tokens.accept("PRIMARY") or tokens.accept("KEY"):
            tokens.accept("KEY")
            made.append(Primary())
        elif tokens.accept("REFERENCES"):
            tokens.qualified_name("")
            made.append(Reference((details.name,)))
        elif tokens.accept("CHECK"):
            condition = in_parentheses(tokens)
            # MariaDB's JSON is a text with such a check.
            if not (is_text and condition.lower() == f"(json_valid(`{details.name.lower()}`))"):
                details = replace(details, check=condition)
            _is_enforced(tokens)
        elif tokens.next.kind == "word" and tokens.next.value in ("AFTER", "FIRST"):
            break
        else:
            tokens.take()
    if Primary() in made and not tokens.of_mysql:  # MariaDB takes UNIQUE PRIMARY KEY as one key
        made = [one for one in made if not isinstance(one, Index)]
    return ColumnElement(details, tuple(made))


def _read_table_check(tokens: Tokens) -> Check:
    """Read the CHECK of a column of MySQL, where it is one of the table."""
    name = ""
    if tokens.accept("CONSTRAINT") and tokens.next.value != "CHECK":
        name = tokens.name()
    tokens.expect("CHECK")
    condition = in_parentheses(tokens)
    return Check(name, condition, enforced=_is_enforced(tokens))


def _unique(column: str) -> Index:
    return Index("", (IndexPart(column),), "UNIQUE")


def read_option(tokens: Tokens, details: Details) -> Details | None:
    """Read an option of a table; None if it isn't one of the details."""
    if tokens.accept("COMMENT"):
        tokens.accept("=")
        return replace(details, comment=tokens.string())
    if tokens.accept("ROW_FORMAT"):
        tokens.accept("=")
        format_name = tokens.take().value.upper()
        return replace(details, row_format=format_name if format_name in _ROW_FORMATS else "")
    if tokens.accept("PARTITION", "BY"):
        start = tokens.next
        while tokens.next.kind != "end" and not _is_mark(tokens.next, ";"):
            tokens.take()
        return replace(details, partitions=respelled(tokens, start))
    if not tokens.skip_setting():
        tokens.take()
    return None


def in_parentheses(tokens: Tokens) -> str:
    """Read an expression in parentheses."""
    start = tokens.next
    tokens.expect("(")
    tokens.skip_to_closing()
    return respelled(tokens, start)


def respelled(tokens: Tokens, start: Token) -> str:
    """Return what was read since `start`, as a session without special sql_mode reads it."""
    parts: list[str] = []
    offset = start.start
    for token in tokens.since(start):
        if token.start > offset:
            parts.append(" ")
        offset = token.end
        if token.kind == "string":
            parts.append(literal(token.value))
        elif token.kind == "name":
            parts.append(quoted(token.value))
        else:
            parts.append(token.text)
    return "".join(parts)


def _is_enforced(tokens: Tokens) -> bool:
    if tokens.accept("NOT", "ENFORCED"):
        return False
    tokens.accept("ENFORCED")
    return True


def _skip_condition(tokens: Tokens) -> None:
    if tokens.accept("IF", "NOT", "EXISTS") or tokens.accept("IF", "EXISTS"):
        raise NotUnderstood("IF EXISTS of an index or constraint")


def _is_mark(token: Token, *values: str) -> bool:
    return token.kind == "mark" and token.value in values
