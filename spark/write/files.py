"""Files as targets: each task stages hidden files, and the driver commits those of a whole batch.

    _tidemill/spark-<query>/staged/…        files that aren't visible yet
    _tidemill/spark-<query>/states/…        the query's commits; the number of a batch is that of its commit

A batch that is committed is never committed again. Files of an attempt at a task that Spark hasn't committed
are never published.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from pyspark.sql.datasource import WriterCommitMessage

from ...errors import InvariantViolated, SinkError
from ...events import Batch, Checkpoint, Ts
from ...sink import Sink
from ...sink.files.commits import Commits
from ...sink.files.layout import HIDDEN, check_unused
from ...sink.files.ledger import Ledger, State
from ...sink.files.staging import Staged, StagedFile, Staging
from ...sink.files.target import FilesTarget
from ...sink.kind import ByFiles
from .options import NAME, WriteOptions
from .patience import patiently
from .place import BatchPartition

_MARK: Final = f"{HIDDEN}/spark"
"""Object that the driver writes and the tasks look for: they may have another directory of the same name."""


class Made(WriterCommitMessage):
    """A task's commit message: the files it has staged; none if its target isn't made of files."""

    def __init__(
        self, place: BatchPartition, folder: str = "", staged: Sequence[Staged] = (), *, loads: bool = False
    ) -> None:
        self.place = place
        self.folder = folder
        self.staged = list(staged)
        self.loads = loads
        self.host = socket.gethostname()


class FilesOfQueries:
    """A target of files that queries write."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        sink, way = options.given, options.way
        if not isinstance(way, ByFiles):
            raise InvariantViolated(f"{options.url} isn't written by files")
        self._target: FilesTarget = way.target(str(sink.target), sink.options)
        self.name = self._target.name

    # --- in the driver

    def prepare(self) -> None:
        """Create a directory. Raises SinkError if the target isn't tidemill's, or can't be used."""
        store = self._target.store
        store.check()
        entries = store.entries()
        if HIDDEN not in entries:
            check_unused(self.name, entries, self._target.layout.own_names)
        if store.read(_MARK) is None:
            store.write(_MARK, socket.gethostname().encode())

    def publish(self, made: Sequence[Made]) -> None:
        """Commit the files of a batch, once. Raises SinkError, and Retryable after the sink's timeout."""
        if made:
            waits = f"the commit of {made[0].place.mark}"
            try:
                patiently(lambda: self._publish(made), self._options.timeout, waits)
            finally:
                self._target.layout.close()

    def _publish(self, made: Sequence[Made]) -> None:
        place, store = made[0].place, self._target.store
        ledger = Ledger(store, place.query, NAME, _root(place))
        self._check_latest(place, ledger.latest())
        commits = Commits(self._target, ledger, f"{_short(place)}-")
        if commits.open() is None:
            place.check_new(self.name)
        if commits.number <= place.epoch:
            self._check_shared(made, ledger)
            staged = sorted((one for task in made for one in task.staged), key=_order)
            if len(made) > 1:
                self._fit(staged)
            ts = max([_last(one) for one in staged], default=commits.durable.ts if commits.durable else 0)
            is_known = place.is_stream and not any(task.loads for task in made)
            reached = Checkpoint(ts, place.mark, None if is_known else {}, place.start.source, place.owner)
            commits.commit(reached, staged, number=place.epoch + 1)
        for folder in {name.partition("/")[0] for name in store.names(_staged(place))}:
            if int(folder.partition("-")[0]) <= place.epoch:
                store.remove_folder(f"{_staged(place)}/{folder}")

    def _fit(self, staged: Sequence[Staged]) -> None:
        """Make the files of several tasks fit to each other."""
        for one in staged:
            if isinstance(one, StagedFile):
                self._target.layout.fit(one.group, one.name)

    def _check_latest(self, place: BatchPartition, state: State | None) -> None:
        """Raise SinkError if another driver of the query is past this batch. It isn't fenced off."""
        if state is not None and state.commits > place.epoch + 1:
            raise SinkError(
                f"{self.name} has batch {state.commits - 1} of the query {place.query}, so another driver "
                f"has taken over; nothing of batch {place.epoch} was written now: stop one of the drivers"
            )

    def _check_shared(self, made: Sequence[Made], ledger: Ledger) -> None:
        """Raise SinkError if the driver doesn't see what a task has written."""
        for task in made:
            if task.folder and not self._target.store.names(task.folder):
                ledger.check()  # a driver that has taken over removes it, too
                raise SinkError(
                    f"{self.name} of host {task.host}, where a task wrote, isn't that of the driver's "
                    f"host {socket.gethostname()}: name a directory that all of them share"
                )

    def discard(self, made: Sequence[Made]) -> None:
        """Remove the files of a failed job, which never comes again. A state of it may have been saved."""
        for task in made:
            if task.folder:
                self._target.store.remove_folder(task.folder)

    # --- in a task

    def begin(self, place: BatchPartition) -> StagingSink:
        """Return a sink for this attempt."""
        if self._target.store.read(_MARK) is None:
            raise SinkError(
                f"{self.name} of the driver's host {self._options.host} isn't there on "
                f"{socket.gethostname()}: name a directory that all of them share"
            )
        folder = f"{_staged(place)}/{place.epoch:08}-{place.partition}-{uuid4().hex}"
        return StagingSink(self._target, place, folder, self._options.timeout)


class StagingSink(Sink):
    """Stages the rows of one attempt at a task. They count once the driver commits them."""

    name = NAME

    def __init__(self, target: FilesTarget, place: BatchPartition, folder: str, timeout: float) -> None:
        """`timeout` is the number of seconds for which a store may not answer."""
        self.target = target.name
        self._target = target
        self._place = place
        self._folder = folder
        self._timeout = timeout
        self._staging = Staging(target)
        self._reached: Checkpoint | None = None

    def open(self) -> Checkpoint | None:
        self._staging.start(self._folder)
        return None

    def write(self, batch: Batch) -> None:
        self._staging.collect(batch.items)
        self._reached = batch.checkpoint or self._reached
        if self._staging.bytes >= self._target.options.file_bytes:
            self._stage()

    def flush(self) -> Checkpoint | None:
        return self._reached

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True

    def close(self) -> None:
        pass

    def _stage(self) -> None:
        patiently(self._staging.stage, self._timeout, self._place.task)

    def made(self, *, loads: bool) -> Made:
        """Stage the rest, and return the message for the driver. `loads` is True for rows of a snapshot."""
        self._stage()
        is_staged = self._staging.is_staged
        return Made(self._place, self._folder if is_staged else "", self._staging.staged, loads=loads)


def _root(place: BatchPartition) -> str:
    return f"{HIDDEN}/spark-{_short(place)}"


def _staged(place: BatchPartition) -> str:
    return f"{_root(place)}/staged"


def _short(place: BatchPartition) -> str:
    return place.query.replace("-", "")[:12]


def _order(staged: Staged) -> tuple[Ts, bool]:
    """Return a key by which a schema change comes after the files before it, whichever task made them."""
    return (staged.first, True) if isinstance(staged, StagedFile) else (staged.commit_ts, False)


def _last(staged: Staged) -> Ts:
    return staged.last if isinstance(staged, StagedFile) else staged.commit_ts
