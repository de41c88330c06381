"""Options of an emulated cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from .server import Tls

CommitMode: TypeAlias = Literal["two_phase", "async_commit", "one_pc"]
"""With one_pc, a transaction over several regions is an async commit; with async_commit, one of more than 256
keys is committed in two phases, as in TiDB."""


Positive: TypeAlias = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of an emulated cluster."""

    stores: Positive = 3
    """Number of stores, each on a port of its own, with ids from 1."""

    pd_members: Positive = 1
    """Number of PD servers; the first one leads."""

    pd_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """Port of the first PD member; 0 takes a free one."""

    replicas: Positive = 3
    """Number of peers of a region, at most the number of stores."""

    cluster_id: Positive = 7_000_000_000_000_000_001
    """Id of the cluster, which PD reports."""

    version: str = "8.1.0"
    """Version that PD and the stores report."""

    tick_seconds: Annotated[float, Meta(gt=0)] | None = 0.2
    """Interval of resolved ts (TiKV: min-ts-interval, 200 ms); None sends them only by `Cluster.tick()`."""

    coarse_resolved: bool = False
    """True if regions share the minimum ts of a group, as TiKV sends it: the 8 furthest behind, the next 32,
    the next 128, and so on; a region's resolved ts may then step back. Otherwise each region gets its own."""

    quota_bytes: Positive = 64 << 20
    """Limit of queued bytes on one change feed stream; beyond it the stream is congested."""

    congestion_seconds: Annotated[float, Meta(ge=0)] = 10.0
    """Maximum wait of in-process writers for a full stream; then its regions end as congested. TiKV: 0."""

    scan_rows: Positive = 1024
    """Maximum rows per batch of an incremental scan."""

    scan_bytes: Positive = 1 << 20
    """Maximum bytes per batch of an incremental scan; a message never has more than 6 MiB."""

    scans: Positive = 6
    """Number of concurrent incremental scans per store."""

    scans_waiting: Annotated[int, Meta(ge=0)] = 10_000
    """Number of registrations that may wait for a scan; more are answered with server_is_busy."""

    filter_span: bool = False
    """True if a store sends only keys of the requested span (newer TiKV); otherwise the whole region's."""

    required_version: str = ""
    """Minimum version of clients; older ones are refused with a compatibility error."""

    commit_mode: CommitMode = "two_phase"
    """Default commit mode of in-process transactions."""

    tls: Tls | None = None
    """Certificates of all servers; None: without TLS."""
