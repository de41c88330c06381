"""Opening of SQL databases as sinks, and of what feeds keep in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from ...actors.clock import Clock, SystemClock
from ...config import Finding
from ...config.survey import begins
from ...dialects.database import Database
from ...dialects.dialect import Dialect
from ...dialects.options import MySqlOptions, ParallelOptions, RowOptions
from ...dialects.worker import WorkerDatabase
from ...errors import TidemillError
from ..dm.table import SCHEMA, table_of
from ..kind import SinkContext
from ..safe_mode import CONFIGURED
from ..sink import Sink
from .apply import HowApplied
from .letters.box import BOX_SECONDS, LetterBox
from .letters.keys import DeadKeys
from .letters.rows import LetterRows
from .letters.writer import LetterWriter
from .parallel.sink import ParallelSqlSink
from .revisions import SqlRevisions
from .sql import SqlSink
from .syncpoints import SyncpointWriter

if TYPE_CHECKING:
    from ...dialects.mysql.home import Home
    from ...dialects.mysql.mysql import MySqlDatabase
    from ...dialects.mysql.session import MySqlSession
    from ..drainer.file import DrainerFile

_Made = TypeVar("_Made", SqlSink, ParallelSqlSink)


def open_sql(dialect: Dialect, url: str, options: RowOptions, context: SinkContext) -> Sink:
    """Return the sink that writes to a database. Raises ConfigError."""
    if isinstance(options, MySqlOptions) and options.checkpoint != "tidemill":
        opened = _open_dm if options.checkpoint == "dm" else _open_drainer
        return _with_safe_mode(opened(url, options, context), options.safe_mode)
    database, clock = dialect.connect(url, options, context.feed, None), SystemClock()
    letters = _letters(database, options)
    how, syncpoints = _how(options), _syncpoints(database, options, clock)
    if not dialect.traits.has_workers:
        serial = SqlSink(context.name, database, None, letters, clock.time, syncpoints=syncpoints, **how)
        return _with_safe_mode(serial, options.safe_mode)
    assert isinstance(options, ParallelOptions)
    workers: WorkerDatabase = database  # type: ignore[assignment] # as the traits say
    if count := options.parallel_workers:
        parallel = ParallelSqlSink(
            context.name, workers, count, clock.now, letters, clock.time, syncpoints=syncpoints, **how
        )
        return _with_safe_mode(parallel, options.safe_mode)
    serial = SqlSink(context.name, workers, workers.store, letters, clock.time, syncpoints=syncpoints, **how)
    return _with_safe_mode(serial, options.safe_mode)


def _open_drainer(url: str, options: MySqlOptions, context: SinkContext) -> SqlSink:
    """Return the sink whose checkpoint is a drainer's."""
    from ..drainer.file import DrainerFile
    from .drainer import DrainerFileSink, DrainerSink

    clock = SystemClock()
    how = _how(options)
    if options.checkpoint == "drainer":
        target = _mysql(url, options, context.feed)
        letters = _letters(target, options)
        return DrainerSink(context.name, target, clock, letters, **how)
    assert options.checkpoint_file is not None
    file = DrainerFile(options.checkpoint_file, clock)
    target = _mysql(url, options, context.feed, file)
    letters = _letters(target, options)
    return DrainerFileSink(context.name, target, clock, letters, file=file, **how)


def _open_dm(url: str, options: MySqlOptions, context: SinkContext) -> SqlSink:
    """Return the sink whose checkpoint is also DM's."""
    from .mysql_dm import DmHome, DmSink

    target = _mysql(url, options, context.feed)
    assert isinstance(target.home, DmHome)
    letters, now = _letters(target, options), SystemClock().time
    return DmSink(context.name, target, target.home, letters, now, **_how(options))


def _mysql(url: str, options: MySqlOptions, feed: str, file: DrainerFile | None = None) -> MySqlDatabase:
    """Return the database with the checkpoint of another system, which is in `file` if there is one."""
    from ...dialects.address import parsed
    from ...dialects.mysql.mysql import MySqlDatabase
    from .mysql_dm import DmHome
    from .mysql_drainer import DrainerHome, FileHome

    def home(session: MySqlSession, schema: str, feed: str) -> Home:
        if options.checkpoint == "dm":
            return DmHome(session, schema, feed, options.task, options.source_id, SystemClock())
        if file is not None:
            return FileHome(session, schema, feed, file)
        return DrainerHome(session, schema, feed, options.cluster_id)

    return MySqlDatabase(parsed(url), options, feed, None, home)


def _letters(database: Database, options: RowOptions) -> LetterWriter | None:
    if options.on_error == "stop":
        return None
    where = f"{database.identity}: feed {database.feed!r}"
    rows = LetterRows(database.own_tables, database.feed)
    return LetterWriter(rows, DeadKeys(), options.max_dead_letters, where)


def _how(options: RowOptions) -> HowApplied:
    return {"copies_definitions": options.copies_definitions, "merges": options.merge}


def _syncpoints(database: Database, options: RowOptions, clock: Clock) -> SyncpointWriter | None:
    if not options.syncpoint_seconds:
        return None
    keep_seconds = options.syncpoint_keep_seconds
    return SyncpointWriter(database, options.syncpoint_seconds, keep_seconds, clock.time)


def _with_safe_mode(sink: _Made, is_configured: bool) -> _Made:
    if is_configured:
        sink.safe_mode.enter(CONFIGURED)
    return sink


def letters(dialect: Dialect, url: str, options: RowOptions, feed: str) -> LetterBox:
    """Return the dead letters of a feed, not connected yet. Raises ConfigError."""
    return LetterBox(dialect.connect(url, options, feed, BOX_SECONDS))


def revisions(dialect: Dialect, url: str, options: RowOptions, feed: str) -> SqlRevisions:
    """Return the store by which feeds coordinate, not connected yet. Raises ConfigError."""
    return SqlRevisions(dialect.connect(url, options, feed, BOX_SECONDS))


def survey_sql(dialect: Dialect, url: str, options: RowOptions, context: SinkContext) -> Iterator[Finding]:
    """Yield findings about a database; nothing is created."""
    is_usable = True
    for finding in dialect.survey(url, options):
        yield finding
        is_usable &= finding.level != "error"
    has_other = isinstance(options, MySqlOptions) and options.checkpoint != "tidemill"
    if isinstance(options, MySqlOptions) and has_other:
        yield Finding("ok", _elsewhere(options, context.feed))
        if options.checkpoint != "dm":
            return
    try:
        reader = dialect.read(url, options, context.feed)
        if reader is not None:
            with closing(reader):
                checkpoint = reader.checkpoint()
                if checkpoint is not None or not has_other:
                    yield begins(checkpoint)
        elif is_usable:  # there is no file yet
            yield begins(None)
    except TidemillError as error:
        if is_usable:  # else the reason is told already
            yield Finding("error", str(error))


def _elsewhere(options: MySqlOptions, feed: str) -> str:
    """Return where a checkpoint of another system is looked for."""
    match options.checkpoint:
        case "dm":
            table = f"{SCHEMA}.{table_of(options.task or feed)}"
            return f"takes over the checkpoint in {table}, if DM has left one"
        case "drainer":
            return "begins at the checkpoint in tidb_binlog.checkpoint, if there is one"
        case _:
            return f"begins at the checkpoint in {options.checkpoint_file}, if there is one"
