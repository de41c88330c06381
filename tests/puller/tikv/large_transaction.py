"""Prewrites and commits one transaction; prints how many changes came and this process' peak in MiB."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from tidemill.codec.blocks import new_builder
from tidemill.codec.proto import cdcpb
from tidemill.codec.proto.change_data import read
from tidemill.codec.tidb.key import record_key
from tidemill.puller.tikv.match.matcher import Matcher
from tidemill.puller.tikv.match.spill import PrewriteMemory
from tidemill.puller.tikv.region import RegionState
from tidemill.puller.tikv.span import table_span
from tidemill.store.store import Store

START_TS = 449_000_000_000_000_000
MESSAGE_ROWS = 4000


def message(kind: int, numbers: range) -> bytes:
    data = cdcpb.ChangeDataEvent()
    rows = data.events.add(region_id=1, request_id=1).entries.entries
    for number in numbers:
        key = record_key(10, number)
        if kind == cdcpb.Event.PREWRITE:
            rows.add(start_ts=START_TS, type=kind, op_type=1, key=key, value=number.to_bytes(190, "big"))
        else:
            rows.add(start_ts=START_TS, commit_ts=START_TS + 1, type=kind, op_type=1, key=key)
    return data.SerializeToString()


def run(directory: Path, rows: int) -> int:
    store = Store(directory / "store-large-transaction")
    matcher = Matcher(RegionState(1, table_span(10), 1, 1, 5), PrewriteMemory(store).quota())
    matcher.region.initialised = True
    found = 0
    for kind in (cdcpb.Event.PREWRITE, cdcpb.Event.COMMIT):
        for at in range(0, rows, MESSAGE_ROWS):
            numbers = range(at, min(at + MESSAGE_ROWS, rows))
            builder = new_builder()
            for _, _, payload in read(message(kind, numbers)).events:
                matcher.feed(payload, builder)
            for change in builder.take():
                assert int.from_bytes(change.value, "big") == found
                found += 1
    store.close()
    return found


if __name__ == "__main__":
    changes = run(Path(sys.argv[1]), int(sys.argv[2]))
    print(changes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
