"""The effect of a statement on one followed table, and the sentences about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ...chain.selection.kinds import kind_of
from ...codec.mysql.entry import Query
from ...events import Action, ChangeDetails, TableName

_QUOTED_CHARACTERS: Final = 1000
"""Maximum number of characters of a statement that an error quotes."""


class Change(Struct, frozen=True):
    """Effect of a statement on a followed table: actions, or a sentence why it isn't known exactly; both if
    only some sinks can apply the actions."""

    schema: str
    table: str
    """Empty if the statement isn't about one table, as in DROP DATABASE."""
    actions: tuple[Action, ...] = ()
    reload: str = ""
    refusal: str = ""
    kind: str = ""
    """One of DDL_KINDS; empty for that of each action."""

    def kind_of(self, action: Action) -> str:
        return kind_of(action) if isinstance(action, ChangeDetails) else self.kind or kind_of(action)


def reloaded(name: TableName, why: str, query: Query, kind: str = "other") -> Change:
    """Return the change that loads a table again."""
    schema, table = name
    said = f"table {schema}.{table} is loaded again, as the effect of a statement on it isn't known exactly"
    return Change(schema, table, reload=f"{said} ({why}): {quoted(query)}", kind=kind)


def refused(schema: str, what: str, query: Query) -> Change:
    """Return the change that stops the feed at a statement whose tables can't be named."""
    way_out = (
        "to go on, load all tables again (tidemill resume FEED --resnapshot '*'), or begin with empty targets"
    )
    said = f"schema {schema}: this can't be followed ({what}); {way_out}: {quoted(query)}"
    return Change(schema, "", refusal=said, kind="other")


def cascading(name: TableName, rules: Sequence[str], query: Query) -> Change:
    """Return the change that stops the feed at a foreign key whose changes of rows aren't logged."""
    schema, table = name
    said = (
        f"table {schema}.{table}: a foreign key will change its rows ({', '.join(rules)}), and the server "
        "doesn't log that: copies would differ; make it RESTRICT, or set source.cascades = 'ignore' to "
        f"accept the difference: {quoted(query)}"
    )
    return Change(schema, table, refusal=said, kind="other")


def failed(query: Query) -> str:
    """Return the reason to load a table again after a statement that failed."""
    return f"it failed with error {query.error}"


def quoted(query: Query) -> str:
    """Return a statement in one line, shortened."""
    statement = " ".join(query.query[: 2 * _QUOTED_CHARACTERS].split())
    if len(statement) > _QUOTED_CHARACTERS or len(query.query) > 2 * _QUOTED_CHARACTERS:
        statement = statement[:_QUOTED_CHARACTERS] + " ..."
    return statement
