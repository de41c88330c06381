"""Effects of logged statements on the followed tables.

Every change of a followed table's columns, key or rows is followed. If its effect isn't known exactly, the
table is loaded again; a statement whose table can't be named is refused: the feed stops there with an error
that quotes it. Statements that touch no followed table are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from ...codec.mysql.alter import AddKey, AddUnique, Clause, RenameTo, read_clauses
from ...codec.mysql.collation import Charset
from ...codec.mysql.create import CharsetChoice, read_charset_option, read_table, skip_condition
from ...codec.mysql.entry import Query
from ...codec.mysql.foreign_key import changing_rules
from ...codec.mysql.schema import is_user_schema
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...events import ChangeColumn, ChangeKey, CreateTable, DropTable, RenameTables, TableName, TruncateTable
from .alteration import Defaults, alter, alter_unknown
from .catalog import Catalog, KnownTable
from .change import Change, cascading, refused, reloaded
from .creation import created, like
from .renaming import renamed

_OTHER_SETTINGS: Final = "SET STATEMENT of sql_mode or a character set"


class Tables(Protocol):
    """The set of tables that the feed follows."""

    def matches(self, schema: str, table: str) -> bool: ...

    def touches(self, schema: str) -> bool:
        """Return True if tables of this schema may be followed."""
        ...


class Statements:
    """Reads the statements of a log in order, and keeps the catalog up to date."""

    def __init__(self, tables: Tables, catalog: Catalog, *, refuses_cascades: bool = False) -> None:
        """With `refuses_cascades`, foreign keys that change rows of followed tables are refused."""
        self._refuses_cascades = refuses_cascades
        self._tables = tables
        self._catalog = catalog

    def changes(self, query: Query) -> list[Change]:
        """Return the statement's effects on followed tables, in an order in which they can be applied one
        after another."""
        try:
            tokens = Tokens(query.query, query.sql_mode, folds_names=self._catalog.folds_names)
            tokens.skip_settings()
            match tokens.accept_any("ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE"):
                case "ALTER":
                    return list(self._alter(tokens, query))
                case "CREATE":
                    return list(self._create(tokens, query))
                case "DROP":
                    return list(self._drop(tokens, query))
                case "RENAME":
                    return self._rename(tokens, query)
                case "TRUNCATE":
                    tokens.accept("TABLE")
                    return list(self._truncate(tokens.qualified_name(query.schema), query))
        except NotUnderstood as reason:
            if self._touches(query.schema):
                return [refused(query.schema, str(reason), query)]
        return []

    def _follows(self, name: TableName) -> bool:
        return is_user_schema(name[0]) and self._tables.matches(*name)

    def _touches(self, schema: str) -> bool:
        return is_user_schema(schema) and self._tables.touches(schema)

    def _reload(self, name: TableName, why: str, query: Query, kind: str = "other") -> Change:
        self._catalog.forget(name)
        return reloaded(name, why, query, kind)

    def _truncate(self, name: TableName, query: Query) -> Iterator[Change]:
        if not self._follows(name):
            return
        if query.error:
            yield self._reload(name, _failed(query), query, "truncate")
        else:
            yield Change(*name, (TruncateTable(),))

    # --- CREATE ------------------------------------------------------------------------------------

    def _create(self, tokens: Tokens, query: Query) -> Iterator[Change]:
        replaces = tokens.accept("OR", "REPLACE")
        kind = tokens.accept_any("UNIQUE", "FULLTEXT", "SPATIAL")
        match tokens.accept_any("TABLE", "DATABASE", "SCHEMA", "INDEX"):
            case "INDEX" if kind == "UNIQUE" or replaces:
                while not tokens.accept("ON"):
                    if tokens.take().kind == "end":
                        raise tokens.unexpected()
                name = tokens.qualified_name(query.schema)
                if self._follows(name):
                    clauses = ["DROP INDEX x"] * replaces + ["ADD UNIQUE (x)"] * (kind == "UNIQUE")
                    yield from self._alter_table(Tokens(", ".join(clauses)), query, name)
            case "TABLE":
                unless_exists = skip_condition(tokens)
                name = tokens.qualified_name(query.schema)
                if self._follows(name):
                    yield from self._create_table(tokens, query, name, unless_exists, replaces)
            case "DATABASE" | "SCHEMA":
                unless_exists = skip_condition(tokens)
                database = tokens.stored_name()
                if replaces:
                    yield from self._drop_database(database, query)
                elif unless_exists and database in self._catalog.databases:
                    return
                self._set_database(tokens, database, query.server_charset)

    def _create_table(
        self, tokens: Tokens, query: Query, name: TableName, unless_exists: bool, replaces: bool
    ) -> Iterator[Change]:
        catalog = self._catalog
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
                yield self._reload(name, why, query, "create table")
                return
        try:
            if tokens.was_read_otherwise:
                raise NotUnderstood(_OTHER_SETTINGS)
            made = read_table(tokens, query.schema, explicit_timestamps=query.explicit_timestamps)
            if made.is_sequence:
                return
            if made.like is not None:
                known = like(name, made.like, catalog)
            else:
                known = created(name, made, query, self._defaults(name[0]))
        except NotUnderstood as what:
            yield self._reload(name, str(what), query, "create table")
            return
        catalog.put(known)
        yield Change(*name, (CreateTable(known.table, replaces),))
        yield from self._cascades(name, query)

    def _cascades(self, name: TableName, query: Query) -> Iterator[Change]:
        if self._refuses_cascades and (rules := changing_rules(query.query, query.sql_mode)):
            yield cascading(name, rules, query)

    def _defaults(self, schema: str) -> Defaults:
        return Defaults(self._catalog.databases.get(schema), self._catalog.collations)

    def _set_database(self, tokens: Tokens, name: str, default: Charset | None) -> None:
        choice = CharsetChoice()
        while tokens.next.kind != "end":
            if found := read_charset_option(tokens, choice):
                choice = found
            else:
                tokens.take()
        self._catalog.set_database(name, choice.resolve(default, self._catalog.collations))

    # --- DROP and RENAME ---------------------------------------------------------------------------

    def _drop(self, tokens: Tokens, query: Query) -> Iterator[Change]:
        match tokens.accept_any("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA"):
            case "TABLE" | "TABLES":
                skip_condition(tokens)
                for name in _names(tokens, query.schema):
                    if self._follows(name) and not self._catalog.is_absent(name):
                        self._catalog.remove(name)
                        yield Change(*name, (DropTable(),))
            case "INDEX":
                skip_condition(tokens)
                index = tokens.name()
                tokens.expect("ON")
                name = tokens.qualified_name(query.schema)
                if self._follows(name):
                    clause = "DROP PRIMARY KEY" if index.upper() == "PRIMARY" else "DROP INDEX x"
                    yield from self._alter_table(Tokens(clause), query, name)
            case "DATABASE" | "SCHEMA":
                skip_condition(tokens)
                yield from self._drop_database(tokens.stored_name(), query)

    def _drop_database(self, database: str, query: Query) -> Iterator[Change]:
        catalog = self._catalog
        catalog.set_database(database, None)
        if catalog.state == "unknown" and self._touches(database):
            yield refused(database, "DROP DATABASE, whose tables aren't all known", query)
            return
        for name in catalog.in_schema(database):
            catalog.remove(name)
            if self._follows(name):
                yield Change(*name, (DropTable(),))

    def _rename(self, tokens: Tokens, query: Query) -> list[Change]:
        if not tokens.accept_any("TABLE", "TABLES"):
            return []
        if_exists = skip_condition(tokens)
        pairs = []
        while True:
            name = tokens.qualified_name(query.schema)
            _skip_wait(tokens)
            tokens.expect("TO")
            to = tokens.qualified_name(query.schema)
            if not (if_exists and self._follows(name) and self._catalog.is_absent(name)):
                pairs.append((name, to))
            if not tokens.accept(","):
                break
        return self._renamed(pairs, query)

    def _renamed(self, pairs: list[tuple[TableName, TableName]], query: Query) -> list[Change]:
        """Return the net effect of renaming tables from left to right: drops, then renames, then reloads."""
        if query.error:
            names = {name: None for pair in pairs for name in pair if self._follows(name)}
            return [self._reload(name, _failed(query), query, "rename table") for name in names]
        found = renamed(pairs, self._follows, self._catalog)
        changes = [Change(*name, (DropTable(),), kind="rename table") for name in found.dropped]
        if found.renamed:
            changes.append(Change(*found.renamed[0][0], (RenameTables(found.renamed),)))
        why = "its rows weren't followed under its name before RENAME TABLE"
        changes += [self._reload(name, why, query, "rename table") for name in found.loaded]
        return changes

    # --- ALTER -------------------------------------------------------------------------------------

    def _alter(self, tokens: Tokens, query: Query) -> Iterator[Change]:
        if tokens.accept_any("DATABASE", "SCHEMA"):
            self._alter_database(tokens, query)
            return
        is_ignore = False
        while word := tokens.accept_any("ONLINE", "IGNORE"):
            is_ignore = is_ignore or word == "IGNORE"
        if not tokens.accept("TABLE"):
            return
        if_exists = skip_condition(tokens)
        name = tokens.qualified_name(query.schema)
        if not self._follows(name):
            yield from self._alter_other(tokens, query, name)
        elif not (if_exists and self._catalog.is_absent(name)):
            yield from self._alter_table(tokens, query, name, is_ignore=is_ignore)
            yield from self._cascades(name, query)

    def _alter_database(self, tokens: Tokens, query: Query) -> None:
        named = tokens.next.value not in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "UPGRADE")
        name = tokens.stored_name() if named or tokens.next.kind == "name" else query.schema
        known = self._catalog.databases.get(name)
        if known is not None or self._catalog.state != "unknown":
            self._set_database(tokens, name, known)

    def _alter_table(
        self, tokens: Tokens, query: Query, name: TableName, *, is_ignore: bool = False
    ) -> Iterator[Change]:
        start = tokens.next
        try:
            if tokens.was_read_otherwise:
                raise NotUnderstood(_OTHER_SETTINGS)
            if query.error:
                raise NotUnderstood(_failed(query))
            clauses = read_clauses(tokens, query.schema, explicit_timestamps=query.explicit_timestamps)
            change, known = self._altered(name, clauses, query, is_ignore)
        except NotUnderstood as what:
            tokens.step_back_to(start)
            yield from self._not_followed(tokens, query, name, str(what))
            return
        if known is not None:
            self._catalog.put(known)
        if change.actions:
            yield change
        for clause in clauses:
            if isinstance(clause, RenameTo) and clause.table != name:
                yield from self._renamed([(name, clause.table)], query)

    def _altered(
        self, name: TableName, clauses: list[Clause], query: Query, is_ignore: bool
    ) -> tuple[Change, KnownTable | None]:
        if is_ignore and any(isinstance(clause, AddUnique | AddKey) for clause in clauses):
            raise NotUnderstood("ALTER IGNORE TABLE, which deletes rows")
        known = self._catalog.get(name)
        if known is None:
            return Change(*name, alter_unknown(clauses, query)), None
        altered = alter(known, clauses, query, self._defaults(name[0]))
        if is_ignore and any(isinstance(action, ChangeColumn | ChangeKey) for action in altered.actions):
            raise NotUnderstood("ALTER IGNORE TABLE, which changes values")
        return Change(*name, altered.actions), altered.known

    def _not_followed(self, tokens: Tokens, query: Query, name: TableName, what: str) -> Iterator[Change]:
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
            if self._follows(one):
                self._catalog.remove(one)
                yield Change(*one, (DropTable(),), kind=kind)
        for one in loads:
            if self._follows(one):
                yield self._reload(one, what, query, kind)

    def _alter_other(self, tokens: Tokens, query: Query, name: TableName) -> Iterator[Change]:
        """Yield effects on followed tables that an ALTER of another table names."""
        for clause, other in _other_tables(tokens, query.schema):
            if clause == "RENAME":
                yield from self._renamed([(name, other)], query)
            elif self._follows(other) and clause == "CONVERT":
                self._catalog.remove(other)
                yield Change(*other, (DropTable(),), kind="partition")
            elif self._follows(other):
                yield self._reload(other, "the statement exchanges its rows", query, "partition")


def _failed(query: Query) -> str:
    return f"it failed with error {query.error}"


def _names(tokens: Tokens, schema: str) -> Iterator[TableName]:
    """Yield the tables of DROP TABLE."""
    yield tokens.qualified_name(schema)
    _skip_wait(tokens)
    while tokens.accept(","):
        yield tokens.qualified_name(schema)
        _skip_wait(tokens)


def _skip_wait(tokens: Tokens) -> None:
    if tokens.accept("WAIT"):
        tokens.number()
    else:
        tokens.accept("NOWAIT")


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
