"""Privileges that an account needs to follow a server; each that it lacks is named with its GRANT."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...config import Finding
from ...dialects.mysql.client import Session, query
from .options import MysqlOptions


def mariadb_rights(session: Session, account: str) -> Iterator[Finding]:
    """Yield findings about the privileges that a MariaDB has given the account."""
    rights = _global_rights(session)
    if not rights & {"ALL PRIVILEGES", "REPLICATION SLAVE", "REPLICATION REPLICA"}:
        yield _lacks_right(account, "may not read the binlog", "REPLICATION SLAVE")
    if not rights & {"ALL PRIVILEGES", "BINLOG ADMIN", "SUPER"}:
        yield _waiting_alter(account, "BINLOG ADMIN")


def mysql_rights(session: Session, account: str, options: MysqlOptions) -> Iterator[Finding]:
    """Yield findings about the privileges that a MySQL has given the account."""
    rights = _global_rights(session)

    def lacks(*privileges: str) -> bool:
        return not rights & {"ALL PRIVILEGES", *privileges}

    if lacks("REPLICATION SLAVE"):
        yield _lacks_right(account, "may not read the binlog", "REPLICATION SLAVE")
    if lacks("REPLICATION CLIENT", "SUPER"):
        yield _lacks_right(account, "may not ask where the binlog ends", "REPLICATION CLIENT")
    if not options.loads:
        return
    if lacks("RELOAD", "FLUSH_TABLES"):
        yield _lacks_right(
            account,
            "may not take the read lock by which a snapshot knows its position (FLUSH TABLES WITH READ LOCK, "
            "for a moment), which snapshot = false does without",
            "RELOAD",
        )
    if lacks("SESSION_VARIABLES_ADMIN", "SYSTEM_VARIABLES_ADMIN", "SUPER"):
        yield _waiting_alter(account, "SESSION_VARIABLES_ADMIN")


def _lacks_right(account: str, what: str, privilege: str) -> Finding:
    return Finding("error", f"{account} {what}", remedy=(f"GRANT {privilege} ON *.* TO {account}",))


def _waiting_alter(account: str, privilege: str) -> Finding:
    return Finding(
        "warning",
        f"{account} lacks the privilege {privilege}: until the first snapshot is complete, an ALTER of a "
        "loaded table waits, and later statements on the table wait for that ALTER",
        remedy=(f"GRANT {privilege} ON *.* TO {account}",),
    )


def _global_rights(session: Session) -> set[str]:
    """Return the privileges on *.*, including those granted by roles."""
    rights: set[str] = set()
    for (grant,) in query(session, "SHOW GRANTS"):
        if match := re.match(r"GRANT (.+?) ON \*\.\* TO ", grant):
            rights.update(re.split(", ?", match[1]))
    return rights
