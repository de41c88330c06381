"""The HTTP requests that a drainer answers; paths and JSON are those of TiDB-Binlog's drainer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from ....actors import Clock
from ..registry.node import NodeState
from .http import HttpAnswer, json_answer, text_answer
from .metrics import Metrics
from .progress import DrainerProgress

log = logging.getLogger("tidemill.puller")

ACTIONS: Final[dict[str, NodeState]] = {"pause": "pausing", "close": "closing"}
"""State after a command. A drainer that was paused goes on when it is started; a closed one has left."""

DONE: Final = 200
FAILED: Final = 3
"""Values of "code"; the status of HTTP is 200 for both."""


class DrainerRoutes:
    """Answers requests, in the loop's thread; its callbacks must be quick.

    `act` sets a state and begins the shutdown, or returns the present state if that isn't online.
    """

    def __init__(
        self,
        node_id: str,
        clock: Clock,
        progress: Callable[[], DrainerProgress],
        act: Callable[[NodeState], NodeState | None],
        metrics: Metrics,
        synced_check_seconds: float,
    ) -> None:
        self._node_id = node_id
        self._clock = clock
        self._progress = progress
        self._act = act
        self._metrics = metrics
        self._synced_check_seconds = synced_check_seconds

    def __call__(self, method: str, path: str) -> HttpAnswer:
        match [unquote(part) for part in path.split("/")[1:]]:
            case ["status"]:
                return self._for("GET", method) or json_answer(self._status())
            case ["commit_ts"]:
                data = {"ts": self._progress().commit_ts}
                return self._for("GET", method) or _answer("get drainer's latest ts success!", DONE, data)
            case ["metrics"]:
                return self._for("GET", method) or self._metrics_answer()
            case ["state", node_id, action]:
                return self._for("PUT", method) or self._state(node_id, action)
        known = "GET /status, GET /commit_ts, GET /metrics, PUT /state/NODE/pause, PUT /state/NODE/close"
        return text_answer(HTTPStatus.NOT_FOUND, f"nothing is at {path!r}; known requests: {known}")

    def _for(self, wanted: str, method: str) -> HttpAnswer | None:
        """Return the answer to a wrong method; None for the right one."""
        if method == wanted or (wanted == "GET" and method == "HEAD"):
            return None
        return text_answer(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not allowed here; use {wanted}")

    def _status(self) -> dict[str, object]:
        progress = self._progress()
        idle_seconds = self._clock.now() - progress.last_success
        return {
            "PumpPos": progress.pump_positions,
            "Synced": idle_seconds > self._synced_check_seconds,
            "LastTS": progress.commit_ts,
            "TsMap": progress.ts_map,
        }

    def _metrics_answer(self) -> HttpAnswer:
        try:
            return HttpAnswer(HTTPStatus.OK, self._metrics.text(), self._metrics.content_type)
        except ImportError:
            return text_answer(HTTPStatus.NOT_IMPLEMENTED, "/metrics needs: pip install 'tidemill[metrics]'")

    def _state(self, node_id: str, action: str) -> HttpAnswer:
        log.info("request to %s node %s", action, node_id)
        if node_id != self._node_id:
            return _answer(f"invalid nodeID {node_id}, this drainer's nodeID is {self._node_id}", FAILED)
        if action not in ACTIONS:
            return _answer(f"invalid action {action}; accepted: {', '.join(ACTIONS)}", FAILED)
        present = self._act(ACTIONS[action])
        if present is not None:
            return _answer(f"this drainer's state is {present}, apply {action} failed!", FAILED)
        return _answer(f"apply action {action} success!", DONE)


def _answer(message: str, code: int, data: object = None) -> HttpAnswer:
    return json_answer({"message": message, "code": code, "data": data})
