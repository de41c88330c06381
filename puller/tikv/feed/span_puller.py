"""The actor that combines a table's regions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ....actors import PooledActor, PooledRef, Target
from ....codec.blocks import NOTHING, merge
from ....events import Block, Changes, Ts
from ...frontier import Frontier
from ..span import Span

log = logging.getLogger("tidemill.puller")

MAILBOX: Final = 128
"""Capacity in messages, as of TiCDC's channels."""

MAX_CHANGES: Final = 1024
"""Maximum number of changes per message: a mailbox is bounded in messages."""

MAX_BYTES: Final = 1 << 20
"""Bytes of a message's changes, about: changes of values larger than 1 KiB come in smaller messages."""


class Pulled(Struct, frozen=True, gc=False):
    """To a SpanPuller: changes of some regions, then resolved ts of regions."""

    changes: Block
    """At most MAX_CHANGES changes."""
    resolved: list[tuple[int, Span, Ts]]
    """Region id, its part of the subscription's span, and the ts up to which all of it was sent."""


class SpanProgress:
    """Progress of a SpanPuller: its input and output; written in its turns only, read from any thread."""

    __slots__ = (
        "changes",
        "egress_commit_ts",
        "egress_resolved_ts",
        "fallen_back",
        "ingress_commit_ts",
        "ingress_resolved_ts",
        "ref",
        "regions",
        "since",
        "subscriptions",
        "table_id",
    )

    ref: PooledRef[Pulled]
    """The SpanPuller's actor, set before anything else uses the progress."""

    def __init__(self, ts: Ts, now: float, table_id: int = 0) -> None:
        self.table_id = table_id
        self.regions = 0
        """Number of segments of the span that a region has reported, or that wait for a report."""
        self.changes = 0
        """Number of changes sent."""
        self.ingress_commit_ts = self.egress_commit_ts = 0
        """Commit ts of the last change; 0 before the first."""
        self.ingress_resolved_ts = self.egress_resolved_ts = ts
        """Resolved ts of the last region that advanced, and of the table."""
        self.fallen_back = 0
        """Changes dropped because their commit ts is at or below the table's resolved ts."""
        self.subscriptions: tuple[int, ...] = ()
        """Its subscription ids, once known; written by the loop's thread."""
        self.since = now
        """Time at which the table's resolved ts last advanced, by the clock's `now()`."""


class SpanPuller(PooledActor[Pulled]):
    """Sends the changes of a table's regions to `output` as Changes, with the resolved ts of the whole table
    whenever it advances (TiCDC puller document). Kept small: a feed has 100,000."""

    __slots__ = ("_frontier", "_output", "progress")

    def __init__(
        self, spans: Sequence[Span], checkpoint_ts: Ts, output: Target[Changes], progress: SpanProgress
    ) -> None:
        """Everything of `spans` at or below `checkpoint_ts` has been processed already."""
        self._output: Target[Changes] = output.actor_inbox  # takes no ref's memory
        self.progress = progress
        self._frontier = Frontier(spans, checkpoint_ts)

    def on_receive_batch(self, messages: Sequence[Pulled]) -> None:
        progress, frontier = self.progress, self._frontier
        blocks = [m.changes for m in messages if m.changes]
        if blocks:
            progress.ingress_commit_ts = blocks[-1].last_ts
            if min([block.first_ts for block in blocks]) <= progress.egress_resolved_ts:
                blocks = [above for block in blocks if (above := self._above_resolved(block))]
        ts = 0
        for message in messages:
            for _, span, ts in message.resolved:
                frontier.forward(span, ts)
        resolved = self._resolved(ts) if ts else 0
        if blocks or resolved:
            progress.changes += sum(map(len, blocks))
            *others, last = _merged(blocks)
            for block in others:
                self.send(self._output, Changes(block))
            self.send(self._output, Changes(last, resolved))
            if last:
                progress.egress_commit_ts = last.last_ts

    def advance(self, resolved: Sequence[tuple[int, Span, Ts]]) -> Ts:
        """Do the same as a Pulled without changes, but return the table's new resolved ts for the caller to
        forward; 0 if it didn't advance. Only while the actor is claimed."""
        forward = self._frontier.forward
        ts = 0
        for _, span, ts in resolved:
            forward(span, ts)
        return self._resolved(ts)

    def _resolved(self, last: Ts) -> Ts:
        """Return the table's resolved ts if it advanced, otherwise 0."""
        progress, frontier = self.progress, self._frontier
        progress.ingress_resolved_ts = last
        progress.regions = len(frontier)
        ts = frontier.ts
        if ts <= progress.egress_resolved_ts:
            return 0
        progress.egress_resolved_ts = ts
        progress.since = self.clock.now()
        return ts

    def _above_resolved(self, changes: Block) -> Block:
        resolved = self.progress.egress_resolved_ts
        dropped = changes.find(resolved + 1)
        if dropped and not self.progress.fallen_back:
            log.warning("%s: dropped %d changes at or below the resolved ts %d", self.name, dropped, resolved)
        self.progress.fallen_back += dropped
        return changes.slice(dropped, len(changes))


def _merged(blocks: Sequence[Block]) -> list[Block]:
    """Merge neighbouring blocks up to MAX_CHANGES each; return at least one block, maybe an empty one."""
    groups: list[list[Block]] = []
    room = 0
    for block in blocks:
        if len(block) > room:
            groups.append([])
            room = MAX_CHANGES
        groups[-1].append(block)
        room -= len(block)
    return [merge(group) for group in groups] or [NOTHING]
