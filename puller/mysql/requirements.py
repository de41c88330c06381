"""Requirements of a server to be followed. The checks change nothing on the server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Final

import pymysql
from msgspec import Struct

from ...codec.mysql.known import UNTOLD_KINDS
from ...codec.mysql.tokens import qualified as quoted
from ...codec.mysql.tokens import quoted_account
from ...config import Finding
from ...dialects.mysql.client import (
    Session,
    connect,
    disconnect,
    is_mariadb,
    query,
    translated,
    version_numbers,
)
from ...errors import SourceError, TidemillError
from ...events import Table
from ...snapshot.mysql.definitions import read_tables
from ...snapshot.mysql.tables import Follows, FoundTable, SourceTable, find_tables
from .cascades import unlogged_cascades
from .generated import unlogged_columns
from .options import MysqlOptions
from .prepared import prepared_names
from .replication import stopped_replication
from .rights import mariadb_rights, mysql_rights
from .xa_recover import PREPARED_SECONDS, described

_OLDEST: Final = {"MariaDB": (10, 5), "MySQL": (8, 0)}
_SETTINGS: Final = {
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
}
_FULL: Final = "SET GLOBAL binlog_row_metadata = FULL"
_LASTING: Final = "set it in the server's configuration too, and reconnect the open sessions"
_KEY_COLUMN: Final = "row_id"
"""Column of a key that is added to a table without one."""
_EMPTY: Final = "''"
_HIDDEN_SINCE: Final = (8, 0, 23)
"""First MySQL with invisible columns."""
_GROUP: Final = 100
"""Number of tables that share a statement by which it is known if they can be read."""
_MYSQL_SETTINGS: Final = {**_SETTINGS, "binlog_row_value_options": ""}


class Survey(Struct, frozen=True):
    server: str
    """Program, version and address; empty if the server wasn't reached."""
    tables: list[SourceTable]
    """Followed tables, as far as they can be read."""
    findings: list[Finding]
    account: str = ""
    """The user as GRANT names it; empty if it isn't known."""

    def raise_errors(self) -> None:
        """Raise SourceError with all findings that are errors, if there are any."""
        errors = [finding.sentence for finding in self.findings if finding.level == "error"]
        if errors:
            raise SourceError(f"{self.server}: {'; '.join(errors)}")


def check_without_catalog(options: MysqlOptions) -> list[Finding]:
    """Return errors of a server whose rows are decoded without a catalog; none if it can't be reached."""
    with suppress(TidemillError):
        session = connect(options)
        try:
            with translated(options):
                return list(_undescribed(session, options, (), has_catalog=False))
        finally:
            disconnect(session)
    return []


def survey(
    options: MysqlOptions,
    follows: Follows,
    *,
    is_new: bool = True,
    has_catalog: bool = True,
    knows: Follows = lambda _schema, _table: True,
) -> Survey:
    """Check the server, its settings, the user's privileges and the followed tables.

    That there are no such tables is an error of a new feed only. `has_catalog` is True if the rows will be
    decoded with a catalog; it has, or gets before their first row, the tables that it `knows`. Raises
    Retryable or SourceError if the server can't be reached.
    """
    session = connect(options)
    try:
        with translated(options):
            return survey_session(
                session, options, follows, is_new=is_new, has_catalog=has_catalog, knows=knows
            )
    finally:
        disconnect(session)


def survey_session(
    session: Session,
    options: MysqlOptions,
    follows: Follows,
    *,
    is_new: bool = True,
    has_catalog: bool = True,
    knows: Follows = lambda _schema, _table: True,
    only: FoundTable | None = None,
) -> Survey:
    """Do what survey() does, in a session; with `only`, this is the one table that may be followed.

    Raises SourceError, or pymysql's errors: use it inside translated().
    """
    version = str(query(session, "SELECT @@version")[0][0])
    server = f"{version} at {options.address}"
    mariadb = is_mariadb(session)
    if version_numbers(version) < _OLDEST["MariaDB" if mariadb else "MySQL"]:
        wanted = " or ".join(f"{vendor} {major}.{minor}" for vendor, (major, minor) in _OLDEST.items())
        error = Finding("error", f"{server} can't be followed: {wanted}, or later, is needed")
        return Survey(server, [], [error])
    tables: list[SourceTable] = []
    findings = [*_settings(session, _SETTINGS if mariadb else _MYSQL_SETTINGS)]
    account = quoted_account(query(session, "SELECT CURRENT_USER()")[0][0])
    findings += mariadb_rights(session, account) if mariadb else mysql_rights(session, account, options)
    if session.tls_warning:
        findings.append(Finding("warning", session.tls_warning))
    listed = find_tables(session, only)
    followed = [one for one in listed if follows(one.schema, one.name)]
    if not followed and is_new:
        findings.append(_nothing_to_follow(listed))
    findings += same_names(followed)
    copies_generated = options.copies_generated
    definitions = dict(
        read_tables(session, followed, has_catalog=has_catalog, copies_generated=copies_generated)
    )
    readable = set(_readable(session, followed))
    for one in followed:
        try:
            if one not in readable and (finding := _unreadable(session, one, account)):
                findings.append(finding)
                continue
            table = _defined(one, definitions.get(one))
        except SourceError as error:
            findings.append(Finding("error", str(error), tables=(one.full_name,)))
            continue
        tables.append(table)
        if not table.is_transactional:
            findings.append(
                Finding(
                    "warning",
                    f"{one.full_name} is a table of {table.engine}, which has no transactions: don't change "
                    "it while it is loaded",
                    tables=(one.full_name,),
                    remedy=(f"ALTER TABLE {quoted(one.schema, one.name)} ENGINE = InnoDB",),
                )
            )
    unknown = [one.table for one in tables if not (has_catalog and knows(one.table.schema, one.table.name))]
    findings += _undescribed(session, options, unknown, has_catalog)
    if mariadb:
        findings += unlogged_columns(version, [one.table for one in tables])
    findings += unlogged_cascades(session, options, followed)
    if halted := stopped_replication(session):
        start = "START ALL SLAVES" if mariadb else "START REPLICA"
        findings.append(Finding("warning", f"{options.address}: {halted}", remedy=(start,)))
    if is_new and not options.position:
        findings += _prepared(session, account, mariadb=mariadb)
    findings += without_key(tables, hides_columns=mariadb or version_numbers(version) >= _HIDDEN_SINCE)
    return Survey(server, tables, findings, account)


def _settings(session: Session, settings: Mapping[str, str]) -> Iterator[Finding]:
    names = ["log_bin", "max_prepared_stmt_count", *settings]
    sql = f"SELECT {', '.join([f'@@global.{name}' for name in names])}"
    has_binlog, prepared, *found_values = query(session, sql)[0]
    if not has_binlog:
        yield Finding(
            "error",
            "the server writes no binlog: set log_bin and binlog_format = ROW below [mysqld] in its "
            "configuration, and restart it",
        )
        return
    for (name, wanted), present in zip(settings.items(), found_values, strict=True):
        if present != wanted:
            value = wanted or _EMPTY
            yield Finding(
                "error",
                f"{name} is {present}, not {value}: {_LASTING}",
                remedy=(f"SET GLOBAL {name} = {value}",),
            )
    if not prepared:
        yield Finding(
            "warning",
            "max_prepared_stmt_count is 0, and tables are loaded by prepared statements: set it in the "
            "server's configuration too",
            remedy=("SET GLOBAL max_prepared_stmt_count = 16382",),  # the default
        )


def _undescribed(
    session: Session, options: MysqlOptions, tables: Sequence[Table], has_catalog: bool
) -> Iterator[Finding]:
    """Yield errors for tables whose definitions aren't known while the binlog doesn't tell enough."""
    metadata = query(session, "SELECT @@global.binlog_row_metadata")[0][0]
    if not has_catalog:
        if not options.copies_generated:
            yield Finding("error", "source.generated_columns = 'leave_out' needs the local engine")
        if metadata != "FULL":
            yield Finding(
                "error",
                f"binlog_row_metadata is {metadata}, which is enough for the local engine only: {_LASTING}",
                remedy=(_FULL,),
            )
        return
    names = ", ".join(table.full_name for table in tables)
    if names and metadata != "FULL":
        yield Finding(
            "error",
            f"binlog_row_metadata is {metadata}, and the definitions of {names} as of the start aren't "
            f"known: begin with a snapshot, or restore the feed's catalog file, or set it to FULL, in the "
            "server's configuration too, and reconnect the open sessions",
            remedy=(_FULL,),
        )
    if names and not options.copies_generated:
        yield Finding(
            "error",
            f"the definitions of {names} as of the start aren't known, by which source.generated_columns = "
            "'leave_out' tells generated columns from others: begin with a snapshot, or restore the feed's "
            "catalog file",
        )
    untold = [
        table.full_name
        for table in tables
        if is_mariadb(session)
        and (table.row_end or any(column.kind in UNTOLD_KINDS for column in table.columns))
    ]
    if untold:
        again = " ".join(f"--resnapshot {name}" for name in untold)
        yield Finding(
            "error",
            f"the definitions of {', '.join(untold)} as of the start aren't known; in a binlog columns of "
            f"{', '.join(sorted(UNTOLD_KINDS))} look like others, and past rows of system-versioned tables "
            "like present ones: load the tables again "
            f"(tidemill resume FEED {again}), or restore the feed's catalog file",
        )


def _prepared(session: Session, account: str, *, mariadb: bool) -> Iterator[Finding]:
    """Yield a warning about XA transactions whose rows are before the start in the log."""
    names = prepared_names(session)
    if names is None:
        yield Finding(
            "warning",
            "this user can't see if XA transactions are prepared, and the feed stops at the end of one that "
            "was prepared before its start",
            remedy=() if mariadb else (f"GRANT XA_RECOVER_ADMIN ON *.* TO {account}",),
        )
    elif names:
        yield Finding("warning", f"the feed waits {PREPARED_SECONDS:.0f} s for its start: {described(names)}")


def _nothing_to_follow(listed: list[FoundTable]) -> Finding:
    if not listed:
        return Finding("error", "no table matches, because this user may see none: GRANT SELECT on them")
    names = ", ".join(one.full_name for one in listed[:10]) + (", ..." if len(listed) > 10 else "")
    return Finding("error", f"no table matches; this user may see: {names}")


def same_names(tables: Iterable[FoundTable]) -> Iterator[Finding]:
    """Yield an error for each table with the same full name as an earlier one, which dots in names make
    possible."""
    by_name: dict[str, FoundTable] = {}
    for one in tables:
        other = by_name.setdefault(one.full_name, one)
        if other is not one:
            both = f"{quoted(other.schema, other.name)} and {quoted(one.schema, one.name)}"
            yield Finding(
                "error",
                f"{both} can't both be followed, as {one.full_name} may be either: leave one out",
                tables=(one.full_name,),
            )


def without_key(tables: Iterable[SourceTable], *, hides_columns: bool) -> Iterator[Finding]:
    """Yield a warning that names the tables without a key; none if all have one.

    `hides_columns` is True if the server has invisible columns, which SELECT * and INSERT leave out.
    """
    keyless = [one for one in tables if not one.table.key]
    if keyless:
        names = tuple(one.table.full_name for one in keyless)
        yield Finding(
            "warning",
            f"no primary key, and no unique key of NOT NULL columns: {', '.join(names)}. A database searches "
            "the whole table for rows to update or delete, once or twice for each thousand of them: give it "
            "a key, of its columns or of a new one, or leave it out if it is large and its rows change",
            tables=names,
            remedy=tuple(_key_for(one, hides_columns) for one in keyless if not one.table.row_end),
        )


def _key_for(keyless: SourceTable, hides_columns: bool) -> str:
    """Return the statement that gives a table a primary key."""
    table = f"ALTER TABLE {quoted(keyless.table.schema, keyless.table.name)} ADD"
    if increment := keyless.known.auto_increment:
        return f"{table} PRIMARY KEY ({quoted(increment)})"
    names = {column.name.lower() for column in keyless.known.complete.columns}
    column = next(name for n in count() if (name := f"{_KEY_COLUMN}{n or ''}") not in names)
    hidden = " INVISIBLE" if hides_columns else ""
    return f"{table} COLUMN {quoted(column)} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT{hidden} PRIMARY KEY"


def _readable(session: Session, tables: Sequence[FoundTable]) -> Iterator[FoundTable]:
    """Yield the tables that can be read, of groups that all can: of others a statement each tells which."""
    for start in range(0, len(tables), _GROUP):
        group = tables[start : start + _GROUP]
        selects = [f"(SELECT 1 FROM {quoted(one.schema, one.name)} LIMIT 0)" for one in group]
        with suppress(pymysql.err.Error):
            query(session, " UNION ALL ".join(selects))
            yield from group


def _unreadable(session: Session, listed: FoundTable, account: str) -> Finding | None:
    """Return the reason why a table can't be read; None if it can."""
    table = quoted(listed.schema, listed.name)
    try:
        query(session, f"SELECT 1 FROM {table} LIMIT 0")
    except pymysql.err.OperationalError as error:
        return Finding(
            "error",
            f"{listed.full_name} can't be read: {error.args[1]}",
            tables=(listed.full_name,),
            remedy=(f"GRANT SELECT ON {table} TO {account}",),
        )
    return None


def _defined(listed: FoundTable, defined: SourceTable | SourceError | None) -> SourceTable:
    """Return the definition of a followed table. Raises SourceError if it can't be followed."""
    if defined is None:
        raise SourceError(f"{listed.full_name} was just dropped")
    if isinstance(defined, SourceError):
        raise defined
    return defined
