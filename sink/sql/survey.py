"""Preflight checks of SQL targets: can they be written, and where does the feed begin there?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from ...config import Finding
from ...config.survey import begins
from ...dialects.dialect import Dialect
from ...dialects.options import MySqlOptions, RowOptions
from ...errors import TidemillError
from ..dm.table import SCHEMA, table_of
from ..kind import SinkContext


def survey_sql(dialect: Dialect, url: str, options: RowOptions, context: SinkContext) -> Iterator[Finding]:
    """Yield findings about a database; nothing is created."""
    is_usable = True
    for finding in dialect.survey(url, options):
        yield finding
        is_usable &= finding.level != "error"
    if isinstance(options, MySqlOptions) and options.checkpoint != "tidemill":
        yield Finding("ok", _elsewhere(options, context.feed))
        if options.checkpoint != "dm":
            return
    try:
        reader = dialect.read(url, options, context.feed)
        if reader is not None:
            with closing(reader):
                yield begins(reader.checkpoint())
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
