"""What follows from each error that a store answers with (TiCDC puller document)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import grpc
from msgspec import Struct

from ....errors import InvariantViolated, SourceError, TidemillError

Kind: TypeAlias = Literal["same_region", "redivide", "send_failed", "fatal"]
"""same_region: ask for the same region again, at its new leader if that is told. redivide: forget the
region and divide its span anew. send_failed: tell the region cache that its store did not answer, then the
same region again. fatal: the feed stops."""


class Action(Struct, frozen=True):
    """What to do about a region's failure; the retry limiter says when."""

    kind: Kind
    reason: str
    """The error's name, for statistics and the log: "NotLeader"."""
    leader: Any = None
    """metapb.Peer of NotLeader, None if it names none: then ask PD for the region again."""
    current_regions: tuple[Any, ...] = ()
    """metapb.Region of EpochNotMatch: as the store sees them."""
    wait: float = 0.0
    """Seconds that the store asks to be left alone."""
    error: TidemillError | None = None
    """Of a fatal one: what to raise."""


def classify(error: Any) -> Action:
    """What to do about a cdcpb.Error. One that says nothing known means: the same region again."""
    for field, _ in error.ListFields():
        if field.name in _TABLE:
            return _TABLE[field.name](getattr(error, field.name))
    return Action("same_region", "Unknown")


def classify_status(code: grpc.StatusCode, details: str) -> Action:
    """What to do about the regions of a stream, or of an attempt to open one, that ended with a status."""
    if code in _REFUSALS:
        return Action(
            "fatal", code.name, error=SourceError(f"TiKV refuses the change feed: {details or code.name}")
        )
    return Action("send_failed", code.name)


def unavailable() -> Action:
    """Of a region without a store that can be asked: its leader or its store is unknown."""
    return Action("redivide", "RpcContextUnavailable")


def _not_leader(error: Any) -> Action:
    return Action("same_region", "NotLeader", leader=error.leader if error.HasField("leader") else None)


def _epoch_not_match(error: Any) -> Action:
    return Action("redivide", "EpochNotMatch", current_regions=tuple(error.current_regions))


def _server_is_busy(error: Any) -> Action:
    return Action("same_region", "ServerIsBusy", wait=error.backoff_ms / 1000)


def _duplicate_request(error: Any) -> Action:
    message = f"region {error.region_id} was asked for twice on one stream"
    return Action("fatal", "DuplicateRequest", error=InvariantViolated(message))


def _compatibility(error: Any) -> Action:
    message = (
        f"TiKV requires a change feed client of at least version {error.required_version}; "
        "use a tidemill that is made for this cluster's version"
    )
    return Action("fatal", "Compatibility", error=SourceError(message))


def _cluster_id_mismatch(error: Any) -> Action:
    message = (
        f"this TiKV belongs to cluster {error.current}, PD says it is cluster {error.request}; "
        "check that all PD addresses of the feed belong to one cluster"
    )
    return Action("fatal", "ClusterIDMismatch", error=SourceError(message))


_TABLE: Final[dict[str, Callable[[Any], Action]]] = {
    "not_leader": _not_leader,
    "region_not_found": lambda _: Action("redivide", "RegionNotFound"),
    "epoch_not_match": _epoch_not_match,
    "duplicate_request": _duplicate_request,
    "compatibility": _compatibility,
    "cluster_id_mismatch": _cluster_id_mismatch,
    "server_is_busy": _server_is_busy,
    "congested": lambda _: Action("same_region", "Congested"),
}

_REFUSALS: Final = frozenset(
    {grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
)
"""Asking again can't help: the service isn't there or the certificate isn't accepted."""
