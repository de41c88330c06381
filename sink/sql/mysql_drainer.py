"""The checkpoint of TiDB-Binlog's drainer of a MySQL target: in its table, or in a file beside it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from ...codec.checkpoint import decode_checkpoint, encode_checkpoint
from ...dialects.mysql.home import Home
from ...dialects.mysql.session import MySqlSession
from ...dialects.statement import quoted
from ...errors import CheckpointError
from ...events import Checkpoint, TableName
from ..drainer.content import DrainerState, from_json, to_json
from ..drainer.file import DrainerFile

log = logging.getLogger("tidemill.sink")

SCHEMA: Final = "tidb_binlog"
TABLE: Final = f"{SCHEMA}.checkpoint"
COLUMNS: Final = "clusterID BIGINT UNSIGNED PRIMARY KEY, checkPoint MEDIUMTEXT"
BINLOG_OF: Final = "tidb binlog of cluster "
"""Prefix of the identity of a source of pumps, before the id of its cluster."""


class NoCheckpointItem(CheckpointError):
    """The drainer's table has no checkpoint, and no cluster id was given."""


class DrainerHome(Home):
    """A feed's own tables, but with the checkpoint in the drainer's table.

    A drainer stores a commit ts after the rows, and repeats rows after a crash. Here both are in one
    transaction, so the target is consistent at every checkpoint, and is marked so once it is.
    """

    def __init__(self, session: MySqlSession, schema: str, feed: str, cluster_id: int) -> None:
        """`cluster_id` 0 means the table's only row."""
        super().__init__(session, schema, feed)
        self.checkpoints = TABLE
        self._cluster_id = cluster_id
        self._text: str | None = None  # as it is in the table
        self._state = DrainerState()

    def create(self) -> None:
        super().create()
        self._session.create_schema(SCHEMA)
        self._session.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} ({COLUMNS})")

    def load_checkpoint(self, *, locked: bool = False) -> str | None:  # noqa: ARG002
        """Raises CheckpointError for a damaged row.

        With cluster id 0, raises NoCheckpointItem for no row, and CheckpointError for several.
        """
        checkpoints: dict[int, str] = dict(self._session.rows(f"SELECT clusterID, checkPoint FROM {TABLE}"))
        if self._cluster_id == 0:
            self._cluster_id = _only_cluster(checkpoints)
        self._text = checkpoints.get(self._cluster_id)
        if self._text is None:
            if checkpoints:
                log.warning("%s has checkpoints of other clusters only: %s", TABLE, sorted(checkpoints))
            return None
        self._state = from_json(self._text, f"{TABLE}, cluster {self._cluster_id}")
        self.is_consistent = self._state.consistent
        ts = self._state.commit_ts
        return encode_checkpoint(Checkpoint(ts, str(ts), None, self._source)) if ts else None

    @property
    def _source(self) -> str:
        """Identity of the source whose checkpoint the row is."""
        return f"{BINLOG_OF}{self._cluster_id}"

    def _replace_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:  # noqa: ARG002
        """Raises CheckpointError for a checkpoint that is more than a ts, or of another cluster."""
        source = _reject_more(content, ts).source
        if source.startswith(BINLOG_OF) and source != self._source:
            raise CheckpointError(
                f"cluster_id = {self._cluster_id}, and the rows come from {source}: set that cluster's id"
            )
        state = replace(self._state, commit_ts=ts, consistent=self.is_consistent)
        fresh = to_json(state)
        if self._text is None:
            values = f"{self._cluster_id}, {quoted(fresh)}"
            saved = self._session.execute(f"INSERT IGNORE INTO {TABLE} VALUES ({values})")
        else:
            saved = self._session.execute(
                f"UPDATE {TABLE} SET checkPoint = {quoted(fresh)} "
                f"WHERE clusterID = {self._cluster_id} AND checkPoint = {quoted(self._text)}"
            )
        self._text, self._state = fresh, state
        return saved == 1


def _only_cluster(clusters: Iterable[int]) -> int:
    match sorted(clusters):
        case []:
            raise NoCheckpointItem(f"{TABLE} is empty: set the cluster id")
        case [cluster_id]:
            return cluster_id
        case several:
            raise CheckpointError(f"{TABLE} has the clusters {several}: set the cluster id")


class FileHome(Home):
    """A feed's own tables, but with the checkpoint in a drainer's file, which the sink writes after a commit.

    What is known of a schema change stays, as the file may say that it comes again.
    """

    is_consistent = False

    def __init__(self, session: MySqlSession, schema: str, feed: str, file: DrainerFile) -> None:
        super().__init__(session, schema, feed)
        self._file = file

    def load_checkpoint(self, *, locked: bool = False) -> str | None:  # noqa: ARG002
        if not self._file.load():
            return None
        return encode_checkpoint(Checkpoint(self._file.ts, str(self._file.ts)))

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:  # noqa: ARG002
        """Write nothing. Raises CheckpointError for a checkpoint that is more than a ts."""
        _reject_more(content, ts)
        return True

    def intend_creation(self, name: TableName) -> None:
        """Store nothing: the same log creates the table again, by the same definition."""


def _reject_more(content: str, ts: int) -> Checkpoint:
    """Return the checkpoint. Raises CheckpointError for one that is more than a ts."""
    checkpoint, _ = decode_checkpoint(content, "the new checkpoint")
    is_more = checkpoint.loading is not None or checkpoint.tables or checkpoint.stages
    if is_more or checkpoint.position != str(ts):
        raise CheckpointError(
            "a drainer's checkpoint stores a commit ts only: it is for a source with such positions, without "
            "a snapshot and without conditions of filters; remove the sink's option checkpoint, or set "
            "snapshot = false"
        )
    return checkpoint
