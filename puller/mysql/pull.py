"""The stages of one source: the snapshot, the changes logged before it, the binlog."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TypeAlias

from msgspec import structs

from ... import failpoint
from ...actors import Machine, Runtime
from ...codec.mysql.entry import DDL, GoneTable, encode_statement
from ...codec.mysql.layout import Layouts
from ...codec.mysql.position import Position
from ...codec.mysql.schema import is_user_schema
from ...dialects.mysql.client import Server, Unavailable
from ...dialects.mysql.result import POLL_SECONDS
from ...errors import CheckpointError, SourceError
from ...events import (
    PENDING,
    REST,
    WHOLE,
    Changes,
    Checkpoint,
    Chunk,
    SnapshotProgress,
    compose_ts,
    progress_of,
)
from ...snapshot.mysql.tables import Follows, SourceTable
from ..lane import ALONE, Lane, LoadBarrier
from ..puller import Connected, PullerStatistics, Retrying, SnapshotReport, State
from .binlog import BinlogDecoder
from .commit_clock import CommitClock
from .head_watch import HeadWatch
from .load import Loader
from .load_progress import LoadProgress, open_progress
from .log_watch import LogWatch
from .options import MysqlOptions
from .probe import probe, wait_if_logged
from .reader import BinlogReader
from .replication import ReplicationWatch
from .requirements import Survey, survey
from .retention import RetentionWatch
from .snapshot import Snapshot
from .stop_signal import StopSignal
from .stream import own_server_id
from .table_loads import MAX_WATCHED_BYTES, TableLoads
from .transactions import Transactions
from .unneeded import Unneeded
from .xa_recover import XaStart

log = logging.getLogger("tidemill.puller")

Step: TypeAlias = Changes | Connected | Retrying | SnapshotReport | None
"""None if nothing was received for a moment."""
Steps: TypeAlias = Generator[Step, None, None]

_LOADING_POLL_SECONDS = 0.005
"""Maximum wait for the log while tables are loaded beside it."""
MOST_POLL_SECONDS = 1.0
"""Maximum wait for the log, if heartbeats don't come before; a stop cuts it short."""
IDLE_MARGIN_SECONDS = 2.0
"""Lag of an idle stream's ts behind the source's clock."""


class Pull:
    """Makes a source's changes step by step. A lost connection loses none of the changes already made."""

    def __init__(
        self,
        options: MysqlOptions,
        follows: Follows,
        layouts: Layouts,
        start: Checkpoint | None,
        sink_checkpoints: Sequence[Checkpoint],
        now: Callable[[], float],
        lane: Lane = ALONE,
        load_barrier: LoadBarrier | None = None,
        knows: Follows | None = None,
        stop: StopSignal | None = None,
        retention: RetentionWatch | None = None,
        pace: Callable[[], float] = lambda: 1.0,
        runtime: Runtime | None = None,
        unneeded: Iterable[str] = (),
    ) -> None:
        """`knows` is True for a table whose definition as of the start the catalog has or gets; None if there
        is no catalog. `stop` has a step that waits for the binlog raise Retryable. `retention` looks at the
        server's list of binlogs. `pace` returns how many times as long the pauses of an idle stream are.
        `runtime` has the threads that load tables; None: those of the machine. `unneeded` are full names of
        tables whose changes no target needs before they are loaded again. Raises CheckpointError if the
        position of `start` can't be read."""
        self.retries = 0
        self._pace = pace
        self._runtime: Runtime = runtime or Machine()
        numbered = replace(
            options,
            server_id=options.server_id or own_server_id(),
            heartbeat_seconds=options.heartbeat_seconds * pace(),
        )
        self._servers = numbered.servers
        self._chosen = 0
        self._follows: Follows = lambda schema, table: is_user_schema(schema) and follows(schema, table)
        self._layouts = layouts
        self._now = now
        self._lane = lane
        self._load_barrier = load_barrier
        self._knows = knows
        self._stop = stop
        clock = CommitClock(start.ts if start else 0, sink_checkpoints, lane)
        self._watch = LogWatch(layouts, MAX_WATCHED_BYTES)
        self._transactions = Transactions(clock, options.max_batch_bytes, self._watch)
        self._source = ""
        self._unneeded = Unneeded(unneeded)
        self._loading: SnapshotProgress | None = None
        self._estimates: dict[str, int] = {}
        self._planned: dict[tuple[str, str], SourceTable] = {}
        self._decoder: BinlogDecoder | None = None
        if start is None:
            self._loading = {} if options.loads else None
        else:
            self._source = start.source
            self._loading = None if start.loading is None else dict(start.loading)
            if start.position:
                self._start_at(Position.parse(start.position))
        self._xa_start = XaStart()
        self._replication = ReplicationWatch()
        self._checked = False
        self._surveyed: list[SourceTable] = []
        self._is_new = start is None
        self._skew = 0.0
        self._state: State = "connecting"
        self._bytes = 0
        self._connected_at = 0.0
        self._head = HeadWatch(retention or RetentionWatch())

    def steps(self) -> Steps:
        """Yield changes and events without end. Raises Retryable: call `steps` again to continue, with the
        next server if this one isn't available. Any other error needs a person."""
        try:
            if not self._checked:
                self._check()
                yield None  # the actor may have been stopped meanwhile
            if self._loading is not None:
                if self._load_barrier is None and self._options.snapshot_workers:
                    yield from self._load_beside(self._loading)
                else:
                    yield from self._load(self._loading)
                self._loading = None
            if self._load_barrier is not None:
                yield from self._await_others(self._load_barrier)
            if self._decoder is None:
                self._begin()
            yield from self._follow(None)
        except Unavailable:
            self._chosen = (self._chosen + 1) % len(self._servers)
            raise
        finally:
            self._state = "connecting"
            self._connected_at = 0.0
            self._head.disconnected()

    def statistics(self) -> PullerStatistics:
        decoder = self._decoder
        return PullerStatistics(
            state=self._state,
            position=str(decoder.position) if decoder else "",
            bytes=self._bytes,
            events=decoder.events if decoder else 0,
            row_events=decoder.row_events if decoder else 0,
            transactions=decoder.transactions if decoder else 0,
            ingress_ts=compose_ts(decoder.epoch_seconds * 1000) if decoder else 0,
            resolved_ts=self._transactions.clock.last,
            connected_at=self._connected_at,
            retries=self.retries,
            head=self._head.head(decoder, self._options.heartbeat_seconds, self._now()),
        )

    @property
    def _options(self) -> MysqlOptions:
        """The options of the server in use."""
        return self._servers[self._chosen]

    def survey(self) -> Survey:
        """Check the server's requirements for this start. Raises Retryable or SourceError if it can't be
        reached."""
        return survey(
            self._options,
            self._follows,
            is_new=self._is_new,
            has_catalog=self._knows is not None,
            knows=self._is_known,
        )

    def _check(self) -> None:
        survey = self.survey()
        survey.raise_errors()
        self._checked = True
        self._surveyed = survey.tables
        if self._loading is not None:
            for finding in survey.findings:
                log.warning("%s: %s", self._options.address, finding.sentence)

    def _is_known(self, schema: str, table: str) -> bool:
        """True if the catalog has a table's definition, or gets it before its first row that matters."""
        if self._loading is not None and progress_of(self._loading, f"{schema}.{table}") is None:
            return True
        if self._knows is None:
            return False
        return (self._decoder is None and not self._options.position) or self._knows(schema, table)

    def _load_beside(self, loading: SnapshotProgress) -> Steps:
        """Load the tables while the log is followed."""
        if REST not in loading:
            yield from self._plan(loading)
        decoder = self._decoder
        assert decoder is not None
        names = [name.split(".", 1) for name, have in loading.items() if have != WHOLE]
        progress = open_progress(self._options, self._follows, loading, self._estimates)
        loads = TableLoads(
            self._options,
            [(schema, table) for schema, table in names if self._follows(schema, table)],
            loading,
            self._transactions,
            self._layouts,
            decoder,
            probe(self._options).end,
            progress,
            self._watch,
            self._planned,
            self._runtime,
            self._unneeded,
        )
        with closing(loads):
            yield from self._follow(None, loads)
        self._planned = {}
        for schema, table in loads.undivided:
            yield from self._load_at_once(loading, progress, schema, table)
        position = str(decoder.position)
        out = self._transactions
        for schema, table in names:
            if not self._follows(schema, table):
                out.begin()
                out.add(DDL, encode_statement(GoneTable(schema, table)))
                out.commit(position)
        out.begin()
        out.commit(position, Chunk(""))
        yield decoder.take()
        yield progress.report("")

    def _plan(self, loading: SnapshotProgress) -> Steps:
        """Note which tables are to be loaded: those that there are at one position."""
        surveyed, self._surveyed = self._surveyed, []
        with closing(self._snapshot(self._follows, surveyed)) as snapshot:
            if self._decoder is not None:
                snapshot.check_reached(self._decoder.position)
            yield self._connected(snapshot.server, self._has_gtids)
            if self._decoder is None:
                self._start_at(snapshot.position)
        out = self._transactions
        yield from self._follow(snapshot.position)
        out.clock.raise_to(compose_ts(int(snapshot.server.epoch_seconds * 1000)))
        position = str(snapshot.position)
        out.begin()
        out.add(DDL, encode_statement(structs.replace(snapshot.definitions, loading=True)))
        out.commit(position)
        names = [source.table.full_name for source in snapshot.tables]
        self._planned = {(source.table.schema, source.table.name): source for source in snapshot.tables}
        self._estimates = {source.table.full_name: source.rows_estimated for source in snapshot.tables}
        pending = [name for name in names if progress_of(loading, name) is None]  # stale in some target
        for mark in [*(Chunk(name, PENDING) for name in pending), Chunk(REST, WHOLE)]:
            out.begin()
            out.commit(position, mark)
            loading.setdefault(mark.table, mark.loaded)
        yield out.take(position)

    def _snapshot(self, follows: Follows, known: Sequence[SourceTable] = ()) -> Snapshot:
        """Begin a view of the tables; the log is read from its position on, unless it is read already."""
        if self._decoder is not None:
            return Snapshot(self._options, follows, known)
        place = self._xa_start.look(self._options, self._now())
        snapshot = Snapshot(self._options, follows, known)
        if self._xa_start.is_used or snapshot.has_prepared():
            snapshot.position = structs.replace(snapshot.position, prepared=place)
        return snapshot

    def _load_at_once(
        self, loading: SnapshotProgress, progress: LoadProgress, schema: str, table: str
    ) -> Steps:
        """Load a table while the log waits."""
        with closing(Snapshot(self._options, lambda *name: name == (schema, table))) as snapshot:
            yield from self._follow(snapshot.position)
            self._unneeded.load_begins((schema, table))
            self._state = "snapshot"
            loader = Loader(
                snapshot,
                loading,
                self._transactions,
                self._layouts,
                self._options.chunk_rows,
                progress,
                only=f"{schema}.{table}",
            )
            yield from loader.steps()
            if not snapshot.tables:  # it was dropped
                progress.complete(f"{schema}.{table}")

    def _load(self, loading: SnapshotProgress) -> Steps:
        with closing(self._snapshot(self._lacking(loading))) as snapshot:
            if self._decoder is not None:
                snapshot.check_reached(self._decoder.position)
            yield self._connected(snapshot.server, self._has_gtids)
            if self._decoder is None:
                self._start_at(snapshot.position)
            else:
                yield from self._follow(snapshot.position)
            for source in snapshot.tables:
                self._unneeded.load_begins((source.table.schema, source.table.name))
            self._state = "snapshot"
            self._transactions.clock.raise_to(compose_ts(int(snapshot.server.epoch_seconds * 1000)))
            estimates = {source.table.full_name: source.rows_estimated for source in snapshot.tables}
            progress = LoadProgress(estimates, loading, {})
            chunk_rows = self._options.chunk_rows
            loader = Loader(snapshot, loading, self._transactions, self._layouts, chunk_rows, progress)
            yield from loader.steps()
            self._skew = snapshot.server.epoch_seconds - self._now()

    def _lacking(self, loading: SnapshotProgress) -> Follows:
        """Return the choice of tables to read: of a feed that loads tables again, only those."""
        if REST not in loading:
            return self._follows
        names = {name for name, loaded in loading.items() if loaded != WHOLE}
        follows = self._follows
        return lambda schema, table: f"{schema}.{table}" in names and follows(schema, table)

    def _await_others(self, barrier: LoadBarrier) -> Steps:
        """Wait until every source of the feed has its snapshot; meanwhile only the time goes on."""
        decoder, clock = self._decoder, self._transactions.clock
        assert decoder is not None
        barrier.loaded(self._lane, clock.last)
        while not barrier.wait(POLL_SECONDS):
            decoder.idle(self._now() + self._skew - IDLE_MARGIN_SECONDS)
            yield decoder.take()
        clock.raise_to(barrier.end)
        self._load_barrier = None

    def _begin(self) -> None:
        """Begin without a snapshot: at the given position, or at the end of the binlog."""
        if self._options.position:
            # The commit clock starts from the log: the time of the first file read, then of its transactions.
            self._start_at(Position.parse(self._options.position))
            return
        follows: Follows = self._follows if self._knows is not None else lambda _schema, _table: False
        with closing(self._snapshot(follows)) as snapshot:  # tables are for the catalog only
            for source in snapshot.tables:
                snapshot.hold(source)
                snapshot.let_go()
        # Send a first checkpoint, so that a restart doesn't begin later than this start.
        self._start_at(snapshot.position).idle(snapshot.server.epoch_seconds)
        out = self._transactions
        out.begin()
        if self._knows is not None:
            tables = tuple(source.known for source in snapshot.tables)
            out.add(DDL, encode_statement(structs.replace(snapshot.definitions, tables=tables)))
        out.commit(str(snapshot.position))

    def _start_at(self, position: Position) -> BinlogDecoder:
        self._decoder = BinlogDecoder(
            position, self._transactions, self._follows, self._layouts.number_of, self._unneeded
        )
        return self._decoder

    def _follow(self, until: Position | None, loads: TableLoads | None = None) -> Steps:
        """Read the binlog from the decoder's position, without end, or up to `until`, or until the tables of
        `loads` are loaded."""
        decoder = self._decoder
        assert decoder is not None
        decoder.stop_at(until)
        if until is not None and decoder.position.rank > until.rank:
            wait_if_logged(replace(self._options, failover=()), decoder.position)
            raise SourceError(
                f"the binlog of {self._options.address} ends at {until}, before the checkpoint's position "
                f"{decoder.position}: it was reset, or this is another server; take a new snapshot"
            )
        if decoder.reached:
            return
        had_gtids = self._has_gtids
        with closing(BinlogReader(self._options, decoder, wants_gtids=True, stop=self._stop)) as reader:
            server = reader.connect()
            yield self._connected(server, had_gtids)
            self._state = "snapshot" if loads else "catching up" if until else "following"
            before = self._bytes
            skew = server.epoch_seconds - self._now()
            self._head.connected(self._now(), skew)
            while not (decoder.reached or (loads is not None and loads.is_done)):
                pace = self._pace()
                if loads is not None and loads.is_full:
                    loads.step(POLL_SECONDS)
                else:
                    if loads is None:
                        reader.read(min(self._options.heartbeat_seconds, MOST_POLL_SECONDS * pace))
                    else:
                        reader.read(_LOADING_POLL_SECONDS, loads.between)
                        loads.step()
                received, self._bytes = before + reader.bytes - self._bytes, before + reader.bytes
                self._head.heard(decoder, received, self._options, self._now(), pace)
                if decoder.caught_up:
                    decoder.idle(self._now() + skew - IDLE_MARGIN_SECONDS)
                    if self._replication.look(self._options, self._now(), pace):
                        halted = self._replication.report(self._options, self._lane.source)
                        yield halted or self._connected(server, True)
                changes = decoder.take()
                if changes is not None:
                    failpoint.reach("binlog.batch_read")
                yield changes
                if loads is not None and (report := loads.report()) is not None:
                    yield report

    @property
    def _has_gtids(self) -> bool:
        return self._decoder is not None and self._decoder.has_gtids

    def _connected(self, server: Server, is_proven: bool) -> Connected:
        """Note the server. `is_proven` is True if GTIDs have shown that it is the same one, or a replica."""
        if self._source not in ("", server.source) and not is_proven:
            raise CheckpointError(
                f"{self._options.address} is {server.source}, but the checkpoint is of {self._source}: "
                "connect to that server, or remove the checkpoint to begin with a new snapshot"
            )
        self._source = self._source or server.source
        self._connected_at = self._now()
        description = f"{server.vendor} {server.version} at {self._options.address}"
        return Connected(self._source, description, self._lane.source)
