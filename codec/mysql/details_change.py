"""Parsing of what ALTER TABLE changes besides columns and the primary key.

A second reading, as in `details`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from ...events import ColumnDetails, Details, Index
from .details import (
    Primary,
    added,
    is_element,
    read_column,
    read_element,
    read_index_head,
    read_option,
    respelled,
)
from .tokens import NotUnderstood, Tokens

_WITHOUT_EFFECT: Final = ("ANALYZE", "OPTIMIZE", "REBUILD", "REPAIR")
"""Verbs before PARTITION that change no definition."""


def changed_details(details: Details, tokens: Tokens) -> Details:
    """Return the details after the clauses of an ALTER TABLE. `details` are as the changes of its columns
    leave them; `unknown` names a part that isn't known."""
    if details.unknown:
        return details
    try:
        start = tokens.next
        while tokens.next.kind != "end":  # indexes are dropped before others are added
            if tokens.accept("DROP"):
                details = _dropped(details, tokens)
            tokens.skip_clause()
            tokens.accept(",")
            if tokens.accept(")") or tokens.accept(";"):
                continue
        tokens.step_back_to(start)
        while tokens.next.kind != "end":
            details = _applied(details, tokens)
            tokens.skip_clause()
            if not tokens.accept(","):
                tokens.accept(";")
    except NotUnderstood as what:
        return Details(unknown=str(what))
    return details


def _dropped(details: Details, tokens: Tokens) -> Details:
    if tokens.accept("PRIMARY", "KEY"):
        return replace(details, has_primary=False)
    word = tokens.accept_any("INDEX", "KEY", "CONSTRAINT", "CHECK", "FOREIGN", "PARTITION")
    if not word:
        return details
    if word == "PARTITION":
        raise NotUnderstood("DROP PARTITION")
    if word == "FOREIGN":
        # Its index stays; it isn't known which of several foreign keys is gone.
        return replace(details, references=() if len(details.references) == 1 else details.references)
    if tokens.accept("IF", "EXISTS"):
        pass
    name = tokens.name().lower()
    if name == "primary" and word in ("INDEX", "KEY"):
        return replace(details, has_primary=False)
    indexes, checks = details.indexes, details.checks
    if word != "CHECK":
        indexes = tuple(index for index in indexes if index.name.lower() != name)
    if word in ("CHECK", "CONSTRAINT") and len(indexes) == len(details.indexes):
        checks = tuple(check for check in checks if check.name.lower() != name)
    return replace(details, indexes=indexes, checks=checks)


def _applied(details: Details, tokens: Tokens) -> Details:
    verb = tokens.accept_any("ADD", "MODIFY", "CHANGE", "ALTER", "RENAME", "REMOVE", "DROP", "CONVERT")
    match verb:
        case "ADD":
            return _added(details, tokens)
        case "MODIFY" | "CHANGE":
            tokens.accept("COLUMN")
            _skip_condition(tokens)
            if verb == "CHANGE":
                tokens.name()
            return _with_column(details, tokens)
        case "ALTER":
            return _altered(details, tokens)
        case "RENAME" if tokens.accept_any("INDEX", "KEY"):
            if tokens.accept("IF", "EXISTS"):
                pass
            old = tokens.name().lower()
            tokens.expect("TO")
            new = tokens.name()
            return _with_indexes(details, old, lambda index: replace(index, name=new))
        case "REMOVE":
            tokens.expect("PARTITIONING")
            return replace(details, partitions="")
        case "DROP" | "RENAME" | "CONVERT":
            return details
    if tokens.accept("COALESCE", "PARTITION") or tokens.accept("REORGANIZE", "PARTITION"):
        raise NotUnderstood("other partitions")
    if any(tokens.accept(one, "PARTITION") for one in _WITHOUT_EFFECT):
        while tokens.next.kind != "end":
            tokens.take()
        return details
    while tokens.next.kind != "end" and tokens.next.value not in (",", ";"):
        details = read_option(tokens, details) or details
    return details


def _added(details: Details, tokens: Tokens) -> Details:
    if tokens.accept("PARTITION"):
        return _with_partition(details, tokens)
    if is_element(tokens):
        return added(details, read_element(tokens))
    tokens.accept("COLUMN")
    _skip_condition(tokens)
    if not tokens.accept("("):
        return _with_column(details, tokens)
    while True:
        if is_element(tokens):
            details = added(details, read_element(tokens))
        else:
            details = _with_column(details, tokens)
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return details


def _with_column(details: Details, tokens: Tokens) -> Details:
    column = read_column(tokens)
    if column.details.check:
        raise NotUnderstood("the CHECK of a column")
    low = column.details.name.lower()
    kept = [one for one in details.columns if one.name.lower() != low]
    if column.details != ColumnDetails(column.details.name):
        kept.append(column.details)
    details = replace(details, columns=tuple(kept))
    for element in column.made:
        if not isinstance(element, Primary):
            details = added(details, element)
        else:
            details = replace(details, has_primary=True)
    return details


def _altered(details: Details, tokens: Tokens) -> Details:
    """Read ALTER INDEX, ALTER CHECK or ALTER COLUMN."""
    if tokens.accept_any("INDEX", "KEY"):
        if tokens.accept("IF", "EXISTS"):
            pass
        name = tokens.name().lower()
        hidden = tokens.accept_any("INVISIBLE", "IGNORED") != ""
        return _with_indexes(details, name, lambda index: replace(index, hidden=hidden))
    if tokens.accept_any("CHECK", "CONSTRAINT"):
        name = tokens.name().lower()
        enforced = not tokens.accept("NOT")
        checks = tuple(
            replace(check, enforced=enforced) if check.name.lower() == name else check
            for check in details.checks
        )
        return replace(details, checks=checks)
    tokens.accept("COLUMN")
    _skip_condition(tokens)
    name = tokens.name()
    if invisible := tokens.accept("SET", "INVISIBLE"):
        pass
    elif not tokens.accept("SET", "VISIBLE"):
        return details
    column = replace(details.of_column(name), invisible=invisible)
    kept = tuple(one for one in details.columns if one.name.lower() != name.lower())
    return replace(details, columns=kept if column == ColumnDetails(column.name) else (*kept, column))


def _with_indexes(details: Details, name: str, change: Callable[[Index], Index] | None) -> Details:
    """Return the details with the index of this name changed, or without it."""
    indexes: list[Index] = []
    for index in details.indexes:
        if index.name.lower() != name:
            indexes.append(index)
        elif change is not None:
            indexes.append(change(index))
    return replace(details, indexes=tuple(indexes))


def _with_partition(details: Details, tokens: Tokens) -> Details:
    """Read the list of ADD PARTITION."""
    if not details.partitions.endswith(")") or not tokens.accept("("):
        raise NotUnderstood("other partitions")
    start = tokens.next
    while not (tokens.next.value == ")" and _is_last(tokens)):
        tokens.take()
    more = respelled(tokens, start)
    tokens.take()
    return replace(details, partitions=f"{details.partitions[:-1]}, {more})")


def _is_last(tokens: Tokens) -> bool:
    ahead = tokens.next
    tokens.take()
    is_last = tokens.next.kind == "end"
    tokens.step_back_to(ahead)
    return is_last


def _skip_condition(tokens: Tokens) -> None:
    if tokens.accept("IF", "NOT", "EXISTS") or tokens.accept("IF", "EXISTS"):
        raise NotUnderstood("IF EXISTS of a column, in a definition that is copied")


def with_index(details: Details, tokens: Tokens, kind: str, *, replaces: bool) -> Details:
    """Return the details after a CREATE INDEX, which is read from the index's name on."""
    if details.unknown:
        return details
    try:
        _skip_condition(tokens)
        index = read_index_head(tokens, kind)
        if replaces:
            details = _with_indexes(details, index.name.lower(), None)
        return added(details, index)
    except NotUnderstood as what:
        return Details(unknown=str(what))
