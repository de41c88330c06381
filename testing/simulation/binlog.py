"""Emulated servers of MariaDB or MySQL, one a replica of the other, as a world's source."""

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

SILENT_DOMAIN: Final = 1
"""A GTID domain in which nothing is written once the feed has started."""
MOST_PASSED: Final = 800
"""Maximum number of bytes that pass before a stall, about those of a transaction."""


class Binlog:
    """The ts of the truth is the number of transactions in the log."""

    def __init__(self, around: Surroundings) -> None:
        plan = around.plan
        self.name = plan.vendor.lower()
        self._around = around
        self._loop = ClusterLoop(self.name, around.host, around.scheduler)
        self._servers: list[Mysql] = []
        for number in range(plan.servers):
            server = Mysql(
                server_id=1 + number,
                clock=around.scheduler.clock,
                loop=self._loop,
                listen=partial(listen, around.network),
                log_name=f"log{number}",
                replica_of=self._servers[0] if self._servers else None,
                vendor=plan.vendor,
                visible_seconds=plan.visible_seconds,
                seek_seconds=plan.seek_seconds,
            )
            for _ in range(3 * number):
                server.rotate()
            self._servers.append(server)
        self._primary = self._servers[0]
        """The server that is written to."""
        self._is_faulty = False
        self._lost: list[Mysql] = []
        """Servers that don't come back."""
        self._domains = [*range(plan.domains)]
        self.writers = Writers(self, plan, around.scheduler, around.truth, around.note)

    def create(self, random: Random) -> None:
        self.writers.create(self._around.plan.tables, self._around.plan.rows, random)
        if SILENT_DOMAIN in self._domains:
            self._domains.remove(SILENT_DOMAIN)

    def options(self) -> dict[str, Any]:
        plan = self._around.plan
        return {
            "url": self._servers[0].url,
            "failover": [f"{HOST}:{server.port}" for server in self._servers[1:]],
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
        network = self._around.network
        server = random.choice(self._servers)
        address = f"{HOST}:{server.port}"
        match step.word:
            case "rotate":
                server.rotate()
            case "cut_log":
                server.cut()
            case "cut":
                network.cut(address)
            case "hold":
                network.hold(address, seconds)
            case "stall" | "stall_log":
                addresses = [f"{HOST}:{one.port}" for one in self._servers]
                streams = [stream for one in addresses for stream in network.streams_to(one)]
                if step.word == "stall_log":
                    streams = [stream for stream in streams if _is_following(stream)]
                if streams:
                    after_bytes = random.randrange(MOST_PASSED)
                    random.choice(streams).stall(after_bytes, seconds, breaks=random.random() < 0.5)
            case "silence":
                self._during(server.silence, seconds)
            case "slow_log":
                self._during(lambda: server.slow(random.choice((200, 5_000))), seconds)
            case "down":
                self._during(server.down, seconds)
            case "fail_over":
                before = self._primary
                self._primary = random.choice(self._others())
                self._during(before.down, seconds)
            case "lose":
                others = self._others()
                if others != [self._primary]:
                    self._lose(self._primary)
                    self._primary = random.choice(others)
            case _:
                raise ValueError(f"no fault is called {step.word!r}")

    def _others(self) -> list[Mysql]:
        """Return the servers that may be written to from now on in place of the present one."""
        others = [one for one in self._servers if one is not self._primary and one not in self._lost]
        return others or [self._primary]

    def _lose(self, server: Mysql) -> None:
        """Have a server go down for good."""
        self._lost.append(server)

        def lose() -> None:
            self._around.scheduler.wait(lambda: not self._is_faulty)
            server.close()

        self._around.scheduler.start(self._around.host, "fault", lose)

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
        if not checkpoint.position:
            return 0
        position = Position.parse(checkpoint.position)
        log = self._servers[0].server.log
        if position.gtid and not self._around.plan.is_permissive:
            return log.read_gtids(position.gtid).count
        return log.transactions_at(position.file, position.offset)

    def end(self) -> None:
        self._loop._end()

    # --- of writers ------------------------------------------------------------------------------

    def execute(self, statement: str) -> Ts:
        self._primary.execute(statement.replace(" clustered", ""))
        return self._transactions

    def begin(self, _word: str, random: Random) -> MysqlTransaction:
        is_anonymous = self._around.plan.is_permissive and random.random() < 0.5
        domain = None if is_anonymous else self._domains[0]
        if len(self._domains) > 1:
            domain = random.choice(self._domains)
        return self._primary.transaction(domain=domain)

    def commit(self, txn: MysqlTransaction) -> Ts:
        txn.commit()
        return self._transactions

    @property
    def _transactions(self) -> int:
        return self._primary.server.log.transactions


def _is_following(stream: Stream) -> bool:
    return isinstance(stream.protocol, Connection) and stream.protocol.session.is_following
