"""RENAME TABLE statements, and clauses like them."""

from __future__ import annotations

from ...codec.mysql.create import skip_condition
from ...codec.mysql.entry import Query
from ...codec.mysql.tokens import Tokens
from ...events import DropTable, RenameTables, TableName
from .change import Change, failed
from .renaming import renamed
from .scope import Scope


def rename(scope: Scope, tokens: Tokens, query: Query) -> list[Change]:
    """Return the effects of a statement that begins with RENAME."""
    tokens.accept_any("TABLE", "TABLES")
    if_exists = skip_condition(tokens)
    pairs = []
    while True:
        name = tokens.qualified_name(query.schema)
        skip_wait(tokens)
        tokens.expect("TO")
        to = tokens.qualified_name(query.schema)
        if not (if_exists and scope.follows(name) and scope.catalog.is_absent(name)):
            pairs.append((name, to))
        if not tokens.accept(","):
            break
    return rename_tables(scope, pairs, query)


def rename_tables(scope: Scope, pairs: list[tuple[TableName, TableName]], query: Query) -> list[Change]:
    """Return the net effect of renaming tables from left to right: drops, then renames, then reloads."""
    if query.error:
        names = {name: None for pair in pairs for name in pair if scope.follows(name)}
        return [scope.reload(name, failed(query), query, "rename table") for name in names]
    outcome = renamed(pairs, scope.follows, scope.catalog)
    changes = [Change(*name, (DropTable(),), kind="rename table") for name in outcome.dropped]
    if outcome.renamed:
        changes.append(Change(*outcome.renamed[0][0], (RenameTables(outcome.renamed),)))
    why = "its rows weren't followed under its name before RENAME TABLE"
    changes += [scope.reload(name, why, query, "rename table") for name in outcome.loaded]
    return changes


def skip_wait(tokens: Tokens) -> None:
    """Skip the time to wait for a table's lock."""
    if tokens.accept("WAIT"):
        tokens.number()
    else:
        tokens.accept("NOWAIT")
