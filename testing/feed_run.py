"""A feed that is run in this process up to its source's present end."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..engine.feed import Feed
from ..engine.opening import open_sinks
from ..engine.options import feed_options
from .progress import feed_ended


def run(feed: Feed) -> None:
    """Run a feed to its end. Raises its error."""
    feed.start()
    feed.wait()
    if feed.error is not None:
        raise feed.error


def run_to_end(config: Mapping[str, object], loads: list[str]) -> None:
    """Run the feed of a configuration; add the loads of tables after the first to `loads`, as the sink and
    the reason. Raises the feed's error."""
    options = feed_options({**config, "until": "now"})
    feed = Feed(options, open_sinks(options))
    with _loads_noted(loads):
        feed.start()
        try:
            feed_ended(feed)
        finally:
            feed.stop()
            feed.wait()
    if feed.error is not None:
        raise feed.error


@contextmanager
def _loads_noted(loads: list[str]) -> Iterator[None]:
    """Add the reasons for loading tables again to a list."""

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if text.startswith("sink "):
                loads.append(text.removeprefix("sink "))

    log, handler = logging.getLogger("tidemill"), Noting(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
