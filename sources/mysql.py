"""A MariaDB or MySQL server as a pipeline's source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import pykka
from msgspec.structs import replace

from ..codec.mysql.layout import Layouts
from ..config import Finding
from ..errors import TidemillError
from ..events import Checkpoint, Item, Sorted, Ts, Wait
from ..mounter import APPLY_ALL, Catalog, History, Mounter, Policy
from ..puller.lane import ALONE, Lane
from ..puller.mysql import requirements
from ..puller.mysql.gtid import parse_gtids
from ..puller.mysql.options import MysqlOptions
from ..puller.mysql.position import Position, Rank
from ..puller.mysql.probe import probe, probe_any
from ..puller.mysql.puller import MysqlPuller
from ..puller.puller import PullerStatistics, Statistics
from ..routing import TableFilter
from .source import SourceInfo, StartContext, no_table_matches

BINLOG_KEYSPACE = 1
"""The sorter's number for the keyspace of a source that is one stream; of several, that of the first one."""
ANSWER_SECONDS = 0.5
"""Timeout for statistics of a busy puller; after it the last ones are shown."""


class MysqlSource:
    """The binlog in its own order: one puller, one keyspace."""

    reloads = True

    def __init__(
        self,
        options: MysqlOptions,
        tables: TableFilter,
        lane: Lane = ALONE,
        *,
        feed: str = "",
        on_ddl: Policy = APPLY_ALL,
    ) -> None:
        self.address = options.address
        self._feed = feed
        self._on_ddl = on_ddl
        self._history: History | None = None
        self._options = options
        self._tables = tables
        self._lane = lane
        self._layouts = Layouts()

    def look(self) -> SourceInfo:
        found = probe_any(self._options)
        self._identity = found.source
        self._refuses_cascades = self._options.cascades == "refuse" and not found.logs_cascades
        names = [(table.schema, table.name) for table in found.tables]
        end = replace(found.end, gtid=found.end.gtid or found.gtids, server=found.server.identity)
        return SourceInfo(found.source, str(end), names, lambda at: _is_of(found.gtids, at))

    def survey(self) -> Iterator[Finding]:
        """Yield findings: can the server be followed, and which tables match? Changes nothing."""
        found = requirements.check(self._options, self._tables.matches)
        if found.server:
            yield Finding("ok", found.server)
        for table in found.tables:
            key = ", ".join(table.table.columns[i].name for i in table.table.key) or "no key"
            yield Finding(
                "ok", f"follows {table.table.full_name} ({key}; about {table.rows_estimated:,} rows)"
            )
        if found.server:
            with suppress(TidemillError):  # the requirements report the same
                seen = [(table.schema, table.name) for table in probe(self._options).tables]
                if unmatched := self._tables.unmatched(seen):
                    yield Finding("error", no_table_matches(unmatched))
        yield from found.findings

    def rank(self, position: str) -> Rank:
        return Position.parse(position).rank

    def behind(self, sink: str, position: str, end: str) -> str:
        return (
            f"sink {sink} is at {position}, and the binlog of {self.address} ends before, at {end}: "
            "it was reset or restored from a backup; name another target to begin with a new snapshot"
        )

    def start(self, context: StartContext) -> None:
        start = context.start
        identity = start.source if start is not None and start.source else self._identity
        catalog = self._restored(context, identity)
        self._mounter = Mounter(
            self._layouts,
            identity,
            self._tables,
            decodes=context.decodes,
            catalog=catalog,
            history=self._history,
            policy=self._on_ddl.of_source(self._name),
            refuses_cascades=self._refuses_cascades,
            reloading=_reloading(context.sink_checkpoints),
        )
        writer = context.sorter.add_table(
            BINLOG_KEYSPACE + self._lane.index, start.ts if start is not None else 0
        )
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
            knows=_known_tables(catalog),
            name="puller" if self._lane.count == 1 else self._lane.source,
            supervisor=context.coordinator,
        )

    @property
    def _name(self) -> str:
        """Name of the source if it is one of several."""
        return self._lane.source.removeprefix("source ") if self._lane.count > 1 else ""

    def _restored(self, context: StartContext, identity: str) -> Catalog | None:
        """Return the catalog as of the start; None if the feed keeps no state."""
        if context.state_dir is None:
            return None
        name = ".".join(filter(None, (self._feed, self._name, "catalog")))
        self._history = History(context.state_dir / name, identity)
        start = context.start
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
        with suppress(pykka.Timeout, pykka.ActorDeadError):
            found: PullerStatistics = self._puller.ask(Statistics(), timeout=ANSWER_SECONDS)
            return found
        return None

    def waits(self) -> list[Wait]:
        return []

    def table_name(self, table_id: int) -> str:  # noqa: ARG002
        return ""

    def stop(self) -> None:
        self._puller.stop(block=False)

    def close(self) -> None:
        if self._history is not None:
            self._history.close()


def _is_of(gtids: str, at: Checkpoint) -> bool:
    """True if a checkpoint's GTIDs and those of a server are of one replication topology."""
    wanted = Position.parse(at.position).gtid if at.position else ""
    return bool(wanted) and parse_gtids(gtids).meets(parse_gtids(wanted))


def _known_tables(catalog: Catalog | None) -> Callable[[str, str], bool] | None:
    """Return the choice of tables that the catalog knows at the start; None if there is no catalog."""
    if catalog is None:
        return None
    if catalog.state != "unknown":
        return lambda _schema, _table: True
    known = {(table.schema, table.name) for table in catalog.tables()}
    return lambda schema, table: (schema, table) in known


def _reloading(checkpoints: Sequence[Checkpoint]) -> set[str]:
    """Return the full names of tables that every sink loads again."""
    stale = [{name for name, one in (at.loading or {}).items() if one.stale} for at in checkpoints]
    return set.intersection(*stale) if stale else set()
