"""Preflight checks of the source and every target, which change nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain

from msgspec import structs

from ..actors import Clock, SystemClock
from ..chain.selection.loaded_by import differences
from ..codec.native.library import description
from ..config import Finding
from ..config.advice import explained
from ..config.survey import Begins
from ..errors import SinkError, TidemillError
from ..events import Checkpoint, Table
from ..sink.factory import reject_duplicates
from ..sink.registry import misfits, survey_sink
from ..sources.kind import SourceContext
from ..sources.registry import open_kind, survey_kind
from ..sources.source import Source, SourceInfo
from .begin_texts import begin_texts, start_findings
from .beginning import beginning, continued_identity, start_checks
from .opening import open_sinks, sink_context, source_context
from .options import FeedOptions
from .renewal import reject_unrenewable
from .requests import PipelineRequests, RequestFile
from .sink_options import SinkOptions
from .table_changes import changed_checkpoints, unneeded_tables, why_not_single


def check_feed(options: FeedOptions) -> list[Finding]:
    """Check the source and every target as a feed does at its start, and name the decoder in use. Without
    sinks only the source is checked. Raises ConfigError for mistakes that are found without connecting."""
    if options.sinks:
        reject_duplicates(open_sinks(options))
    clock = SystemClock()
    tables: list[Table] = []
    of_targets = {sink.name: [*_about(f"sink {sink.name}", _target(options, sink))] for sink in options.sinks}
    start = _start(options, of_targets, clock)
    context = replace(start.context, note=tables.append)
    findings = [*_about("source", survey_kind(options.source.kind, options.source.options, context))]
    known = {finding.text for finding in findings}
    findings += _about("feed", (finding for finding in start.findings if finding.text not in known))
    for sink in options.sinks:
        own = [table for table in tables if options.wants(sink.rules, table.full_name)]
        of_tables = chain(misfits(sink.given, own), _rows_problems(options, sink, own))
        findings += start.told(sink.name, of_targets[sink.name])
        findings += _about(f"sink {sink.name}", of_tables)
    if not options.sinks:
        findings.append(Finding("ok", "has no sink: only the source was checked", "feed"))
    return [*findings, Finding("ok", description(), "decoder")]


@dataclass(frozen=True, slots=True)
class _Start:
    """How a pipeline would start."""

    context: SourceContext
    """For a survey of the source as of the start."""
    findings: Sequence[Finding] = ()
    """About the feed: what a pipeline would refuse."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Where it begins in each sink; empty if that isn't known."""

    def told(self, sink: str, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield findings about a target: where the feed begins in place of the target's checkpoint."""
        for one in findings:
            is_told = isinstance(one, Begins) and sink in self.texts
            yield replace(one, text=self.texts[sink]) if is_told else one


def _target(options: FeedOptions, sink: SinkOptions) -> Iterator[Finding]:
    """Yield findings about a target, and errors if its rows were chosen by other conditions than now."""
    for finding in survey_sink(sink.given, sink_context(options, sink.name)):
        yield finding
        if isinstance(finding, Begins) and finding.at is not None and finding.at.position:
            for problem in differences((*options.filters, *sink.rules.rows), sink.name, finding.at.stages):
                yield Finding("error", problem)


def _rows_problems(options: FeedOptions, sink: SinkOptions, tables: Sequence[Table]) -> Iterator[Finding]:
    """Yield findings about tables that lack a column of a condition, or whose rows can't be divided."""
    for rule in (*options.filters, *sink.rules.rows):
        for table in tables:
            if rule.condition is not None and rule.tables.matches(table.schema, table.name):
                try:
                    rule.condition.test(table)
                except SinkError as error:
                    yield Finding("error", re.sub(r"^sink [\w-]+: ", "", str(error)))


def _about(whom: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings with their subject's name; an error of the check becomes a finding."""
    try:
        for finding in findings:
            yield replace(finding, about=whom)
    except TidemillError as error:
        yield Finding("error", explained(error), whom)


def _start(options: FeedOptions, of_targets: Mapping[str, Iterable[Finding]], clock: Clock) -> _Start:
    """Return how a pipeline would start. `of_targets` are the findings about each sink's target.

    Errors of the connection to the source are left to its survey.
    """
    context = source_context(options, clock)
    stored = {
        name: finding.at
        for name, findings in of_targets.items()
        for finding in findings
        if isinstance(finding, Begins)
    }
    with closing(open_kind(options.source.kind, options.source.options, context)) as source:
        try:
            present = source.look()
        except TidemillError:
            is_new = all(one is None or not one.position for one in stored.values())
            return _Start(replace(context, is_new=is_new))
        return _tried(options, context, source, present, stored, clock)


def _tried(
    options: FeedOptions,
    context: SourceContext,
    source: Source,
    present: SourceInfo,
    stored: Mapping[str, Checkpoint | None],
    clock: Clock,
) -> _Start:
    requests = PipelineRequests(RequestFile(options.data_dir).load().tables)
    renews = requests.renews
    factories = open_sinks(options)
    by_name = {sink.name: sink.rules for sink in factories}
    why_not = why_not_single(options, source, {sink.name: sink.traits for sink in factories})
    findings: list[Finding] = []
    start: Checkpoint | None = None
    placed: list[Checkpoint] = []
    unneeded: frozenset[str] = frozenset()
    texts: Mapping[str, str] = {}
    is_placed = any(one is not None and one.position for one in stored.values())
    try:
        if renews:
            reject_unrenewable(options)
        identity = continued_identity(source, present, stored, renews=renews)
        if not renews:
            rules = [sink.rules for sink in options.sinks if sink.name in stored]
            if is_placed and not why_not:
                changed = changed_checkpoints(
                    options, by_name, source, present, stored, requests, clock.time()
                )
                findings += _by_patterns(stored, changed)
                stored = {**stored, **changed}
            begins = beginning(options, source, present, identity, stored, rules)
            unneeded = unneeded_tables(options, by_name, begins)
            start = begins.start and _of(begins.start, identity)
            placed = [_of(one, identity) for one in begins.placed]
            findings += start_findings(options, source, stored, begins.start)
        texts = begin_texts(options, source, stored, renews=renews)
    except TidemillError as error:
        findings.append(Finding("error", str(error)))
    is_known = stored.keys() == {sink.name for sink in options.sinks}
    checks = start_checks(options, source, present, is_new=not placed, why_not_single=why_not)
    for check in checks if placed or (is_known and not findings) else ():
        try:
            check()
        except TidemillError as error:
            findings.append(Finding("error", str(error)))
    begun = replace(
        context,
        is_new=not placed,
        start=start,
        sink_checkpoints=placed,
        state_dir=options.data_dir,
        unneeded=unneeded,
    )
    return _Start(begun, findings, texts)


def _by_patterns(
    before: Mapping[str, Checkpoint | None], changed: Mapping[str, Checkpoint]
) -> Iterator[Finding]:
    """Yield findings about the tables that other patterns match, or match no longer."""
    for sink, checkpoint in changed.items():
        have = before[sink]
        known = (have.loading if have is not None else None) or {}
        new = {name: one for name, one in (checkpoint.loading or {}).items() if one != known.get(name)}
        if added := sorted(name for name, one in new.items() if one.pending and one.parked is None):
            yield Finding("ok", f"sink {sink}: loads {', '.join(added)}, which the patterns match now")
        parked = [(name, one.parked) for name, one in new.items() if one.parked is not None]
        if removed := sorted(name for name, parking in parked if parking.state == "removed"):
            names = ", ".join(removed)
            yield Finding("ok", f"sink {sink}: keeps the rows of {names}, which no pattern matches any more")


def _of(checkpoint: Checkpoint, identity: str) -> Checkpoint:
    return checkpoint if checkpoint.source else structs.replace(checkpoint, source=identity)
