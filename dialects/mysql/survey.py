"""Preflight checks of a MySQL or MariaDB target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import pymysql

from ...codec.mysql.tokens import qualified, quoted_account
from ...config import Finding
from ...config.advice import explained
from ...errors import ConfigError
from ..address import Address
from ..options import MySqlOptions
from .connection import Connection, connector

_RIGHTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP")
"""Privileges that a feed needs on its target schemas."""

_NOT_COPIED: Final = (
    "foreign keys, triggers, engines, AUTO_INCREMENT counters, expressions of generated columns, defaults "
    "from sequences, prefixes and order of primary keys, and options such as KEY_BLOCK_SIZE, SRID and "
    "COMPRESSED"
)


def survey(address: Address, options: MySqlOptions) -> Iterator[Finding]:
    """Yield findings about a server."""
    try:
        with connector(address)() as server:
            yield Finding("ok", f"{address.host} answers")
            if warning := server.tls_warning:
                yield Finding("warning", warning)
            if options.copy == "definition":
                yield Finding("ok", f'copy = "definition" leaves out {_NOT_COPIED}')
            yield from _rights(server, options.schema or address.database)
    except pymysql.MySQLError as error:
        yield Finding("error", explained(error))
    except ConfigError as error:
        yield Finding("error", str(error))


def _rights(server: Connection, schema: str) -> Iterator[Finding]:
    """Yield findings about privileges; `schema` is the tables' target, empty: their own schemas."""
    ((user, read_only),) = _rows(server, "SELECT CURRENT_USER(), @@read_only")
    everywhere: set[str] = set()
    here: set[str] = set()
    for (grant,) in _rows(server, "SHOW GRANTS"):
        if match := re.match(r"GRANT (.+?) ON (\S+)\.\* TO ", grant):
            rights = match[1].split(", ")
            name = match[2].strip("`").replace("\\", "").replace("%", "*")
            if match[2] == "*":
                everywhere.update(rights)
            elif schema and fnmatchcase(schema, name):
                here.update(rights)
    if read_only and not everywhere & {"ALL PRIVILEGES", "READ_ONLY ADMIN", "SUPER"}:
        yield Finding("error", "the server is read-only", remedy=("SET GLOBAL read_only = OFF",))
    missing = [right for right in _RIGHTS if right not in everywhere | here]
    if missing and "ALL PRIVILEGES" not in everywhere | here:
        rights = ", ".join(missing)
        yield Finding(
            "warning",
            f"{user} has no right to {rights} on {schema or '*'}.*, by its own grants",
            remedy=(f"GRANT {rights} ON {qualified(schema) if schema else '*'}.* TO {quoted_account(user)}",),
        )


def _rows(server: Connection, query: str) -> Sequence[Sequence[Any]]:
    with server.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()
