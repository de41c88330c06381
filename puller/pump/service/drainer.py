"""This process as a drainer of its cluster: in the registry, on its port, with a list of pumps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Event
from typing import Any

import grpc

from ....actors import Clock
from ....codec.proto import CISTERN
from ....errors import TidemillError
from ....events import compose_ts
from ....failpoint import reach
from ...grpc.loop import LoopThread
from ..registry.heartbeat import Heartbeat
from ..registry.location import open_registry
from ..registry.node import NodeState, NodeStatus
from ..registry.pump_watch import PumpWatch
from ..registry.registration import Registration
from ..registry.registry import NodeRegistry
from .metrics import Metrics, MetricsPush
from .options import DrainerOptions, node_id
from .port import Port
from .progress import DrainerProgress
from .routes import DrainerRoutes

log = logging.getLogger("tidemill.puller")


class Drainer:
    """A node of a TiDB-Binlog cluster. `start` and `stop` are called from one thread, not an actor's.

    Callbacks, each called in a thread of this object's:
    `update` is given all pumps, at the start, each few seconds and when a pump notifies; see PumpWatch.
    `looked` is called after each look at the pumps; see PumpWatch.
    `progress` returns the present progress; quick, and called from several threads.
    `ask_to_stop` is called once when somebody has paused or closed this drainer; quick. The feed then stops,
    and calls `stop`.
    `lost` is called at most once, with the error that ends the drainer: see Heartbeat.
    """

    def __init__(
        self,
        options: DrainerOptions,
        clock: Clock,
        *,
        update: Callable[[Sequence[NodeStatus]], None],
        looked: Callable[[Exception | None], None] = lambda _error: None,
        progress: Callable[[], DrainerProgress],
        ask_to_stop: Callable[[], None],
        lost: Callable[[TidemillError], None],
        approximate_ts: Callable[[], int] | None = None,
    ) -> None:
        """`approximate_ts` returns about the present TSO; without it, this machine's clock does.

        Raises ConfigError for options that can't be used. Nothing is connected yet.
        """
        self._options = options
        self._clock = clock
        self._progress = progress
        self._ask_to_stop = ask_to_stop
        self._lost = lost
        self._approximate_ts = approximate_ts or (lambda: compose_ts(round(clock.time() * 1000)))
        self._registries: list[NodeRegistry] = []
        self._watch = PumpWatch(self._registry(), clock, update, options.detect_seconds, looked)
        self._heartbeat: Heartbeat | None = None
        self._listening = False
        self.node_id = node_id(options)
        metrics = Metrics(clock, progress)
        routes = DrainerRoutes(
            self.node_id, clock, progress, self._act, metrics, options.synced_check_seconds
        )
        self._port = Port(options.listen, cistern(self._watch.notify), routes, options.security)
        self._loop = LoopThread("tidemill-drainer", self._log)
        self._push = (
            MetricsPush(options.pushgateway, self.node_id, metrics, clock, options.push_seconds)
            if options.pushgateway
            else None
        )

    @property
    def address(self) -> str:
        """Address in the registry."""
        return self._options.advertise or self._port.address

    def start(self) -> None:
        """Listen, register, and begin to follow the list of pumps.

        Takes some seconds if the record says that a drainer of this id runs. Raises NodeInUse if one does,
        ConfigError for an address in use, and RegistryUnavailable; everything is released then.
        """
        try:
            self._loop.start()
            self._listening = True
            self._loop.run(self._port.start())
            registration = Registration(self._registry(), self.node_id, self.address, self._approximate_ts)
            registration.claim(self._wait, self._commit_ts())
            self._heartbeat = Heartbeat(
                registration, self._clock, self._commit_ts, self._lost, self._options.heartbeat_seconds
            )
            self._heartbeat.start()
            self._watch.start()
            if self._push is not None:
                self._push.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Leave the state of a clean shutdown in the registry, and release everything. Idempotent."""
        if self._heartbeat is not None:
            self._heartbeat.stop()  # first: pumps notify online drainers only
        self._watch.stop()
        if self._push is not None:
            self._push.stop()
        if self._listening:
            self._listening = False
            self._loop.run(self._port.stop())
        self._loop.stop()
        for registry in self._registries:
            registry.close()

    def _act(self, state: NodeState) -> NodeState | None:
        if self._heartbeat is None:
            return "paused"  # it isn't registered yet
        present = self._heartbeat.change(state)
        if present is None:
            self._ask_to_stop()
        return present

    def _wait(self) -> None:
        """Wait for the time between two heartbeats."""
        passed = Event()
        self._clock.call_at(self._clock.now() + self._options.heartbeat_seconds, passed.set)
        passed.wait()

    def _commit_ts(self) -> int:
        return self._progress().commit_ts

    def _registry(self) -> NodeRegistry:
        """Open another connection, for another thread."""
        options = self._options
        self._registries.append(
            open_registry(options.registry, options.security, options.registry_timeout_seconds)
        )
        return self._registries[-1]

    def _log(self, error: BaseException) -> None:
        log.error("a task of the drainer's port failed", exc_info=error)


def cistern(notify: Callable[[], Future[None]]) -> grpc.GenericRpcHandler[object, object]:
    """Return the handlers of binlog.Cistern.

    Notify is answered when the future of `notify` is done; its error is the call's, with the code UNKNOWN as
    in TiDB-Binlog. Other calls are answered with UNIMPLEMENTED.
    """
    method = CISTERN["Notify"]

    async def answer(_request: Any, context: Any) -> Any:
        reach("drainer.notified")
        try:
            await asyncio.wrap_future(notify())
        except Exception as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        reach("drainer.accepted")
        return method.response()

    handler = grpc.unary_unary_rpc_method_handler(
        answer, method.request.FromString, method.response.SerializeToString
    )
    return grpc.method_handlers_generic_handler("binlog.Cistern", {"Notify": handler})
