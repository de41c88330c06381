"""A MySQL target whose checkpoint is also in the table of DM, beside the feed's own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Unpack

import msgspec
from msgspec import Struct

from ...actors import Clock
from ...codec.checkpoint import decode_checkpoint, encode_checkpoint
from ...dialects.database import difference
from ...dialects.mysql import text as text
from ...dialects.mysql.home import Home
from ...dialects.mysql.mysql import MySqlDatabase
from ...dialects.mysql.session import MySqlSession
from ...dialects.statement import quoted
from ...events import Batch, Checkpoint, Ddl, Item, Table, Ts, compose_ts
from ..dm.checkpoint import checkpoint_of, rows_of
from ..dm.point import Point, by_source, point_of
from ..dm.table import COLUMNS, NO_TABLE_INFO, READ, SCHEMA, WRITTEN, DmRow, table_of
from ..sink import SinkTraits
from .apply import HowApplied
from .letters.writer import LetterWriter
from .sql import SqlSink

log = logging.getLogger("tidemill.sink")

MARGIN_SECONDS: Final = 10.0
"""Maximum difference between the clocks of the sources and of this machine that is covered."""
_UPDATED: Final = ", ".join(
    f"{column}=VALUES({column})"
    for column in WRITTEN.split(", ")
    if column not in ("id", "cp_schema", "cp_table")
)


class Safety(Struct, frozen=True, omit_defaults=True):
    """Bounds of what DM may have applied after its checkpoint."""

    until: Ts = 0
    """Commit ts after which nothing was applied, if a source has no exit point. It is above those of tables
    that are ahead."""
    exits: dict[str, Point] = {}
    """DM's exit points by the source's id."""


class DmHome(Home):
    """A feed's own tables, and its position in DM's table, in the same transaction.

    The feed's own checkpoint has what DM's lacks. If DM's rows aren't those that belong to it, DM ran since,
    and its rows are taken over. While tables are loaded, DM has no rows, as it can't continue a load.
    """

    def __init__(
        self, session: MySqlSession, schema: str, feed: str, task: str, source_id: str, clock: Clock
    ) -> None:
        super().__init__(session, schema, feed)
        self._table = f"{SCHEMA}.{text.name(table_of(task or feed))}"
        self._source_id = source_id
        self._clock = clock
        self._safety_key = quoted(f"{feed} dm")
        self.safety: Safety | None = None
        """Set until everything that DM may have applied after its checkpoint has been applied again."""
        self.touched: set[str] = set()
        """Origin names of tables whose changes were applied."""

    def create(self) -> None:
        super().create()
        self._session.create_schema(SCHEMA)
        self._session.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({COLUMNS})")

    def load_checkpoint(self, *, locked: bool = False) -> str | None:  # noqa: ARG002
        """Raises CheckpointError for rows of DM that can't be continued."""
        own = super().load_checkpoint()
        safety = self._session.rows(
            f"SELECT checkpoint FROM {self.checkpoints} WHERE feed={self._safety_key}"
        )
        self.safety = msgspec.json.decode(safety[0][0], type=Safety) if safety else None
        rows = self._rows()
        ids = {row.id for row in rows}
        if not self._source_id and len(ids) == 1:
            (self._source_id,) = ids
        self.touched = set()
        if own is not None:
            checkpoint, _ = decode_checkpoint(own, self.checkpoints)
            self.touched.update(self._origin_name(row) for row in rows if not row.is_global)
            stored, wanted = _globals(rows), _globals(self._rows_of(checkpoint))
            if not (stored and wanted) or stored == wanted:
                return own
            log.warning("%s isn't where the feed left it: DM's checkpoint is taken over", self._table)
        return self._take_over(rows)

    def _rows(self) -> list[DmRow]:
        where = f" WHERE id={quoted(self._source_id)}" if self._source_id else ""
        return [DmRow.read(row) for row in self._session.rows(f"SELECT {READ} FROM {self._table}{where}")]

    def _origin_name(self, row: DmRow) -> str:
        name = f"{row.schema}.{row.table}"
        return name if self._source_id else f"{row.id}: {name}"

    def _take_over(self, rows: list[DmRow]) -> str | None:
        now = self._clock.time()
        after, until = (compose_ts(int((now + n * MARGIN_SECONDS) * 1000)) for n in (1, 2))
        checkpoint = checkpoint_of(rows, self._source_id, self._table, after)
        if checkpoint is None:
            return None
        exits = {row.id: row.exit for row in rows if row.is_global and row.exit is not None}
        is_known = len(exits) == len(_globals(rows))
        self.safety = Safety(0 if is_known else until, exits)
        content = encode_checkpoint(checkpoint)
        self._session.execute("START TRANSACTION")
        self._session.execute(
            f"REPLACE INTO {self.checkpoints} VALUES ({self._feed},{checkpoint.ts},{quoted(content)}), "
            f"({self._safety_key},0,{quoted(msgspec.json.encode(self.safety).decode())})"
        )
        self._session.execute("COMMIT")
        return content

    def _is_safe_again(self, safety: Safety, reached: Checkpoint) -> bool:
        """Return True if a checkpoint is after everything that DM may have applied."""
        if safety.until:
            return reached.ts > safety.until
        positions = by_source(reached.position, self._source_id or next(iter(safety.exits), ""))
        points = {id_: point_of(position) for id_, position in positions.items()}
        return all(
            (point := points.get(id_)) is not None and point.order >= end.order
            for id_, end in safety.exits.items()
        )

    def _replace_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        saved = super()._replace_checkpoint(previous_ts, ts, content)
        checkpoint, _ = decode_checkpoint(content, "the new checkpoint")
        if self.safety is not None and self._is_safe_again(self.safety, checkpoint):
            self._session.execute(f"DELETE FROM {self.checkpoints} WHERE feed={self._safety_key}")
            self.safety = None
        if checkpoint.loading is not None:
            ids = by_source(checkpoint.position, self._source_id) if checkpoint.position else ()
            names = ",".join(map(quoted, ids))
            if names:
                self._session.execute(f"DELETE FROM {self._table} WHERE id IN ({names})")
        else:
            self._write(self._rows_of(checkpoint))
        return saved

    def _rows_of(self, checkpoint: Checkpoint) -> list[DmRow]:
        if checkpoint.loading is not None:
            return []
        return rows_of(checkpoint, self._source_id, self.touched)

    def _write(self, rows: Iterable[DmRow]) -> None:
        values = []
        for row in rows:
            end = self.safety.exits.get(row.id) if row.is_global and self.safety is not None else None
            point, exit_ = row.point, end or Point("", 0)
            columns = [
                quoted(row.id), quoted(row.schema), quoted(row.table),
                quoted(point.file), str(point.offset), quoted(point.gtid),
                quoted(exit_.file), str(exit_.offset), quoted(exit_.gtid),
                quoted(NO_TABLE_INFO), str(int(row.is_global)),
            ]  # fmt: skip
            values.append(f"({','.join(columns)})")
        if values:
            self._session.execute(
                f"INSERT INTO {self._table} ({WRITTEN}) VALUES {','.join(values)} "
                f"ON DUPLICATE KEY UPDATE {_UPDATED}"
            )


def _globals(rows: Iterable[DmRow]) -> dict[str, Point]:
    return {row.id: row.point for row in rows if row.is_global}


UNTIL_EXIT: Final = "until exit point"
"""After taking over from DM: until the position up to which it may have applied rows."""


class DmSink(SqlSink):
    """DM stores its checkpoint after the rows: after taking over from it, safe mode is on until its last rows
    have been applied again."""

    def __init__(
        self,
        name: str,
        target: MySqlDatabase,
        home: DmHome,
        letters: LetterWriter | None,
        now: Callable[[], float],
        **how: Unpack[HowApplied],
    ) -> None:
        """`how` are options of SqlSink."""
        super().__init__(name, target, None, letters, now, **how)
        self._home = home
        self._is_safe = False

    def open(self) -> Checkpoint | None:
        checkpoint = super().open()
        self._keep_safe(self._home.safety is not None)
        return checkpoint

    @property
    def traits(self) -> SinkTraits:
        return replace(super().traits, adopts_merged=True)

    def check_adopted(self, table: Table) -> str:
        try:
            have, wanted = self._database.tables.columns(table), self._database.tables.wanted_columns(table)
        except Exception as error:
            self._fail(error, f"looking for {table.full_name}")
        return "isn't there" if have is None else difference(have, wanted)

    def _check_unmoved(self) -> None:
        """Check nothing: to read DM's checkpoint is to take it over. A late commit is noticed when the next
        checkpoint is stored."""

    def _keep_safe(self, is_wanted: bool) -> None:
        if is_wanted == self._is_safe:
            return
        change: Callable[[str], None] = self.safe_mode.enter if is_wanted else self.safe_mode.leave
        change(UNTIL_EXIT)
        self._is_safe = is_wanted

    def write(self, batch: Batch) -> None:
        self._keep_safe(self._home.safety is not None)
        for item in batch.items:
            self._home.touched.update(_origin_names(item))
        super().write(batch)


def _origin_names(item: Item) -> list[str]:
    """Return the origin names of the tables that an item changes."""
    return [item.origin_name] if isinstance(item, Ddl) else [run.origin_name for run in item.runs]
