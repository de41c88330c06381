"""The start of a feed, tried without starting it: what a pipeline would refuse is a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from msgspec import structs

from ..actors import Clock
from ..config import Finding
from ..config.survey import Begins
from ..errors import TidemillError
from ..events import REST, Checkpoint
from ..sources.kind import SourceContext
from ..sources.source import Source, SourceInfo
from .beginning import adopted, beginning
from .merge import check_merge
from .options import FeedOptions, open_source, source_context
from .patterns import check_patterns, reject_unmatched
from .renewal import reject_unrenewable
from .requests import RequestFile


def admission(
    options: FeedOptions, of_targets: Mapping[str, Iterable[Finding]], clock: Clock
) -> tuple[SourceContext, list[Finding]]:
    """Return the context for a survey of the source as of the feed's start, and errors about that start.

    `of_targets` are the findings about each sink's target. Errors of the connection to the source are left to
    its survey.
    """
    context = source_context(options, clock)
    found = {
        name: finding.at
        for name, findings in of_targets.items()
        for finding in findings
        if isinstance(finding, Begins)
    }
    source = open_source(options, clock)
    try:
        try:
            present = source.look()
        except TidemillError:
            return replace(context, is_new=not _placed(found)), []
        return _tried(options, context, source, present, found)
    finally:
        source.close()


def _tried(
    options: FeedOptions,
    context: SourceContext,
    source: Source,
    present: SourceInfo,
    found: Mapping[str, Checkpoint | None],
) -> tuple[SourceContext, list[Finding]]:
    requested = RequestFile(options.data_dir).load().load_again
    renews = REST in requested
    findings: list[Finding] = []
    start: Checkpoint | None = None
    placed: list[Checkpoint] = []
    try:
        if renews:
            reject_unrenewable(options)
        identity, checkpoints = adopted(source, present, found, renews=renews)
        if not renews:
            begins = beginning(options, source, present, identity, checkpoints)
            start = begins.start and _of(begins.start, identity)
            placed = [_of(at, identity) for at in begins.placed]
    except TidemillError as error:
        findings.append(Finding("error", str(error)))
    is_new = not placed
    is_known = found.keys() == {sink.name for sink in options.sinks}
    tests = [partial(check_patterns, options)] if placed else []
    if is_new and is_known and not findings:
        tests.append(partial(reject_unmatched, options, present))
        if options.routes:
            tests.append(partial(check_merge, options, source))
    for test in tests:
        try:
            test()
        except TidemillError as error:
            findings.append(Finding("error", str(error)))
    return (
        replace(
            context,
            is_new=is_new,
            start=start,
            sink_checkpoints=placed,
            state_dir=options.data_dir,
            requested=frozenset(requested),
        ),
        findings,
    )


def _placed(found: Mapping[str, Checkpoint | None]) -> list[Checkpoint]:
    return [at for at in found.values() if at is not None and at.position]


def _of(at: Checkpoint, identity: str) -> Checkpoint:
    return at if at.source else structs.replace(at, source=identity)
