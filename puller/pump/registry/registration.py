"""The record of this drainer: claimed once, refreshed by heartbeats, and never shared."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from typing import Final

from msgspec.structs import replace

from ....errors import SourceError
from .node import DRAINERS, RUNNING, NodeState, NodeStatus, after_stop, decode, encode, key
from .registry import NodeRegistry, Record

log = logging.getLogger("tidemill.puller")

LOOKS: Final = 3
"""Number of heartbeats that a running drainer of the same id would have made before its record is taken."""


class NodeInUse(SourceError):
    """Another drainer runs with the same id."""


class Registration:
    """The record of one drainer. Called by one thread at a time, except for `state` and `change`.

    TiDB-Binlog writes records without a lease and without a check. Here each write is made only if the record
    is still the one written before, so a second drainer of the id is noticed by both. What TiDB-Binlog's
    tools may change is accepted and overwritten: the state, as by a running drainer of theirs, or a removal.
    """

    def __init__(
        self, registry: NodeRegistry, node_id: str, host: str, approximate_ts: Callable[[], int]
    ) -> None:
        """`approximate_ts` returns about the present TSO."""
        self._registry = registry
        self._key = key(DRAINERS, node_id)
        self._now = approximate_ts
        self._status = NodeStatus(node_id=node_id, host=host, state="online")
        self._state_lock = Lock()
        self._revision = 0
        self._sent: list[NodeStatus] = []  # written since the last write that was answered, and that one

    @property
    def state(self) -> NodeState:
        return self._status.state

    def claim(self, wait: Callable[[], None], max_commit_ts: int = 0) -> None:
        """Write the record as online.

        `wait` returns after the time between two heartbeats. If the record says that a drainer runs, wait for
        its heartbeats first; without one it was killed. Raises NodeInUse if another drainer has the id, and
        RegistryUnavailable.
        """
        record = self._registry.get(self._key)
        looks = LOOKS if record is not None and decode(self._key, record.value).state in RUNNING else 0
        for _ in range(looks):
            wait()
            now = self._registry.get(self._key)
            if now is not None and record is not None and now.value != record.value:
                raise self._in_use(now)
        self._revision = 0 if record is None else record.revision
        if not self._write(max_commit_ts):
            raise self._in_use(self._registry.get(self._key))

    def refresh(self, max_commit_ts: int = 0) -> None:
        """Write the record with a new ts. Raises NodeInUse and RegistryUnavailable."""
        while not self._write(max_commit_ts):
            record = self._registry.get(self._key)
            if record is None:
                log.warning("%s was removed from the registry; it is written again", self._key)
            elif not self._is_own(decode(self._key, record.value)):
                raise self._in_use(record)
            self._revision = 0 if record is None else record.revision

    def change(self, state: NodeState) -> NodeState | None:
        """Set the state that the next refresh writes; if the present one isn't online, return that."""
        with self._state_lock:
            if self.state != "online":
                return self.state
            self._status = replace(self._status, state=state)
        return None

    def stop(self, max_commit_ts: int = 0) -> None:
        """Write the state that a clean shutdown leaves. Raises NodeInUse and RegistryUnavailable."""
        with self._state_lock:
            self._status = replace(self._status, state=after_stop(self.state))
        self.refresh(max_commit_ts)

    def _write(self, max_commit_ts: int) -> bool:
        status = replace(self._status, max_commit_ts=max_commit_ts, update_ts=self._now())
        self._sent.append(status)
        revision = self._registry.put(self._key, encode(status), self._revision)
        if revision is None:
            return False
        self._revision, self._sent = revision, [status]
        return True

    def _is_own(self, node: NodeStatus) -> bool:
        """True if this drainer wrote the record; a state that somebody else has set doesn't count."""
        return any(replace(node, state=sent.state) == sent for sent in self._sent)

    def _in_use(self, record: Record | None) -> NodeInUse:
        node_id = self._status.node_id
        host = decode(self._key, record.value).host if record is not None else "an unknown address"
        return NodeInUse(
            f"source.node_id: a drainer with the id {node_id!r} runs at {host}: stop it, or give this one "
            "another id"
        )
