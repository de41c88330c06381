"""An emulated MariaDB as a world's source."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from random import Random
from typing import Any, Final

from ...actors import Clock
from ...codec.mysql.position import Position
from ...emulator.mysql.connection import Connection
from ...emulator.mysql.mysql import Mysql
from ...emulator.mysql.transaction import MysqlTransaction
from ...engine.opening import source_context
from ...engine.options import FeedOptions
from ...events import Checkpoint, Ts
from ...puller.mysql.options import MysqlOptions
from ...sources.registry import open_kind
from ...sources.source import Source
from .loop import ClusterLoop
from .machine import Machine
from .plan import CALM_SECONDS, Step
from .sockets import HOST, SimulatedOptions, Stream, listen
from .upstream import Surroundings
from .writers import Writers

OFFSET_BITS: Final = 40
MOST_PASSED: Final = 800
"""Maximum number of bytes that pass before a stall, about those of a transaction."""


class Binlog:
    """The ts of the truth is a place in the log: the file's number and the offset after a transaction."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._loop = ClusterLoop("mariadb", around.host, around.scheduler)
        self._mysql = Mysql(
            clock=around.scheduler.clock, loop=self._loop, listen=partial(listen, around.network)
        )
        self._is_faulty = False
        database = _Database(self._mysql)
        self.writers = Writers(database, around.plan, around.scheduler, around.truth, around.note)

    def create(self, random: Random) -> None:
        self.writers.create(self._around.plan.tables, self._around.plan.rows, random)

    def options(self) -> dict[str, Any]:
        plan = self._around.plan
        return {
            "url": self._mysql.url,
            "chunk_rows": plan.scan_page,
            "snapshot_workers": plan.snapshot_workers,
            "max_batch_bytes": plan.batch_bytes,
        }

    def open_on(self, machine: Machine, options: FeedOptions, clock: Clock) -> Source:
        server = options.source.options
        assert isinstance(server, MysqlOptions)
        given = {one.name: getattr(server, one.name) for one in fields(server)}
        simulated = SimulatedOptions(**given, network=self._around.network, machine=machine)
        return open_kind(options.source.kind, simulated, source_context(options, clock))

    def perform(self, step: Step) -> None:
        random = Random(step.seed)
        seconds = random.random() * CALM_SECONDS
        address = f"{HOST}:{self._mysql.port}"
        match step.word:
            case "rotate":
                self._mysql.rotate()
            case "cut_log":
                self._mysql.cut()
            case "cut":
                self._around.network.cut(address)
            case "hold":
                self._around.network.hold(address, seconds)
            case "stall" | "stall_log":
                streams = self._around.network.streams_to(address)
                if step.word == "stall_log":
                    streams = [one for one in streams if _is_following(one)]
                if streams:
                    after_bytes = random.randrange(MOST_PASSED)
                    random.choice(streams).stall(after_bytes, seconds, breaks=random.random() < 0.5)
            case "silence":
                self._during(self._mysql.silence, seconds)
            case "slow_log":
                self._during(lambda: self._mysql.slow(random.choice((200, 5_000))), seconds)
            case "down":
                self._during(self._mysql.down, seconds)
            case _:
                raise ValueError(f"no fault is called {step.word!r}")

    def _during(self, fault: Callable[[], AbstractContextManager[None]], seconds: float) -> None:
        """Have a fault for a while, unless there is one."""
        if self._is_faulty:
            return
        self._is_faulty = True

        def last() -> None:
            with fault():
                self._around.scheduler.sleep(seconds)
            self._is_faulty = False

        self._around.scheduler.start(self._around.host, "fault", last)

    def calm(self) -> None:
        self._around.scheduler.wait(lambda: not self._is_faulty)
        for stream in self._around.network.streams:
            stream.flow()

    def as_of(self, checkpoint: Checkpoint) -> Ts:
        return _place(checkpoint.position) if checkpoint.position else 0

    def end(self) -> None:
        self._loop._end()


class _Database:
    """The server as writers see it."""

    name = "mariadb"

    def __init__(self, mysql: Mysql) -> None:
        self._mysql = mysql

    def execute(self, statement: str) -> Ts:
        self._mysql.execute(statement.replace(" clustered", ""))
        return _place(self._mysql.position)

    def begin(self, _word: str, _random: Random) -> MysqlTransaction:
        return self._mysql.transaction()

    def commit(self, txn: MysqlTransaction) -> Ts:
        txn.commit()
        return _place(self._mysql.position)


def _is_following(stream: Stream) -> bool:
    return isinstance(stream.protocol, Connection) and stream.protocol.session.is_following


def _place(position: str) -> Ts:
    rank = Position.parse(position).rank
    return rank.number << OFFSET_BITS | rank.offset
