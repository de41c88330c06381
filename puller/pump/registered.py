"""The pumps in a registry, found by a feed that is a drainer there."""

from __future__ import annotations

from collections.abc import Sequence

from ...actors import Clock
from .pumps import DrainerFeed, PumpStatus
from .registry.location import open_registry
from .registry.node import PUMPS, NodeStatus
from .registry.registry import nodes
from .service.drainer import Drainer
from .service.options import DrainerOptions


class RegisteredPumps:
    """All pumps in the registry. From `start` to `stop` the feed is registered as a drainer."""

    def __init__(self, options: DrainerOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._drainer: Drainer | None = None

    def read(self) -> Sequence[PumpStatus]:
        options = self._options
        registry = open_registry(options.registry, options.security, options.registry_timeout_seconds)
        try:
            return _pumps(nodes(registry, PUMPS))
        finally:
            registry.close()

    def start(self, feed: DrainerFeed) -> None:
        self._drainer = Drainer(
            self._options,
            self._clock,
            update=lambda statuses: feed.accept(_pumps(statuses)),
            looked=lambda error: feed.looked(error, self._options.detect_seconds),
            progress=feed.progress,
            ask_to_stop=feed.ask_to_stop,
            lost=feed.lost,
        )
        self._drainer.start()

    def stop(self) -> None:
        if self._drainer is not None:
            self._drainer.stop()


def _pumps(statuses: Sequence[NodeStatus]) -> list[PumpStatus]:
    return [PumpStatus(node.node_id, node.host, node.state, node.max_commit_ts) for node in statuses]
