"""`tidemill run feed.toml --engine spark`: the same feed, its stream read and written by Spark's tasks."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from ..errors import ConfigError, TidemillError
from ..feed import Feed, reject_duplicates
from ..options import FeedOptions, feed_options
from ..progress import Progress, open_progress
from ..sink import Sink
from . import session
from .run_errors import explain
from .run_start import Start, check_partitions, find_start, local_sinks, take_over, unloaded
from .run_stream import LOOK_SECONDS, Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS: Final = {"spark.log.level": "OFF"}

MASTER: Final = "local[2]"
TRIGGER: Final = "0 seconds"
"""One batch after the other."""
ANSWER_SECONDS: Final = 5.0
"""So long a master may take to be connected to."""


def run(
    found: Mapping[str, Any],
    *,
    master: str = MASTER,
    partitions: int = 1,
    trigger: str = TRIGGER,
    as_json: bool = False,
    config: Mapping[str, str] | None = None,
) -> int:
    """Run the feed of these tables of a feed.toml until it is stopped or reaches `until`; 0, the exit status.

    `config` are more settings of Spark. Raises ConfigError, and what stops the feed.
    """
    options = feed_options(found)
    sinks = local_sinks(options)
    reject_duplicates([*sinks.values()])
    if partitions < 1:
        raise ConfigError(f"partitions = {partitions}: at least 1")
    options.data_dir.mkdir(parents=True, exist_ok=True)
    progress = open_progress(sys.stdout if as_json else sys.stderr, as_json=as_json)
    stopping = Event()
    try:
        with _stopped_by_signals(stopping):
            spark = _start_spark(options, master, config or {})
        with _stopped_by_signals(stopping):  # Spark has set handlers of its own
            starts = _starts(options, sinks, partitions, progress, stopping)
            if not stopping.is_set():
                Stream(options, found["source"], starts, sinks, progress, stopping).run(spark, trigger)
    finally:
        progress.close()
    return 0


def _start_spark(options: FeedOptions, master: str, config: Mapping[str, str]) -> SparkSession:
    _check_master(master)
    try:
        spark = session(options.name, master, {**_DEFAULTS, **config})
        from .run_source import RunSource

        spark.dataSource.register(RunSource)
    except TidemillError:
        raise
    except Exception as error:
        found = explain(error, f"master {master}")
        raise ConfigError(str(found)) from error
    return spark


def _check_master(master: str) -> None:
    """Raise ConfigError if a standalone cluster doesn't answer: Spark would ask for over a minute."""
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
        except (OSError, ValueError) as error:
            reasons.append(f"{address}: {error}")
        else:
            return
    raise ConfigError(f"master: {master} doesn't answer ({'; '.join(reasons)})")


def _starts(
    options: FeedOptions, sinks: Mapping[str, Sink], partitions: int, progress: Progress, stopping: Event
) -> dict[str, Start]:
    """Where each sink's query begins, once the local engine has loaded what isn't. Raises as feeds do."""
    there = {name: find_start(sink) for name, sink in sinks.items()}
    check_partitions({name: one for name, one in there.items() if isinstance(one, Start)}, partitions)
    if names := unloaded(there):
        _load(options, [sinks[name] for name in names], progress, stopping)
        if stopping.is_set():
            return {}
    else:
        _check_patterns(options)
    return {
        name: one if isinstance(one, Start) else take_over(sinks[name], partitions)
        for name, one in there.items()
    }


def _load(options: FeedOptions, sinks: Sequence[Sink], progress: Progress, stopping: Event) -> None:
    """The local engine, up to `until`, or else to where the source ends now."""
    feed = Feed(replace(options, until=options.until or "now"), sinks)
    feed.start()
    try:
        while not feed.wait(LOOK_SECONDS):
            progress.show(feed.status())
            if stopping.is_set():
                feed.stop()
    finally:
        feed.stop()
        feed.wait()
    if feed.error is not None:
        raise feed.error


def _check_patterns(options: FeedOptions) -> None:
    from ..pipeline import _check_patterns as check

    check(options, anew=False)


@contextmanager
def _stopped_by_signals(stopping: Event) -> Iterator[None]:
    """SIGINT and SIGTERM stop the feed; a second one doesn't wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
