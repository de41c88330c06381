"""The base of sources of a TiDB cluster: the first look, the schema as of a ts, and the snapshot."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, Generic, TypeVar

from ..actors import Clock
from ..chain.selection.tables import TablePatterns
from ..codec.tidb.table import to_table
from ..codec.tidb.table_info import holds_rows
from ..config import Finding
from ..config.advice import explained
from ..errors import ConfigError, SourceError, TidemillError
from ..events import REST, Item, Table, TablePosition, Transaction, Ts, parse_ts, physical_ms
from ..mounter import SchemaHistory
from ..puller.grpc.loop import log_error
from ..puller.grpc.transport import SOCKETS, Transport
from ..puller.puller import Connected, SourceHead, State
from ..puller.tikv.client import TikvClient
from ..puller.tikv.options import TikvOptions
from ..puller.tikv.pd import version
from ..puller.tikv.pd.safe_point import SafePoint
from ..puller.tikv.renames import add_old_names
from ..puller.tikv.schema import TableNames, read_schema
from ..sink import Deliver
from ..store.scratch import Scratch
from ..store.store import Store
from .source import Source, SourceInfo, StartContext, no_table_matches
from .tikv_loader import TikvLoader
from .tikv_loads import tables_to_load
from .tikv_snapshot import TikvSnapshot

HISTORY_BUFFER_BYTES: Final = 4 << 20
"""Write buffer for table infos, which are written once and seldom read; 100,000 of them stay out of
memory."""
LOOKS_PART: Final = 20
"""Pause between looks over all regions, as a multiple of the last look's duration."""

RENAME_SECONDS = 60.0
"""Time before the checkpoint of which versions are kept: a job that renames a table may be between its first
transaction and its end, and only versions from before the job have the old name."""

NO_ANSWER: Final = (TimeoutError, CancelledError, TidemillError)
"""Errors of a look while the cluster doesn't answer, or during a stop."""

T = TypeVar("T")


class TidbSource(Source):
    """A source whose schema, rows as of a ts, and positions are those of a TiDB cluster.

    A position is a TSO.
    """

    _identity_prefix: str

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
        """`name` is the feed's; data that doesn't fit in memory is spilled to `directory`. With `details`,
        changes of indexes and the like are told."""
        self._details = details
        self.address = options.address
        self._options = options
        self._tables = tables
        self._name = name
        self._directory = directory
        self._clock = clock
        self._client = TikvClient(options, clock, transport.random(), self._failed, transport)
        self._stack = ExitStack()
        self._lock = Lock()
        """Guards what jobs, released changes and the end change in three threads."""
        self._acknowledged: Ts = 0
        self._stopped = False
        self._state: State = "connecting"
        self._connected_at = 0.0
        self._safe_point: SafePoint | None = None

    @property
    def begins_at(self) -> str:
        return str(self._options.start_ts or "")

    # --- a first look ----------------------------------------------------------------------------

    def look(self) -> SourceInfo:
        return self._look(_nobody)

    def _look(self, note: Callable[[Table], object]) -> SourceInfo:
        client = self._client
        client.start()
        self._stack.callback(client.stop)
        names = TableNames(self._tables)
        client.run(self._ask(names))
        for schema, info in names.tables:
            table = to_table(schema, info)
            if holds_rows(info):
                note(table)
        if names.names and not names.tables and not self._tables.unmatched(names.names):
            raise ConfigError(
                "source.tables: no table matches, as the patterns with ! exclude all that there are"
            )
        drained = f"tidb binlog of cluster {client.pd.cluster_id}"
        return SourceInfo(
            self._identity,
            str(self._end),
            names.names,
            continues=lambda checkpoint: checkpoint.source == drained,
        )

    def _failed(self, error: BaseException) -> None:
        """Stop the feed with an error of the client; called in its loop's thread."""
        log_error(error)

    async def _ask(self, names: TableNames) -> None:
        pd = self._client.pd
        self._least_version = version.check(await pd.stores(), pd.members.versions)
        self._end = await pd.tso()
        self._clock_offset = physical_ms(self._end) / 1000 - self._clock.now()
        self._identity = f"{self._identity_prefix} {pd.cluster_id}"
        await read_schema(self._client.kv, self._end, names)

    def survey(self, note: Callable[[Table], object], *, is_new: bool = True) -> Iterator[Finding]:
        """Yield findings: can the cluster be followed, and which tables match? Changes nothing.

        `note` is called with the definition of each of them. A pattern that matches none is an error of a new
        feed only.
        """
        try:
            info = self._look(note)
            others = list(self._survey())
        except TidemillError as error:
            yield Finding("error", explained(error))
            return
        finally:
            self.close()
        yield Finding("ok", f"{info.source}, TiKV {self._least_version} at {','.join(self._options.pd)}")
        yield from others
        for schema, table in info.tables:
            if self._tables.matches(schema, table):
                yield Finding("ok", f"follows {schema}.{table}", tables=(f"{schema}.{table}",))
        if is_new and (unmatched := self._tables.unmatched(info.tables)):
            yield Finding("error", no_table_matches(unmatched, info.tables))

    def _survey(self) -> Iterator[Finding]:
        """Yield further findings after a look."""
        yield from ()

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
        loading = options.loads
        if start is not None:  # with REST in it, single tables are loaded again
            loading = start.loading is not None and REST not in start.loading
        if start is None and options.start_ts > self._end:
            text = f"{options.start_ts} is yet to come, {self._identity} has come to {self._end}"
            raise ConfigError(f"source.start_ts: {text}")
        ts = self.rank(start.position) if start is not None else options.start_ts or self._end
        self._acknowledged = ts
        client = self._client
        safe_point = SafePoint(
            options,
            client.pd,
            self._clock,
            f"tidemill-{self._name}",
            self._needed_ts,
            margin_seconds=RENAME_SECONDS,
        )
        self._safe_point = safe_point
        self._context = context
        scratch = Scratch(self._directory)
        self._stack.callback(scratch.close)
        self._history = SchemaHistory(self._store(scratch, HISTORY_BUFFER_BYTES), ts)
        self._read_history(safe_point, ts, loading)
        self._begin(scratch, ts)
        client.loop.submit(safe_point.run(), "hold the GC safe point")
        self._connected_at = self._clock.now()
        context.coordinator.tell(Connected(self._identity, f"TiKV {self._least_version} at {self.address}"))
        if loading:
            self._state = "snapshot"
            snapshot = TikvSnapshot(
                client,
                self._history,
                self._tables,
                self._identity,
                ts,
                partial(self._loaded, ts),
                goes_on=tables_to_load(context.sink_checkpoints) is not None,
            )
            steps = snapshot.steps(start.loading or {} if start is not None else {}, context.sink_checkpoints)
            context.blocking.spawn(
                TikvLoader,
                steps,
                context.decoder,
                context.coordinator,
                name="loader",
                supervisor=context.coordinator,
            )
        else:
            if start is None:  # so that a restart doesn't begin later
                context.decoder.tell(Deliver([heartbeat(self._identity, ts)]))
            self._loaded(ts)

    def _read_history(self, safe_point: SafePoint, ts: Ts, loading: bool) -> None:  # noqa: ARG002
        """Read the schema as of `ts`, and keep it readable."""
        self._client.run(safe_point.start(ts))
        self._schema_version = self._client.run(self._read_schema(ts))

    async def _read_schema(self, ts: Ts, own_tables: set[int] | None = None) -> int:
        """Read the schema as of `ts`; return its version."""
        kv = self._client.kv
        version = await read_schema(kv, ts, self._history, own_tables)
        await add_old_names(kv, ts, self._history)
        return version

    def _needed_ts(self) -> Ts:
        """Return the ts that has to stay readable. Called in the loop's thread."""
        return self._acknowledged

    def _store(self, scratch: Scratch, buffer_bytes: int) -> Store:
        store = Store(scratch.new_store(), buffer_bytes=buffer_bytes)
        self._stack.callback(store.close)
        return store

    def _loaded(self, ts: Ts) -> None:
        if self._stopped:  # while the last rows of a snapshot were read
            return
        self._follow(ts)
        self._state = "following"

    @abstractmethod
    def _begin(self, scratch: Scratch, ts: Ts) -> None:
        """Make what is needed from the start on; the schema as of `ts` is known."""

    @abstractmethod
    def _follow(self, ts: Ts) -> None:
        """Pull changes above `ts`."""

    def _until(self, items: list[Item], resolved: Ts, *, continues: bool) -> list[Item]:
        """Add a transaction without rows if the items don't reach the resolved ts."""
        if not continues and (not items or items[-1].commit_ts < resolved):
            items.append(heartbeat(self._identity, resolved))
        return items

    def acknowledged(self, ts: Ts) -> None:
        self._acknowledged = max(self._acknowledged, ts)
        self._history.prune(self._acknowledged)

    def hours_left(self, place: TablePosition, age_seconds: float) -> float | None:  # noqa: ARG002
        safe_point = self._safe_point
        return None if safe_point is None else safe_point.hours_left(place.ts)

    def check_seek(self, position: str) -> None:
        if self.rank(position) < self._acknowledged:
            raise SourceError(
                f"{self._identity} can't be read again after ts {position}: every sink has acknowledged "
                f"{self._acknowledged}, and older versions may be gone; name another target to begin with a "
                "new snapshot"
            )

    # --- the end ---------------------------------------------------------------------------------

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        self.stop()
        self._stack.close()


def head_of(resolved: Ts, clock_offset: float | None) -> SourceHead:
    """Return what is known of a cluster's end by a resolved ts and by PD's clock.

    Everything up to the resolved ts was there when the cluster's clock showed it.
    """
    seconds = physical_ms(resolved) / 1000
    return SourceHead(
        str(resolved) if resolved else "",
        seconds if resolved else None,
        seconds - clock_offset if resolved and clock_offset is not None else None,
        clock_offset,
    )


def heartbeat(source: str, ts: Ts) -> Transaction:
    """Return a transaction without rows that advances the watermark to `ts`."""
    return Transaction(ts, ts, source, [], str(ts))


def _nobody(_: Table) -> None:
    pass


class Look(Generic[T]):
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
            with suppress(*NO_ANSWER):
                self._found = self._look()
                self._found_at = self._clock.now()
            now = self._clock.now()
            self._next = now + LOOKS_PART * (now - began)
        return self._found
