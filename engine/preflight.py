"""Preflight checks of the source and every target, which change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from ..actors import SystemClock
from ..codec.native.library import description
from ..config import Finding
from ..errors import TidemillError
from ..events import Table
from ..routing import Share
from ..sink.registry import misfits, open_given, survey_sink
from ..sources.registry import survey_kind
from .duplicates import reject_duplicates
from .options import FeedOptions, SinkOptions, sink_context, source_context


def check_feed(options: FeedOptions) -> list[Finding]:
    """Check the source and every target, and name the decoder in use. Raises ConfigError for mistakes that
    are found without connecting."""
    reject_duplicates([open_given(sink.given, sink_context(options, sink.name)) for sink in options.sinks])
    tables: list[Table] = []
    context = replace(source_context(options, SystemClock()), note=tables.append)
    found = [*_about("source", survey_kind(options.source_kind, options.source, context))]
    for sink in options.sinks:
        own = [table for table in tables if options.wants(sink.name, table.full_name)]
        of_target = survey_sink(sink.given, sink_context(options, sink.name))
        found += _about(
            f"sink {sink.name}", chain(of_target, misfits(sink.given, own), _indivisible(sink, own))
        )
    return [*found, Finding("ok", description(), "decoder")]


def _indivisible(sink: SinkOptions, tables: Iterable[Table]) -> Iterator[Finding]:
    """Yield findings about tables whose rows can't be divided among several sinks."""
    for one in sink.rows:
        if isinstance(one.where, Share):
            for table in tables:
                if problem := one.where.problem(table):
                    yield Finding("error", f"table {table.origin_name} can't be divided: {problem}")


def _about(whom: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings with their subject's name; an error of the check becomes a finding."""
    try:
        for finding in findings:
            yield replace(finding, about=whom)
    except TidemillError as error:
        yield Finding("error", str(error), whom)
