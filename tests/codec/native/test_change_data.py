"""The native reader of the change feed's messages beside the one in Python."""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc

import pytest
from google.protobuf.message import DecodeError

from tidemill.codec.native import library
from tidemill.codec.proto import cdcpb
from tidemill.codec.proto.change_data import read

pytestmark = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")

NUMBERS = (0, 1, 127, 128, 2**32, 2**58 + 5, 2**63 - 1, 2**64 - 1)


def outcome(data: bytes, monkeypatch: pytest.MonkeyPatch, *, native: bool):
    """Return the events with plain rows, or the error's name."""
    monkeypatch.setattr(library, "in_use", native)
    try:
        return [(*ids, plain(payload)) for *ids, payload in read(data).events]
    except DecodeError:
        return "DecodeError"


def plain(payload):
    if isinstance(payload, int):
        return payload
    return payload.SerializeToString() if isinstance(payload, cdcpb.Error) else [*payload]


def random_row(rng: random.Random) -> cdcpb.Event.Row:
    def data() -> bytes:
        return rng.choice((b"", b"a", rng.randbytes(rng.choice((3, 130, 300)))))

    types = (1, 1, 1, 2, 2, 3, 4) if rng.random() < 0.98 else (0, 5, 9, 127, 128, 300)
    return cdcpb.Event.Row(
        type=rng.choice(types), op_type=rng.choice((0, 1, 1, 2)), start_ts=rng.choice(NUMBERS),
        commit_ts=rng.choice(NUMBERS), key=data(), value=data(), old_value=data(),
        generation=rng.choice((0, 0, 0, 3)), txn_source=rng.choice((0, 7)),
        expire_ts_unix_secs=rng.choice((0, 9)),
    )  # fmt: skip


def random_message(rng: random.Random) -> bytes:
    message = cdcpb.ChangeDataEvent()
    for _ in range(rng.randrange(4)):
        event = message.events.add(region_id=rng.choice(NUMBERS), request_id=rng.choice(NUMBERS))
        event.index = rng.choice((0, 5))
        match rng.randrange(12):
            case 0:
                event.resolved_ts = rng.choice(NUMBERS)
            case 1:
                event.error.not_leader.region_id = 3
            case 2:
                event.long_txn.SetInParent()
            case 3:
                pass
            case _:
                event.entries.SetInParent()
                event.entries.entries.extend([random_row(rng) for _ in range(rng.randrange(8))])
    if rng.random() < 0.1:
        message.resolved_ts.ts = 5
    return message.SerializeToString()


def damaged(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(4):
            case 0 if at < len(found):
                found[at] = rng.randrange(256)
            case 1:
                found[at:at] = rng.randbytes(rng.randrange(3))
            case 2:
                del found[at : at + rng.randrange(4)]
            case _:
                del found[at:]
    return bytes(found)


def compare(seed: int) -> int:
    """Compare the readers, and return the number of messages that the native one reads by itself."""
    assert library.native is not None
    rng = random.Random(seed)
    count = 0
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(10):
            data = random_message(rng)
            for message in (data, damaged(data, rng)):
                wanted = outcome(message, patch, native=False)
                assert outcome(message, patch, native=True) == wanted, (seed, message.hex())
                count += library.native.change_data(message) is not None
    return count


def test_both_readers_return_the_same_for_whole_and_damaged_messages() -> None:
    counts = [compare(seed) for seed in range(100)]
    assert sum(counts) > 500, "most messages are regular"


@pytest.mark.soak
def test_both_readers_return_the_same_for_many_messages() -> None:
    for seed in range(100, 5_000):
        compare(seed)


def test_what_is_no_message_is_refused() -> None:
    assert library.native is not None
    with pytest.raises(TypeError, match="bytes"):
        library.native.change_data(bytearray())  # type: ignore[arg-type]


def test_nothing_is_kept_of_messages() -> None:
    """Neither objects nor memory."""
    assert library.native is not None
    rng = random.Random(1)
    messages = [
        change for _ in range(50) for data in (random_message(rng),) for change in (data, damaged(data, rng))
    ]

    def read() -> None:
        for message in messages:
            library.native.change_data(message)

    read()
    gc.collect()
    none = sys.getrefcount(None)
    tracemalloc.start()
    try:
        read()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(50):
            read()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000, "an object for each message would be more"
    assert abs(sys.getrefcount(None) - none) < 3_000
