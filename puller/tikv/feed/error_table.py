"""The reaction to each error that a store answers with (TiCDC puller document)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import grpc
from msgspec import Struct

from ....codec.proto import cdcpb, errorpb, metapb
from ....errors import InvariantViolated, SourceError, TidemillError

Kind: TypeAlias = Literal["same_region", "redivide", "send_failed", "fatal"]
""""same_region": request the same region again, from its new leader if one is named. "redivide": forget the
region and divide its span again. "send_failed": report to the region cache that the store didn't answer, then
request the same region again. "fatal": the feed stops."""


class Reaction(Struct, frozen=True):
    """The reaction to a region's failure; the retry limiter decides when."""

    kind: Kind
    reason: str
    """The error's name, for statistics and the log: "NotLeader"."""
    leader: metapb.Peer | None = None
    """metapb.Peer of NotLeader; None if it names none: then PD is asked for the region again."""
    current_regions: tuple[metapb.Region, ...] = ()
    """metapb.Region of EpochNotMatch: the current regions by the store."""
    wait: float = 0.0
    """Delay that the store asks for, in seconds."""
    error: TidemillError | None = None
    """The error to raise if `kind` is fatal."""


def classify(error: cdcpb.Error) -> Reaction:
    """Return the reaction to a cdcpb.Error. An unknown error means same_region."""
    for field, _ in error.ListFields():
        if field.name in _TABLE:
            return _TABLE[field.name](getattr(error, field.name))
    return Reaction("same_region", "Unknown")


def classify_status(code: grpc.StatusCode, details: str) -> Reaction:
    """Return the reaction for the regions of a stream that ended, or failed to open, with a status."""
    if code in _REFUSALS:
        return Reaction(
            "fatal", code.name, error=SourceError(f"TiKV refuses the change feed: {details or code.name}")
        )
    return Reaction("send_failed", code.name)


def unavailable() -> Reaction:
    """Return the reaction for a region without a reachable store: its leader or its store is unknown."""
    return Reaction("redivide", "RpcContextUnavailable")


def _not_leader(error: errorpb.NotLeader) -> Reaction:
    return Reaction("same_region", "NotLeader", leader=error.leader if error.HasField("leader") else None)


def _epoch_not_match(error: errorpb.EpochNotMatch) -> Reaction:
    return Reaction("redivide", "EpochNotMatch", current_regions=tuple(error.current_regions))


def _server_is_busy(error: errorpb.ServerIsBusy) -> Reaction:
    return Reaction("same_region", "ServerIsBusy", wait=error.backoff_ms / 1000)


def _duplicate_request(error: cdcpb.DuplicateRequest) -> Reaction:
    message = f"region {error.region_id} was asked for twice on one stream"
    return Reaction("fatal", "DuplicateRequest", error=InvariantViolated(message))


def _compatibility(error: cdcpb.Compatibility) -> Reaction:
    message = (
        f"TiKV requires a change feed client of at least version {error.required_version}; "
        "use a tidemill version that supports this cluster"
    )
    return Reaction("fatal", "Compatibility", error=SourceError(message))


def _cluster_id_mismatch(error: cdcpb.ClusterIDMismatch) -> Reaction:
    message = (
        f"this TiKV belongs to cluster {error.current}, PD says it is cluster {error.request}; "
        "check that all PD addresses of the feed belong to one cluster"
    )
    return Reaction("fatal", "ClusterIDMismatch", error=SourceError(message))


_TABLE: Final[dict[str, Callable[[Any], Reaction]]] = {
    "not_leader": _not_leader,
    "region_not_found": lambda _: Reaction("redivide", "RegionNotFound"),
    "epoch_not_match": _epoch_not_match,
    "duplicate_request": _duplicate_request,
    "compatibility": _compatibility,
    "cluster_id_mismatch": _cluster_id_mismatch,
    "server_is_busy": _server_is_busy,
    "congested": lambda _: Reaction("same_region", "Congested"),
}

_REFUSALS: Final = frozenset(
    {grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
)
"""Statuses for which a retry can't help: the service is missing or the certificate isn't accepted."""
