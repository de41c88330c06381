"""A TiDB cluster in your process: PD and stores that speak the real gRPC, for tests and demos."""

from __future__ import annotations

from .cluster import Cluster
from .percolator import Rejected
from .server import Tls
from .sql.sql import Tidb

__all__ = ["Cluster", "Rejected", "Tidb", "Tls"]
