"""RENAME TABLE statements, and clauses like them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from ...codec.mysql.create import skip_condition
from ...codec.mysql.entry import Query
from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.tokens import Tokens
from ...events import DropTable, RenameTables, TableName
from .catalog import Catalog
from .change import Change, failed
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


class Renamed(Struct, frozen=True):
    """Effects in the order in which they can be applied."""

    dropped: tuple[TableName, ...]
    """Followed tables whose new name isn't followed, and those that may be in only some of the targets."""
    renamed: tuple[tuple[TableName, TableName], ...]
    loaded: tuple[TableName, ...]
    """Names of followed tables that weren't followed before."""


def renamed(
    pairs: Iterable[tuple[TableName, TableName]], follows: Callable[[TableName], bool], catalog: Catalog
) -> Renamed:
    """Return the net effect of renaming tables from left to right, and apply it to the catalog."""
    names: dict[TableName, TableName] = {}  # names before the statement, by the present ones
    for name, to in pairs:
        names[to] = names.pop(name, name)
    moves = [(old, new) for new, old in names.items() if old != new]
    # A name that isn't a table's is a view's.
    moves = [(old, new) for old, new in moves if not (follows(old) and catalog.is_absent(old))]
    # While tables are loaded, one that isn't known is at most in a target that is ahead of the others.
    followed = {old for old, _ in moves if follows(old)}
    is_loading = catalog.state == "loading"
    follows_rows = {old for old in followed if catalog.exists(old)} if is_loading else followed
    unknown = followed - follows_rows
    dropped = tuple(old for old, new in moves if old in unknown or (old in followed and not follows(new)))
    both = tuple((old, new) for old, new in moves if old in follows_rows and follows(new))
    loaded = tuple(new for old, new in moves if follows(new) and old not in follows_rows)
    found = {old: catalog.get(old) for old, _ in moves}
    exists = {old for old, _ in moves if catalog.exists(old)}
    for old, _ in moves:
        catalog.remove(old)
    for old, new in moves:
        if follows(new) and old in exists:
            _put(catalog, new, found[old])
    return Renamed(dropped, both, loaded)


def _put(catalog: Catalog, name: TableName, known: KnownTable | None) -> None:
    if known is None:
        catalog.forget(name)
    else:
        catalog.put(known.named(name))
