"""Drainers' checkpoints in a table of a MySQL, MariaDB or TiDB server: one row for each source cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from ...config.url import redacted
from ...dialects.address import parsed
from ...dialects.mysql import text as text
from ...dialects.mysql.session import MySqlSession, quoted
from ...errors import CheckpointError
from .content import DrainerState, from_json, to_json

log = logging.getLogger("tidemill.sink")

T = TypeVar("T")

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


class CheckpointTable:
    """The row of one cluster; connected at the first call, and again after a failed one."""

    def __init__(self, url: str, cluster_id: int = 0, schema: str = SCHEMA, table: str = NAME) -> None:
        """With the cluster id 0, the table's only row is meant. Raises ConfigError for the URL."""
        address = redacted(url)
        self._session = MySqlSession(parsed(url), address)
        self._schema = schema
        self._table = f"{text.name(schema)}.{text.name(table)}"
        self._cluster_id = cluster_id
        self._connected = False
        self.where = f"{address}, table {schema}.{table}"

    def load(self) -> DrainerState | None:
        """Raises NoCheckpointItem or CheckpointError if the cluster id is 0 and there isn't one row."""
        rows = self._run(lambda: self._session.rows(f"SELECT clusterID, checkPoint FROM {self._table}"))
        contents = {int(cluster_id): content for cluster_id, content in rows}
        if self._cluster_id == 0:
            self._cluster_id = only_cluster(contents, self.where)
        if self._cluster_id not in contents:
            if contents:
                log.warning("%s has checkpoints of other clusters only: %s", self.where, sorted(contents))
            return None
        return from_json(contents[self._cluster_id] or "", f"{self.where}, cluster {self._cluster_id}")

    def save(self, state: DrainerState) -> None:
        if self._cluster_id == 0:
            raise CheckpointError(f"{self.where}: the cluster id is not known: load the checkpoint first")
        values = f"{self._cluster_id}, {quoted(to_json(state))}"
        self._run(lambda: self._session.execute(f"REPLACE INTO {self._table} VALUES ({values})"))

    def close(self) -> None:
        self._connected = False
        self._session.close()

    def _run(self, work: Callable[[], T]) -> T:
        try:
            if not self._connected:
                self._session.connect()
                self._connected = True
                self._session.create_schema(self._schema)
                self._session.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({COLUMNS})")
            return work()
        except Exception as error:
            self.close()
            explained = self._session.explain(error, "checkpoint")
            raise (explained or error) from error
