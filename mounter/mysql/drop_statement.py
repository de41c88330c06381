"""DROP and TRUNCATE statements."""

from __future__ import annotations

from collections.abc import Iterator

from ...codec.mysql.create import skip_condition
from ...codec.mysql.entry import Query
from ...codec.mysql.tokens import Tokens, quoted
from ...events import DropTable, TableName, TruncateTable
from .alter_statement import alter_table
from .change import Change, failed, refused
from .rename_statement import skip_wait
from .scope import Scope


def drop(scope: Scope, tokens: Tokens, query: Query) -> Iterator[Change]:
    """Yield the effects of a statement that begins with DROP."""
    match tokens.accept_any("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA"):
        case "TABLE" | "TABLES":
            skip_condition(tokens)
            for name in _names(tokens, query.schema):
                if scope.follows(name) and not scope.catalog.is_absent(name):
                    scope.catalog.remove(name)
                    yield Change(*name, (DropTable(),))
        case "INDEX":
            skip_condition(tokens)
            index = tokens.name()
            tokens.expect("ON")
            name = tokens.qualified_name(query.schema)
            if scope.follows(name):
                is_primary = index.upper() == "PRIMARY"
                clause = "DROP PRIMARY KEY" if is_primary else f"DROP INDEX {quoted(index)}"
                yield from alter_table(scope, Tokens(clause), query, name)
        case "DATABASE" | "SCHEMA":
            skip_condition(tokens)
            yield from drop_database(scope, tokens.stored_name(), query)
        case _:
            raise tokens.unexpected()


def drop_database(scope: Scope, database: str, query: Query) -> Iterator[Change]:
    """Yield the effects of dropping a database with all its tables."""
    catalog = scope.catalog
    catalog.set_database(database, None)
    if catalog.state == "unknown" and scope.touches(database):
        yield refused(database, "DROP DATABASE, whose tables aren't all known", query)
        return
    for name in catalog.in_schema(database):
        catalog.remove(name)
        if scope.follows(name):
            yield Change(*name, (DropTable(),))


def truncate(scope: Scope, name: TableName, query: Query) -> Iterator[Change]:
    """Yield the effect of emptying a table."""
    if not scope.follows(name):
        return
    if query.error:
        yield scope.reload(name, failed(query), query, "truncate")
    else:
        yield Change(*name, (TruncateTable(),))


def _names(tokens: Tokens, schema: str) -> Iterator[TableName]:
    """Yield the tables of DROP TABLE."""
    yield tokens.qualified_name(schema)
    skip_wait(tokens)
    while tokens.accept(","):
        yield tokens.qualified_name(schema)
        skip_wait(tokens)
