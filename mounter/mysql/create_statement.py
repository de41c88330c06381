"""CREATE statements."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...codec.mysql.create import read_table, skip_condition
from ...codec.mysql.details import read_details
from ...codec.mysql.details_change import with_index
from ...codec.mysql.entry import Query
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...events import CreateTable, DropTable, TableName
from .alter_statement import alter_table
from .change import Change
from .creation import created, like
from .drop_statement import drop_database
from .scope import Scope, check_readable


def create(scope: Scope, tokens: Tokens, query: Query) -> Iterator[Change]:
    """Yield the effects of a statement that begins with CREATE."""
    replaces = tokens.accept("OR", "REPLACE")
    kind = tokens.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
    match tokens.accept_any("TABLE", "DATABASE", "SCHEMA", "INDEX"):
        case "INDEX":
            index = tokens.next
            while not tokens.accept("ON"):
                if tokens.take().kind == "end":
                    raise tokens.unexpected()
            name = tokens.qualified_name(query.schema)
            if scope.follows(name):
                clauses = ["DROP INDEX x"] * replaces + ["ADD UNIQUE (x)"] * (kind == "UNIQUE")
                tokens.step_back_to(index)
                yield from alter_table(
                    scope,
                    Tokens(", ".join(clauses)),
                    query,
                    name,
                    details=lambda before: with_index(before, tokens, kind, replaces=replaces),
                )
        case "TABLE":
            unless_exists = skip_condition(tokens)
            name = tokens.qualified_name(query.schema)
            if scope.follows(name):
                yield from _create_table(scope, tokens, query, name, unless_exists, replaces)
        case "DATABASE" | "SCHEMA":
            unless_exists = skip_condition(tokens)
            database = tokens.stored_name()
            if replaces:
                yield from drop_database(scope, database, query)
            elif unless_exists and database in scope.catalog.databases:
                return
            scope.set_database(tokens, database, query.server_charset, query.server_charset)
        case _:
            raise tokens.unexpected()


def _create_table(
    scope: Scope, tokens: Tokens, query: Query, name: TableName, unless_exists: bool, replaces: bool
) -> Iterator[Change]:
    catalog = scope.catalog
    if query.error:  # the server drops the table before it creates the new one
        if replaces and not catalog.is_absent(name):
            catalog.remove(name)
            yield Change(*name, (DropTable(),), kind="create table")
        return
    if unless_exists:
        if catalog.exists(name):
            return
        if catalog.state != "complete":
            why = "it isn't known if CREATE TABLE IF NOT EXISTS created it"
            yield scope.reload(name, why, query, "create table")
            return
    try:
        check_readable(tokens, query)
        start = tokens.next
        made = read_table(tokens, query.schema, explicit_timestamps=query.explicit_timestamps)
        if made.is_sequence:
            return
        if made.like is not None:
            known = like(name, made.like, catalog)
        else:
            tokens.step_back_to(start)
            known = created(name, made, query, scope.defaults(name[0]))
            details = replace(read_details(tokens), collation=known.table.collation or "")
            known = scope.copied(replace(known, details=details))
    except NotUnderstood as what:
        yield scope.reload(name, str(what), query, "create table")
        return
    catalog.put(known)
    yield Change(*name, (CreateTable(known.table, replaces), *scope.details_of(known)))
    yield from scope.cascades(name, query)
