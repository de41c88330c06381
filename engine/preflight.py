"""What stands in the way of a feed, found without changing anything."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from sqlalchemy import URL, Connection, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError
from sqlalchemy.pool import NullPool

from ..actors import SystemClock
from ..codec.checkpoint import decode_checkpoint
from ..errors import TidemillError
from ..events import Checkpoint
from ..sink.sql.target import CHECKPOINT_TABLE
from ..sources.source import Said, open_source
from .feed import reject_duplicates
from .options import FeedOptions, SinkOptions, checkpoint_file, open_sinks

_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER")
"""What a feed needs where its tables go."""
_OWN_SCHEMA = "tidemill"
"""Where the checkpoint is when tables go to their own schemas."""


@dataclass(frozen=True, slots=True)
class Finding:
    level: Literal["ok", "warning", "error"]
    about: str
    """The source, or a sink's name."""
    text: str


def check_feed(options: FeedOptions) -> list[Finding]:
    """Connect to the source and every target. Raises ConfigError for what needs no connection."""
    sinks = open_sinks(options)
    reject_duplicates(sinks)
    found = [Finding(level, "source", said) for level, said in open_source(options, SystemClock()).survey()]
    for sink, opened in zip(options.sinks, sinks, strict=True):
        try:
            said = _sink(options, sink, opened.target)
            found += [Finding(level, f"sink {sink.name}", line) for level, line in said]
        except DBAPIError as error:
            reason = error.orig.args[-1] if error.orig is not None and error.orig.args else error
            found.append(Finding("error", f"sink {sink.name}", str(reason)))
        except TidemillError as error:
            found.append(Finding("error", f"sink {sink.name}", str(error)))
    return found


def _sink(options: FeedOptions, sink: SinkOptions, target: str) -> Iterator[Said]:
    kind, _, path = target.partition(":")
    if kind in ("file", "parquet"):
        yield _file(Path(path)) if kind == "file" else _directory(Path(path))
        stored = checkpoint_file(options, sink.name).load()
        yield _begin(None if stored is None else stored[0])
        return
    url = make_url(sink.url)
    if url.get_backend_name() == "sqlite":
        file = Path(url.database or "")
        yield _file(file)
        if file.exists():
            with _connected(_read_only(file)) as copy:
                yield _begin(_stored(copy, options.name, CHECKPOINT_TABLE))
        return
    schema = sink.options.get("schema") or url.database
    with _connected(url.set(drivername="mysql+pymysql", database="")) as server:
        yield "ok", f"{url.host} answers"
        yield from _rights(server, schema)
        yield _begin(_stored(server, options.name, f"`{schema or _OWN_SCHEMA}`.{CHECKPOINT_TABLE}"))


def _file(path: Path) -> Said:
    """Whether a file can be written, or made."""
    if path.is_dir():
        return "error", f"{path} is a directory"
    return _place(path, [path.parent, path])


def _directory(path: Path) -> Said:
    """Whether files can be made in a directory, or it can."""
    if path.exists() and not path.is_dir():
        return "error", f"{path} is no directory"
    return _place(path, [path])


def _place(path: Path, wanted: list[Path]) -> Said:
    """Where it is there `wanted` must be writable, else what it is made in."""
    if not path.parent.is_dir():
        return "error", f"{path} can't be made: there is no directory {path.parent}"
    for needed in wanted if path.exists() else [path.parent]:
        if not os.access(needed, os.W_OK):
            return "error", f"{path} can't be written: {needed} is not writable"
    return "ok", f"{path} {'is there' if path.exists() else 'will be made'}"


def _read_only(file: Path) -> URL:
    reading = {"mode": "ro", "uri": "true"}
    if not file.with_name(f"{file.name}-wal").exists():
        reading["immutable"] = "1"  # else SQLite makes files beside it, even to read
    return URL.create("sqlite", database=f"file:{quote(str(file))}", query=reading)


@contextmanager
def _connected(url: URL) -> Iterator[Connection]:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        yield connection


def _rights(server: Connection, schema: str | None) -> Iterator[Said]:
    """`schema` is where the tables go, None: to their own schemas."""
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
        yield "error", "the server is read-only"
    missing = [right for right in _RIGHTS if right not in everywhere | here]
    if missing and "ALL PRIVILEGES" not in everywhere | here:
        place = f"{schema or '*'}.*"
        yield "warning", f"{user} has no right to {', '.join(missing)} on {place}, by its own grants"


def _stored(connection: Connection, feed: str, table: str) -> Checkpoint | None:
    try:
        found = connection.execute(text(f"SELECT checkpoint FROM {table} WHERE feed = :feed"), {"feed": feed})
    except (OperationalError, ProgrammingError) as error:
        if re.search("no such table|doesn't exist|Unknown database", str(error.orig)):
            return None
        raise
    stored = found.scalar_one_or_none()
    return None if stored is None else decode_checkpoint(stored, table)[0]


def _begin(at: Checkpoint | None) -> Said:
    if at is None:
        return "ok", "begins with a snapshot"
    return "ok", f"goes on from {at.position}" + ("" if at.loading is None else ", in its snapshot")
