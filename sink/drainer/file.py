"""A drainer's checkpoint in its file, and when it is saved."""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Event
from typing import Final

from msgspec.structs import replace

from ...actors import Clock
from ...errors import CheckpointError
from ...store import disk
from .content import DrainerState, from_toml, to_toml

log = logging.getLogger("tidemill.sink")

TRIES: Final = 5
RETRY_SECONDS: Final = 1.0
SAVE_SECONDS: Final = 3.0
"""Time after a save within which only an urgent success is saved."""
MODE: Final = 0o644
"""Permissions of the file."""


class DrainerFile:
    """A TOML file, replaced atomically. Called by one thread at a time."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._state = DrainerState()
        self._applied_ts = self._saved_ts = 0
        self._saved_at = clock.now()

    @property
    def ts(self) -> int:
        """Commit ts that was last loaded or saved; 0 if there is none."""
        return self._state.commit_ts

    @property
    def saved_ts(self) -> int:
        """Highest commit ts saved by `success` and `finish`; 0 before the first save."""
        return self._saved_ts

    def load(self) -> bool:
        """Load the stored state; return False if nothing is stored, or a commit ts of 0.

        Raises CheckpointError if it can't be read; `ts` is 0 then.
        """
        self._state = DrainerState()
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return False
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self._path} is not a checkpoint of a drainer: {error.reason}") from None
        except OSError as error:
            raise CheckpointError(f"{self._path} can't be read: {error}") from error
        self._state = from_toml(text, str(self._path))
        return self.ts > 0

    def success(self, ts: int, *, ddl: bool = False) -> None:
        """Everything up to `ts` was applied. Saved at once after a DDL, so that it isn't repeated, else once
        SAVE_SECONDS have passed since the last save."""
        self._applied_ts = max(self._applied_ts, ts)
        if ddl or self._clock.now() - self._saved_at > SAVE_SECONDS:
            self.finish()

    def finish(self) -> None:
        """Save what isn't saved yet."""
        if self._applied_ts > self._saved_ts:
            self.save(self._applied_ts)
            self._saved_ts, self._saved_at = self._applied_ts, self._clock.now()

    def save(self, commit_ts: int) -> None:
        """Store a commit ts, with up to TRIES tries.

        A lower one than before is stored too, and logged. Raises CheckpointError, after which the feed must
        not go on.
        """
        if commit_ts < self.ts:
            log.error("%s: the checkpoint goes back from %d to %d", self._path, self.ts, commit_ts)
        state = replace(self._state, commit_ts=commit_ts, consistent=False)
        for tries_left in reversed(range(TRIES)):
            try:
                disk.replace(self._path, to_toml(state).encode(), mode=MODE)
                break
            except OSError as error:
                if not tries_left:
                    message = f"{self._path} can't be written after {TRIES} tries: {error}"
                    raise CheckpointError(message) from error
                log.warning("%s can't be written: %s; trying again", self._path, error)
                self._pause()
        self._state = state

    def _pause(self) -> None:
        passed = Event()
        self._clock.call_at(self._clock.now() + RETRY_SECONDS, passed.set)
        passed.wait()
