"""Indexes, checks and options of a table as SQL of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import SinkError
from ...events import Check, Column, ColumnDetails, Details, Index, Table
from . import text as text


def attributes(details: ColumnDetails, column: Column) -> str:
    """Return the end of a column's definition."""
    words = ""
    if details.auto_increment and not column.nullable:  # else it would number the rows that have NULL
        words += " AUTO_INCREMENT"
    if details.invisible:
        words += " INVISIBLE"
    if details.comment:
        words += f" COMMENT {text.escaped(details.comment)}"
    if details.check:
        words += f" CHECK {details.check}"
    return words


def index_text(index: Index, *, is_mariadb: bool) -> str:
    parts = []
    for part in index.parts:
        words = part.expression or text.name(part.column)
        if part.length:
            words += f"({part.length})"
        parts.append(words + " DESC" * part.descending)
    index_definition = f"{index.kind} KEY".lstrip() + f" {text.name(index.name)} ({', '.join(parts)})"
    index_definition += index.options
    if index.method:
        index_definition += f" USING {index.method}"
    if index.comment:
        index_definition += f" COMMENT {text.escaped(index.comment)}"
    if index.parser:
        index_definition += f" WITH PARSER {text.name(index.parser)}"
    if index.hidden:
        index_definition += " IGNORED" if is_mariadb else " INVISIBLE"
    return index_definition


def check_text(check: Check, *, is_mariadb: bool) -> str:
    """Raises SinkError for a check that MariaDB can't have."""
    if is_mariadb and not check.enforced:
        raise SinkError(f"CHECK {check.name} is NOT ENFORCED, which MariaDB lacks: {_WAY_OUT}")
    return f"CONSTRAINT {text.name(check.name)} CHECK {check.condition}" + " NOT ENFORCED" * (
        not check.enforced
    )


_WAY_OUT = "drop it in the source, or set copy = 'columns' in the sink's section"


def created(table: Table, details: Details, qualified_name: str, *, is_mariadb: bool) -> str:
    """Return the CREATE TABLE of a whole definition. Raises SinkError for a part that isn't known."""
    if details.unknown:
        raise SinkError(
            f"the definition of {table.full_name} can't be copied, as it has {details.unknown}: {_WAY_OUT}"
        )
    more = [index_text(index, is_mariadb=is_mariadb) for index in details.indexes]
    more += [check_text(check, is_mariadb=is_mariadb) for check in details.checks]
    made = text.create_table(
        table,
        qualified_name,
        end_of=lambda column: attributes(details.of_column(column.name), column),
        more=more,
        has_primary=details.has_primary,
    )
    if details.row_format:
        made += f" ROW_FORMAT={details.row_format}"
    if details.comment:
        made += f" COMMENT={text.escaped(details.comment)}"
    if details.partitions:
        made += f" PARTITION BY {details.partitions}"
    return made


def changed(before: Details, after: Details, table: Table, *, is_mariadb: bool) -> Iterator[str]:
    """Yield the clauses of an ALTER TABLE, without those of columns, partitions and the comment; `table` is
    that of after."""
    had = {index.name.lower(): index for index in before.indexes}
    has = {index.name.lower(): index for index in after.indexes}
    for name, index in had.items():
        if has.get(name) != index:
            yield f"DROP INDEX {text.name(index.name)}"
    for name, index in has.items():
        if had.get(name) != index:
            yield f"ADD {index_text(index, is_mariadb=is_mariadb)}"
    for check in before.checks:
        if check not in after.checks:
            yield f"DROP CONSTRAINT {text.name(check.name)}"
    for check in after.checks:
        if check not in before.checks:
            yield f"ADD {check_text(check, is_mariadb=is_mariadb)}"
    if after.collation != before.collation and table.collation:
        yield f"DEFAULT CHARSET={table.charset} COLLATE={table.collation}"
    if after.row_format != before.row_format:
        yield f"ROW_FORMAT={after.row_format or 'DEFAULT'}"


def changed_columns(before: Details, after: Details, table: Table) -> list[Column]:
    """Return the columns whose attributes differ."""
    return [
        column
        for column in table.columns
        if attributes(before.of_column(column.name), column)
        != attributes(after.of_column(column.name), column)
    ]


def repartitioned(before: Details, after: Details) -> str:
    """Return the end of an ALTER TABLE that changes its partitions; empty if they stay."""
    if before.partitions == after.partitions:
        return ""
    return f" PARTITION BY {after.partitions}" if after.partitions else " REMOVE PARTITIONING"
