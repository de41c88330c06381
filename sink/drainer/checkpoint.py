"""A drainer's checkpoint while it runs: loaded, saved with several tries, and closed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import Final, Protocol

from msgspec.structs import replace

from ...actors import Clock
from ...errors import CheckpointError, TidemillError, UsageError
from .content import PRIMARY, SECONDARY, DrainerState

log = logging.getLogger("tidemill.sink")

TRIES: Final = 5
RETRY_SECONDS: Final = 1.0

NOW: Final = -1
"""Initial commit ts for the source's present ts."""


class CheckpointClosed(UsageError):
    """The checkpoint is closed already."""


class Medium(Protocol):
    """The table or file that has the checkpoint. Methods raise TidemillError, or OSError if a retry may
    help."""

    where: str
    """Location, for messages."""

    def load(self) -> DrainerState | None:
        """Return the stored state; None if there is none."""

    def save(self, state: DrainerState) -> None:
        """Replace the stored state."""

    def close(self) -> None: ...


class DrainerCheckpoint:
    """One checkpoint of a drainer. Called by one thread at a time; after `close` every call is an error."""

    def __init__(
        self, medium: Medium, clock: Clock, *, initial_commit_ts: int, present_ts: Callable[[], int]
    ) -> None:
        """`initial_commit_ts` applies while nothing is stored; NOW is the result of `present_ts`."""
        self._medium = medium
        self._clock = clock
        self._initial = present_ts() if initial_commit_ts == NOW else initial_commit_ts
        self._state = DrainerState(commit_ts=self._initial)
        self._closed = False

    @property
    def ts(self) -> int:
        """Commit ts of the state that was last loaded or saved; else the initial one."""
        return self._state.commit_ts

    @property
    def consistent(self) -> bool:
        return self._state.consistent

    @property
    def schema_version(self) -> int:
        return self._state.schema_version

    @property
    def ts_map(self) -> dict[str, int]:
        return self._state.ts_map or {}

    def load(self) -> bool:
        """Load the stored state; return False if nothing is stored, or a commit ts of 0.

        Raises CheckpointError if it can't be read; `ts` is the initial one then too.
        """
        self._check_open()
        self._state = DrainerState(commit_ts=self._initial)
        try:
            state = self._medium.load()
        except OSError as error:
            raise CheckpointError(f"{self._medium.where} can't be read: {error}") from error
        if state is None:
            return False
        self._state = state if state.commit_ts else replace(state, commit_ts=self._initial)
        return bool(state.commit_ts)

    def save(
        self, commit_ts: int, secondary_ts: int = 0, *, consistent: bool = False, schema_version: int = 0
    ) -> None:
        """Store a state, with up to TRIES tries.

        A `secondary_ts` above 0 sets both timestamps of the ts-map. The schema version never falls. A lower
        commit ts is stored too, and logged. Raises CheckpointError, after which the feed must not go on.
        """
        self._check_open()
        if commit_ts < self.ts:
            log.error("%s: the checkpoint goes back from %d to %d", self._medium.where, self.ts, commit_ts)
        state = DrainerState(
            consistent=consistent,
            commit_ts=commit_ts,
            ts_map={PRIMARY: commit_ts, SECONDARY: secondary_ts} if secondary_ts > 0 else self.ts_map,
            schema_version=max(schema_version, self.schema_version),
        )
        for tries_left in reversed(range(TRIES)):
            try:
                self._medium.save(state)
                break
            except (OSError, TidemillError) as error:
                if not tries_left:
                    raise CheckpointError(
                        f"{self._medium.where} can't be written after {TRIES} tries: {error}"
                    ) from error
                log.warning("%s can't be written: %s; trying again", self._medium.where, error)
                self._pause()
        self._state = state

    def close(self) -> None:
        """Release the table or file. Raises CheckpointClosed if it is closed already."""
        self._check_open()
        self._closed = True
        self._medium.close()

    def _check_open(self) -> None:
        if self._closed:
            raise CheckpointClosed(f"{self._medium.where}: the checkpoint is closed already")

    def _pause(self) -> None:
        passed = Event()
        self._clock.call_at(self._clock.now() + RETRY_SECONDS, passed.set)
        passed.wait()
