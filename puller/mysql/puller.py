"""The actor that follows a MariaDB server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, assert_never

from msgspec import Struct

from ...actors import PooledActor, Runtime, Target, pause_seconds
from ...codec.mysql.layout import Layouts
from ...errors import Retryable
from ...events import Changes, Checkpoint
from ...snapshot.mysql.tables import Follows
from ..lane import ALONE, Lane, LoadBarrier
from ..puller import Connected, PullerStatistics, Retrying, SnapshotReport, SourceReport
from .options import MysqlOptions
from .pull import Pull, Step
from .retention import RetentionWatch
from .stop_signal import StopSignal


class _Read(Struct, frozen=True):
    """To itself: continue reading."""


_READ = _Read()
_PUBLISH_SECONDS: Final = 0.1
_MOST_PUBLISHED: Final = 10
"""Number of statistics in that time: all of a stream that then rests for a second, few of a busy one."""


class MysqlPuller(PooledActor[_Read]):
    """Sends a server's changes to `output` in the binlog's order. Runs in an actor system for blocking work.

    A turn reads the available bytes of the socket, or waits for some. It stops reading while
    `output` is full. After a lost connection it reconnects with growing pauses; any other error fails the
    actor.
    """

    def __init__(
        self,
        options: MysqlOptions,
        follows: Follows,
        layouts: Layouts,
        output: Target[Changes],
        *,
        coordinator: Target[SourceReport] | None = None,
        start: Checkpoint | None = None,
        sink_checkpoints: Sequence[Checkpoint] = (),
        lane: Lane = ALONE,
        load_barrier: LoadBarrier | None = None,
        knows: Follows | None = lambda _schema, _table: True,
        stop: StopSignal,
        publish: Callable[[PullerStatistics], None] = lambda _statistics: None,
        retention: RetentionWatch | None = None,
        pace: Callable[[], float] = lambda: 1.0,
        runtime: Runtime | None = None,
        unneeded: Iterable[str] = (),
    ) -> None:
        """`follows` tells by schema and table if a table is followed. `start` is the checkpoint to resume
        from, None for a new feed; `sink_checkpoints` are the checkpoints of all sinks. `coordinator` gets
        Connected, Retrying and SnapshotReport. One of several sources keeps to its `lane`, and waits at the
        `load_barrier`. `knows` tells if the catalog has a table's definition as of the start; None without a
        catalog. `stop`, set after this actor's own stop, ends its turn if it waits for the binlog.
        `publish` gets the statistics in this actor's turns. `retention` looks at the server's list of
        binlogs. `pace` returns how many times as long the pauses of an idle stream are.
        `runtime` has the threads that load tables; None: those of the machine. `unneeded` are full names of
        tables whose changes no target needs before they are loaded again. Raises CheckpointError for a
        position that can't be read."""
        super().__init__()
        self._options = options
        self._output = output
        self._coordinator = coordinator
        self._failures = 0
        self._who = lane.source
        self._signal = stop
        self._pull = Pull(
            options,
            follows,
            layouts,
            start,
            sink_checkpoints,
            self.clock.now,
            lane,
            load_barrier,
            knows,
            self._signal,
            retention,
            pace,
            runtime,
            unneeded,
        )
        self._publish = publish
        self._next_publish = 0.0
        self._published = 0
        self._steps = self._pull.steps()

    def on_start(self) -> None:
        self._read_on()

    def on_receive(self, message: _Read) -> None:
        match message:
            case _Read():
                self._read()
            case _:
                assert_never(message)

    def _read(self) -> None:
        try:
            step = next(self._steps)
        except Retryable as error:
            if not self._signal.is_set:
                self._retry(error)
        else:
            self._pass_on(step)
            self._read_on()
        if (now := self.clock.now()) >= self._next_publish:
            self._next_publish = now + _PUBLISH_SECONDS
            self._published = 0
        if self._published < _MOST_PUBLISHED:
            self._published += 1
            self._publish(self._pull.statistics())

    def on_stop(self) -> None:
        self._steps.close()

    def on_failure(self, *_exc_info: object) -> None:
        self._steps.close()

    def _read_on(self) -> None:
        # Not send(): with a full mailbox the actor would wait for itself. There is at most one of these
        # messages.
        self.post(_READ)

    def _pass_on(self, step: Step) -> None:
        if isinstance(step, Changes):
            self._failures = 0
            self.send(self._output, step)
        elif step is not None:
            self._tell_coordinator(step)

    def _retry(self, error: Retryable) -> None:
        self._failures += 1
        seconds = error.wait
        if seconds is None:
            options = self._options
            seconds = pause_seconds(
                self._failures, options.retry_first_seconds, options.retry_longest_seconds
            )
        self._pull.retries += 1
        self._tell_coordinator(Retrying(str(error), seconds, self._who))
        self._steps = self._pull.steps()
        self.after(seconds, _READ)

    def _tell_coordinator(self, message: Connected | Retrying | SnapshotReport) -> None:
        if self._coordinator is not None:
            self.send(self._coordinator, message)
