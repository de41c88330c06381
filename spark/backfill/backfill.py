"""The driver of a backfill: chunks of tables are read in parallel into sorted files, then brought to one
position."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...chain.selection.tables import TablePatterns
from ...codec.mysql.position import Position
from ...config import checked
from ...errors import ConfigError
from ...puller.mysql.options import MysqlOptions
from ...puller.tikv.options import TikvOptions
from ..read.options import ReadOptions, read_options
from .backfilled import Backfilled
from .directory import MERGED, READ, BackfillDirectory
from .errors import NotLoadable
from .options import BackfillOptions
from .plan import BackfillPlan
from .progress import ChunkWatch, Report
from .records import ChunkRecord, LaterAlteration, LaterChanges, Manifest
from .tasks import SAID, CatchUp, MergeChunks, ReadChunk, collected, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = BackfillOptions()
_MERGES: int = 200
"""Maximum number of merge tasks; each takes several chunks, one after the other."""


def backfill(
    spark: SparkSession,
    source: ReadOptions | Mapping[str, str],
    directory: str | Path,
    settings: BackfillOptions = _SETTINGS,
    report: Report | None = None,
) -> Backfilled:
    """Read all rows of the tables into files in `directory`, which the driver and all executors share.

    `source` are options of the data source: `source`, `tables` or `table`, `name`, and `ts` for TiKV. After a
    kill, the same call continues: a finished chunk isn't read again. `report` is called about twice a
    second, in a thread of its own. Raises ConfigError, Retryable once the source hasn't answered for
    `sourceTimeout`, and Fatal.
    """
    options = source if isinstance(source, ReadOptions) else read_options(source)
    settings = checked(settings, "settings")
    if options.reads_changes:
        raise ConfigError("option fromTs: a backfill reads rows, not changes; leave it out")
    place = BackfillDirectory(Path(directory))
    with place.held():
        work = _Backfill(spark, options, place, settings, report)
        manifest = place.manifest() or work.run()
        _check_same(options, manifest.plan)
    return Backfilled(place, manifest)


class _Backfill:
    """One run of a backfill on the driver."""

    def __init__(
        self,
        spark: SparkSession,
        options: ReadOptions,
        directory: BackfillDirectory,
        settings: BackfillOptions,
        report: Report | None,
    ) -> None:
        self._spark = spark
        self._options = options
        self._directory = directory
        self._settings = settings
        self._report = report
        self._wanted = TablePatterns.parse(options.patterns)

    def run(self) -> Manifest:
        manifest = self._of_one_ts() if self._options.reading.by_ts else self._of_a_log()
        self._directory.save_manifest(manifest)
        self._tidy(manifest)
        return manifest

    # --- TiKV: all chunks are of one ts

    def _of_one_ts(self) -> Manifest:
        source = self._options.source_as(TikvOptions)
        from ...puller.tikv.client import connected, held
        from .tikv_chunk import plan_tikv

        with connected(source) as client:
            plan = self._directory.plan()
            if plan is None:
                plan = plan_tikv(client, self._wanted, self._settings, self._options.ts)
                self._directory.save_plan(plan)
            _check_same(self._options, plan)
            with held(client, self._options.name, int(plan.position)):
                self._read(plan)
        return self._manifest(plan, plan.position, ())

    # --- MariaDB: each chunk is of its own moment, until it is brought to the latest of them

    def _of_a_log(self) -> Manifest:
        source = self._options.source_as(MysqlOptions)
        try:
            from .mysql_chunk import plan_mysql
        except ImportError as error:
            raise ConfigError(f"MariaDB needs: pip install 'tidemill[mysql]' ({error})") from error
        plan = self._directory.plan()
        if plan is None:
            plan = plan_mysql(source, self._wanted, self._settings)
            self._directory.save_plan(plan)
        _check_same(self._options, plan)
        for _ in range(self._settings.attempts):
            altered = self._read(plan)
            if not altered:
                changes = self._changes(plan)
                altered = list(changes.altered)
            if not altered:
                self._merge(plan, changes)
                return self._manifest(plan, changes.position, changes.chunks)
            plan = self._again(plan, altered, source)
        raise NotLoadable(
            f"tables were altered each of the {self._settings.attempts} times that they were read, the last "
            f"time by {altered[0].query!r}: let nobody alter them meanwhile, and call it again"
        )

    def _again(
        self, plan: BackfillPlan, altered: Collection[LaterAlteration], source: MysqlOptions
    ) -> BackfillPlan:
        """Return the plan with new chunks for altered tables, and with tables created since."""
        from .mysql_chunk import with_tables

        names = {one.table for one in altered}
        kept = () if "" in names else tuple(t for t in plan.tables if t.table.full_name not in names)
        fresh = with_tables(replace(plan, tables=kept), source, self._wanted, self._settings)
        self._directory.remove_changes()  # they are of the chunks of the plan before
        self._directory.save_plan(fresh)
        return fresh

    def _changes(self, plan: BackfillPlan) -> LaterChanges:
        """Collect the changes between the position of each chunk and the latest of these positions."""
        records = self._records(plan, READ).values()
        until = max([record.high for record in records], key=lambda text: Position.parse(text).rank)
        changes = self._directory.changes(until)
        if changes is None:
            with ChunkWatch(self._directory, plan, "catching up", _numbers(plan), self._report):
                run(self._spark, CatchUp(self._options, self._directory, until))
            changes = self._directory.changes(until)
        assert changes is not None
        return changes

    def _merge(self, plan: BackfillPlan, changes: LaterChanges) -> None:
        done = self._merged(plan, changes.position)
        missing = [number for number in changes.chunks if number not in done]
        self._directory.sweep(MERGED, done, missing)
        if not missing:
            return
        path = str(self._directory.path / changes.file)
        work = MergeChunks(self._directory, changes.position)
        lines = self._spark.read.parquet(path)
        if changes.voided:
            lines = lines.where(~lines.commit_ts.isin(*changes.voided))
        if done:
            lines = lines.where(~lines.chunk.isin(*done))
        lines = lines.repartition(min(len(missing), _MERGES), "chunk")
        lines = lines.sortWithinPartitions("chunk", "key", "number")
        with ChunkWatch(self._directory, plan, "merging", changes.chunks, self._report):
            collected(self._spark, lines.mapInArrow(work, SAID))

    def _merged(self, plan: BackfillPlan, position: str) -> dict[int, ChunkRecord]:
        """Return the chunks already brought to `position`, without those of an earlier plan."""
        return {n: r for n, r in self._records(plan, MERGED).items() if r.high == position}

    # --- both

    def _read(self, plan: BackfillPlan) -> list[LaterAlteration]:
        """Read the missing chunks; return the alterations of tables meanwhile."""
        done = self._records(plan, READ)
        missing = [number for number in _numbers(plan) if number not in done]
        self._directory.sweep(READ, done, missing)
        if not missing:
            return []
        with ChunkWatch(self._directory, plan, "reading", _numbers(plan), self._report):
            names = run(self._spark, ReadChunk(self._options, self._directory, missing))
        return [LaterAlteration("a statement that its chunks' snapshots saw", name) for name in names]

    def _records(self, plan: BackfillPlan, folder: str) -> dict[int, ChunkRecord]:
        return self._directory.records(folder, _numbers(plan))

    def _manifest(self, plan: BackfillPlan, position: str, changed: Collection[int]) -> Manifest:
        read = self._records(plan, READ)
        merged = self._merged(plan, position)
        # A chunk whose changes were all taken back has none.
        records = {n: merged.get(n, record) if n in changed else record for n, record in read.items()}
        return Manifest(plan, position, tuple(records[number] for number in sorted(records)))

    def _tidy(self, manifest: Manifest) -> None:
        """Remove files that aren't part of the result."""
        named = {record.file: record for record in manifest.records}
        for folder in (READ, MERGED):
            kept = {r.number: r for name, r in named.items() if name.startswith(f"{folder}/")}
            self._directory.sweep(folder, kept)
        self._directory.remove_changes()


def _numbers(plan: BackfillPlan) -> list[int]:
    return [chunk.number for _, chunk in plan.chunks()]


def _check_same(options: ReadOptions, plan: BackfillPlan) -> None:
    """Raise ConfigError if the directory holds another backfill."""
    if plan.patterns != options.patterns or plan.kind != options.reading.plans_as:
        raise ConfigError(
            f"directory: it holds a backfill of {', '.join(plan.patterns)} from {plan.source}: go on with "
            "the same options, or name another directory"
        )
