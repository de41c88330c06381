"""A drainer without a feed: its callbacks keep what they were called with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from threading import Event
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from tidemill.actors import Clock
from tidemill.puller.pump.registry.location import open_registry
from tidemill.puller.pump.registry.node import DRAINERS, NodeStatus, decode, key
from tidemill.puller.pump.service.drainer import Drainer
from tidemill.puller.pump.service.options import DrainerOptions
from tidemill.puller.pump.service.progress import DrainerProgress


class RunningDrainer:
    def __init__(
        self, *, clock: Clock, node_id: str = "d1", listen: str = "127.0.0.1:0", **options: Any
    ) -> None:
        self.progress = DrainerProgress(
            pump_positions={"p1": 40 << 18, "p2": 39 << 18},
            commit_ts=38 << 18,
            checkpoint_ts=37 << 18,
            last_success=clock.now(),
            disorders=2,
            events={"Insert": 5, "DDL": 1},
        )
        self.pumps: list[str] = []
        self.failure: Exception | None = None
        self.asked_to_stop = Event()
        self.lost: list[Exception] = []
        self.options = DrainerOptions(node_id=node_id, listen=listen, **options)
        self.drainer = Drainer(
            self.options,
            clock,
            update=self._update,
            progress=lambda: self.progress,
            ask_to_stop=self.asked_to_stop.set,
            lost=self.lost.append,
        )

    def _update(self, pumps: Sequence[NodeStatus]) -> None:
        if self.failure is not None:
            raise self.failure
        self.pumps = [pump.node_id for pump in pumps]

    def start(self) -> Self:
        self.drainer.start()
        return self

    @property
    def record(self) -> NodeStatus:
        """The drainer's record in the registry."""
        where = key(DRAINERS, self.drainer.node_id)
        found = open_registry(self.options.registry).get(where)
        assert found is not None
        return decode(where, found.value)

    def request(self, method: str, path: str) -> tuple[int, Any]:
        """Send a request; return the status and the answer, parsed if it is JSON."""
        opener = build_opener(ProxyHandler({}))
        try:
            with opener.open(
                Request(f"http://{self.drainer.address}{path}", method=method), timeout=60
            ) as answer:
                status, body, kind = answer.status, answer.read().decode(), answer.headers["Content-Type"]
        except HTTPError as error:
            status, body, kind = error.code, error.read().decode(), error.headers["Content-Type"]
        return status, json.loads(body) if "json" in kind else body
