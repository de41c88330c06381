"""Checks for running a feed with --engine spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...config import Finding
from ...engine.options import FeedOptions
from ...errors import ConfigError
from ...puller.mysql.options import MysqlOptions
from ...puller.mysql.requirements import check_without_catalog
from ..reading import reading_of_kind
from ..write.options import way_of


def check_on_spark(options: FeedOptions) -> Iterator[Finding]:
    """Yield a warning for each source and sink that only the local engine takes, and for settings of a server
    that are enough for it only; an error for an option that it would ignore."""
    try:
        reading_of_kind(options.source.kind)
    except ConfigError as error:
        yield Finding("warning", str(error), "source")
    try:
        options.reject_parking("Spark")
        options.reject_verification("Spark")
    except ConfigError as error:
        yield Finding("error", str(error), "feed")
    source = options.source.options
    if isinstance(source, MysqlOptions):
        for finding in check_without_catalog(source):
            yield replace(finding, level="warning", about="source")
    for sink in options.sinks:
        try:
            way_of(sink.given.kind)
        except ConfigError as error:
            yield Finding("warning", str(error), f"sink {sink.name}")
