"""The protocol of registries: keys, values and revisions, as in etcd."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ....errors import Retryable
from .node import NodeStatus, decode, key


class RegistryUnavailable(Retryable):
    """The registry didn't answer; a write may have been done nevertheless."""


class Record(NamedTuple):
    value: bytes
    revision: int
    """Number of the write that made this value; never used again for the key, also after its removal."""


class NodeRegistry(Protocol):
    """One connection to a registry, for one thread. Every method raises RegistryUnavailable."""

    def get(self, key: str) -> Record | None:
        """Return the record; None if there is none."""

    def list(self, prefix: str) -> dict[str, Record]:
        """Return all records whose key begins with `prefix`, by key in ascending order."""

    def put(self, key: str, value: bytes, revision: int) -> int | None:
        """Write the value and return its revision, if the present one is `revision` (0: there is none).

        Return None, writing nothing, if it isn't.
        """

    def close(self) -> None:
        """Release the connection. Doesn't raise."""


def nodes(registry: NodeRegistry, kind: str) -> list[NodeStatus]:
    """Return the nodes of a kind (PUMPS or DRAINERS), by id.

    Raises SourceError for a record that can't be parsed.
    """
    prefix = key(kind)
    entries = registry.list(prefix)
    # Old versions had keys below a node's own.
    return [decode(where, one.value) for where, one in entries.items() if "/" not in where[len(prefix) :]]
