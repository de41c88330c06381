"""The followed tables and their catalog, which the effects of all statements depend on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...chain.selection.tables import TablePatterns
from ...codec.mysql.collation import Charset
from ...codec.mysql.create import CharsetChoice, read_charset_option
from ...codec.mysql.entry import Query
from ...codec.mysql.foreign_key import changing_rules
from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.left_out import copied_details, leave_out_generated
from ...codec.mysql.schema import is_user_schema
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...events import Action, ChangeDetails, Details, TableName
from .alteration import Defaults
from .catalog import Catalog
from .change import Change, cascading, reloaded

_MAX_CHARACTERS: Final = 1 << 20
"""Maximum length of a statement whose clauses are read, which takes about 100 bytes a character. The largest
number of partitions, 8,192, needs half of that."""
_OTHER_SETTINGS: Final = "SET STATEMENT of sql_mode or a character set"


class Scope:
    """The followed tables, the catalog of their definitions, and which of their changes are wanted."""

    def __init__(
        self,
        tables: TablePatterns,
        catalog: Catalog,
        *,
        refuses_cascades: bool,
        follows_details: bool,
        copies_generated: bool,
    ) -> None:
        self.catalog = catalog
        self.copies_generated = copies_generated
        """True if copies have generated columns."""
        self.follows_details = follows_details
        """True if indexes and the like are followed too."""
        self._tables = tables
        self._refuses_cascades = refuses_cascades

    def follows(self, name: TableName) -> bool:
        return is_user_schema(name[0]) and self._tables.matches(*name)

    def touches(self, schema: str) -> bool:
        """Return True if tables of this schema may be followed."""
        return is_user_schema(schema) and self._tables.touches(schema)

    def reload(self, name: TableName, why: str, query: Query, kind: str = "other") -> Change:
        """Forget a table's definition; return the change that loads the table again."""
        self.catalog.forget(name)
        return reloaded(name, why, query, kind)

    def details_of(self, known: KnownTable) -> list[Action]:
        """Return the action that gives a new table its details, if they are followed."""
        if not self.follows_details:
            return []
        return [ChangeDetails(Details(), copied_details(known), known.table)]

    def copied(self, known: KnownTable) -> KnownTable:
        """Return the table as copies have it."""
        return known if self.copies_generated else leave_out_generated(known)

    def cascades(self, name: TableName, query: Query) -> Iterator[Change]:
        """Yield a refusal if a statement adds foreign keys whose changes of rows aren't logged."""
        if self._refuses_cascades and (rules := changing_rules(query.query, query.sql_mode)):
            yield cascading(name, rules, query)

    def defaults(self, schema: str) -> Defaults:
        return Defaults(self.catalog.databases.get(schema), self.catalog.collations)

    def set_database(
        self, tokens: Tokens, name: str, default: Charset | None, server: Charset | None
    ) -> None:
        """Note a database's character set, from the rest of its CREATE or ALTER; `default` is that without a
        choice, and `server` the one that DEFAULT means."""
        choice = CharsetChoice()
        while tokens.next.kind != "end":
            if named := read_charset_option(tokens, choice):
                choice = named
            else:
                tokens.take()
        base = server if choice.name == "default" else default
        self.catalog.set_database(name, choice.resolve(base, self.catalog.collations))


def check_readable(tokens: Tokens, query: Query) -> None:
    """Raise NotUnderstood if the statement was read with other settings than it ran with, or is too long."""
    if tokens.was_read_otherwise:
        raise NotUnderstood(_OTHER_SETTINGS)
    if len(query.query) > _MAX_CHARACTERS:
        raise NotUnderstood(f"a statement of {len(query.query)} characters")
