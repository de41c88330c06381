"""Processing of region events to changes and resolved ts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from ....actors import PooledActor
from ....codec.blocks import BlockBuilder, cut, new_builder
from ....codec.proto import cdcpb
from ....codec.proto.change_data import Rows
from ....events import Ts
from ..match.matcher import Matcher, PrewriteNotMatch
from ..match.spill import Quota
from .advance import DirtySet
from .error_table import Reaction, classify
from .reports import Initialised, RegionBroken, RegionReports
from .request import Request, Subscription
from .request_group import RequestGroup
from .span_puller import MAX_BYTES, MAX_CHANGES, Pulled

_INITIALIZED: Final[int] = cdcpb.Event.INITIALIZED

Payload: TypeAlias = Rows | cdcpb.Error
"""Payload for one region: rows or a cdcpb.Error."""


class RegionEvents:
    """Processes events in an actor's turn; `flush` sends the results, one message per subscription."""

    def __init__(self, actor: PooledActor[Any], reports: RegionReports, dirty: DirtySet) -> None:
        self._actor = actor
        self._dirty = dirty
        self._reports = reports
        self._outputs: dict[Subscription, BlockBuilder] = {}

    def take(self, group: RequestGroup, request: Request, payload: Payload, quota: Quota) -> None:
        """Process one event of a region."""
        if request.stopped:
            return
        request.heard_at = self._actor.clock.now()
        if isinstance(payload, cdcpb.Error):
            self.end(group, request, RegionBroken(request, classify(payload)))
        else:
            self._take_rows(group, request, payload, quota)

    def advance(self, resolved: Iterable[tuple[Request, Ts]], messages: int) -> None:
        """Process resolved ts of regions; `messages` were received since the last call.

        Only while none of the actor's output waits: the changes at or below must have been sent.
        """
        now = self._actor.clock.now()
        moved: dict[Subscription, None] = {}
        for request, ts in resolved:
            if not request.initialised or request.stopped:
                continue
            request.heard_at = now
            if ts <= request.resolved_ts:
                request.stall_count += messages
                continue
            request.resolved_ts = ts
            request.stall_count = 0
            request.since = now
            moved[request.subscription] = None
        if moved:
            self._dirty.put(moved)

    def end(self, group: RequestGroup, request: Request, report: RegionBroken) -> None:
        """End a request and report it."""
        forget(group, request)
        self._reports.put(report)

    def flush(self) -> None:
        outputs, self._outputs = self._outputs, {}
        send = self._actor.send
        for subscription, builder in outputs.items():
            for piece in cut(builder.take(), MAX_CHANGES, MAX_BYTES):
                send(subscription.ref, Pulled(piece, []))

    def _take_rows(self, group: RequestGroup, request: Request, rows: Rows, quota: Quota) -> None:
        initialised = request.initialised
        if request.matcher is None and len(rows) == 1 and rows[0][0] == _INITIALIZED:
            request.initialised = True  # most regions have nothing to match, and this costs nothing for them
        else:
            self._match(group, request, rows, quota)
        if request.initialised and not initialised:
            request.since = self._actor.clock.now()
            self._reports.put(Initialised(request))

    def _match(self, group: RequestGroup, request: Request, rows: Rows, quota: Quota) -> None:
        matcher = request.matcher
        if matcher is None:
            matcher = request.matcher = Matcher(request, quota)
        builder = self._outputs.get(request.subscription)
        if builder is None:
            builder = self._outputs[request.subscription] = new_builder()
        try:
            matcher.feed(rows, builder)
        except PrewriteNotMatch as error:
            action = Reaction("same_region", "PrewriteNotMatch", wait=error.wait or 0.0)
            self.end(group, request, RegionBroken(request, action, by_store=False))


def forget(group: RequestGroup, request: Request) -> None:
    """Drop the state of a request."""
    request.stopped = True
    group.pending.pop(request.id, None)
    if group.regions.get(request.id) is request:
        del group.regions[request.id]
    if request.matcher is not None:
        request.matcher.close()
        request.matcher = None


def forget_all(groups: Sequence[RequestGroup]) -> list[Request]:
    """Drop all requests of some groups; return those that weren't stopped."""
    requests = []
    for group in groups:
        for request in list(group.regions.values()):
            if not request.stopped:
                requests.append(request)
            forget(group, request)
    return requests
