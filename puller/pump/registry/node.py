"""The record of a pump or drainer in the registry, as TiDB-Binlog's own programs write and read it."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ....errors import SourceError

PUMPS: Final = "pumps"
DRAINERS: Final = "drainers"
ROOT: Final = "/tidb-binlog/v1"

NodeState: TypeAlias = Literal["online", "pausing", "paused", "closing", "offline"]
"""State of a node. `pausing` and `closing` nodes still run; `offline` nodes never come back as they were."""

RUNNING: Final[frozenset[str]] = frozenset(("online", "pausing", "closing"))
"""States of a node whose process runs, or was killed."""


class Label(Struct, frozen=True):
    labels: dict[str, str] | None = None


class NodeStatus(
    Struct,
    frozen=True,
    kw_only=True,
    rename={
        "node_id": "nodeId",
        "is_alive": "isAlive",
        "max_commit_ts": "maxCommitTS",
        "update_ts": "updateTS",
    },
):
    """A node's record. The order and names of the fields in JSON are TiDB-Binlog's."""

    node_id: str
    host: str
    """Address "host:port" of the node's gRPC and HTTP."""
    state: NodeState
    is_alive: bool = False
    """Unused by present versions: always false."""
    score: int = 0
    label: Label | None = None
    max_commit_ts: int = 0
    """Highest commit ts of a pump's binlogs; for a drainer, the commit ts up to which it has applied them."""
    update_ts: int = 0
    """Approximate TSO of the last heartbeat."""


def key(kind: str, node_id: str = "") -> str:
    """Return the key of a node, or with an empty id the prefix of all nodes of that kind."""
    return f"{ROOT}/{kind}/{node_id}"


def encode(status: NodeStatus) -> bytes:
    return msgspec.json.encode(status)


def decode(where: str, value: bytes) -> NodeStatus:
    """Parse the record with the key `where`. Raises SourceError if it isn't one."""
    try:
        return msgspec.json.decode(value, type=NodeStatus)
    except msgspec.DecodeError as error:
        raise SourceError(
            f"registry: the value of {where} is not a node's record ({error}): correct or remove it, for "
            "instance with etcdctl"
        ) from None


def after_stop(state: NodeState) -> NodeState:
    """Return the state that a node leaves at a clean shutdown."""
    match state:
        case "online" | "pausing":
            return "paused"
        case "closing":
            return "offline"
    return state
