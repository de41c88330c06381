"""The table of drainers' checkpoints: one row for each source cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...errors import CheckpointError

SCHEMA: Final = "tidb_binlog"
NAME: Final = "checkpoint"
COLUMNS: Final = "clusterID BIGINT UNSIGNED PRIMARY KEY, checkPoint MEDIUMTEXT"


class NoCheckpointItem(CheckpointError):
    """The drainer's table has no checkpoint, and no cluster id was given."""


def only_cluster(clusters: Iterable[int], where: str) -> int:
    """Return the cluster id of the only row. Raises NoCheckpointItem, or CheckpointError for several."""
    match sorted(map(int, clusters)):
        case []:
            raise NoCheckpointItem(f"{where} is empty: set the cluster id")
        case [cluster_id]:
            return cluster_id
        case several:
            raise CheckpointError(f"{where} has the clusters {several}: set the cluster id")
