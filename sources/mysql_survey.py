"""Preflight checks of a MariaDB or MySQL server."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from ..chain.selection.tables import TablePatterns
from ..codec.mysql.layout import Layouts
from ..codec.mysql.position import Position
from ..codec.mysql.tokens import qualified as quoted
from ..config import Finding
from ..config.advice import explained
from ..errors import TidemillError
from ..mounter import Catalog
from ..puller.mysql.options import MysqlOptions
from ..puller.mysql.probe import probe
from ..puller.mysql.pull import Pull
from ..puller.mysql.requirements import Survey
from ..puller.mysql.stream import try_position
from .kind import SourceContext
from .mysql_state import choose_columns, history_of, known_tables
from .source import no_table_matches


def survey_mysql(options: MysqlOptions, context: SourceContext) -> Iterator[Finding]:
    """Yield findings: can the server be followed from the feed's start, and which tables match?

    Changes nothing. The tables' definitions are noted.
    """
    catalog = None if context.state_dir is None else Catalog()
    try:
        if context.state_dir is not None and context.start is not None and context.start.position:
            history = history_of(
                context.state_dir,
                context.feed,
                context.lane,
                context.start.source,
                context.start,
                context.sink_checkpoints,
            )
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
        survey = Survey("", [], [Finding("error", explained(error))])
    if survey.server:
        yield Finding("ok", survey.server)
    for table in survey.tables:
        context.note(table.table)
        key = ", ".join(table.table.columns[i].name for i in table.table.key) or "no key"
        text = f"follows {table.table.full_name} ({key}; about {table.rows_estimated:,} rows)"
        yield Finding("ok", text, tables=(table.table.full_name,))
    if survey.server and context.is_new:
        with suppress(TidemillError):  # the requirements report the same
            seen = [(table.schema, table.name) for table in probe(options).tables]
            if unmatched := context.tables.unmatched(seen):
                remedy = _grants(context.tables, survey.account, unmatched, {schema for schema, _ in seen})
                yield Finding("error", no_table_matches(unmatched, seen), remedy=remedy)
    yield from survey.findings
    start = (context.start and context.start.position) or options.position
    if start and survey.server and not any(finding.level == "error" for finding in survey.findings):
        try:
            try_position(options, Position.parse(start))
        except TidemillError as error:
            yield Finding("error", str(error))


def _grants(
    tables: TablePatterns, account: str, unmatched: Sequence[str], seen: Collection[str]
) -> tuple[str, ...]:
    """Return the statements by which the user sees the schemas of these patterns that it can't see now."""
    names = {one.parts["schema"].text for one in tables.included if one.text in unmatched and one.parts}
    hidden = sorted(name for name in names if re.fullmatch(r"\w[\w$-]*", name) and name not in seen)
    return tuple(f"GRANT SELECT ON {quoted(name)}.* TO {account}" for name in hidden if account)
