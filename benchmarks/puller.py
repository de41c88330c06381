"""The TiKV puller, compared with a bare gRPC client that receives and parses the same stream."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from grpc import aio

from ..actors import ActorSystem, PooledActor, SystemClock
from ..codec.proto import CHANGE_DATA, cdcpb
from ..codec.tidb.key import record_key
from ..emulator.percolator import COMMIT, COMMITTED, PREWRITE, Row
from ..emulator.recorded import RecordedCluster, record
from ..emulator.shard import PUT
from ..events import Changes, Ts
from ..puller.tikv.client import TikvClient
from ..puller.tikv.options import TikvOptions, endpoints
from ..puller.tikv.puller import TikvPuller
from ..puller.tikv.span import table_span
from ..store.store import Store
from .turns import Server, note, serve_until_ended, serving, take_turns

KINDS = ("committed", "matched")
""""committed": rows of incremental scans. "matched": a prewrite and a commit for each change."""
TABLE = 7
FIRST_TS = 440_000_000_000_000_000
VALUE_BYTES = 150
ROWS_PER_EVENT = {"committed": 1024, "matched": 256}
"""TiKV reads 1,024 rows at once in a scan; afterwards an event contains the changes of one batch of the
log."""
ROWS_PER_MESSAGE = 4096
_now = SystemClock().now


def run(rows: int = 1_000_000, regions: int = 8, rounds: int = 3) -> dict[str, object]:
    """Measure the puller, from a store's socket to a table's writer, and the bare client; figures in million
    changes per second.

    The store plays a recording in a process of its own, as is each subject; they take turns, and the best
    round counts. Both read everything; the bare client drops each message after parsing it.
    """
    if regions < 1 or rows < regions:
        raise ValueError(f"rows {rows}, regions {regions}: at least one row in each region, and one region")
    figures: dict[str, object] = {}
    yardstick: dict[str, Any] = {}
    for kind in KINDS:
        with serving(_serve, kind, rows, regions) as server:
            results = take_turns(server, {"ours": _ours, "bare": bare}, rounds)
        for subject, into in (("ours", figures), ("bare", yardstick)):
            best = results[subject]
            into[kind] = round(rows / best["seconds"] / 1e6, 3)
            note(into, kind, best)
    return {
        "bench": "puller",
        "settings": {"rows": rows, "regions": regions, "value_bytes": VALUE_BYTES, "rounds": rounds},
        "figures": figures,
        "yardstick": {"bare": yardstick},
        "ratio": {kind: round(figures[kind] / yardstick[kind], 2) for kind in KINDS},
    }


# --- the store -----------------------------------------------------------------------------------------


def _serve(pipe: Connection, kind: str, rows: int, regions: int) -> None:
    share = rows // regions
    recorded = RecordedCluster(stores=1, tick_seconds=None)
    with recorded as cluster:
        cluster.pave([record_key(TABLE, number * share) for number in range(1, regions)])
        asked = []
        for number in range(regions):
            first, last = number * share, rows if number == regions - 1 else (number + 1) * share
            asked.append(play(cluster, first, _rows(kind, first, last), FIRST_TS + 10 * rows, kind))
        serve_until_ended(pipe, server_of(cluster, rows, asked))


def play(
    cluster: RecordedCluster, first: int, rows: Iterable[Row], resolved_ts: Ts, kind: str
) -> tuple[int, int]:
    """Make the region of the row `first` send these rows; return its id and version."""
    region: int = cluster.region_of(record_key(TABLE, first))
    cluster.recordings[region] = record(
        region,
        rows,
        resolved_ts=resolved_ts,
        rows_per_event=ROWS_PER_EVENT[kind],
        events_per_message=ROWS_PER_MESSAGE // ROWS_PER_EVENT[kind],
    )
    return region, cluster.keyspace.by_id[region].version


def server_of(cluster: RecordedCluster, rows: int, regions: Sequence[tuple[int, int]]) -> Server:
    return {
        "pd": cluster.pd_address,
        "store": cluster.stores[1].server.address,
        "cluster_id": cluster.options.cluster_id,
        "rows": rows,
        "regions": regions,
    }


def _rows(kind: str, first: int, last: int) -> Iterator[Row]:
    """Yield the rows of one region: each change is a transaction, in the order of its commit ts."""
    value = bytes(range(VALUE_BYTES))
    step = ROWS_PER_EVENT[kind]
    for at in range(first, last, step):
        numbers = range(at, min(at + step, last))
        keys = [record_key(TABLE, number) for number in numbers]
        stamps = [FIRST_TS + 10 * number for number in numbers]
        if kind == "committed":
            for key, ts in zip(keys, stamps, strict=True):
                yield Row(COMMITTED, key, ts, ts + 5, PUT, value)
            continue
        for key, ts in zip(keys, stamps, strict=True):
            yield Row(PREWRITE, key, ts, 0, PUT, value)
        for key, ts in zip(keys, stamps, strict=True):
            yield Row(COMMIT, key, ts, ts + 5, PUT, value)


# --- those who are measured --------------------------------------------------------------------------


def bare(server: Server) -> float:
    """Request the regions on one stream and parse the messages until all are resolved; return the seconds."""
    return asyncio.run(_bare(server))


async def _bare(server: Server) -> float:
    parse = cdcpb.ChangeDataEvent.FromString
    options = [("grpc.max_receive_message_length", -1)]
    channel: Any = aio.insecure_channel(server["store"], options)
    async with channel:
        started = _now()
        metadata = (("features", "stream-multiplexing"),)
        call = channel.stream_stream(CHANGE_DATA["EventFeedV2"].path)(metadata=metadata)
        for region, version in server["regions"]:
            await call.write(_request(server, region, version))
        left = len(server["regions"])
        while left:
            message = await call.read()
            if not isinstance(message, bytes):
                raise RuntimeError("the store ended the stream")
            left -= parse(message).HasField("resolved_ts")
        seconds = _now() - started
        call.cancel()
    return seconds


def _request(server: Server, region: int, version: int) -> bytes:
    span = table_span(TABLE)
    request = cdcpb.ChangeDataRequest(
        header=cdcpb.Header(cluster_id=server["cluster_id"], ticdc_version="8.1.0"),
        region_id=region,
        region_epoch={"conf_ver": 1, "version": version},
        request_id=region,
        start_key=span.start,
        end_key=span.end,
    )
    return bytes(request.SerializeToString())


class Received(PooledActor[Changes]):
    """A replacement of a table's writer that counts changes."""

    def __init__(self, rows: int, done: Event) -> None:
        self._missing = rows
        self._done = done

    def on_receive(self, message: Changes) -> None:
        self._missing -= len(message.changes)
        if message.resolved > FIRST_TS:
            if self._missing:
                raise RuntimeError(f"{self._missing} changes are missing")
            self._done.set()


def _ours(server: Server) -> float:
    done = Event()
    clock = SystemClock()
    client = TikvClient(TikvOptions(pd=endpoints(server["pd"])), clock, Random(1))
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name, ActorSystem("bench") as system:
        scratch = Store(Path(name))
        client.start()
        puller = TikvPuller(client, system, scratch)
        puller.start()
        received = system.spawn(Received, server["rows"], done, capacity=16)
        started = _now()
        puller.add(TABLE, table_span(TABLE), FIRST_TS, received)
        done.wait()
        seconds = _now() - started
        puller.stop()
        client.stop()
        system.stop(5.0)
        scratch.close()
    return seconds
