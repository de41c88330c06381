"""The net effect of RENAME TABLE."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from ...codec.mysql.known_table import KnownTable
from ...events import TableName
from .catalog import Catalog


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
    definitions = {old: catalog.get(old) for old, _ in moves}
    exists = {old for old, _ in moves if catalog.exists(old)}
    for old, _ in moves:
        catalog.remove(old)
    for old, new in moves:
        if follows(new) and old in exists:
            _put(catalog, new, definitions[old])
    return Renamed(dropped, both, loaded)


def _put(catalog: Catalog, name: TableName, known: KnownTable | None) -> None:
    if known is None:
        catalog.forget(name)
    else:
        catalog.put(known.named(name))
