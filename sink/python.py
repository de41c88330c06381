"""A sink that passes rows to Python code in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, Protocol, TypeAlias

from ..codec.item_passes import whole
from ..config import Finding
from ..config.survey import begins
from ..errors import SinkError, TidemillError
from ..events import Batch, Checkpoint, Item, Transaction, Ts
from .factory import SinkFactory
from .kind import NotOnSpark, SinkContext, SinkKind
from .resume_filter import advance
from .sink import CheckpointStore, Sink, SinkTraits

_MAX_PENDING: Final = 100_000

Receiver: TypeAlias = Callable[[Sequence[Item]], object]

_Stamp: TypeAlias = tuple[Ts, Ts]
"""Commit and start ts, which identify a transaction."""
_NOTHING: Final = (0, 0)


def _stamp(item: Item) -> _Stamp:
    return item.commit_ts, item.start_ts


class Stamped(Protocol):
    """Anything with the timestamps of a transaction."""

    @property
    def commit_ts(self) -> Ts: ...
    @property
    def start_ts(self) -> Ts: ...


class Acknowledgements:
    """Items that a program has processed, of those that its feed has passed to it. Any thread."""

    def __init__(self) -> None:
        self.last: _Stamp = _NOTHING
        """Stamp of the last item that is processed, with everything before it."""

    def add(self, item: Stamped) -> None:
        """Mark `item` and all items before it as processed; the next flush of the sink makes it durable."""
        self.last = max(self.last, (item.commit_ts, item.start_ts))


class PythonSink(Sink):
    """Calls `receive` with the items of each batch, in commit order, without empty transactions.

    Items count as processed when `receive` returns. With `acknowledgements`, for code that passes items on,
    they count once they, or later items, are in there. After a restart, unprocessed items come again: at
    least once.
    """

    def __init__(
        self,
        name: str,
        receive: Receiver,
        store: CheckpointStore,
        *,
        acknowledgements: Acknowledgements | None = None,
        ddl: bool = True,
        reads_rows: bool = True,
    ) -> None:
        """Without `ddl`, schema changes are omitted, as empty transactions are."""
        self._reads_rows = reads_rows
        self.name = name
        self.target = f"python:{name}"
        self._receive = receive
        self._store = store
        self._explicit = acknowledgements is not None
        self.acknowledgements = acknowledgements or Acknowledgements()
        self._ddl = ddl
        self._durable: Checkpoint | None = None
        self._at: Checkpoint | None = None
        self._pending: deque[tuple[_Stamp, Checkpoint]] = deque()
        """Checkpoints in order, each with the item that must be acknowledged for it."""
        self._given: _Stamp = _NOTHING  # of the last received item

    @property
    def traits(self) -> SinkTraits:
        return SinkTraits(reads_rows=self._reads_rows, needs_key=False)

    def open(self) -> Checkpoint | None:
        stored = self._store.load()
        self._durable = self._at = None if stored is None else stored[0]
        self._pending.clear()
        self._given = _NOTHING
        return self._durable

    def write(self, batch: Batch) -> None:
        items = batch.items
        chosen = self._choose(items)
        accepted = [*compress(items, chosen)]
        if accepted:
            try:
                self._receive(accepted)
            except TidemillError:
                raise
            except BaseException as error:  # SystemExit too: it would only end this thread
                raise SinkError(f"sink {self.name}: its function raised {error!r}") from error
        if self._explicit:
            for item, is_given in zip(items, chosen, strict=True):
                if is_given:
                    self._give(_stamp(item))
                if self._at is not None and item.last and not self._at.tables:
                    self._reach(advance(self._at, item))
        elif accepted:
            self._give_all(accepted)
        if batch.checkpoint is not None:
            self._reach(batch.checkpoint)
            if not self._explicit:
                self.acknowledgements.last = self._given
        # Resuming a little earlier is safe. The last one is kept, as the feed may end there.
        if len(self._pending) > _MAX_PENDING:
            self._pending = deque(reversed([*self._pending][::-2]))

    def _give_all(self, items: Sequence[Item]) -> None:
        last = items[-1]
        if whole(items).number == len(items) or last.commit_ts == max([item.commit_ts for item in items]):
            self._give(_stamp(last))
        else:  # tables lag
            for item in items:
                self._give(_stamp(item))

    def _give(self, stamp: _Stamp) -> None:
        if stamp >= self._given:
            self._given = stamp
        elif self._explicit:
            raise SinkError(
                f"sink {self.name}: a change of ts {stamp[0]} came after {self._given[0]}: what is "
                "acknowledged one by one must come in commit order; use no stage that lets tables lag"
            )

    def _reach(self, checkpoint: Checkpoint) -> None:
        """Note that the items given so far are at `checkpoint`.

        Of transactions with the same commit ts only the last is a position to resume from.
        """
        if self._pending and self._pending[-1][1].ts == checkpoint.ts:
            self._pending.pop()
        self._at = checkpoint
        self._pending.append((self._given, checkpoint))

    def _choose(self, items: Sequence[Item]) -> list[bool]:
        """Return True for each item that is given; without rows, only the end of a transaction given in
        parts is."""
        first = whole(items)
        if first.number == len(items) and not first.empty:
            return [True] * len(items)
        chosen = [bool(item.rows) if isinstance(item, Transaction) else self._ddl for item in items]
        before, following = self._given, 0
        for index in [index for index, is_given in enumerate(chosen) if not is_given]:
            if index > following:
                before = _stamp(items[index - 1])
            chosen[index] = isinstance(items[index], Transaction) and _stamp(items[index]) == before
            following = index + 1
        return chosen

    def flush(self) -> Checkpoint | None:
        reached = self._durable
        while self._pending and self._pending[0][0] <= self.acknowledgements.last:
            reached = self._pending.popleft()[1]
        if reached is not None and reached != self._durable:
            self._store.save(reached)
            self._durable = reached
        return self._durable

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # not known from a stream of changes

    def close(self) -> None:
        pass


def python_sink(
    name: str,
    receive: Receiver,
    store: CheckpointStore,
    *,
    acknowledgements: Acknowledgements | None = None,
    ddl: bool = True,
    reads_rows: bool = True,
) -> SinkFactory:
    """Return a factory of the sinks that pass items to one function, one after the other."""
    return SinkFactory(
        lambda: PythonSink(
            name, receive, store, acknowledgements=acknowledgements, ddl=ddl, reads_rows=reads_rows
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonOptions:
    """Options of a function: how it reports processed items."""

    acknowledgements: Acknowledgements | None = None
    """Only items in there count as processed; None: those for which the function has returned."""


def _open(receive: Receiver, options: PythonOptions, context: SinkContext) -> PythonSink:
    return PythonSink(context.name, receive, context.store, acknowledgements=options.acknowledgements)


def _survey(receive: Receiver, options: PythonOptions, context: SinkContext) -> Iterator[Finding]:  # noqa: ARG001
    stored = context.store.load()
    yield begins(None if stored is None else stored[0])


PYTHON: Final = SinkKind(
    name="Python",
    schemes=(),
    examples=(),
    options=PythonOptions,
    open=_open,
    survey=_survey,
    on_spark=NotOnSpark(reason="a function is of one process; use foreachBatch"),
)
