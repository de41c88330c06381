"""Preflight checks of a MariaDB or MySQL server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from ..codec.mysql.layout import Layouts
from ..codec.mysql.position import Position
from ..config import Finding
from ..errors import TidemillError
from ..events import Checkpoint
from ..mounter import Catalog, History
from ..puller.mysql.options import MysqlOptions
from ..puller.mysql.probe import probe
from ..puller.mysql.pull import Pull
from ..puller.mysql.requirements import Survey
from ..puller.mysql.stream import try_position
from .kind import SourceContext
from .mysql_state import catalog_name, choose_columns, known_tables, name_of
from .source import no_table_matches


def survey_mysql(options: MysqlOptions, context: SourceContext) -> Iterator[Finding]:
    """Yield findings: can the server be followed from the feed's start, and which tables match?

    Changes nothing. The tables' definitions are noted.
    """
    catalog = None if context.state_dir is None else Catalog()
    try:
        if catalog is not None and context.start is not None and context.start.position:
            history = _history(context, context.start)
            catalog = history.as_of(context.start.ts)
            choose_columns(options, catalog, history.later, context.unneeded)
    except TidemillError as error:
        yield Finding("error", str(error))
    pull = Pull(
        options,
        context.tables.matches,
        Layouts(),
        context.start,
        context.sink_checkpoints,
        context.clock.time,
        context.lane,
        knows=known_tables(catalog),
    )
    try:
        survey = pull.survey()
    except TidemillError as error:
        survey = Survey("", [], [Finding("error", str(error))])
    if survey.server:
        yield Finding("ok", survey.server)
    for table in survey.tables:
        context.note(table.table)
        key = ", ".join(table.table.columns[i].name for i in table.table.key) or "no key"
        yield Finding("ok", f"follows {table.table.full_name} ({key}; about {table.rows_estimated:,} rows)")
    if survey.server and context.is_new:
        with suppress(TidemillError):  # the requirements report the same
            seen = [(table.schema, table.name) for table in probe(options).tables]
            if unmatched := context.tables.unmatched(seen):
                yield Finding("error", no_table_matches(unmatched, seen))
    yield from survey.findings
    start = (context.start and context.start.position) or options.position
    if start and survey.server and not any(finding.level == "error" for finding in survey.findings):
        try:
            try_position(options, Position.parse(start))
        except TidemillError as error:
            yield Finding("error", str(error))


def _history(context: SourceContext, start: Checkpoint) -> History:
    assert context.state_dir is not None
    return History(context.state_dir / catalog_name(context.feed, name_of(context.lane)), start.source)
