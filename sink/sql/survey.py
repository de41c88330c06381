"""Preflight checks of SQL targets: can they be written, and where does the feed begin there?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy import URL, Connection, create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError
from sqlalchemy.pool import NullPool

from ...codec.checkpoint import decode_checkpoint
from ...config import Finding
from ...dialects.options import MySqlOptions
from ...dialects.target import CHECKPOINT_TABLE, OWN_SCHEMA
from ...events import Checkpoint
from ..dm.layout import SCHEMA, table_of
from ..survey import begins, writable_file

_RIGHTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP")
"""Privileges that a feed needs on its target schemas."""

_NOT_COPIED: Final = (
    "foreign keys, triggers, engines, AUTO_INCREMENT counters, expressions of generated columns, and options "
    "such as KEY_BLOCK_SIZE, SRID and COMPRESSED"
)


def survey_sqlite(url: URL, feed: str) -> Iterator[Finding]:
    file = Path(url.database or "")
    yield writable_file(file)
    if not file.exists():
        yield begins(None)
        return
    try:
        with _connected(_read_only(file)) as copy:
            yield begins(_stored(copy, feed, CHECKPOINT_TABLE))
    except DBAPIError as error:
        yield _refusal(error)


def survey_mysql(url: URL, options: MySqlOptions, feed: str) -> Iterator[Finding]:
    """Yield findings about a server."""
    schema = options.schema or url.database
    try:
        with _connected(url.set(drivername="mysql+pymysql", database="")) as server:
            yield Finding("ok", f"{url.host} answers")
            if options.copy == "definition":
                yield Finding("ok", f'copy = "definition" leaves out {_NOT_COPIED}')
            yield from _rights(server, schema)
            if options.checkpoint == "dm":
                table = f"{SCHEMA}.{table_of(options.task or feed)}"
                yield Finding("ok", f"takes over the checkpoint in {table}, if DM has left one")
            if options.checkpoint == "drainer":
                yield Finding("ok", "begins at the checkpoint in tidb_binlog.checkpoint, if there is one")
            elif options.checkpoint_file is not None:
                yield Finding("ok", f"begins at the checkpoint in {options.checkpoint_file}, if there is one")
            else:
                yield begins(_stored(server, feed, f"`{schema or OWN_SCHEMA}`.{CHECKPOINT_TABLE}"))
    except DBAPIError as error:
        yield _refusal(error)


def _refusal(error: DBAPIError) -> Finding:
    reason = error.orig.args[-1] if error.orig is not None and error.orig.args else error
    return Finding("error", str(reason))


def _read_only(file: Path) -> URL:
    reading = {"mode": "ro", "uri": "true"}
    if not file.with_name(f"{file.name}-wal").exists():
        reading["immutable"] = "1"  # else SQLite creates files beside it, even for reading
    return URL.create("sqlite", database=f"file:{quote(str(file))}", query=reading)


@contextmanager
def _connected(url: URL) -> Iterator[Connection]:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        yield connection


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


def _stored(connection: Connection, feed: str, table: str) -> Checkpoint | None:
    try:
        found = connection.execute(text(f"SELECT checkpoint FROM {table} WHERE feed = :feed"), {"feed": feed})
    except (OperationalError, ProgrammingError) as error:
        if re.search("no such table|doesn't exist|Unknown database", str(error.orig)):
            return None
        raise
    stored = found.scalar_one_or_none()
    return None if stored is None else decode_checkpoint(stored, table)[0]
