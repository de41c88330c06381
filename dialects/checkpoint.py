"""The checkpoint of a feed, as its readers see it, and errors of their servers' drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ..codec.checkpoint import decode_checkpoint
from ..errors import CheckpointError, SinkError, TidemillError
from ..events import Checkpoint
from .database import CHECKPOINT_TABLE


class FeedCheckpoint:
    """Reads the checkpoint of `feed` in the target `identity`.

    `load` returns what the checkpoint table holds for the feed, None if nothing; `run` runs a statement.
    """

    def __init__(
        self, identity: str, feed: str, load: Callable[[], str | None], run: Callable[[str], object]
    ) -> None:
        self._identity = identity
        self._feed = feed
        self._load = load
        self._run = run

    def load(self) -> Checkpoint | None:
        """Raises CheckpointError."""
        stored = self._load()
        where = f"{self._identity}, table {CHECKPOINT_TABLE}, feed {self._feed!r}"
        return None if stored is None else decode_checkpoint(stored, where)[0]

    @contextmanager
    def reading(self, begin: str) -> Iterator[Checkpoint]:
        """Yield the checkpoint, inside a transaction that `begin` opens. Raises CheckpointError."""
        self._run(begin)
        try:
            at = self.load()
            if at is None:
                raise CheckpointError(f"{self._identity}: the checkpoint of feed {self._feed!r} was removed")
            yield at
        finally:
            self._run("ROLLBACK")


class Explaining(Protocol):
    def explain(self, error: Exception, doing: str, /) -> Exception | None: ...


@contextmanager
def explained(session: Explaining) -> Iterator[None]:
    """Raise errors of the session's driver as SinkError, or as another TidemillError where one fits."""
    try:
        yield
    except TidemillError:
        raise
    except Exception as error:
        found = session.explain(error, "comparing")
        if found is None:
            raise
        raise (found if isinstance(found, TidemillError) else SinkError(str(found))) from error
