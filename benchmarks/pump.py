"""Pulling and merging pumps, compared with bare gRPC clients that receive and parse the same binlogs; and the
rows with a relay, compared with the rows without one."""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection
from random import Random
from threading import Event
from typing import Any

from grpc import aio

from ..actors import ActorSystem, PooledActor, PooledRef, SystemClock
from ..codec.proto import PUMP, binlog
from ..codec.tidb.datum import Flag, encode_datum
from ..codec.tidb.job import Job
from ..codec.tidb.old_row import join_row
from ..codec.tidb.record import JobRecord
from ..emulator.cluster import Cluster
from ..emulator.server import Server as GrpcServer
from ..emulator.server import unary_stream
from ..events import Changes, Sorted, Ts
from ..puller.puller import SourceReport
from ..puller.pump.collector import Collector
from ..puller.pump.messages import Pause, PumpsListed, Resume, ToCollector
from ..puller.pump.options import PumpOptions
from ..puller.pump.progress import BinlogMergeProgress, PumpProgress
from ..puller.pump.puller import PumpPuller
from ..puller.pump.pumps import PumpStatus
from ..puller.tikv.client import TikvClient
from ..sorter import EventSorter, SorterOptions, open_sorter
from .pump_idle import IDLE_TS, Idle, Latencies
from .pump_rows import Decoding, decoding
from .turns import Server, Subject, note, serve_until_ended, serving, take_turns

FIRST_TS = 440_000_000_000_000_000
VALUE_BYTES = 150
_now = SystemClock().now


def run(binlogs: int = 120_000, pumps: int = 3, rounds: int = 3) -> dict[str, Any]:
    """Measure from the pumps' sockets to the merged order, and the bare clients; then to rows, with a relay
    and without, in thousand binlogs per second. At last, with nothing else to do, the latency of a fake
    binlog that all pumps send at once, in milliseconds.

    The pumps play recordings in a process of its own, as is each subject; they take turns, and the best round
    counts. A binlog is a transaction of one row.
    """
    if pumps < 1 or binlogs < pumps:
        raise ValueError(f"binlogs {binlogs}, pumps {pumps}: at least one binlog in each pump, and one pump")
    with serving(_serve, binlogs, pumps) as server:
        subjects: dict[str, Subject] = {"ours": _ours, "bare": bare, "relayed": _relayed, "decoded": _decoded}
        results = take_turns(server, subjects, rounds)
        idle = take_turns(server, {"ours": _latency, "bare": _bare_latency}, rounds)
    figures: dict[str, Any] = {}
    bare_client: dict[str, Any] = {}
    no_relay: dict[str, Any] = {}
    for subject, into, name in (
        ("ours", figures, "merged"),
        ("relayed", figures, "relayed"),
        ("bare", bare_client, "merged"),
        ("decoded", no_relay, "relayed"),
    ):
        best = results[subject]
        into[name] = round(binlogs / best["seconds"] / 1e3, 1)
        note(into, name, best)
    return {
        "bench": "pump",
        "settings": {"binlogs": binlogs, "pumps": pumps, "value_bytes": VALUE_BYTES, "rounds": rounds},
        "figures": figures | {"idle_ms": _ms(idle["ours"])},
        "yardstick": {"bare": bare_client | {"idle_ms": _ms(idle["bare"])}, "no_relay": no_relay},
        "ratio": {
            "merged": round(figures["merged"] / bare_client["merged"], 2),
            "relayed": round(figures["relayed"] / no_relay["relayed"], 2),
            "idle": round(idle["bare"]["seconds"] / idle["ours"]["seconds"], 2),
        },
    }


def _ms(best: dict[str, Any]) -> float:
    return round(1e3 * float(best["seconds"]), 2)


# --- the pumps ---------------------------------------------------------------------------------------------


def _serve(pipe: Connection, binlogs: int, pumps: int) -> None:
    with Cluster(1, tick_seconds=None) as cluster:
        servers = []
        idle = Idle(pumps)
        for number in range(pumps):
            messages = [_message(FIRST_TS + 10 * at) for at in range(number, binlogs, pumps)]
            messages.append(_message(FIRST_TS + 10 * binlogs, fake=True))
            method = PUMP["PullBinlogs"]
            handlers = {method.path: unary_stream(method, _playing(messages, idle), raw=True)}
            server = GrpcServer(handlers, host="127.0.0.1")
            cluster._loop.run(server.start())
            servers.append(server)
        cluster._loop.call(idle.start)
        serve_until_ended(
            pipe,
            {
                "pd": cluster.pd_address,
                "pumps": [server.address for server in servers],
                "cluster_id": cluster.options.cluster_id,
                "binlogs": binlogs,
            },
        )
        cluster._loop.call(idle.stop)
        for server in servers:
            cluster._loop.run(server.stop())


def _playing(messages: list[bytes], idle: Idle) -> Any:
    async def pull(request: Any, context: Any) -> None:
        if request.startFrom.offset == IDLE_TS:
            await idle.send(lambda ts: context.write(_message(ts, fake=True)))
        for message in messages:
            await context.write(message)
        await asyncio.Event().wait()  # as a pump without further binlogs

    return pull


def _message(ts: Ts, *, fake: bool = False) -> bytes:
    record = binlog.Binlog(tp=binlog.BinlogType.Rollback, start_ts=ts, commit_ts=ts)
    if not fake:
        row = join_row({2: (Flag.COMPACT_BYTES, bytes(VALUE_BYTES))})
        table = binlog.TableMutation(
            table_id=100,
            inserted_rows=[encode_datum(Flag.VARINT, ts) + row],
            sequence=[binlog.MutationType.Insert],
        )
        value = binlog.PrewriteValue(schema_version=1, mutations=[table]).SerializeToString()
        record = binlog.Binlog(
            tp=binlog.BinlogType.Commit, start_ts=ts - 5, commit_ts=ts, prewrite_value=value
        )
    entity = binlog.Entity(pos=binlog.Pos(offset=ts), payload=record.SerializeToString())
    data: bytes = binlog.PullBinlogResp(entity=entity).SerializeToString()
    return data


# --- those who are measured --------------------------------------------------------------------------------


def bare(server: Server) -> float:
    """Pull all pumps at once, parse each message and each binlog, and drop them; return the seconds."""
    return asyncio.run(_bare(server))


async def _bare(server: Server) -> float:
    started = _now()
    await asyncio.gather(*(_pull(server, address) for address in server["pumps"]))
    return _now() - started


async def _pull(server: Server, address: str) -> None:
    method = PUMP["PullBinlogs"]
    last = FIRST_TS + 10 * server["binlogs"]
    channel: Any = aio.insecure_channel(address, [("grpc.max_receive_message_length", -1)])
    async with channel:
        request = method.request(clusterID=server["cluster_id"], startFrom=binlog.Pos(offset=FIRST_TS - 1))
        call = channel.unary_stream(method.path)(request.SerializeToString())
        parse_message, parse = binlog.PullBinlogResp.FromString, binlog.Binlog.FromString
        while parse(parse_message(await call.read()).entity.payload).commit_ts < last:
            pass
        call.cancel()


def _bare_latency(server: Server) -> float:
    """Return the median latency until a client has parsed the fake binlog of each pump."""
    return asyncio.run(_bare_latencies(server)).median()


async def _bare_latencies(server: Server) -> Latencies:
    latencies = Latencies()
    parse_message, parse = binlog.PullBinlogResp.FromString, binlog.Binlog.FromString
    last = dict.fromkeys(server["pumps"], 0)
    done = asyncio.Event()

    async def pull(address: str) -> None:
        method = PUMP["PullBinlogs"]
        channel: Any = aio.insecure_channel(address)
        async with channel:
            request = method.request(clusterID=server["cluster_id"], startFrom=binlog.Pos(offset=IDLE_TS))
            call = channel.unary_stream(method.path)(request.SerializeToString())
            while True:
                last[address] = parse(parse_message(await call.read()).entity.payload).commit_ts
                if latencies.note(min(last.values())):
                    done.set()

    pulls = [asyncio.ensure_future(pull(address)) for address in server["pumps"]]
    await done.wait()
    for one in pulls:
        one.cancel()
    await asyncio.gather(*pulls, return_exceptions=True)
    return latencies


class Received(PooledActor[Sorted]):
    """A replacement of the stages after the sorter, which counts binlogs."""

    def __init__(self, done: Event, binlogs: int) -> None:
        self._missing = binlogs
        self._end = FIRST_TS + 10 * binlogs
        self._done = done

    def on_receive(self, message: Sorted) -> None:
        self._missing -= len(message.changes)
        if message.resolved >= self._end:
            if self._missing:
                raise RuntimeError(f"{self._missing} binlogs are missing")
            self._done.set()


class Timed(PooledActor[Sorted]):
    """A replacement of the stages after the sorter, which notes the latency of each resolved ts."""

    def __init__(self, done: Event, latencies: Latencies) -> None:
        self._done = done
        self._latencies = latencies

    def on_receive(self, message: Sorted) -> None:
        if self._latencies.note(message.resolved):
            self._done.set()


class _Reports(PooledActor[SourceReport]):
    """A replacement of the coordinator, which needs none of them."""

    def on_receive(self, message: SourceReport) -> None:
        pass


class _Follower:
    """Spawns the pullers. There are no jobs."""

    collector: PooledRef[ToCollector]
    coordinator: PooledRef[SourceReport]

    def __init__(
        self, client: TikvClient, options: PumpOptions, system: ActorSystem, sorter: EventSorter
    ) -> None:
        self._client = client
        self._options = options
        self._system = system
        self._sorter = sorter

    def add(self, number: int, resolved: Ts) -> PooledRef[Changes]:
        return self._sorter.add_table(number, resolved)

    def pull(self, number: int, progress: PumpProgress) -> PooledRef[Pause | Resume]:
        return self._system.spawn(
            PumpPuller,
            self._client,
            self._options,
            number,
            progress,
            self.collector,
            self.coordinator,
            "bench",
        )

    def apply(self, job: Job, ts: Ts) -> None:
        raise NotImplementedError

    def remove(self, number: int) -> None:
        raise NotImplementedError

    def sent(self) -> Ts:
        raise NotImplementedError

    def fetch(self, node_id: str, number: int, step: JobRecord) -> None:
        raise NotImplementedError


def _ours(server: Server) -> float:
    return _pulled(server, FIRST_TS - 1, Received, server["binlogs"])


def _decoded(server: Server) -> float:
    return _to_rows(server, relays=False)


def _relayed(server: Server) -> float:
    return _to_rows(server, relays=True)


def _to_rows(server: Server, *, relays: bool) -> float:
    """Pull, merge and decode all binlogs for a sink; return the seconds until it has them."""
    last = FIRST_TS + 10 * (int(server["binlogs"]) - 1)
    with decoding(FIRST_TS - 1, last, relays=relays) as arguments:
        return _pulled(server, FIRST_TS - 1, Decoding, *arguments)


def _latency(server: Server) -> float:
    """Return the median latency of a fake binlog up to the end of the sorter."""
    latencies = Latencies()
    _pulled(server, IDLE_TS, Timed, latencies)
    return latencies.median()


def _pulled(server: Server, start: Ts, receiver: type[PooledActor[Sorted]], *arguments: object) -> float:
    """Pull and merge all pumps above `start` until the receiver has enough; return the seconds."""
    done = Event()
    options = PumpOptions(pd=(server["pd"],), pumps=tuple(server["pumps"]))
    client = TikvClient(options, SystemClock(), Random(1))
    with ActorSystem("bench") as system:
        received = system.spawn(receiver, done, *arguments, capacity=4)
        sorter = open_sorter(SorterOptions(engine="memory"), system, received)
        client.start()
        follower = _Follower(client, options, system, sorter)
        started = _now()
        merge = BinlogMergeProgress(start)
        follower.coordinator = system.spawn(_Reports)
        follower.collector = system.spawn(Collector, follower, merge, 0, capacity=64)
        follower.collector.tell(PumpsListed([PumpStatus(host, host) for host in server["pumps"]]))
        done.wait()
        seconds = _now() - started
        client.stop()
        sorter.close()
        system.stop(5.0)
    return seconds
