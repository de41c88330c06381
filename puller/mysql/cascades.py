"""Foreign keys that change rows of followed tables without a word in the binlog.

InnoDB carries out ON DELETE and ON UPDATE by itself: MariaDB and MySQL before 9.6 log the parent's rows only.
MySQL 9.6 and later log the child's rows, too, unless it was started with innodb_native_foreign_keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from ...codec.mysql.foreign_key import changing_rules
from ...codec.mysql.tokens import qualified, quoted
from ...config import Finding
from ...dialects.mysql.client import Session, query, show_create_table
from ...snapshot.mysql.tables import FoundTable
from .options import MysqlOptions

_CHANGING: Final = ("CASCADE", "SET NULL", "SET DEFAULT")

_KEYS: Final = """
SELECT TABLE_NAME, CONSTRAINT_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME
FROM information_schema.KEY_COLUMN_USAGE
WHERE CONSTRAINT_SCHEMA = %s AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY TABLE_NAME, CONSTRAINT_NAME
"""

_RULES: Final = """
SELECT TABLE_NAME, CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE
FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = %s
"""

_COLUMNS: Final = """
SELECT COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME
FROM information_schema.KEY_COLUMN_USAGE
WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s AND CONSTRAINT_NAME = %s
AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY ORDINAL_POSITION
"""


def logs_cascades(session: Session) -> bool:
    """Return True if the server logs the rows that its foreign keys change."""
    rows = query(session, "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
    return bool(rows) and rows[0][1] == "OFF"


def unlogged_cascades(
    session: Session, options: MysqlOptions, followed: Iterable[FoundTable]
) -> Iterator[Finding]:
    """Yield a finding for each foreign key of a followed table whose changes of it aren't logged.

    The parent needn't be followed. In a chain of tables each has a foreign key of its own.
    """
    if logs_cascades(session):
        return
    children = {(table.schema, table.name) for table in followed}
    for schema in sorted({schema for schema, _ in children}):
        keys = {
            (child, name): f"{parent_schema}.{parent}"
            for child, name, parent_schema, parent in query(session, _KEYS, schema)
            if (schema, child) in children
        }
        rules = {(child, name): events for child, name, *events in query(session, _RULES, schema)}
        for (child, name), parent in keys.items():
            events = rules.get((child, name))
            changing = _shown_rules(session, schema, child, name) if events is None else _changing(*events)
            if changing:
                what = f"constraint {name} of {schema}.{child} changes its rows"
                finding = _finding(options, what, parent, " ".join(changing))
                statements = _restrict(session, schema, child, name)
                yield replace(finding, tables=(f"{schema}.{child}",), remedy=statements)


def _changing(on_delete: str, on_update: str) -> list[str]:
    rules = {"ON DELETE": on_delete, "ON UPDATE": on_update}
    return [f"{event} {rule}" for event, rule in rules.items() if rule in _CHANGING]


def _shown_rules(session: Session, schema: str, child: str, name: str) -> list[str]:
    """Return the rules of a foreign key by which it changes rows, from its line in SHOW CREATE TABLE.

    MariaDB's information_schema has them only for a user with more rights on the table than SELECT.
    """
    begin = f"CONSTRAINT {quoted(name)} FOREIGN KEY "
    for line in show_create_table(session, qualified(schema, child)).splitlines():
        if line.lstrip().startswith(begin):
            return changing_rules(line)
    return ["a rule that this user can't see"]


def _finding(options: MysqlOptions, what: str, parent: str, rules: str) -> Finding:
    unlogged = f"{what} with those of {parent} ({rules}), and the server doesn't log that"
    if options.cascades == "ignore":
        return Finding("warning", f"{unlogged}: copies will differ, as source.cascades is 'ignore'")
    return Finding(
        "error",
        f"{unlogged}: copies would differ. Make it RESTRICT and change these rows by statements or a "
        "trigger, which are logged; or leave the table out of source.tables; or follow MySQL 9.6 or later, "
        "which logs it (innodb_native_foreign_keys = OFF); or set source.cascades = 'ignore' to accept the "
        "difference",
    )


def _restrict(session: Session, schema: str, child: str, name: str) -> tuple[str, ...]:
    """Return the statements that make a foreign key refuse changes of the parent's keys; none if this user
    can't see its columns."""
    columns = query(session, _COLUMNS, schema, child, name)
    if not columns:
        return ()
    own = ", ".join(qualified(column) for column, *_ in columns)
    others = ", ".join(qualified(column) for *_, column in columns)
    parent = qualified(str(columns[0][1]), str(columns[0][2]))
    table = f"ALTER TABLE {qualified(schema, child)}"
    return (
        f"{table} DROP FOREIGN KEY {qualified(name)}",
        f"{table} ADD CONSTRAINT {qualified(name)} FOREIGN KEY ({own}) REFERENCES {parent} ({others})",
    )
