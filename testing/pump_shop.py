"""The shop on the embedded TiDB with pumps, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

from ..events import Ts
from .progress import eventually
from .tikv_shop import World, answer


class PumpWorld(World):
    """The cluster, its tables, its pumps and the writers; without faults of the cluster."""

    def __init__(self, seed: int, pause_seconds: float) -> None:
        super().__init__(seed, pause_seconds)
        for _ in range(3):
            self.tidb.add_pump()
        self.faults = False

    def pumps(self) -> dict[str, tuple[str, str]]:
        """Return address and state of each pump, by node id."""
        return dict(self.tidb.pumps.states())

    def add_pump(self) -> str:
        """Start a pump that gets no binlogs before `serve_pump`; return its node id."""
        return self.tidb.add_pump(serving=False).node_id

    def serve_pump(self, node_id: str) -> None:
        self.tidb.pumps.by_id[node_id].serving = True

    def set_pump(self, node_id: str, state: str) -> Ts:
        """Set a pump's state; return the ts after which a pump that isn't online gets no rows."""
        self.tidb.pump_state(node_id, state)
        eventually(lambda: not self.tidb.pumps.by_id[node_id].is_open)
        return self.tidb.tso()

    def binlogs(self) -> dict[str, int]:
        """Return the number of binlogs that each pump has sent."""
        return {node_id: pump.sent for node_id, pump in self.tidb.pumps.by_id.items()}


class PumpShop:
    """The world's methods, called in its process. Thread-safe."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = Lock()
        self.pd: str = pipe.recv()

    def ask(self, name: str, *arguments: object) -> Any:
        with self._lock:
            self._pipe.send((name, *arguments))
            return self._pipe.recv()


@contextmanager
def pump_shop(seed: int, pause_seconds: float) -> Iterator[PumpShop]:
    """Run the world in a process of its own."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, seed, pause_seconds))
    process.start()
    theirs.close()
    try:
        yield PumpShop(ours)
        ours.send(None)
        process.join()
    finally:
        process.kill()
        process.join()


def _serve(pipe: Connection, seed: int, pause_seconds: float) -> None:
    world = PumpWorld(seed, pause_seconds)
    with world.tidb:
        pipe.send(world.tidb.pd_address)
        answer(world, pipe)
