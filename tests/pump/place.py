"""A feed of the pumps of an emulated TiDB into SQLite, both in this process."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import FeedOptions, feed_options
from tidemill.engine.status import FeedStatus
from tidemill.errors import TidemillError
from tidemill.testing.feeds import Ended
from tidemill.testing.progress import eventually, feed_ended

from ..tikv.place import TidbPlace


class Following:
    """A feed that goes on until it is stopped or fails."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed

    def __enter__(self) -> Following:
        self.feed.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.feed.stop()
        feed_ended(self.feed)

    def until(self, condition: Callable[[FeedStatus], Any]) -> FeedStatus:
        """Return the first status that meets the condition. Raises Stalled, and the feed's error."""

        def look() -> FeedStatus | None:
            status = self.feed.status()
            if condition(status):
                return status
            if status.state == "failed" and self.feed.error is not None:
                raise self.feed.error
            return None

        return eventually(look)

    def stop(self, _signal: int) -> Ended:
        self.feed.stop()
        return ended(self.feed)


def ended(feed: Feed) -> Ended:
    feed_ended(feed)
    return Ended(1, "", f"tidemill: {feed.error}") if feed.error is not None else Ended(0, "", "")


class PumpPlace(TidbPlace):
    """A table `shop.item`, and a feed that copies it into SQLite."""

    @property
    def source_line(self) -> str:  # type: ignore[override]
        pd = ", ".join(f'"{address}"' for address in self.server.pd_address.split(","))
        lines = [f"pd = [{pd}]", "pd_retry_seconds = 0.2", "retry_seconds = 0.05", "job_seconds = 0.05"]
        return "\n".join(lines)

    @property
    def source_url(self) -> str:
        return f"pump://{self.server.pumps.address}"

    def options(self, **more: Any) -> FeedOptions:
        return feed_options({**tomllib.loads(self.config.read_text()), **more})

    def feed(self, **more: Any) -> Feed:
        options = self.options(**more)
        return Feed(options, open_sinks(options))

    def run(self, *_more: str) -> Ended:
        try:
            feed = self.feed(until="now")
        except TidemillError as error:
            return Ended(2, "", f"tidemill: {error}")
        feed.start()
        return ended(feed)

    def start(self, *_more: str, **_options: Any) -> Following:  # type: ignore[override]
        return Following(self.feed())

    def continues_with(self, rows: list[Any]) -> None:
        """The feed runs to the source's end, and the copy has these rows."""
        done = self.run()
        assert done.status == 0, done
        assert self.copied() == rows
