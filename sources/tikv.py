"""A TiKV cluster as a pipeline's source: a puller for each table, the schema's jobs, the mounter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random
from threading import Lock
from typing import Final, Generic, TypeVar

from msgspec.structs import replace

from ..actors import Clock, Target
from ..codec.tidb.columns import columns_of
from ..codec.tidb.job import Job
from ..codec.tidb.table_info import TableInfo
from ..config import Finding
from ..errors import ConfigError, SourceError, TidemillError
from ..events import Item, Sorted, Transaction, Ts, Wait, parse_ts
from ..failpoint import reach
from ..mounter import SchemaHistory, TidbMounter
from ..puller.puller import Connected, PullerStatistics, State
from ..puller.tikv.client import TikvClient
from ..puller.tikv.ddl import DdlPuller
from ..puller.tikv.options import TikvOptions
from ..puller.tikv.pd import version
from ..puller.tikv.pd.safe_point import SafePoint
from ..puller.tikv.puller import TikvPuller
from ..puller.tikv.schema import TableNames, read_schema
from ..puller.tikv.span import Span, ddl_spans, intersect, raw_span, table_span
from ..routing import TableFilter
from ..sink import Deliver
from ..store.scratch import Scratch
from ..store.store import Store
from .source import SourceInfo, StartContext, no_table_matches
from .tikv_snapshot import TikvLoader, TikvSnapshot

DDL_KEYSPACE: Final = 0
"""The sorter's number for the keyspace of the schema's jobs; TiDB's table ids begin above."""
JOB_QUEUE: Final = "schema jobs"
"""Name of that keyspace in a Wait."""
HISTORY_BUFFER_BYTES: Final = 4 << 20
"""Write buffer for table infos, which are written once and seldom read; 100,000 of them stay out of
memory."""
PREWRITE_BUFFER_BYTES: Final = 96 << 20
LOOKS_PART: Final = 20
"""Pause between looks over all regions, as a multiple of the last look's duration."""

_LATEST: Final = (1 << 64) - 1
_NO_ANSWER: Final = (TimeoutError, CancelledError, TidemillError)
"""Errors of a look while the cluster doesn't answer, or during a stop."""

T = TypeVar("T")


class TikvSource:
    """One keyspace for each followed table, and one for the schema's jobs.

    Changes up to the lowest resolved ts of all keyspaces are in the cluster's commit order. A position is a
    TSO.
    """

    reloads = False

    def __init__(
        self, options: TikvOptions, tables: TableFilter, name: str, directory: Path, clock: Clock
    ) -> None:
        """`name` is the feed's; data that doesn't fit in memory is spilled to `directory`."""
        self.address = options.address
        self._options = options
        self._tables = tables
        self._span = raw_span(*tables.keys)
        self._name = name
        self._directory = directory
        self._clock = clock
        self._client = TikvClient(options, clock, Random())
        self._stack = ExitStack()
        self._lock = Lock()
        """Guards the fields below: jobs, released changes and the end are handled in three threads."""
        self._followed: set[int] = set()
        """Ids of physical tables that are in the sorter."""
        self._ending: dict[int, Ts] = {}
        """Tables of them that have ended, with the ts of their end."""
        self._acknowledged: Ts = 0
        self._puller: TikvPuller | None = None
        self._state: State = "connecting"
        self._connected_at = 0.0
        self._statistics = _Look(self._count, clock)
        self._explained = _Look(self._explain, clock)

    # --- a first look ----------------------------------------------------------------------------

    def look(self) -> SourceInfo:
        client = self._client
        client.start()
        self._stack.callback(client.stop)
        names = _Names(self._tables)
        client.run(self._ask(names))
        if names.names and not names.followed and not self._tables.unmatched(names.names):
            raise ConfigError(
                "source.tables: no table matches, as the patterns with ! exclude all that there are"
            )
        return SourceInfo(self._identity, str(self._end), names.names)

    async def _ask(self, names: _Names) -> None:
        pd = self._client.pd
        self._least_version = version.check(await pd.stores(), pd.members.versions)
        self._end = await pd.tso()
        self._identity = f"tikv cluster {pd.cluster_id}"
        await read_schema(self._client.kv, self._end, names)

    def survey(self) -> Iterator[Finding]:
        """Yield findings: can the cluster be followed, and which tables match? Changes nothing."""
        try:
            found = self.look()
        except TidemillError as error:
            yield Finding("error", str(error))
            return
        finally:
            self.close()
        yield Finding("ok", f"{found.source}, TiKV {self._least_version} at {self.address}")
        for schema, table in found.tables:
            if self._tables.matches(schema, table):
                yield Finding("ok", f"follows {schema}.{table}")
        if unmatched := self._tables.unmatched(found.tables):
            yield Finding("error", no_table_matches(unmatched))

    def rank(self, position: str) -> Ts:
        return parse_ts(position)

    def behind(self, sink: str, position: str, end: str) -> str:
        return (
            f"sink {sink} is at ts {position}, and {self._identity} has only come to {end}: its clock was "
            "set back, or it was restored from a backup; name another target to begin with a new snapshot"
        )

    # --- its work --------------------------------------------------------------------------------

    def start(self, context: StartContext) -> None:
        start, options = context.start, self._options
        loading = options.loads if start is None else start.loading is not None
        if start is None and options.start_ts > self._end:
            text = f"{options.start_ts} is yet to come, {self._identity} has come to {self._end}"
            raise ConfigError(f"source.start_ts: {text}")
        at = self.rank(start.position) if start is not None else options.start_ts or self._end
        self._acknowledged = at
        client = self._client
        safe_point = SafePoint(
            options, client.pd, self._clock, f"tidemill-{self._name}", lambda: self._acknowledged
        )
        client.run(safe_point.start(at))
        scratch = Scratch(self._directory)
        self._stack.callback(scratch.close)
        self._history = SchemaHistory(self._store(scratch, HISTORY_BUFFER_BYTES), at)
        schema_version = client.run(read_schema(client.kv, at, self._history))
        self._mounter = TidbMounter(self._history, self._identity, self._tables)
        self._context = context
        self._puller = TikvPuller(
            client,
            context.compute,
            self._store(scratch, PREWRITE_BUFFER_BYTES),
            supervisor=context.coordinator,
            max_prewrite_bytes=options.max_prewrite_bytes,
            advance=context.sorter.advance,
        )
        self._puller.start()
        client.loop.submit(safe_point.run(), "hold the GC safe point")
        self._connected_at = self._clock.now()
        context.coordinator.tell(Connected(self._identity, f"TiKV {self._least_version} at {self.address}"))
        if loading:
            self._state = "snapshot"
            snapshot = TikvSnapshot(client, self._history, self._tables, self._identity, at)
            steps = snapshot.steps(start.loading or {} if start is not None else {}, context.sink_checkpoints)
            loaded = partial(self._follow, at, schema_version)
            context.blocking.spawn(
                TikvLoader,
                steps,
                context.decoder,
                context.coordinator,
                loaded,
                name="loader",
                supervisor=context.coordinator,
            )
        else:
            if start is None:  # so that a restart doesn't begin later
                context.decoder.tell(Deliver([heartbeat(self._identity, at)]))
            self._follow(at, schema_version)

    def _store(self, scratch: Scratch, buffer_bytes: int) -> Store:
        store = Store(scratch.new_store(), buffer_bytes=buffer_bytes)
        self._stack.callback(store.close)
        return store

    def _follow(self, at: Ts, schema_version: int) -> None:
        """Pull changes above `at`. The jobs are added last: nothing is released until they are resolved."""
        if self._puller is None:  # stopped while the last rows of a snapshot were read
            return
        context = self._context
        writer = context.sorter.add_table(DDL_KEYSPACE, at)
        for table in self._history.physical_tables(at):
            if self._tables.matches(table.schema, table.table):
                self._add(table.id, at)
        jobs = context.compute.spawn(
            DdlPuller,
            writer,
            self,
            start_ts=at,
            schema_version=schema_version,
            name="schema jobs",
            supervisor=context.coordinator,
        )
        with self._lock:
            self._pull(DDL_KEYSPACE, ddl_spans(), at, jobs)
        self._state = "following"

    def _add(self, table_id: int, at: Ts) -> None:
        span = intersect(table_span(table_id), self._span)
        if span is None:
            return
        with self._lock:
            if self._ending.pop(table_id, None) is None:  # else it was never removed
                self._followed.add(table_id)
                self._pull(table_id, [span], at, self._context.sorter.add_table(table_id, at))

    def _pull(self, table_id: int, spans: Sequence[Span], at: Ts, writer: Target) -> None:
        if self._puller is not None:
            self._puller.add(table_id, spans, at, writer)

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
        resolved = released.resolved
        if not released.continues and (not items or items[-1].commit_ts < resolved):
            items.append(heartbeat(self._identity, resolved))
        if self._ending:
            self._drop_ended(resolved)
        return items

    def _drop_ended(self, resolved: Ts) -> None:
        """Remove tables whose changes up to their end are all released."""
        with self._lock:
            for table_id in [id_ for id_, ts in self._ending.items() if ts <= resolved]:
                del self._ending[table_id]
                self._followed.discard(table_id)
                self._context.sorter.remove_table(table_id)
                if self._puller is not None:
                    self._puller.remove(table_id)

    def acknowledged(self, ts: Ts) -> None:
        self._acknowledged = max(self._acknowledged, ts)
        self._history.prune(self._acknowledged)

    def check_seek(self, position: str) -> None:
        if self.rank(position) < self._acknowledged:
            raise SourceError(
                f"{self._identity} can't be read again after ts {position}: every sink has acknowledged "
                f"{self._acknowledged}, and older versions may be gone; name another target to begin with a "
                "new snapshot"
            )

    # --- what it says of itself ------------------------------------------------------------------

    def statistics(self) -> PullerStatistics | None:
        return self._statistics.get()

    def _count(self) -> PullerStatistics | None:
        puller = self._puller
        if puller is None:
            return None
        found = puller.statistics()
        total = found.total
        return PullerStatistics(
            state=self._state,
            position=str(total.egress_resolved_ts) if found.tables else "",
            bytes=0,
            events=total.changes,
            row_events=total.changes,
            transactions=0,
            ingress_ts=total.ingress_commit_ts,
            resolved_ts=total.egress_resolved_ts,
            connected_at=self._connected_at,
            retries=sum(found.failures.values()),
        )

    def waits(self) -> list[Wait]:
        if (puller := self._puller) is not None:
            with suppress(*_NO_ANSWER):
                puller.ask_time()
        found, age = self._explained.get() or (), self._explained.age
        # The pipeline, which sees every actor, reports waits for room in a mailbox.
        return [replace(wait, seconds=wait.seconds + age) for wait in found if wait.kind != "room"]

    def table_name(self, table_id: int) -> str:
        if table_id == DDL_KEYSPACE:
            return JOB_QUEUE
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
        with self._lock:
            puller, self._puller = self._puller, None
        if puller is not None:
            puller.stop()

    def close(self) -> None:
        self.stop()
        self._stack.close()


def heartbeat(source: str, ts: Ts) -> Transaction:
    """Return a transaction without rows that advances the watermark to `ts`."""
    return Transaction(ts, ts, source, [], str(ts))


class _Names(TableNames):
    """Counts followed tables; raises SourceError for one with a column of an unknown type."""

    followed = 0

    def follow(self, schema: str, info: TableInfo) -> None:
        self.followed += 1
        columns_of(schema, info)


class _Look(Generic[T]):
    """Cache of a slow look, repeated only as often as its duration permits.

    The last result is kept while there is no answer.
    """

    def __init__(self, look: Callable[[], T | None], clock: Clock) -> None:
        self._look = look
        self._clock = clock
        self._found: T | None = None
        self._next = 0.0
        self._found_at = 0.0

    @property
    def age(self) -> float:
        """Seconds since the look whose result `get` returns."""
        return self._clock.now() - self._found_at

    def get(self) -> T | None:
        began = self._clock.now()
        if began >= self._next:
            with suppress(*_NO_ANSWER):
                self._found = self._look()
                self._found_at = self._clock.now()
            now = self._clock.now()
            self._next = now + LOOKS_PART * (now - began)
        return self._found
