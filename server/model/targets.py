"""Locks, dead letters and checks."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from ...sharding import LockStatus

MAX_LETTERS: Final = 1_000


class LockList(Struct, frozen=True):
    locks: list[LockStatus]
    """Schema changes that wait for shards, as of the feed's last status."""


class Unlock(Struct, frozen=True, forbid_unknown_fields=True):
    owner: str = ""
    """Shard or feed whose statement is executed; empty: the lock's owner."""
    action: Literal["exec", "skip"] = "exec"
    """Execute the statement, or skip it, as the target already has the change."""
    force_remove: str = ""
    """Feed that is gone for good; other feeds stop waiting for it."""
    dry_run: bool = False
    """Only say what would be done."""


class Said(Struct, frozen=True):
    sentences: list[str]


class LettersQuery(Struct, frozen=True, forbid_unknown_fields=True):
    sink: str | None = None
    table: str | None = None
    """Full name of a table, such as "shop.orders"."""
    limit: Annotated[int, Meta(ge=1, le=MAX_LETTERS)] = 100


class LetterList(Struct, frozen=True):
    dead_letters: list[dict[str, Any]]
    """Changes that targets rejected, as `tidemill dead-letters list --json` prints them."""
    total: int


class LetterChoice(Struct, frozen=True, forbid_unknown_fields=True):
    sink: str | None = None
    table: str | None = None
    id: int | None = None
    """Number of a letter: all letters of its row are meant; with `sink` if there are several."""


class Discarded(Struct, frozen=True):
    discarded: dict[str, list[int]]
    """Numbers of the letters by sink."""


class LettersRetried(Struct, frozen=True):
    applied: dict[str, list[int]]
    """Numbers of the letters that are applied and gone, by sink."""
    rejected: list[dict[str, Any]]
    """Letters that were rejected again."""


class CheckFinding(Struct, frozen=True):
    level: Literal["ok", "warning", "error"]
    about: str
    text: str
    tables: tuple[str, ...] = ()
    """Full names of the tables that it is about."""
    remedy: tuple[str, ...] = ()
    """Statements, or commands of a shell, that correct it."""


class FindingList(Struct, frozen=True):
    findings: list[CheckFinding]
