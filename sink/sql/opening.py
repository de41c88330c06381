"""Opening of SQL databases as sinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from ...actors.clock import SystemClock
from ...config import Finding
from ...dialects.address import parsed
from ...dialects.options import DuckDbOptions, MySqlOptions, PostgresOptions, RowOptions, SqliteOptions
from ...dialects.target import Target
from ...events import Table
from ..drainer.checkpoint import DrainerCheckpoint
from ..drainer.store import open_checkpoint
from ..kind import SinkContext
from ..safe_mode import CONFIGURED
from ..sink import Sink
from .letters.box import BOX_SECONDS, LetterBox
from .letters.keys import DeadKeys
from .letters.rows import LetterRows
from .letters.writer import LetterWriter
from .parallel.sink import ParallelSqlSink
from .revisions import SqlRevisions
from .sql import SqlSink

if TYPE_CHECKING:
    from ...dialects.mysql.home import Home
    from ...dialects.mysql.mysql import MySqlTarget
    from ...dialects.mysql.session import MySqlSession


def open_sqlite(url: str, options: SqliteOptions, context: SinkContext) -> Sink:
    from ...dialects.sqlite.sqlite import SqliteTarget

    target = SqliteTarget(parsed(url), context.feed, options.table_name, options.verify)
    letters, clock = _letters(target, options), SystemClock()
    sink = SqlSink(context.name, target, None, letters, clock.time, merges=options.merge)
    return _with_safe_mode(sink, options.safe_mode)


def open_duckdb(url: str, options: DuckDbOptions, context: SinkContext) -> Sink:
    from ...dialects.duckdb.duckdb import DuckDbTarget

    target = DuckDbTarget(parsed(url), context.feed, options)
    letters, clock = _letters(target, options), SystemClock()
    sink = SqlSink(context.name, target, None, letters, clock.time, merges=options.merge)
    return _with_safe_mode(sink, options.safe_mode)


def open_mysql(url: str, options: MySqlOptions, context: SinkContext) -> Sink:
    if options.checkpoint == "dm":
        return _with_safe_mode(_open_dm(url, options, context), options.safe_mode)
    if options.checkpoint != "tidemill":
        return _with_safe_mode(_open_drainer(url, options, context), options.safe_mode)
    target, clock = _mysql_target(url, options, context.feed), SystemClock()
    how = {"copies_definitions": options.copy == "definition", "merges": options.merge}
    letters = _letters(target, options)
    if not options.loopback_channel and (workers := options.parallel_workers):
        made = ParallelSqlSink(context.name, target, workers, clock.now, letters, clock.time, **how)
        return _with_safe_mode(made, options.safe_mode)
    serial = SqlSink(context.name, target, target.store, letters, clock.time, **how)
    return _with_safe_mode(serial, options.safe_mode)


def _open_drainer(url: str, options: MySqlOptions, context: SinkContext) -> SqlSink:
    """Return the sink whose checkpoint is a drainer's."""
    from .drainer import DrainerFileSink, DrainerSink

    clock = SystemClock()
    how = {"copies_definitions": options.copy == "definition", "merges": options.merge}
    if options.checkpoint == "drainer":
        target = _mysql_target(url, options, context.feed)
        letters = _letters(target, options)
        return DrainerSink(context.name, target, clock, letters, **how)
    file = open_checkpoint("file", str(options.checkpoint_file), clock, present_ts=int, initial_commit_ts=0)
    target = _mysql_target(url, options, context.feed, file)
    letters = _letters(target, options)
    return DrainerFileSink(context.name, target, clock, letters, file=file, **how)


def _open_dm(url: str, options: MySqlOptions, context: SinkContext) -> SqlSink:
    """Return the sink whose checkpoint is also DM's."""
    from .dm import DmSink
    from .mysql_dm import DmHome

    target = _mysql_target(url, options, context.feed)
    assert isinstance(target.home, DmHome)
    letters, now = _letters(target, options), SystemClock().time
    copies, merges = options.copy == "definition", options.merge
    return DmSink(context.name, target, target.home, letters, now, copies_definitions=copies, merges=merges)


def _mysql_target(
    url: str, options: MySqlOptions, feed: str, file: DrainerCheckpoint | None = None
) -> MySqlTarget:
    """Return the target, whose checkpoint is in `file` if there is one."""
    from ...dialects.mysql.home import Home
    from ...dialects.mysql.marks import Marks
    from ...dialects.mysql.mysql import MySqlTarget
    from .mysql_dm import DmHome
    from .mysql_drainer import DrainerHome, FileHome

    def home(session: MySqlSession, schema: str, feed: str) -> Home:
        if options.checkpoint == "dm":
            return DmHome(session, schema, feed, options.task, options.source_id, SystemClock())
        if options.checkpoint == "drainer":
            return DrainerHome(session, schema, feed, options.cluster_id)
        return Home(session, schema, feed) if file is None else FileHome(session, schema, feed, file)

    schema = options.schema or None
    made = MySqlTarget(parsed(url), feed, schema, options.collations, options.verify, home)
    made.marks = Marks(made.session, options.loopback_channel) if options.loopback_channel else None
    return made


def _letters(target: Target, options: RowOptions) -> LetterWriter | None:
    if options.on_error == "stop":
        return None
    where = f"{target.identity}: feed {target.feed!r}"
    rows = LetterRows(target.own_tables, target.feed)
    return LetterWriter(rows, DeadKeys(), options.max_dead_letters, where)


def sqlite_letters(url: str, options: SqliteOptions, feed: str) -> LetterBox:
    from ...dialects.sqlite.sqlite import SqliteTarget

    name, verify = options.table_name, options.verify
    return LetterBox(SqliteTarget(parsed(url), feed, name, verify, busy_seconds=BOX_SECONDS))


def duckdb_letters(url: str, options: DuckDbOptions, feed: str) -> LetterBox:
    from ...dialects.duckdb.duckdb import DuckDbTarget

    return LetterBox(DuckDbTarget(parsed(url), feed, options))


def mysql_letters(url: str, options: MySqlOptions, feed: str) -> LetterBox:
    return LetterBox(_mysql_target(url, options, feed))


def postgres_letters(url: str, options: PostgresOptions, feed: str) -> LetterBox:
    from ...dialects.postgres.postgres import PostgresTarget

    return LetterBox(PostgresTarget(parsed(url), feed, options))


def sqlite_revisions(url: str, options: SqliteOptions, feed: str) -> SqlRevisions:
    from ...dialects.sqlite.sqlite import SqliteTarget

    name, verify = options.table_name, options.verify
    return SqlRevisions(SqliteTarget(parsed(url), feed, name, verify, busy_seconds=BOX_SECONDS))


def mysql_revisions(url: str, options: MySqlOptions, feed: str) -> SqlRevisions:
    return SqlRevisions(_mysql_target(url, options, feed))


def postgres_revisions(url: str, options: PostgresOptions, feed: str) -> SqlRevisions:
    from ...dialects.postgres.postgres import PostgresTarget

    return SqlRevisions(PostgresTarget(parsed(url), feed, options))


_Made = TypeVar("_Made", SqlSink, ParallelSqlSink)


def _with_safe_mode(sink: _Made, is_configured: bool) -> _Made:
    if is_configured:
        sink.safe_mode.enter(CONFIGURED)
    return sink


def open_postgres(url: str, options: PostgresOptions, context: SinkContext) -> Sink:
    from ...dialects.postgres.postgres import PostgresTarget

    target = PostgresTarget(parsed(url), context.feed, options)
    letters, clock = _letters(target, options), SystemClock()
    if workers := options.parallel_workers:
        made = ParallelSqlSink(
            context.name, target, workers, clock.now, letters, clock.time, merges=options.merge
        )
        return _with_safe_mode(made, options.safe_mode)
    serial = SqlSink(context.name, target, target.store, letters, clock.time, merges=options.merge)
    return _with_safe_mode(serial, options.safe_mode)


def survey_sqlite(url: str, options: SqliteOptions, context: SinkContext) -> Iterator[Finding]:  # noqa: ARG001
    from .survey import survey_sqlite

    return survey_sqlite(parsed(url), context.feed)


def survey_duckdb(url: str, options: DuckDbOptions, context: SinkContext) -> Iterator[Finding]:
    from .duckdb_survey import survey_duckdb

    return survey_duckdb(parsed(url), options, context.feed)


def survey_mysql(url: str, options: MySqlOptions, context: SinkContext) -> Iterator[Finding]:
    from .survey import survey_mysql

    return survey_mysql(parsed(url), options, context.feed)


def survey_postgres(url: str, options: PostgresOptions, context: SinkContext) -> Iterator[Finding]:
    from .postgres_survey import survey_postgres

    return survey_postgres(parsed(url), options, context.feed)


def postgres_misfits(options: PostgresOptions, table: Table) -> Iterator[Finding]:
    from .postgres_survey import misfits

    return misfits(options, table)
