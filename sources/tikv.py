"""A TiKV cluster as a pipeline's source: a puller for each table, the schema's jobs, the mounter."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ..actors import Clock, PooledRef, Target
from ..chain.selection.tables import TablePatterns
from ..codec.tidb.job import Job
from ..errors import TidemillError
from ..events import JOB_QUEUE, Changes, Item, Sorted, Ts, Wait
from ..failpoint import reach
from ..mounter import TidbMounter
from ..puller.grpc.transport import SOCKETS, Transport
from ..puller.puller import PullerStatistics
from ..puller.tikv.ddl import DdlPuller
from ..puller.tikv.options import TikvOptions
from ..puller.tikv.puller import TikvPuller
from ..puller.tikv.span import Span, ddl_spans, intersect, raw_span, table_span
from ..store.scratch import Scratch
from .source import SourceTraits
from .tidb import NO_ANSWER, Look, TidbSource, head_of
from .tikv_loader import SchemaKnown, TikvLoader
from .tikv_loads import TikvLoads, tables_to_load

DDL_KEYSPACE: Final = 0
"""The sorter's number for the keyspace of the schema's jobs; TiDB's table ids begin above."""
LOAD_KEYSPACE: Final = (1 << 63) - 1
"""That of the tables that are loaded again."""
PREWRITE_BUFFER_BYTES: Final = 96 << 20

_LATEST: Final = (1 << 64) - 1


class TikvSource(TidbSource):
    """One keyspace for each followed table, and one for the schema's jobs.

    Changes up to the lowest resolved ts of all keyspaces are in the cluster's commit order.
    """

    traits = SourceTraits(reloads=True)
    _identity_prefix = "tikv cluster"

    def __init__(
        self,
        options: TikvOptions,
        tables: TablePatterns,
        name: str,
        directory: Path,
        clock: Clock,
        *,
        details: bool = False,
        transport: Transport = SOCKETS,
    ) -> None:
        super().__init__(options, tables, name, directory, clock, details=details, transport=transport)
        self._span = raw_span(*tables.keys)
        self._followed: set[int] = set()
        """Ids of physical tables that are in the sorter."""
        self._ending: dict[int, Ts] = {}
        """Tables of them that have ended, with the ts of their end."""
        self._puller: TikvPuller | None = None
        self._loader: PooledRef[SchemaKnown] | None = None
        """While tables are loaded again."""
        self._load_end: Ts = _LATEST
        """Ts of the last step of that load."""
        self._statistics = Look(self._count, clock)
        self._explained = Look(self._explain, clock)

    # --- its work --------------------------------------------------------------------------------

    def _begin(self, scratch: Scratch, ts: Ts) -> None:  # noqa: ARG002
        context = self._context
        self._mounter = TidbMounter(
            self._history,
            self._identity,
            self._tables,
            decodes=context.decodes,
            details=self._details,
        )
        puller = TikvPuller(
            self._client,
            context.compute,
            self._store(scratch, PREWRITE_BUFFER_BYTES),
            supervisor=context.coordinator,
            max_prewrite_bytes=self._options.max_prewrite_bytes,
            advance=context.sorter.advance,
        )
        puller.start()
        self._puller = puller

    def _follow(self, ts: Ts) -> None:
        """Pull changes above `ts`. The jobs are added last: nothing is released until they are resolved."""
        context = self._context
        self._load(ts)
        writer = context.sorter.add_table(DDL_KEYSPACE, ts)
        for table in self._history.physical_tables(ts):
            if self._tables.matches(table.schema, table.table):
                self._add(table.id, ts)
        jobs = context.compute.spawn(
            DdlPuller,
            writer,
            self,
            start_ts=ts,
            schema_version=self._schema_version,
            resolved=self._schema_resolved,
            name=JOB_QUEUE,
            supervisor=context.coordinator,
        )
        with self._lock:
            self._pull(DDL_KEYSPACE, ddl_spans(), ts, jobs)

    def _load(self, ts: Ts) -> None:
        """Load the tables again that sinks want, from above `ts`."""
        context = self._context
        names = tables_to_load(context.sink_checkpoints)
        if names is not None:
            loads = TikvLoads(self._client, self._history, self._tables, names, self._load_ends, ts)
            self._loader = context.blocking.spawn(
                TikvLoader,
                loads.steps(),
                context.sorter.add_table(LOAD_KEYSPACE, ts),
                context.coordinator,
                loads.known,
                name="table loader",
                supervisor=context.coordinator,
            )

    def _load_ends(self, ts: Ts) -> None:
        self._load_end = ts

    def _schema_resolved(self, ts: Ts) -> None:
        if (loader := self._loader) is not None:
            loader.post(SchemaKnown(ts))

    def _add(self, table_id: int, ts: Ts) -> None:
        span = intersect(table_span(table_id), self._span)
        if span is None:
            return
        with self._lock:
            if self._ending.pop(table_id, None) is None:  # else it was never removed
                self._followed.add(table_id)
                self._pull(table_id, [span], ts, self._context.sorter.add_table(table_id, ts))

    def _pull(self, table_id: int, spans: Sequence[Span], ts: Ts, writer: Target[Changes]) -> None:
        if self._puller is not None:
            self._puller.add(table_id, spans, ts, writer)

    def apply(self, job: Job, ts: Ts) -> None:
        """Follow the tables that a job creates; end those that it drops at `ts`."""
        applied = self._history.apply(job, ts)
        named = {p.id for p in applied.added if self._tables.matches(p.schema, p.table)}
        gone = {p.id for p in applied.removed} - named
        with self._lock:
            self._ending |= dict.fromkeys(gone & self._followed - self._ending.keys(), ts)
            came = named - self._followed | named & self._ending.keys()
        for table_id in sorted(came):
            self._add(table_id, ts)

    def mount(self, released: Sorted) -> list[Item]:
        items = self._mounter.mount(released)
        reach("tikv.mounted")
        if self._ending:
            self._drop_ended(released.resolved)
        if released.resolved >= self._load_end:
            self._loader, self._load_end = None, _LATEST
            self._context.sorter.remove_table(LOAD_KEYSPACE)
        return self._until(items, released.resolved, continues=released.continues)

    def _drop_ended(self, resolved: Ts) -> None:
        """Remove tables whose changes up to their end are all released."""
        with self._lock:
            for table_id in [id_ for id_, ts in self._ending.items() if ts <= resolved]:
                del self._ending[table_id]
                self._followed.discard(table_id)
                self._context.sorter.remove_table(table_id)
                if self._puller is not None:
                    self._puller.remove(table_id)

    def _failed(self, error: BaseException) -> None:
        if (puller := self._puller) is not None:
            puller.fail(error)
        else:
            super()._failed(error)

    # --- what it says of itself ------------------------------------------------------------------

    def statistics(self) -> PullerStatistics | None:
        return self._statistics.get()

    def _count(self) -> PullerStatistics | None:
        puller = self._puller
        if puller is None:
            return None
        statistics = puller.statistics()
        total = statistics.total
        return PullerStatistics(
            state=self._state if self._loader is None else "snapshot",
            position=str(total.egress_resolved_ts) if statistics.tables else "",
            bytes=0,
            events=total.changes,
            row_events=total.changes,
            transactions=0,
            ingress_ts=total.ingress_commit_ts,
            resolved_ts=total.egress_resolved_ts,
            connected_at=self._connected_at,
            retries=sum(statistics.failures.values()),
            head=head_of(
                total.egress_resolved_ts if statistics.tables else 0,
                self._clock_offset if puller.clock_offset is None else puller.clock_offset,
            ),
        )

    def waits(self) -> list[Wait]:
        if (puller := self._puller) is not None:
            with suppress(*NO_ANSWER):
                puller.ask_time()
        waits, age = self._explained.get() or (), self._explained.age
        # The pipeline, which sees every actor, reports waits for room in a mailbox.
        return [replace(wait, seconds=wait.seconds + age) for wait in waits if wait.kind != "room"]

    def table_name(self, table_id: int) -> str:
        if table_id == DDL_KEYSPACE:
            return JOB_QUEUE
        if table_id == LOAD_KEYSPACE:
            return "tables that are loaded again"
        try:
            table = self._history.table_at(table_id, _LATEST)
        except (AttributeError, TidemillError):  # before the start, or after the end
            table = None
        return "" if table is None else table.name

    def _explain(self) -> list[Wait] | None:
        puller = self._puller
        return None if puller is None else puller.waits()

    # --- the end ---------------------------------------------------------------------------------

    def stop(self) -> None:
        super().stop()
        with self._lock:
            puller, self._puller = self._puller, None
        if puller is not None:
            puller.stop()
