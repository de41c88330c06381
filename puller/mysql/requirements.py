"""What a server must offer to be followed. Looking changes nothing there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import pymysql
from msgspec import Struct

from ...config import Finding
from ...errors import SourceError, TidemillError
from .connection import Session, connect, disconnect, query, translated
from .options import MysqlOptions
from .tables import Follows, FoundTable, SourceTable, find_tables, quoted, read_table

_TRANSACTIONAL: Final = frozenset({"InnoDB", "ROCKSDB"})
_OLDEST: Final = (10, 5)
_SETTINGS: Final = {
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
}


class Survey(Struct, frozen=True):
    server: str
    """Program, version and address; empty if it wasn't reached."""
    tables: list[SourceTable]
    """Those that are followed, as far as they can be read."""
    findings: list[Finding]

    def raise_errors(self) -> None:
        """Raises SourceError with all findings that are errors, if there are any."""
        errors = [finding.text for finding in self.findings if finding.level == "error"]
        if errors:
            raise SourceError(f"{self.server}: {'; '.join(errors)}")


def check(options: MysqlOptions, follows: Follows) -> Survey:
    """Like survey(); that the server can't be reached is a finding too."""
    try:
        return survey(options, follows)
    except TidemillError as error:
        return Survey("", [], [Finding("error", str(error))])


def survey(options: MysqlOptions, follows: Follows) -> Survey:
    """Look at the server, its settings, our rights and the followed tables.

    Raises Retryable or SourceError if it can't be reached.
    """
    session = connect(options)
    try:
        with translated(options):
            return _survey(session, options, follows)
    finally:
        disconnect(session)


def _survey(session: Session, options: MysqlOptions, follows: Follows) -> Survey:
    version = str(query(session, "SELECT @@version")[0][0])
    server = f"{version} at {options.address}"
    if "MariaDB" not in version or _numbers(version) < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        error = Finding("error", f"{server} can't be followed: MariaDB {wanted} or later is needed")
        return Survey(server, [], [error])
    tables: list[SourceTable] = []
    findings = [*_settings(session), *_rights(session)]
    found = find_tables(session)
    followed = [one for one in found if follows(one.schema, one.name)]
    if not followed:
        findings.append(_nothing_to_follow(found))
    findings += same_names(followed)
    for one in followed:
        try:
            table = _look_at(session, one)
        except SourceError as error:
            findings.append(Finding("error", str(error)))
            continue
        tables.append(table)
        if table.engine not in _TRANSACTIONAL:
            findings.append(
                Finding(
                    "warning",
                    f"{one.full_name} is a table of {table.engine}, which has no transactions: don't change "
                    "it while it is loaded",
                )
            )
    return Survey(server, tables, findings)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _settings(session: Session) -> Iterator[Finding]:
    if not query(session, "SELECT @@log_bin")[0][0]:
        yield Finding("error", "the server writes no binlog: set log_bin in its configuration and restart it")
        return
    for name, wanted in _SETTINGS.items():
        found = query(session, f"SELECT @@global.{name}")[0][0]
        if found != wanted:
            yield Finding(
                "error",
                f"{name} is {found}: SET GLOBAL {name} = {wanted}, in the server's configuration too, and "
                "have the sessions that are open connect again",
            )


def _rights(session: Session) -> Iterator[Finding]:
    user = query(session, "SELECT CURRENT_USER()")[0][0]
    rights = _global_rights(session)
    if not rights & {"ALL PRIVILEGES", "REPLICATION SLAVE", "REPLICATION REPLICA"}:
        yield Finding(
            "error", f"{user} may not read the binlog: GRANT REPLICATION SLAVE ON *.* TO {_account(user)}"
        )
    if not rights & {"ALL PRIVILEGES", "BINLOG ADMIN", "SUPER"}:
        yield Finding(
            "warning",
            f"{user} has no right to BINLOG ADMIN: until the first snapshot is complete, an ALTER of a table "
            "that is loaded already waits, and what uses the table waits behind it",
        )


def _global_rights(session: Session) -> set[str]:
    """Those on *.*, by roles too."""
    rights: set[str] = set()
    for (grant,) in query(session, "SHOW GRANTS"):
        if match := re.match(r"GRANT (.+?) ON \*\.\* TO ", grant):
            rights.update(match[1].split(", "))
    return rights


def _account(user: str) -> str:
    name, _, host = user.rpartition("@")
    return f"'{name}'@'{host}'"


def _nothing_to_follow(found: list[FoundTable]) -> Finding:
    if not found:
        return Finding("error", "no table matches, as this user may see none: GRANT SELECT on them")
    names = ", ".join(one.full_name for one in found[:10]) + (", ..." if len(found) > 10 else "")
    return Finding("error", f"no table matches, of those that this user may see: {names}")


def same_names(tables: Iterable[FoundTable]) -> Iterator[Finding]:
    """An error for each table whose full name is that of one before it, as dots in names make possible."""
    by_name: dict[str, FoundTable] = {}
    for one in tables:
        other = by_name.setdefault(one.full_name, one)
        if other is not one:
            both = f"{quoted(other.schema, other.name)} and {quoted(one.schema, one.name)}"
            yield Finding(
                "error", f"{both} can't both be followed, as {one.full_name} may be either: leave one out"
            )


def _look_at(session: Session, found: FoundTable) -> SourceTable:
    """Raises SourceError for a table that can't be followed."""
    if found.versioned:
        raise SourceError(f"{found.full_name} is system versioned, which isn't supported: leave it out")
    try:
        query(session, f"SELECT 1 FROM {quoted(found.schema, found.name)} LIMIT 0")
    except pymysql.err.OperationalError as error:
        raise SourceError(f"{found.full_name} can't be read: {error.args[1]}: GRANT SELECT on it") from None
    table = read_table(session, found)
    if table is None:
        raise SourceError(f"{found.full_name} was just dropped")
    return table
