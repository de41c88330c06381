"""Source, sinks and files of a feed, by its options: nothing is connected yet."""

from __future__ import annotations

from functools import partial

from ..actors import Clock
from ..errors import ConfigError
from ..mounter import Policy
from ..sink import SinkFactory
from ..sink.kind import SinkContext
from ..sink.registry import open_given
from ..sources.kind import SourceContext
from ..sources.registry import open_kind
from ..sources.source import Source
from ..store import disk
from .checkpoint import CheckpointFile
from .options import FeedOptions
from .requests import RequestFile


def open_source(options: FeedOptions, clock: Clock) -> Source:
    """Return the source that the options name, not connected yet. Raises ConfigError."""
    return open_kind(options.source.kind, options.source.options, source_context(options, clock))


def source_context(options: FeedOptions, clock: Clock) -> SourceContext:
    directory = options.data_dir / f"scratch-{options.source.kind.name}"
    skipped = RequestFile(options.data_dir).load().skip
    of_statements = [rule for rule in options.filters if rule.is_about_statements]
    policy = Policy((*options.on_ddl, *of_statements), skipped)
    details = not options.routes and any(
        sink.given.kind.has_definitions(sink.given.target, sink.given.options) for sink in options.sinks
    )
    copies = any(sink.copies_definitions for sink in options.sinks)
    return SourceContext(
        tables=options.tables,
        feed=options.name,
        directory=directory,
        clock=clock,
        on_ddl=policy,
        routes=options.merging,
        details=details,
        tells_details=details and not copies,
    )


def open_sinks(options: FeedOptions) -> list[SinkFactory]:
    """Return factories of the sinks that the options name. Raises ConfigError."""
    return [
        SinkFactory(partial(open_given, sink.given, sink_context(options, sink.name)), sink.rules)
        for sink in options.sinks
    ]


def sink_context(options: FeedOptions, sink: str) -> SinkContext:
    return SinkContext(
        name=sink,
        feed=options.name,
        store=checkpoint_file(options, sink),
        scratch=options.data_dir / f"{options.name}.{sink}.index",
    )


def make_data_dir(options: FeedOptions) -> None:
    """Create the data directory, for this user only. Raises ConfigError if it can't be created."""
    try:
        disk.make_private(options.data_dir)
    except OSError as error:
        raise ConfigError(f"data_dir: {options.data_dir}: {error.strerror}") from None


def checkpoint_file(options: FeedOptions, sink: str) -> CheckpointFile:
    """Return the checkpoint store of a sink whose target can't hold it."""
    return CheckpointFile(options.data_dir / f"{options.name}.{sink}.checkpoint")
