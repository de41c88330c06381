"""Recorded logs with damaged bytes: an error of the source or values, never another exception."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random

import pytest
from zstandard import ZstdCompressor

from tidemill.codec.mysql.json import json_text
from tidemill.codec.mysql.json_diff import changed_json
from tidemill.codec.mysql.values import UNREADABLE, uncompressed
from tidemill.errors import SourceError
from tidemill.puller.mysql.compression import events_of_payload, uncompress, uncompress_rows
from tidemill.testing.damage import CALLS_A_BYTE, CALLS_AT_ALL, calls, damaged

from .recorded import Reader, Recorded

LOGS = [
    ("mysql-9.7.4", "partial_json"),
    ("mysql-9.7.4", "compressed_statements"),
    ("mysql-9.7.4", "statements_noblob_nochecksum"),
    ("mariadb-11.8.6", "misc"),
    ("mariadb-11.8.6", "statements_full_nodup"),
]
_PAYLOAD = 40
_HEADER = 19
BOMB_BYTES = 64 << 20


def without_checksum(event: bytes, random: Random) -> bytes:
    """The event with damage behind its header, which keeps its size."""
    body = damaged(event[_HEADER:], random)[: len(event) - _HEADER].ljust(len(event) - _HEADER, b"\0")
    return event[:_HEADER] + body


@pytest.mark.parametrize(("server", "name"), LOGS)
def test_a_damaged_log_is_an_error_of_the_source(server: str, name: str) -> None:
    random = Random(name)
    log = Recorded(server, name)
    cut = 4 if "nochecksum" not in name else 0
    first, *events = log.events
    described = first[:-5] + b"\0" + first[-4:]  # no event has a checksum
    plain = [
        event[:9] + struct.pack("<I", len(event) - cut) + event[13 : len(event) - cut] for event in events
    ]
    for _ in range(15):
        at = random.randrange(min(len(plain), 120))
        broken = [described, *plain[:at], without_checksum(plain[at], random), *plain[at + 1 : at + 20]]
        copy = Recorded(server, name)
        copy.__dict__ |= {"events": broken, "expected": log.expected}
        reader = Reader(copy)
        reader.checks_positions = False
        with suppress(SourceError):
            reader.changes()


def test_damaged_values_are_unreadable_or_values_in_time_in_proportion() -> None:
    random = Random(5)
    log = Recorded("mysql-9.7.4", "json")
    documents = [value for event in log.events if event[4] == 30 for value in (event[60:-4],)]
    small = bytes.fromhex("0003002400190001001a0001001b0001000c1c000501000c200061626303616263") + b"abc"
    for document in [*documents[:40], small] * 3:
        broken = damaged(document[:2000], random)
        for read in (json_text, uncompressed, lambda data: changed_json(small, data)):

            def attempt(read=read, broken=broken) -> None:  # type: ignore[no-untyped-def]
                with suppress(*UNREADABLE):
                    read(broken)

            assert calls(attempt) < CALLS_AT_ALL + CALLS_A_BYTE * len(broken)


def test_a_damaged_payload_is_an_error_of_the_source() -> None:
    random = Random(6)
    log = Recorded("mysql-9.7.4", "compressed_large")
    (payload,) = [event for event in log.events if event[4] == _PAYLOAD]
    whole = payload[_HEADER:]  # this log has no checksums
    assert len(list(events_of_payload(whole))) > 5
    for _ in range(100):
        with suppress(SourceError):
            list(events_of_payload(damaged(whole, random)))


@pytest.mark.parametrize("read", [uncompress, lambda data: uncompress_rows(bytes(27) + b"\1\1" + data)])
def test_a_compressed_event_is_as_long_as_it_says(read: Callable[[bytes], bytes]) -> None:
    data = b"\x82" + (1_000).to_bytes(2, "big") + zlib.compress(bytes(BOMB_BYTES))
    with memory_limit(), pytest.raises(SourceError, match="a compressed value has another length"):
        read(data)


@pytest.mark.parametrize("says", [b"", b"\3\1\x64"])
def test_a_compressed_transaction_is_as_long_as_it_says(says: bytes) -> None:
    event = bytes(9) + (BOMB_BYTES + 19).to_bytes(4, "little") + bytes(6 + BOMB_BYTES)
    payload = b"\2\1\0" + says + b"\0" + ZstdCompressor().compress(event)
    with memory_limit(), pytest.raises(SourceError, match="a transaction's payload in the binlog is damaged"):
        list(events_of_payload(payload))


@contextmanager
def memory_limit() -> Iterator[None]:
    """Fail if more memory is taken than a hundredth of what a bomb holds."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < BOMB_BYTES / 100
    finally:
        tracemalloc.stop()
