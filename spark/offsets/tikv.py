"""Offsets of a TiKV cluster, which are timestamps."""

from __future__ import annotations

from random import Random
from typing import Final

from ...actors import SystemClock
from ...chain.selection.tables import TablePatterns
from ...codec.tidb.table import to_table
from ...errors import CheckpointError, ConfigError, SourceError
from ...events import Table, Ts, physical_ms
from ...puller.tikv.client import TikvClient
from ...puller.tikv.options import TikvOptions
from ...puller.tikv.schema import TableNames, read_schema
from ...sources.source import no_table_matches
from ..read.options import ReadOptions
from ..read.parts import WHOLE, Part
from ..read.ranges import Ranges
from .offset import Limit, Offset, ts_offset


class TikvOffsets:
    """Queries a TiKV cluster. Used by one thread; every method raises Retryable and Fatal."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self.client: Final = TikvClient(options.source_as(TikvOptions), SystemClock(), Random())
        self.client.start()
        self.source = f"tikv cluster {self.client.pd.cluster_id}"
        self._ranges: dict[Part, Ranges] = {}

    def tables(self) -> list[Table]:
        wanted = TablePatterns.parse(self._options.patterns)
        names = TableNames(wanted)
        self.client.run(read_schema(self.client.kv, self._now(), names))
        if unmatched := wanted.unmatched(names.names):
            raise ConfigError(no_table_matches(unmatched, names.names))
        return [to_table(schema, info) for schema, info in names.tables]

    def latest(self) -> Offset:
        return self._offset(self._now())

    def earliest(self) -> Offset:
        return self._offset(self._collected() + 1)

    def at(self, ts: Ts) -> Offset:
        now = self._now()
        if ts > now:
            raise ConfigError(f"ts {ts} is yet to come: {self.source} has come to {now}")
        self._check_kept(ts)
        return self._offset(ts)

    def at_position(self, position: str) -> Offset:
        raise ConfigError(f"{position!r}: {self.source} has timestamps, and no positions")

    def check(self, start: Offset) -> None:
        if start.source != self.source:
            raise CheckpointError(
                f"the offset is of {start.source}, and {self._options.url} is {self.source}: connect to that "
                "one, or give the query another checkpointLocation"
            )
        self._check_kept(start.ts)

    def following(self, start: Offset, end: Offset | None, limit: Limit) -> Offset:  # noqa: ARG002
        """Return the end; `limit` is ignored, since a cluster doesn't tell the amount of changes."""
        return max(start, end or self.latest(), key=lambda offset: offset.ts)

    def bounds(self, start: Offset, end: Offset, part: Part = WHOLE) -> tuple[bytes, ...] | None:
        options = self._options
        if options.partitions == 1 or not options.split_tables:
            return None
        if part not in self._ranges:
            wanted = part.chosen(options.patterns)
            self._ranges[part] = Ranges(self.client, wanted, options.partitions)
        return self.client.run(self._ranges[part].bounds(start.ts, end.ts))

    def oldest(self, at: Offset) -> Ts:
        """Return `at.ts`: a cluster doesn't tell, but no change is older."""
        return at.ts

    def lag(self, at: Offset) -> dict[str, object]:
        end = self.latest()
        return {**end.fields(), "lagSeconds": max(0.0, (physical_ms(end.ts) - physical_ms(at.ts)) / 1000)}

    def close(self) -> None:
        self.client.stop()

    def _offset(self, ts: Ts) -> Offset:
        return ts_offset(ts, self.source)

    def _now(self) -> Ts:
        return self.client.run(self.client.pd.tso())

    def _collected(self) -> Ts:
        return self.client.run(self.client.pd.gc_safe_point())

    def _check_kept(self, ts: Ts) -> None:
        collected = self._collected()
        if ts <= collected:
            raise SourceError(
                f"what follows ts {ts} may be gone: the GC safe point of {self.source} is {collected}; start "
                "again with a snapshot (a longer tidb_gc_life_time keeps more)"
            )
