"""Preflight checks of the source and every target, which change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from ..actors import SystemClock
from ..codec.native.library import description
from ..config import Finding
from ..config.survey import Begins
from ..errors import SinkError, TidemillError
from ..events import Table
from ..routing import ROWS_KEY, WHERE_KEY, difference
from ..sink.registry import misfits, survey_sink
from ..sources.registry import survey_kind
from .admission import admission
from .duplicates import reject_duplicates
from .options import FeedOptions, open_sinks, sink_context
from .sink_options import SinkOptions


def check_feed(options: FeedOptions) -> list[Finding]:
    """Check the source and every target as a feed does at its start, and name the decoder in use. Raises
    ConfigError for mistakes that are found without connecting."""
    reject_duplicates(open_sinks(options))
    clock = SystemClock()
    tables: list[Table] = []
    of_targets = {sink.name: [*_about(f"sink {sink.name}", _target(options, sink))] for sink in options.sinks}
    begun, of_start = admission(options, of_targets, clock)
    context = replace(begun, note=tables.append)
    found = [*_about("source", survey_kind(options.source.kind, options.source.options, context))]
    known = {finding.text for finding in found}
    found += _about("feed", (finding for finding in of_start if finding.text not in known))
    for sink in options.sinks:
        own = [table for table in tables if options.wants(sink.name, table.full_name)]
        of_tables = chain(misfits(sink.given, own), _rows_problems(options, sink, own))
        found += [*of_targets[sink.name], *_about(f"sink {sink.name}", of_tables)]
    return [*found, Finding("ok", description(), "decoder")]


def _target(options: FeedOptions, sink: SinkOptions) -> Iterator[Finding]:
    """Yield findings about a target, and errors if its rows were chosen by other conditions than now."""
    for finding in survey_sink(sink.given, sink_context(options, sink.name)):
        yield finding
        if isinstance(finding, Begins) and finding.at is not None and finding.at.position:
            for rows, key in ((options.filters.rows, WHERE_KEY), (sink.rows, ROWS_KEY)):
                if problem := difference(rows, sink.name, finding.at.stages, key):
                    yield Finding("error", problem)


def _rows_problems(options: FeedOptions, sink: SinkOptions, tables: Sequence[Table]) -> Iterator[Finding]:
    """Yield findings about tables that lack a column of a condition, or whose rows can't be divided."""
    for one in (*options.filters.rows, *sink.rows):
        for table in tables:
            if one.where is not None and one.tables.matches(table.schema, table.name):
                try:
                    one.where.test(table)
                except SinkError as error:
                    yield Finding("error", str(error).removeprefix(f"sink {sink.name}: "))


def _about(whom: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings with their subject's name; an error of the check becomes a finding."""
    try:
        for finding in findings:
            yield replace(finding, about=whom)
    except TidemillError as error:
        yield Finding("error", str(error), whom)
