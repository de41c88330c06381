"""The protocol of stores that several feeds share: keys, values and revisions, as in etcd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Revisions(Protocol):
    """One connection to a store. Any thread; every method raises Retryable if the store can't be reached."""

    def get(self, key: str) -> tuple[bytes, int] | None:
        """Return value and revision; None if there is none, or its time has passed."""

    def list(self, prefix: str) -> Mapping[str, tuple[bytes, int]]:
        """Return all records whose key begins with `prefix`."""

    def put(self, key: str, value: bytes, revision: int, ttl_seconds: int = 0) -> int | None:
        """Write the value and return its revision, if the present one is `revision` (0: there is none).

        Return None, writing nothing, if it isn't. With `ttl_seconds` the record is gone after that time.
        """

    def delete(self, key: str, revision: int) -> bool:
        """Remove the record if its revision is `revision`; return True if it is removed."""

    def close(self) -> None:
        """Release the connection. Doesn't raise."""
