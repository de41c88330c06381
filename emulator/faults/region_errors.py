"""Reasons of a store to refuse a request for a region, as errorpb and cdcpb messages; each has a word."""

from __future__ import annotations

from collections.abc import Iterable

from ...codec.proto import cdcpb, errorpb, kvrpcpb
from ..region import Region

KV_WORDS = (
    "not_leader",
    "epoch_not_match",
    "region_not_found",
    "key_not_in_region",
    "server_is_busy",
    "store_not_match",
    "mismatch_peer_id",
    "stale_command",
)
FEED_WORDS = (
    "not_leader",
    "epoch_not_match",
    "region_not_found",
    "server_is_busy",
    "duplicate_request",
    "compatibility",
    "cluster_id_mismatch",
    "congested",
    "unknown",
)
WORDS = tuple(dict.fromkeys(KV_WORDS + FEED_WORDS))


def not_leader(region: Region) -> errorpb.NotLeader:
    """Return errorpb.NotLeader with the present leader."""
    return errorpb.NotLeader(region_id=region.id, leader=region.peer(region.leader))


def epoch_not_match(regions: Iterable[Region]) -> errorpb.EpochNotMatch:
    """Return errorpb.EpochNotMatch; a merge names no regions."""
    return errorpb.EpochNotMatch(current_regions=[region.to_proto() for region in regions])


def for_kv(
    word: str, region: Region | None, context: kvrpcpb.Context, store_id: int, key: bytes = b""
) -> errorpb.Error:
    """Return the errorpb.Error of a word."""
    id = context.region_id if region is None else region.id  # noqa: A001
    start, end = (b"", b"") if region is None else (region.start, region.end)
    error = errorpb.Error(message=f"{word.replace('_', ' ')}: region {id}")
    match word:
        case "not_leader":
            error.not_leader.CopyFrom(
                errorpb.NotLeader(region_id=id) if region is None else not_leader(region)
            )
        case "epoch_not_match":
            error.epoch_not_match.CopyFrom(epoch_not_match([] if region is None else [region]))
        case "region_not_found":
            error.region_not_found.region_id = id
        case "key_not_in_region":
            missing = errorpb.KeyNotInRegion(key=key, region_id=id, start_key=start, end_key=end)
            error.key_not_in_region.CopyFrom(missing)
        case "server_is_busy":
            error.server_is_busy.CopyFrom(errorpb.ServerIsBusy(reason="emulated", backoff_ms=10))
        case "store_not_match":
            asked = context.peer.store_id
            wrong = errorpb.StoreNotMatch(request_store_id=asked, actual_store_id=store_id)
            error.store_not_match.CopyFrom(wrong)
        case "mismatch_peer_id":
            here = 0 if region is None else region.peer_id(store_id)
            other = errorpb.MismatchPeerId(request_peer_id=context.peer.id, store_peer_id=here)
            error.mismatch_peer_id.CopyFrom(other)
        case "stale_command":
            error.stale_command.SetInParent()
        case _:
            raise ValueError(f"no region error is named {word!r}; there are: {', '.join(KV_WORDS)}")
    return error


def for_feed(
    word: str, region: Region | None, request: cdcpb.ChangeDataRequest, store_id: int
) -> cdcpb.Error:
    """Return the cdcpb.Error of a word; "unknown" is one without a kind."""
    match word:
        case "duplicate_request" | "congested" | "region_not_found":
            return cdcpb.Error(**{word: {"region_id": request.region_id}})
        case "compatibility":
            return cdcpb.Error(compatibility={"required_version": "99.0.0"})
        case "cluster_id_mismatch":
            asked = request.header.cluster_id
            return cdcpb.Error(cluster_id_mismatch={"current": asked + 1, "request": asked})
        case "not_leader" | "epoch_not_match" | "server_is_busy":
            context = kvrpcpb.Context(region_id=request.region_id)
            error = getattr(for_kv(word, region, context, store_id), word)
            return cdcpb.Error(**{word: error})
        case "unknown":
            return cdcpb.Error()
    raise ValueError(f"no change feed error is named {word!r}; there are: {', '.join(FEED_WORDS)}")
