"""A MariaDB or MySQL server as a pipeline's source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ..chain.selection.tables import TablePatterns
from ..codec.mysql.gtid import parse_gtids
from ..codec.mysql.layout import Layouts
from ..codec.mysql.layout_file import SUFFIX as LAYOUTS
from ..codec.mysql.layout_file import LayoutFile
from ..codec.mysql.position import Position, Rank
from ..events import REST, Checkpoint, Item, Sorted, TablePosition, Ts, Wait, progress_of
from ..mounter import APPLY_ALL, Catalog, History, Mounter, Policy
from ..puller.lane import ALONE, Lane
from ..puller.mysql.key_space import KeySnapshot
from ..puller.mysql.options import MysqlOptions
from ..puller.mysql.probe import probe_any, wait_if_logged
from ..puller.mysql.pull import MOST_POLL_SECONDS
from ..puller.mysql.puller import MysqlPuller
from ..puller.mysql.retention import RetentionWatch
from ..puller.mysql.stop_signal import StopSignal
from ..puller.puller import PullerStatistics
from ..sharding.key_space import KeySpace
from .mysql_state import (
    choose_columns,
    file_name,
    forget_unneeded,
    history_of,
    known_tables,
    name_of,
)
from .source import Source, SourceInfo, SourceTraits, StartContext

BINLOG_KEYSPACE = 1
"""The sorter's number for the keyspace of a source that is one stream; of several, that of the first one."""


class MysqlSource(Source):
    """The binlog in its own order: one puller, one keyspace."""

    traits = SourceTraits(reloads=True, has_key_spaces=True)

    def __init__(
        self,
        options: MysqlOptions,
        tables: TablePatterns,
        lane: Lane = ALONE,
        *,
        feed: str = "",
        on_ddl: Policy = APPLY_ALL,
        details: bool = False,
        names_source: bool = False,
    ) -> None:
        """With `names_source`, the tables of one of several sources have its name."""
        self.address = options.address
        self._feed = feed
        self._on_ddl = on_ddl
        self._details = details
        self._history: History | None = None
        self._statistics: PullerStatistics | None = None
        self._layout_file: LayoutFile | None = None
        self._options = options
        self._tables = tables
        self._lane = lane
        self._layouts = Layouts(self._name if names_source else "")
        self._retention = RetentionWatch()
        self._pace: Callable[[], float] = lambda: 1.0

    @property
    def begins_at(self) -> str:
        return self._options.position

    def look(self) -> SourceInfo:
        probe = probe_any(self._options)
        self._identity = probe.source
        self._refuses_cascades = self._options.cascades == "refuse" and not probe.logs_cascades
        names = self._seen = [(table.schema, table.name) for table in probe.tables]
        end = replace(probe.end, gtid=probe.end.gtid or probe.gtids, server=probe.server.identity)
        return SourceInfo(
            probe.source, str(end), names, continues=lambda checkpoint: _is_of(probe.gtids, checkpoint)
        )

    @contextmanager
    def key_spaces(self) -> Iterator[list[KeySpace]]:
        """Yield the keys of all tables that are followed."""
        with closing(KeySnapshot(self._name, self._options, self._tables.matches)) as snapshot:
            yield [*snapshot.spaces]

    def rank(self, position: str) -> Rank:
        return Position.parse(position).rank

    def behind(self, sink: str, position: str, end: str) -> str:
        wait_if_logged(self._options, Position.parse(position))
        return (
            f"sink {sink} is at {position}, and the binlog of {self.address} ends before, at {end}: "
            "it was reset or restored from a backup; name another target to begin with a new snapshot"
        )

    def copied(self, state_dir: Path, checkpoint: Checkpoint) -> list[str]:
        """Without a catalog as of the checkpoint, these are all tables that are followed now."""
        loading = checkpoint.loading
        if loading is not None and REST not in loading:
            return [name for name, have in loading.items() if not have.pending]
        identity = checkpoint.source or self._identity
        history = history_of(state_dir, self._feed, self._lane, identity, checkpoint, [checkpoint])
        catalog = history.as_of(checkpoint.ts)
        names = {f"{schema}.{table}" for schema, table in catalog.names()}
        if catalog.state == "unknown":
            names |= {
                f"{schema}.{table}" for schema, table in self._seen if self._tables.matches(schema, table)
            }
        of_loading = {} if loading is None else loading
        names |= {name for name in of_loading if name != REST}
        return sorted(name for name in names if name not in of_loading or not of_loading[name].pending)

    def start(self, context: StartContext) -> None:
        start = context.start
        identity = start.source if start is not None and start.source else self._identity
        catalog = self._restored(context, identity)
        if catalog is not None:
            assert self._history is not None
            choose_columns(self._options, catalog, self._history.later, context.unneeded)
            forget_unneeded(catalog, context.unneeded)
        self._mounter = Mounter(
            self._layouts,
            identity,
            self._tables,
            catalog=catalog,
            history=self._history,
            policy=self._on_ddl.of_source(self._name),
            refuses_cascades=self._refuses_cascades,
            details=self._details,
            copies_generated=self._options.copies_generated,
            reloading=context.unneeded,
            lacks=partial(_is_lacking, context.sink_checkpoints),
        )
        if context.state_dir is not None:
            path = context.state_dir / file_name(self._feed, self._name, LAYOUTS)
            self._layout_file = LayoutFile(path, self._lane.index, self._lane.count)
            self._layouts.record(self._layout_file.add)
        resolved = start.ts if start is not None else 0
        writer = context.sorter.add_table(BINLOG_KEYSPACE + self._lane.index, resolved)
        self._stop = StopSignal()
        self._pace = context.pace
        self._puller = context.blocking.spawn(
            MysqlPuller,
            self._options,
            self._tables.matches,
            self._layouts,
            writer,
            coordinator=context.coordinator,
            start=start,
            sink_checkpoints=context.sink_checkpoints,
            lane=self._lane,
            load_barrier=context.load_barrier,
            knows=known_tables(catalog),
            stop=self._stop,
            publish=self._note,
            retention=self._retention,
            pace=context.pace,
            runtime=context.runtime,
            unneeded=context.unneeded,
            name="puller" if self._lane.count == 1 else self._lane.source,
            supervisor=context.coordinator,
        )

    @property
    def _name(self) -> str:
        return name_of(self._lane)

    def _restored(self, context: StartContext, identity: str) -> Catalog | None:
        """Return the catalog as of the start; None if the feed keeps no state."""
        if context.state_dir is None:
            return None
        start = context.start
        self._history = history_of(
            context.state_dir, self._feed, self._lane, identity, start, context.sink_checkpoints
        )
        return self._history.restore(start.ts if start is not None and start.position else 0)

    def mount(self, released: Sorted) -> list[Item]:
        return self._mounter.mount(released)

    def acknowledged(self, ts: Ts) -> None:
        if self._history is not None:
            self._history.acknowledged(ts)

    def check_seek(self, position: str) -> None:
        """Check the format only: a purged binlog is found when it is requested."""
        self.rank(position)

    def statistics(self) -> PullerStatistics | None:
        return self._statistics

    def _note(self, statistics: PullerStatistics) -> None:
        self._statistics = statistics

    def hours_left(self, place: TablePosition, age_seconds: float) -> float | None:
        return self._retention.hours_left(place.position, age_seconds)

    @property
    def rest_seconds(self) -> float:
        return MOST_POLL_SECONDS * self._pace()

    def waits(self) -> list[Wait]:
        return []

    def table_name(self, table_id: int) -> str:  # noqa: ARG002
        return ""

    def stop(self) -> None:
        self._puller.stop(block=False)
        self._stop.set()

    def close(self) -> None:
        if self._history is not None:
            self._history.close()
        if self._layout_file is not None:
            self._layout_file.close()


def _is_of(gtids: str, checkpoint: Checkpoint) -> bool:
    """True if a checkpoint's GTIDs and those of a server are of one replication topology."""
    wanted = Position.parse(checkpoint.position).gtid if checkpoint.position else ""
    return bool(wanted) and parse_gtids(gtids).meets(parse_gtids(wanted))


def _is_lacking(checkpoints: Sequence[Checkpoint], table: str) -> bool:
    """Return True if no sink has the table."""
    return all(progress_of(one.loading, table) is None for one in checkpoints)
