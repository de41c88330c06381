"""Rows to Python code in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..config import Finding
from ..errors import SinkError, TidemillError
from ..events import Batch, Checkpoint, Ddl, Item, Ts
from .kind import NotOnSpark, SinkContext, SinkKind
from .resume_filter import advance
from .sink import CheckpointStore
from .survey import begins

_MAX_PENDING: Final = 100_000

Receiver: TypeAlias = Callable[[Sequence[Item]], object]

_Stamp: TypeAlias = tuple[Ts, Ts]
"""Commit and start ts, which no two transactions share."""
_NOTHING: Final = (0, 0)


class PythonSink:
    """Calls `receive` with the items of each batch, in commit order, without empty transactions.

    What `receive` returned from counts as processed. With `explicit` only what was passed to
    `acknowledge` does, everything before it included: for code that hands the items on. After a
    restart what wasn't processed comes again: at least once.
    """

    def __init__(
        self,
        name: str,
        receive: Receiver,
        store: CheckpointStore,
        *,
        explicit: bool = False,
        ddl: bool = True,
    ) -> None:
        """Without `ddl` schema changes are left out, as empty transactions are."""
        self.name = name
        self.target = f"python:{name}"
        self._receive = receive
        self._store = store
        self._explicit = explicit
        self._ddl = ddl
        self._durable: Checkpoint | None = None
        self._at: Checkpoint | None = None
        self._pending: deque[tuple[_Stamp, Checkpoint]] = deque()
        """Checkpoints in order, each with what must be acknowledged for it."""
        self._given: _Stamp = _NOTHING  # of the last item that was received
        self._acknowledged: _Stamp = _NOTHING

    def acknowledge(self, item: Item) -> None:
        """`item` and all before it are processed. From any thread; the next flush makes it durable."""
        self._acknowledged = max(self._acknowledged, (item.commit_ts, item.start_ts))

    def open(self) -> Checkpoint | None:
        stored = self._store.load()
        self._durable = self._at = None if stored is None else stored[0]
        self._pending.clear()
        self._given = _NOTHING
        return self._durable

    def write(self, batch: Batch) -> None:
        given = [item for item, is_given in self._choose(batch.items) if is_given]
        if given:
            try:
                self._receive(given)
            except TidemillError:
                raise
            except BaseException as error:  # SystemExit too: it would end nothing but this thread
                raise SinkError(f"sink {self.name}: its function raised {error!r}") from error
        for item, is_given in self._choose(batch.items):
            if is_given:
                self._give((item.commit_ts, item.start_ts))
            if self._at is not None and item.last and not self._at.tables:
                self._reach(advance(self._at, item))
        if batch.checkpoint is not None:
            self._reach(batch.checkpoint)
            if not self._explicit:
                self._acknowledged = self._given
        if len(self._pending) > _MAX_PENDING:  # resuming a little earlier is safe; the last may be the end
            self._pending = deque(reversed([*self._pending][::-2]))

    def _give(self, stamp: _Stamp) -> None:
        if stamp >= self._given:
            self._given = stamp
        elif self._explicit:
            raise SinkError(
                f"sink {self.name}: a change of ts {stamp[0]} came after {self._given[0]}: what is "
                "acknowledged one by one must come in commit order; use no stage that lets tables lag"
            )

    def _reach(self, checkpoint: Checkpoint) -> None:
        """What is given is at `checkpoint`. Of transactions with one commit ts only the last is a place to
        resume from."""
        if self._pending and self._pending[-1][1].ts == checkpoint.ts:
            self._pending.pop()
        self._at = checkpoint
        self._pending.append((self._given, checkpoint))

    def _choose(self, items: Iterable[Item]) -> Iterator[tuple[Item, bool]]:
        """Each item, and whether it is given: without rows only one that ends what was given in parts."""
        before = self._given
        for item in items:
            stamp = item.commit_ts, item.start_ts
            is_given = self._ddl if isinstance(item, Ddl) else bool(item.rows) or stamp == before
            if is_given:
                before = stamp
            yield item, is_given

    def flush(self) -> Checkpoint | None:
        reached = self._durable
        while self._pending and self._pending[0][0] <= self._acknowledged:
            reached = self._pending.popleft()[1]
        if reached is not None and reached != self._durable:
            self._store.save(reached)
            self._durable = reached
        return self._durable

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # a stream of changes doesn't know

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonOptions:
    """How a function says what it has processed."""

    explicit: bool = False
    """Only what is passed to `acknowledge` counts as processed."""


def _open(receive: Receiver, options: PythonOptions, context: SinkContext) -> PythonSink:
    return PythonSink(context.name, receive, context.store, explicit=options.explicit)


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
