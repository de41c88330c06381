"""ALTER statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace

from ...codec.mysql.alter import AddKey, AddUnique, Clause, RenameTo, read_clauses
from ...codec.mysql.create import skip_condition
from ...codec.mysql.details_change import changed_details
from ...codec.mysql.entry import Query
from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.left_out import copied_details
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...events import (
    ChangeColumn,
    ChangeDetails,
    ChangeKey,
    Details,
    DropTable,
    Table,
    TableName,
    computed_columns,
)
from .alteration import alter as alter_known
from .change import Change, failed, reloaded
from .copies import without_generated
from .details import followed
from .rename_statement import rename_tables
from .scope import Scope, check_readable
from .unknown_table import alter_unknown

_DATABASE_OPTIONS: Final = (
    "CHARACTER", "CHAR", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "UPGRADE", "ENCRYPTION", "READ",
)  # fmt: skip
"""First words of ALTER DATABASE without a name."""


def alter(scope: Scope, tokens: Tokens, query: Query) -> Iterator[Change]:
    """Yield the effects of a statement that begins with ALTER."""
    if tokens.accept_any("DATABASE", "SCHEMA"):
        _alter_database(scope, tokens, query)
        return
    is_ignore = False
    while word := tokens.accept_any("ONLINE", "IGNORE"):
        is_ignore = is_ignore or word == "IGNORE"
    tokens.expect("TABLE")
    if_exists = skip_condition(tokens)
    name = tokens.qualified_name(query.schema)
    if not scope.follows(name):
        yield from _alter_other(scope, tokens, query, name)
    elif not (if_exists and scope.catalog.is_absent(name)):
        yield from alter_table(scope, tokens, query, name, is_ignore=is_ignore)
        yield from scope.cascades(name, query)


def _alter_database(scope: Scope, tokens: Tokens, query: Query) -> None:
    named = tokens.next.value not in _DATABASE_OPTIONS
    name = tokens.stored_name() if named or tokens.next.kind == "name" else query.schema
    known = scope.catalog.databases.get(name)
    if known is not None or scope.catalog.state != "unknown":
        scope.set_database(tokens, name, known, query.server_charset)


def alter_table(
    scope: Scope,
    tokens: Tokens,
    query: Query,
    name: TableName,
    *,
    is_ignore: bool = False,
    details: Callable[[Details], Details] | None = None,
) -> Iterator[Change]:
    """Yield the effects of the clauses of an ALTER TABLE; `details` has that on the table's details, if
    the clauses don't."""
    start = tokens.next
    try:
        check_readable(tokens, query)
        if query.error:
            raise NotUnderstood(failed(query))
        clauses = read_clauses(tokens, query.schema, explicit_timestamps=query.explicit_timestamps)
        tokens.step_back_to(start)
        details = details or (lambda before: changed_details(before, tokens))
        change, known = _altered(scope, name, clauses, query, is_ignore, details)
    except NotUnderstood as what:
        tokens.step_back_to(start)
        yield from _not_followed(scope, tokens, query, name, str(what))
        return
    if known is not None:
        scope.catalog.put(known)
    if change.actions:
        yield change
    for clause in clauses:
        if isinstance(clause, RenameTo) and clause.table != name:
            yield from rename_tables(scope, [(name, clause.table)], query)


def _altered(
    scope: Scope,
    name: TableName,
    clauses: list[Clause],
    query: Query,
    is_ignore: bool,
    details: Callable[[Details], Details],
) -> tuple[Change, KnownTable | None]:
    if is_ignore and any(isinstance(clause, AddUnique | AddKey) for clause in clauses):
        raise NotUnderstood("ALTER IGNORE TABLE, which deletes rows")
    known = scope.catalog.get(name)
    if known is None:
        if not scope.copies_generated:
            raise NotUnderstood("the table's definition isn't known")
        actions = tuple(alter_unknown(clauses, query))
        if scope.follows_details:
            unknown = Details(unknown="a definition that isn't known")
            actions = (*actions, ChangeDetails(Details(), unknown, Table(*name, ())))
        return Change(*name, actions), None
    altered = alter_known(
        known, clauses, query, scope.defaults(name[0]), copies_generated=scope.copies_generated
    )
    if is_ignore and any(isinstance(action, ChangeColumn | ChangeKey) for action in altered.actions):
        raise NotUnderstood("ALTER IGNORE TABLE, which changes values")
    collation = altered.known.table.collation or ""
    after = replace(details(followed(known.details, altered.actions)), collation=collation)
    made = scope.copied(replace(altered.known, details=after))
    actions = altered.actions
    if not scope.copies_generated:
        actions = without_generated(known, made, actions)
    if scope.follows_details:
        details_before, details_after = followed(copied_details(known), actions), copied_details(made)
        if actions or details_before != details_after:
            actions = (*actions, ChangeDetails(details_before, details_after, made.table))
    reload = reloaded(name, "a generated column", query).reload if computed_columns(actions) else ""
    return Change(*name, actions, reload), made


def _not_followed(scope: Scope, tokens: Tokens, query: Query, name: TableName, what: str) -> Iterator[Change]:
    """Load the tables of an ALTER TABLE again."""
    kind = "partition" if "PARTITION" in what else "other"
    drops, loads = [], [name]
    for clause, other in _other_tables(tokens, query.schema):
        if clause == "RENAME":
            drops, loads = [name], [other]
        elif clause == "CONVERT":
            drops.append(other)
        else:
            loads.append(other)
    for one in drops:
        if scope.follows(one):
            scope.catalog.remove(one)
            yield Change(*one, (DropTable(),), kind=kind)
    for one in loads:
        if scope.follows(one):
            yield scope.reload(one, what, query, kind)


def _alter_other(scope: Scope, tokens: Tokens, query: Query, name: TableName) -> Iterator[Change]:
    """Yield effects on followed tables that an ALTER of another table names."""
    for clause, other in _other_tables(tokens, query.schema):
        if clause == "RENAME":
            yield from rename_tables(scope, [(name, other)], query)
        elif scope.follows(other) and clause == "CONVERT":
            scope.catalog.remove(other)
            yield Change(*other, (DropTable(),), kind="partition")
        elif scope.follows(other):
            yield scope.reload(other, "the statement exchanges its rows", query, "partition")


def _other_tables(tokens: Tokens, schema: str) -> Iterator[tuple[str, TableName]]:
    """Yield tables named in clauses of ALTER TABLE, with the clause: the new name after RENAME, tables that
    CONVERT TABLE drops, and tables that a partition is exchanged with or becomes."""
    while tokens.next.kind != "end":
        if tokens.accept("RENAME"):
            if not tokens.accept_any("COLUMN", "INDEX", "KEY"):
                tokens.accept_any("TO", "AS", "=")
                yield "RENAME", tokens.qualified_name(schema)
        elif tokens.accept("CONVERT", "TABLE"):
            yield "CONVERT", tokens.qualified_name(schema)
        elif tokens.accept("WITH", "TABLE") or tokens.accept("TO", "TABLE"):
            yield "EXCHANGE", tokens.qualified_name(schema)
        else:
            tokens.take()
