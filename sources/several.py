"""Several sources as one: their transactions are merged by commit ts."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import Final

import pykka
from msgspec import Struct
from msgspec.structs import replace

from ..actors import ActorSystem, Clock
from ..chain.selection.tables import TablePatterns
from ..errors import ConfigError, Retryable
from ..events import (
    Checkpoint,
    Item,
    SnapshotProgress,
    Sorted,
    TablePosition,
    Transaction,
    Ts,
    Wait,
    source_and_table,
)
from ..puller.lane import LoadBarrier
from ..puller.puller import PullerStatistics, SourceHead
from ..sharding.key_space import KeySpace
from .positions import Ranks, decode_clocks, decode_positions, encode_positions
from .source import Source, SourceInfo, SourceTraits, StartContext, no_table_matches
from .table_names import TableNames

log = logging.getLogger("tidemill")

BUSY_SECONDS: Final = 1.0
"""Driver calls longer than this are reported as waiting."""
STOP_SECONDS: Final = 0.5
"""Grace period for the pullers at the end; a read waits for less."""


class Member(Struct, frozen=True):
    """One of several sources; its place in the sequence is the index of its lane."""

    name: str
    source: Source
    tables: TablePatterns
    loads: bool

    @property
    def stage(self) -> str:
        """Name of the source in waits and retries."""
        return f"source {self.name}"


def identity_of(identities: Mapping[str, str]) -> str:
    """Return the identity of several sources, from theirs by name."""
    return ", ".join(f"{name}: {source}" for name, source in identities.items())


def identities_in(identity: str) -> dict[str, str]:
    """Return the identities of the sources by name, from that of all."""
    return dict(part.split(": ", 1) for part in identity.split(", ")) if identity else {}


def part_of(
    checkpoint: Checkpoint, name: str, names: Sequence[str], tables: TableNames, identity: str
) -> Checkpoint:
    """Return what of a checkpoint concerns one source, by its name among all `names`. Raises
    CheckpointError."""
    ahead = {
        table: TablePosition(own.ts, decode_positions(own.position, names)[name])
        for table, own in checkpoint.tables.items()
        if own.ts > checkpoint.ts and source_and_table(table, names)[0] in ("", name)
    }
    position = decode_positions(checkpoint.position, names)[name]
    return Checkpoint(
        checkpoint.ts, position, tables.loading(checkpoint.loading, name), identity, tables=ahead
    )


class Several(Source):
    """Each source has its own puller, keyspace and mounter; the sorter merges them.

    A commit ts tells its source, as each source has a lane of its own. The position after an item is the
    position of every source after its last transaction up to the item's commit ts, so a restart from any
    checkpoint begins each source exactly after what the target has of it.
    """

    traits = SourceTraits(has_key_spaces=True)

    def __init__(self, members: Sequence[Member], clock: Clock, names: TableNames) -> None:
        self.address = ", ".join(member.source.address for member in members)
        self._members = members
        self._names = [member.name for member in members]
        self._clock = clock
        self._table_names = names
        self._identities: dict[str, str] = {}
        self._ends: dict[str, str] = {}
        self._positions: dict[str, str] = {}
        """Position of each source after its last item, by name."""
        self._clocks: dict[str, Ts] = {}
        """Commit ts of each source's last item, by name."""
        self._loading: set[str] = set()
        """Sources whose snapshot isn't complete."""
        self._system: ActorSystem | None = None

    def look(self) -> SourceInfo:
        tables: list[tuple[str, str]] = []
        for member in self._members:
            try:
                info = member.source.look()
            except Retryable as error:
                raise Retryable(f"{member.name}: {error}", error.wait) from error
            if unmatched := member.tables.unmatched(info.tables):
                raise ConfigError(f"{member.stage}: {no_table_matches(unmatched, info.tables)}")
            self._identities[member.name] = info.source
            self._ends[member.name] = info.end
            tables += [table for table in info.tables if member.tables.matches(*table)]
        return SourceInfo(
            identity_of(self._identities),
            encode_positions(self._ends),
            tables,
            tuple(self._names),
        )

    @contextmanager
    def key_spaces(self) -> Iterator[list[KeySpace]]:
        with ExitStack() as stack:
            spaces: list[KeySpace] = []
            for member in self._members:
                spaces += stack.enter_context(member.source.key_spaces())
            yield spaces

    # --- positions -------------------------------------------------------------------------------

    def _decoded(self, position: str) -> dict[str, str]:
        return decode_positions(position, self._names)

    @property
    def begins_at(self) -> str:
        if not any(member.source.begins_at for member in self._members):
            return ""
        return self._begin()

    def described(self, position: str) -> str:
        return ", ".join(f"{name} at {own}" for name, own in self._decoded(position).items())

    def rank(self, position: str) -> Ranks:
        positions = self._decoded(position)
        return Ranks(member.source.rank(positions[member.name]) for member in self._members)

    def behind(self, sink: str, position: str, end: str) -> str:
        positions, ends = self._decoded(position), self._decoded(end)
        return "; ".join(
            member.source.behind(sink, positions[member.name], ends[member.name])
            for member in self._members
            if member.source.rank(positions[member.name]) > member.source.rank(ends[member.name])
        )

    def check_seek(self, position: str) -> None:
        positions = self._decoded(position)
        for member in self._members:
            member.source.check_seek(positions[member.name])

    # --- life ------------------------------------------------------------------------------------

    def start(self, context: StartContext) -> None:
        # Every source begins at a position that is known before the first item of any leaves: an item's
        # position names all sources.
        start = context.start or self._first()
        self._positions = self._decoded(start.position)
        self._clocks = dict.fromkeys(self._names, start.ts) | decode_clocks(start.position)
        self._sorter = context.sorter
        if start.loading is not None:
            self._loading = set(self._names)
        barrier = None if start.loading is None else LoadBarrier(len(self._members))
        self._system = ActorSystem("sources", workers=len(self._members), clock=self._clock)
        for member in self._members:
            member.source.start(
                replace(
                    context,
                    blocking=self._system,
                    start=replace(self._part(start, member), ts=self._clocks[member.name]),
                    sink_checkpoints=[self._part(one, member) for one in context.sink_checkpoints],
                    unneeded=frozenset(
                        table
                        for source, table in (source_and_table(x, self._names) for x in context.unneeded)
                        if source in ("", member.name)
                    ),
                    load_barrier=barrier,
                )
            )

    def _first(self) -> Checkpoint:
        """Return the checkpoint from which a new feed begins."""
        loading: SnapshotProgress | None = {} if self._members[0].loads else None
        return Checkpoint(0, self._begin(), loading)

    def _begin(self) -> str:
        """Return the position from which a new feed begins: a source without one begins at its end."""
        return encode_positions(
            {member.name: member.source.begins_at or self._ends[member.name] for member in self._members}
        )

    def _part(self, checkpoint: Checkpoint, member: Member) -> Checkpoint:
        name = member.name
        return part_of(checkpoint, name, self._names, self._table_names, self._identities[name])

    def stop(self) -> None:
        if self._system is not None:
            for member in self._members:
                member.source.stop()

    def close(self) -> None:
        system, self._system = self._system, None
        if system is not None:
            try:
                system.stop(timeout=STOP_SECONDS)
            except pykka.Timeout as error:
                log.warning("stopped without waiting any longer: %s", error)
        for member in self._members:
            member.source.close()

    # --- items -----------------------------------------------------------------------------------

    def mount(self, released: Sorted) -> list[Item]:
        count = len(self._members)
        changes = released.changes
        items: list[Item] = []
        stop = 0
        for lane, group in groupby(changes, key=lambda change: change.commit_ts % count):
            start, stop = stop, stop + sum(1 for _ in group)
            continues = released.continues and stop == len(changes)
            member = self._members[lane]
            mounted = member.source.mount(Sorted(changes.slice(start, stop), released.resolved, continues))
            items += [self._placed(item, member.name) for item in mounted]
        return items

    def _placed(self, item: Item, name: str) -> Item:
        """Return an item with the position of all sources, and the feed's names of tables."""
        item = self._table_names.item(item, name)
        if not item.last:
            return item
        self._positions[name] = item.position
        self._clocks[name] = item.commit_ts
        position = encode_positions(self._positions, self._clocks)
        if isinstance(item, Transaction) and item.chunk is not None and not item.chunk.table:
            self._loading.discard(name)
            if self._loading:  # then the feed's snapshot goes on
                return replace(item, position=position, chunk=None)
        return replace(item, position=position)

    def acknowledged(self, ts: Ts) -> None:
        for member in self._members:
            member.source.acknowledged(ts)

    # --- what it says of itself ------------------------------------------------------------------

    def statistics(self) -> PullerStatistics | None:
        statistics = [member.source.statistics() for member in self._members]
        known = [one for one in statistics if one is not None]
        if len(known) < len(statistics):
            return None
        positions = {name: one.position for name, one in zip(self._names, known, strict=True)}
        slowest = min(known, key=lambda one: one.resolved_ts)
        return PullerStatistics(
            state=slowest.state,
            position=encode_positions(positions) if all(positions.values()) else "",
            bytes=sum(one.bytes for one in known),
            events=sum(one.events for one in known),
            row_events=sum(one.row_events for one in known),
            transactions=sum(one.transactions for one in known),
            ingress_ts=max(one.ingress_ts for one in known),
            resolved_ts=slowest.resolved_ts,
            connected_at=min(one.connected_at for one in known),
            retries=sum(one.retries for one in known),
            head=self._head([one.head for one in known]),
        )

    def _head(self, heads: Sequence[SourceHead]) -> SourceHead:
        """Return what is known of the end of all sources: of each time the earliest."""
        ends = {name: head.position for name, head in zip(self._names, heads, strict=True)}
        until, caught_up_at, offsets = (
            [value for value in values if value is not None]
            for values in zip(*((h.read_until, h.caught_up_at, h.clock_offset) for h in heads), strict=True)
        )
        return SourceHead(
            encode_positions(ends) if all(ends.values()) else "",
            min(until) if len(until) == len(heads) else None,
            min(caught_up_at) if len(caught_up_at) == len(heads) else None,
            max(offsets, default=None),
            max(head.resolution_seconds for head in heads),
        )

    def hours_left(self, place: TablePosition, age_seconds: float) -> float | None:
        positions = self._decoded(place.position)
        left = [
            member.source.hours_left(TablePosition(place.ts, positions[member.name]), age_seconds)
            for member in self._members
        ]
        return min((hours for hours in left if hours is not None), default=None)

    @property
    def rest_seconds(self) -> float:
        return max(member.source.rest_seconds for member in self._members)

    def waits(self) -> list[Wait]:
        """Return waits for the source that holds the others back, and for servers that don't answer."""
        if self._system is None:
            return []
        now = self._clock.now()
        addresses = {member.stage: member.source.address for member in self._members}
        waits = [
            Wait(str(actor.name), "answer", now - actor.turn_since, on=addresses[actor.name])
            for actor in self._system.statistics().actors
            if actor.turn_since is not None and now - actor.turn_since > BUSY_SECONDS
        ]
        for wait in self._sorter.explain():
            if wait.kind == "table" and wait.table_id is not None:
                slowest = self._members[wait.table_id - 1]
                on = f"{slowest.stage} ({slowest.source.address})"
                waits.append(Wait(wait.stage, "source", wait.seconds, on=on, ts=wait.ts))
        for member in self._members:
            waits += member.source.waits()
        return waits

    def table_name(self, table_id: int) -> str:
        return self._members[table_id - 1].stage
