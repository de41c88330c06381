"""Preflight checks of a MySQL or MariaDB target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import DBAPIError

from ...config import Finding
from ...errors import ConfigError
from ..options import MySqlOptions
from .connection import engine

_RIGHTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP")
"""Privileges that a feed needs on its target schemas."""

_NOT_COPIED: Final = (
    "foreign keys, triggers, engines, AUTO_INCREMENT counters, expressions of generated columns, defaults "
    "from sequences, prefixes and order of primary keys, and options such as KEY_BLOCK_SIZE, SRID and "
    "COMPRESSED"
)


def survey(url: URL, options: MySqlOptions) -> Iterator[Finding]:
    """Yield findings about a server."""
    try:
        with engine(url).connect() as server:
            yield Finding("ok", f"{url.host} answers")
            if warning := server.connection.driver_connection.tls_warning:  # type: ignore[union-attr]
                yield Finding("warning", warning)
            if options.copy == "definition":
                yield Finding("ok", f'copy = "definition" leaves out {_NOT_COPIED}')
            yield from _rights(server, options.schema or url.database)
    except DBAPIError as error:
        reason = error.orig.args[-1] if error.orig is not None and error.orig.args else error
        yield Finding("error", str(reason))
    except ConfigError as error:
        yield Finding("error", str(error))


def _rights(server: Connection, schema: str | None) -> Iterator[Finding]:
    """Yield findings about privileges; `schema` is the tables' target, None: their own schemas."""
    user, read_only = server.execute(text("SELECT CURRENT_USER(), @@read_only")).one()
    everywhere: set[str] = set()
    here: set[str] = set()
    for (grant,) in server.execute(text("SHOW GRANTS")):
        if match := re.match(r"GRANT (.+?) ON (\S+)\.\* TO ", grant):
            rights = match[1].split(", ")
            name = match[2].strip("`").replace("\\", "").replace("%", "*")
            if match[2] == "*":
                everywhere.update(rights)
            elif schema is not None and fnmatchcase(schema, name):
                here.update(rights)
    if read_only and not everywhere & {"ALL PRIVILEGES", "READ_ONLY ADMIN", "SUPER"}:
        yield Finding("error", "the server is read-only")
    missing = [right for right in _RIGHTS if right not in everywhere | here]
    if missing and "ALL PRIVILEGES" not in everywhere | here:
        place = f"{schema or '*'}.*"
        yield Finding("warning", f"{user} has no right to {', '.join(missing)} on {place}, by its own grants")
