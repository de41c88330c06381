"""One quota of memory for the sorters of several feeds."""

from __future__ import annotations

from threading import Lock
from typing import Protocol


class Member(Protocol):
    """One sorter's memory."""

    @property
    def held_bytes(self) -> int:
        """Bytes in memory that aren't on their way to disk."""


class MemoryQuota:
    """Bytes of changes that all members together may hold in memory. Any thread.

    Half of the quota is divided equally: a backlog of one feed never takes the part of another. The other
    half is for whoever needs it first.
    """

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._lock = Lock()
        self._members: tuple[Member, ...] = ()

    def join(self, member: Member) -> None:
        with self._lock:
            self._members = (*self._members, member)

    def leave(self, member: Member) -> None:
        """Safe to repeat."""
        with self._lock:
            self._members = tuple(one for one in self._members if one is not member)

    @property
    def members(self) -> int:
        """Number of members."""
        return len(self._members)

    @property
    def part_bytes(self) -> int:
        """Bytes that each member may always hold."""
        return self.total_bytes // 2 // max(1, len(self._members))

    def limit_bytes(self, member: Member) -> int:
        """Return the bytes that a member may hold now."""
        part = self.part_bytes
        if member.held_bytes <= part:
            return part
        above = sum(max(0, one.held_bytes - part) for one in self._members if one is not member)
        return part + max(0, self.total_bytes // 2 - above)
