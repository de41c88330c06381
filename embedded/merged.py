"""Several feeds of this process with one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Self

from ..actors import Clock, SystemClock
from ..config import checked
from ..engine.feed import Feed
from ..engine.opening import checkpoint_file
from ..engine.status import FeedStatus
from ..errors import ConfigError, SinkError, TidemillError
from ..events import Item, Wait
from ..sink import SinkFactory
from ..sink.merged import MergedSink
from ..sink.python import Acknowledgements
from ..timeline import Entry, GroupOptions, open_group
from .arguments import read_arguments


def merge(
    receive: Callable[[str, Item], object],
    feeds: Mapping[str, Mapping[str, object]],
    *,
    data_dir: str | Path = "tidemill-data",
    options: GroupOptions | None = None,
    ddl: bool = False,
    block: bool = True,
) -> MergeHandle:
    """Call `receive` with each transaction of several feeds, merged by commit ts, and the name of its feed.

    `feeds` has the arguments of `open` for each name, for instance `{"source": url, "tables": ["shop.*"]}`;
    each feed has a directory in `data_dir`. An item is acknowledged to its feed when `receive` returns; if it
    returns False, the item comes again. With `ddl`, schema changes come, too.

    Returns when all feeds have ended, or with `block=False` once they are started. The first error of a feed
    ends all. Raises ConfigError, and when it blocks that error.
    """
    options = checked(options or GroupOptions(), "options")
    handle = MergeHandle(receive, feeds, Path(data_dir), options, ddl, SystemClock())
    handle._start()
    if block:
        with handle:
            handle.wait()
    return handle


class MergeHandle:
    """Feeds that call one function; made by `tidemill.merge`. `with` stops them."""

    def __init__(
        self,
        receive: Callable[[str, Item], object],
        feeds: Mapping[str, Mapping[str, object]],
        data_dir: Path,
        options: GroupOptions,
        ddl: bool,
        clock: Clock,
    ) -> None:
        self._receive = receive
        self._options = options
        self._group = open_group(list(feeds), self._consume, options, clock.now)
        self._lock = Lock()
        self.error: TidemillError | None = None
        """The first error of a feed."""
        self._acknowledged: dict[str, Acknowledgements] = {}
        self._feeds: dict[str, Feed] = {}
        for name, arguments in feeds.items():
            self._feeds[name] = self._feed(name, arguments, data_dir, ddl, clock)

    def _feed(
        self, name: str, arguments: Mapping[str, object], data_dir: Path, ddl: bool, clock: Clock
    ) -> Feed:
        defaults: dict[str, Any] = {
            "until": None, "source_options": None, "sorter": None, "sinks": (), "name": name,
            "data_dir": data_dir / name,
        }  # fmt: skip
        if unknown := sorted(arguments.keys() - defaults.keys() - {"source", "tables"}):
            raise ConfigError(f"feed {name}: {', '.join(unknown)}: not an argument of open")
        if missing := sorted({"source", "tables"} - arguments.keys()):
            raise ConfigError(f"feed {name}: {', '.join(missing)}: missing")
        options, sinks = read_arguments(**{**defaults, **arguments})
        acknowledged = self._acknowledged[name] = Acknowledgements()
        store, group, described = checkpoint_file(options, name), self._group, self._describe
        merged = SinkFactory(
            lambda: MergedSink(name, group, store, acknowledged, described=described, ddl=ddl)
        )
        return Feed(options, [merged, *sinks], clock)

    def _describe(self) -> str:
        """Return how the feeds are merged, for waits."""
        options = self._options
        after = f" for {options.idle_seconds:g} s" if options.on_idle == "pass" else ""
        unit = "transactions" if options.transactions else "events"
        number = self._group.regressions
        late = f", {number} came late so far" if number else ""
        return f'{unit} are merged by a {options.merge}, on_idle = "{options.on_idle}"{after}{late}'

    def _consume(self, entries: Sequence[tuple[str, Entry]]) -> int:
        count = 0
        last: dict[str, Item] = {}
        try:
            for source, entry in entries:
                if self._receive(source, entry.item) is False:
                    break
                last[source] = entry.item
                count += 1
        except TidemillError:
            raise
        except BaseException as error:
            raise SinkError(f"merge: its function raised {error!r}") from error
        finally:
            for source, item in last.items():
                self._acknowledged[source].add(item)
                self._feeds[source].flush()
        return count

    def _start(self) -> None:
        try:
            for name, feed in self._feeds.items():
                feed.start(on_end=partial(self._ended, name))
        except BaseException:
            self.stop()
            raise

    def _ended(self, name: str) -> None:
        error = self._feeds[name].error
        if error is None:
            try:
                self._group.leave(name)
                return
            except TidemillError as raised:  # by the function, for items of other feeds
                error = raised
        with self._lock:
            self.error = self.error or error
        self.stop()

    def stop(self) -> None:
        """End the feeds, with their checkpoints saved. Any thread; returns at once."""
        for name, feed in self._feeds.items():
            feed.stop()
            self._group.interrupt(name)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for each feed's end; True if all have ended. Raises their error."""
        if not all(feed.wait(timeout) for feed in self._feeds.values()):
            return False
        if self.error is not None:
            raise self.error
        return True

    def status(self) -> dict[str, FeedStatus]:
        """Return the state of each feed, by its name."""
        return {name: feed.status() for name, feed in self._feeds.items()}

    def explain(self) -> list[Wait]:
        """Return what waits, on what, and since when; also what waits for a silent feed of the merge."""
        return [wait for feed in self._feeds.values() for wait in feed.explain()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop()
        for feed in self._feeds.values():
            feed.wait()
        if error is None and self.error is not None:
            raise self.error
