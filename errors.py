"""Errors, classified by what their handler must do.

TidemillError
├── Retryable            try again after `wait` seconds; the same input comes again
├── Fatal                the feed stops; a user must act
│   ├── ConfigError      ... on the feed's options
│   ├── SourceError      ... on the source or its rights and settings
│   ├── SinkError        ... on a target
│   ├── StoreError       ... on the local disk or the scratch store
│   └── CheckpointError  ... on a stored checkpoint
├── UsageError           the program calls tidemill wrongly: its code must change
└── InvariantViolated    cannot happen: a bug of tidemill
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TidemillError(Exception):
    """Base of all errors that tidemill raises."""


class Retryable(TidemillError):
    """The operation can't be done now.

    `wait` is the least number of seconds before trying again; None leaves it to the caller's backoff.
    """

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Fatal(TidemillError):
    """Retrying can't help. The message says what to do."""


class ConfigError(Fatal):
    """An option is missing, unknown or out of range; the message names it and what is accepted."""


class SourceError(Fatal):
    """The source rejects a request, lacks a privilege or setting, or no longer has the needed changes."""


class SinkError(Fatal):
    """A target rejects the rows permanently."""

    def __init__(self, message: str, table: str = "") -> None:
        super().__init__(message)
        self.table = table
        """Full name of the source's table, if the error is about that table alone: every other one can be
        written. Empty for any other error, such as a lost right or a full disk."""


@contextmanager
def about(table: str) -> Iterator[None]:
    """Note that a SinkError of the body is about the table of this full name alone."""
    try:
        yield
    except SinkError as error:
        error.table = error.table or table
        raise


class StoreError(Fatal):
    """The local store can't be written or read back: disk full, I/O error, corrupted block."""


class CheckpointError(Fatal):
    """A stored checkpoint can't be read, or belongs to another source or feed."""


class UsageError(TidemillError):
    """A call that isn't allowed here, such as reading a feed outside of `with`; the message says what is
    allowed."""


class InvariantViolated(TidemillError):
    """An internal invariant doesn't hold: report it as a bug."""


class NotReproducible(Exception):
    """The effect of a schema change can't be reproduced in the target: the table must be loaded again."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(f"{table} must be loaded again: {reason}")
        self.table = table
        """Full name of the source's table before the statement."""
        self.reason = reason
        """A sentence for users."""
