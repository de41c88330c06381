"""Preflight checks of the source and every target, which change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..actors import SystemClock
from ..config import Finding
from ..errors import TidemillError
from ..sink.registry import open_given, survey_sink
from ..sources.registry import survey_kind
from .feed import reject_duplicates
from .options import FeedOptions, sink_context, source_context


def check_feed(options: FeedOptions) -> list[Finding]:
    """Check the source and every target. Raises ConfigError for mistakes that are found without
    connecting."""
    reject_duplicates([open_given(sink.given, sink_context(options, sink.name)) for sink in options.sinks])
    source = survey_kind(options.source_kind, options.source, source_context(options, SystemClock()))
    found = [*_about("source", source)]
    for sink in options.sinks:
        found += _about(f"sink {sink.name}", survey_sink(sink.given, sink_context(options, sink.name)))
    return found


def _about(whom: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings with their subject's name; an error of the check becomes a finding."""
    try:
        for finding in findings:
            yield replace(finding, about=whom)
    except TidemillError as error:
        yield Finding("error", str(error), whom)
