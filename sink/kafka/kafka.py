"""A sink for Kafka: exactly once by transactions that contain the checkpoint, or at least once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ...errors import Retryable, SinkError, TidemillError
from ...events import Batch, Checkpoint, Ts, Wait, row_count
from ..sink import Sink, SinkTraits
from .client import KafkaClient, Now
from .home import Home
from .messages import Messages
from .outbox import Outbox, Outgoing, Task
from .topics import Topics

if TYPE_CHECKING:
    from ..files.claims import Claims

_HELD_ROWS: Final = 20_000
"""Number of rows that are encoded during a commit; then the sink waits for it."""
_MAX_ROWS: Final = 200_000
"""Number of rows after which a commit is due whatever the time: the feed keeps them until then."""


class _Commit(NamedTuple):
    """A commit that goes on in a thread."""

    task: Task
    began: float
    reached: Checkpoint
    batches: list[Batch]
    topics: list[str]
    """Topics that are written for the first time."""


class KafkaSink(Sink):
    """Writes batches to topics. A commit comes at most every `commit_seconds`, and never inside a transaction
    of the source. It goes on in a thread, while the next batches are encoded.

    After an error in an exactly-once sink the producer is given up, and a new one finds out from the topic of
    checkpoints whether the last commit took place.
    """

    traits = SinkTraits(tells_definitions=True, is_pipelined=True)

    def __init__(
        self,
        name: str,
        client: KafkaClient,
        home: Home,
        outbox: Outbox,
        make_messages: Callable[[Topics], Messages],
        constant_topics: set[str],
        now: Now,
        claims: Claims | None = None,
    ) -> None:
        """`claims` is the store for messages that are too large."""
        self.name = name
        self.target = client.address.name
        self._client: Final = client
        self._home: Final = home
        self._outbox: Final = outbox
        self._make_messages: Final = make_messages
        self._constant_topics: Final = constant_topics
        self._now: Final = now
        self._claims: Final = claims
        self._topics: Topics | None = None
        self._messages: Messages | None = None
        self._commit: _Commit | None = None
        self._durable: Checkpoint | None = None
        self._pending: list[Batch] = []
        """Batches after those of the last commit."""
        self._held: deque[Outgoing] = deque()
        """Their messages that the outbox doesn't have yet."""
        self._held_rows = 0
        self._doubtful: _Commit | None = None
        """A commit whose outcome isn't known."""
        self._skip = 0
        """Number of batches that come again and needn't be sent."""
        self._remembered: set[str] = set()
        """Topics in the topic of checkpoints."""
        self._committed_at = self._marked_at = float("-inf")
        self._marked_ts: Ts = 0
        """Last watermark."""
        self._waiting_since: float | None = None

    def open(self) -> Checkpoint | None:
        self.close()
        if self._claims is not None:
            self._claims.check()
        self._topics = Topics(self._client, self._now)
        self._messages = self._make_messages(self._topics)
        self._doubtful, self._skip, self._marked_ts = None, 0, 0
        self._durable = self._connected()
        return self._durable

    def _connected(self) -> Checkpoint | None:
        """Connect, and return the stored checkpoint."""
        topics = self._topics
        assert topics is not None
        topics.ensure_checkpoints()
        self._outbox.connect()
        stored = self._home.read(topics.checkpoints_end())
        self._remembered = set(stored.topics)
        topics.note_existing(stored.topics)
        for topic in sorted(self._constant_topics):
            topics.partitions(topic)
        return stored.checkpoint

    def write(self, batch: Batch) -> None:
        self._settle()
        if not self._outbox.is_connected:
            self._reconnect()
        if self._skip:
            self._skip -= 1
            return
        assert self._messages is not None
        try:
            records = self._messages.of(batch.items)
        except Retryable:
            self._fail(None)
            raise
        self._pending.append(batch)
        if records:
            self._held.append(records)
            self._held_rows += row_count(batch.items)
        if self._commit is None:
            self._send()
        elif self._held_rows >= _HELD_ROWS:
            self._settle(wait=True)

    def flush(self) -> Checkpoint | None:
        self._settle(wait=True)
        if not self._outbox.is_connected and self._topics is not None:
            self._reconnect()
        if not self._skip:
            self._begin_commit()
            self._settle(wait=True)
        return self._durable

    def progress(self) -> Checkpoint | None:
        """Begin a commit if one is due, and return the durable checkpoint."""
        self._settle()
        is_due = self._now() - self._committed_at >= self._client.options.commit_seconds
        is_due = is_due or sum(row_count(batch.items) for batch in self._pending) >= _MAX_ROWS
        if is_due and self._commit is None and not self._skip and self._outbox.is_connected:
            self._begin_commit()
        return self._durable

    def _send(self) -> None:
        """Give the outbox what is held."""
        self._waiting_since = self._now()
        try:
            while self._held:
                self._outbox.send(self._held.popleft())
        except Retryable:
            self._fail(None)
            raise
        finally:
            self._waiting_since = None
        self._held_rows = 0

    def _begin_commit(self) -> None:
        """Begin to commit everything written; does nothing inside a transaction of the source."""
        pending, topics, messages = self._pending, self._topics, self._messages
        if topics is None or messages is None or (pending and pending[-1].checkpoint is None):
            return
        self._send()
        reached = pending[-1].checkpoint if pending else self._durable
        if reached is None:
            return
        now = self._now()
        marks: Outgoing = {}
        ts = reached.resume.ts  # a table that lags behind has no later one
        is_due = now - self._marked_at >= self._client.options.watermark_seconds
        if reached.is_loaded and ts > self._marked_ts and is_due:
            marks = messages.watermark(ts)
        if not (pending or marks):
            return
        if marks:
            self._marked_at, self._marked_ts = now, ts
        new_topics = sorted(topics.data.keys() - self._constant_topics - self._remembered)
        records = self._home.records(reached, new_topics)
        task = Task(lambda: self._outbox.commit(marks, records), f"commit of {self.name}")
        self._commit = _Commit(task, now, reached, pending, new_topics)
        self._pending = []

    def _settle(self, *, wait: bool = False) -> None:
        """Note the end of a commit, for which the sink may wait. Raises its error."""
        commit = self._commit
        if commit is None or not (wait or commit.task.has_ended):
            return
        try:
            commit.task.result()
        except Retryable:
            self._commit = None
            self._pending = commit.batches + self._pending
            self._fail(commit)
            raise
        self._commit = None
        self._durable = commit.reached
        self._remembered.update(commit.topics)
        self._committed_at = self._now()
        self._send()

    def _fail(self, doubtful: _Commit | None) -> None:
        """After Retryable, prepare for the batches since the last commit, which come again."""
        if self._outbox.keeps:
            self._skip = len(self._pending)
            return
        self._doubtful, self._marked_ts = doubtful, 0
        self._pending = []
        self._held.clear()
        self._held_rows = 0
        self._outbox.drop()
        assert self._messages is not None
        self._messages.start()

    def _reconnect(self) -> None:
        """Connect again, and find out whether the last commit took place."""
        stored, doubtful = self._connected(), self._doubtful
        if stored == self._durable:
            self._skip = 0
        elif doubtful is not None and stored == doubtful.reached:
            self._durable, self._skip = stored, len(doubtful.batches)
        else:
            self._outbox.drop()
            raise SinkError(
                f"{self.target}: the checkpoint in topic {self._home.topic!r} was moved by somebody else: is "
                "another copy of this feed running?"
            )
        self._doubtful = None

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # not known from a stream of changes

    def waits(self) -> list[Wait]:
        """Return its waits for brokers and for the store of claim checks. Any thread."""
        stage = f"sink {self.name}"
        waits = [] if self._claims is None else self._claims.waits(stage)
        commit = self._commit
        since = self._waiting_since if commit is None else commit.began
        if since is not None:
            brokers, reason = self._client.address.brokers, self._client.problem
            waits.append(Wait(stage, "answer", self._now() - since, on=brokers, reason=reason))
        return waits

    def close(self) -> None:
        commit, self._commit = self._commit, None
        if commit is not None:
            with suppress(TidemillError):
                commit.task.result()
        self._outbox.drop()
        self._topics = self._messages = None
        self._pending = []
        self._held.clear()
