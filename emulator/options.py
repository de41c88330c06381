"""How an emulated cluster is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from .server import Tls

CommitMode: TypeAlias = Literal["two_phase", "async_commit", "one_pc"]
"""one_pc commits asynchronously what lies in several regions, async_commit in two phases what has more than
256 keys, as TiDB does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    stores: int = 3
    """Stores, each on a port of its own, with ids from 1."""

    pd_members: int = 1
    """PD servers; the first one leads."""

    pd_port: int = 0
    """Of the first PD member; 0 takes a free one."""

    replicas: int = 3
    """Peers of a region, on at most all stores."""

    cluster_id: int = 7_000_000_000_000_000_001

    version: str = "8.1.0"
    """What PD and the stores say they are."""

    tick_seconds: float | None = 0.2
    """How often resolved ts are sent (TiKV: min-ts-interval, 200 ms); None: only by `Cluster.tick()`."""

    coarse_resolved: bool = False
    """Whether regions share the least ts of a group, as TiKV sends it: the 8 furthest behind, the next 32,
    the next 128, …; a region's resolved ts may then step back. Otherwise each region gets its own."""

    quota_bytes: int = 64 << 20
    """What may wait on one change feed stream before it is congested."""

    patience_seconds: float = 10.0
    """How long in-process writers wait for a full stream, before its regions are congested; TiKV: 0."""

    scan_rows: int = 1024
    """Rows of an incremental scan sent at once."""

    scan_bytes: int = 1 << 20
    """Bytes of an incremental scan sent at once; a message never has more than 6 MiB."""

    scans: int = 6
    """Incremental scans under way at once on a store."""

    scans_waiting: int = 10_000
    """Registrations that may wait for a scan; more are answered server_is_busy."""

    filter_span: bool = False
    """Whether a store sends only keys of the span asked for (newer TiKV) or the whole region's."""

    required_version: str = ""
    """Clients below it are refused with a compatibility error."""

    commit_mode: CommitMode = "two_phase"
    """How in-process transactions commit, if they don't say so themselves."""

    tls: Tls | None = None

    def __post_init__(self) -> None:
        for name in ("stores", "pd_members", "replicas", "quota_bytes", "scan_rows", "scan_bytes", "scans"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)}; it must be at least 1")
        if self.commit_mode not in get_args(CommitMode):
            raise ValueError(f"commit_mode: {self.commit_mode!r}; one of {', '.join(get_args(CommitMode))}")
        if self.tick_seconds is not None and self.tick_seconds <= 0:
            raise ValueError(f"tick_seconds: {self.tick_seconds}; it must be above 0, or None for none")
