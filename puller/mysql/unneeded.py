"""Tables whose logged changes no target needs, because their rows are loaded again later."""

from __future__ import annotations

from collections.abc import Iterable

from .log_watch import mentions


class Unneeded:
    """Used by the log reader's thread.

    A load reads views that begin after the log's position. So they have the effect of everything that was
    logged before the load begins.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """`names` are full names."""
        self._names = {(schema, table) for schema, _, table in (name.partition(".") for name in names)}

    def __contains__(self, name: tuple[str, str]) -> bool:
        return name in self._names

    def load_begins(self, name: tuple[str, str]) -> None:
        self._names.discard(name)

    def note_statement(self, text: str) -> None:
        """Note a statement about definitions, which may make another table of one of these names."""
        if self._names:
            self._names -= {name for name in self._names if mentions(text, *name)}
