"""Effects of logged statements on the followed tables.

Every change of a followed table's columns, key or rows is followed. If its effect isn't known exactly, the
table is loaded again; a statement whose table can't be named, or that isn't known, is refused: the feed stops
there with an error that quotes it. Statements that touch no followed table are ignored.
"""

from __future__ import annotations

from ...chain.selection.tables import TablePatterns
from ...codec.mysql.effect import read_effect
from ...codec.mysql.entry import Query
from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...errors import InvariantViolated
from ...events import Action
from .alter_statement import alter
from .catalog import Catalog
from .change import Change, refused
from .create_statement import create
from .drop_statement import drop, truncate
from .rename_statement import rename
from .scope import Scope


class Statements:
    """Reads the statements of a log in order, and keeps the catalog up to date."""

    def __init__(
        self,
        tables: TablePatterns,
        catalog: Catalog,
        *,
        refuses_cascades: bool = False,
        details: bool = False,
        copies_generated: bool = True,
        of_mysql: bool = False,
    ) -> None:
        """With `refuses_cascades`, foreign keys that change rows of followed tables are refused. With
        `details`, indexes and the like are followed too. Without `copies_generated`, generated columns aren't
        columns of the followed tables. `of_mysql` is True if the server is a MySQL, not a MariaDB."""
        self._of_mysql = of_mysql
        self._scope = Scope(
            tables,
            catalog,
            refuses_cascades=refuses_cascades,
            follows_details=details,
            copies_generated=copies_generated,
        )

    def changes(self, query: Query) -> list[Change]:
        """Return the statement's effects on followed tables, in an order in which they can be applied one
        after another."""
        scope = self._scope
        try:
            tokens = Tokens(
                query.query,
                query.sql_mode,
                folds_names=scope.catalog.folds_names,
                of_mysql=self._of_mysql,
            )
            return self._changes(tokens, query)
        except NotUnderstood as reason:
            return [refused(query.schema, str(reason), query)]

    def _changes(self, tokens: Tokens, query: Query) -> list[Change]:
        scope = self._scope
        match read_effect(tokens):
            case "nothing":
                return []
            case "rows":
                raise NotUnderstood("a statement in place of the rows that it changed")
        match tokens.take().value:
            case "ALTER":
                return list(alter(scope, tokens, query))
            case "CREATE":
                return list(create(scope, tokens, query))
            case "DROP":
                return list(drop(scope, tokens, query))
            case "RENAME":
                return rename(scope, tokens, query)
            case "TRUNCATE":
                tokens.accept("TABLE")
                return list(truncate(scope, tokens.qualified_name(query.schema), query))
            case verb:
                raise InvariantViolated(f"{verb} changes definitions")

    def details_of(self, known: KnownTable) -> list[Action]:
        """Return the action that gives a new table its details, if they are followed."""
        return self._scope.details_of(known)
