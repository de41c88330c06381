"""Whole transactions read natively: the same changes as event by event, from every log and in every cut."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.position import Position
from tidemill.codec.native import library
from tidemill.errors import SourceError
from tidemill.events import KvChange, Ts
from tidemill.puller.mysql import binlog
from tidemill.puller.mysql.binlog import BinlogDecoder
from tidemill.puller.mysql.commit_clock import CommitClock
from tidemill.puller.mysql.transactions import Transactions
from tidemill.puller.mysql.whole import Whole

from ..binlog.recorded import Recorded, load
from .log import Log, Reader

pytestmark = pytest.mark.skipif(not library.in_use, reason="the native decoder isn't in use")
UUID = "4c8a1c0e-1111-2222-3333-444455556666"
NONE_REGULAR = {
    "mariadb-10.11.19/compressed_large", "mariadb-10.11.19/large_transaction",
    "mariadb-11.8.6/compressed_large", "mariadb-11.8.6/large_transaction",
    "mysql-9.7.4/compressed_large", "mysql-9.7.4/compressed_statements", "mysql-9.7.4/large_transaction",
    "mysql-9.7.4/partial_json_minimal",
}  # fmt: skip
"""Logs whose transactions are compressed, or each the first one of its tables."""


class Read(NamedTuple):
    """The output of a decoder for a log."""

    batches: list[tuple[list[KvChange], Ts, bool] | None]
    positions: list[str]
    counts: tuple[int, int, int, int]
    error: str


def read(decoder: BinlogDecoder, cuts: list[list[bytes]]) -> Read:
    batches: list[tuple[list[KvChange], Ts, bool] | None] = []
    positions, error = [], ""
    try:
        for payloads in cuts:
            decoder.feed(payloads)
            taken = decoder.take()
            batches.append(taken and ([*taken.changes], taken.resolved, taken.moves_only))
            positions.append(str(decoder.position))
    except SourceError as refused:
        error = str(refused)
    counts = decoder.events, decoder.row_events, decoder.transactions, decoder.epoch_seconds
    return Read(batches, positions, counts, error)


def cut(payloads: list[bytes], draw: random.Random, longest: int) -> Iterator[list[bytes]]:
    at = 0
    while at < len(payloads):
        size = draw.randint(1, longest)
        yield payloads[at : at + size]
        at += size


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Whole]:
    """Return the list of transactions read natively."""
    found: list[Whole] = []
    read_whole = binlog.read_whole

    def noted(*given):
        whole = read_whole(*given)
        if whole is not None:
            found.append(whole)
        return whole

    monkeypatch.setattr(binlog, "read_whole", noted)
    return found


def both(make: Callable[[], BinlogDecoder], cuts: list[list[bytes]]) -> Read:
    """Read natively and by Python, and check that both are the same."""
    results = []
    for in_use in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library, "in_use", in_use)
            results.append(read(make(), cuts))
    by_python, natively = results
    assert natively == by_python
    return natively


@pytest.mark.parametrize("recorded", load(), ids=str)
def test_recorded(recorded: Recorded, taken):
    payloads = [b"\0" + event for event in recorded.events]
    gtids = {"": "", "mariadb": "0-1-0", "mysql": f"{UUID}:1-3"}
    kind = recorded.server.split("-", 1)[0]
    for gtid in ("", gtids[kind]):

        def make(gtid=gtid):
            decoder = BinlogDecoder(
                Position(recorded.file, 4),
                Transactions(CommitClock(), 1 << 20),
                lambda schema, table: recorded.follows(table),
                Layouts().number_of,
            )
            decoder.resume(0.0)
            if gtid:
                decoder.know_gtids(gtid, "7")
            return decoder

        for longest in (3, 40, len(payloads)):
            both(make, [*cut(payloads, random.Random(longest), longest)])
    rows = sum(whole.row_events for whole in taken)
    assert bool(rows) != (str(recorded) in NONE_REGULAR)


@pytest.mark.parametrize("seed", range(60))
def test_random_logs(seed):
    compare(seed)


def compare(seed: int) -> None:
    draw = random.Random(seed)
    log = Log(checksums=draw.random() < 0.7, tells_ends=draw.random() < 0.7)
    start = log.end
    damaged = draw.random() < 0.2
    for _ in range(200):
        for words in transaction(draw):
            log.add(words)
        if draw.random() < 0.05:
            log.add(draw.choice(["rotate", "heartbeat", f"at {max(0, log.now + draw.randint(-2, 5))}"]))
    payloads = [payload for _, _, payload in log.events]
    if damaged:
        at = draw.randrange(len(payloads))
        byte = draw.randrange(len(payloads[at]))
        payload = bytearray(payloads[at])
        payload[byte] ^= 1 << draw.randrange(8)
        payloads[at] = bytes(payload)
    gtid = draw.choice(["", "0-1-0", "3-1-5,0-1-0,7-2-9"])

    def make() -> BinlogDecoder:
        reader = Reader(log, start, max_bytes=2000)
        if gtid:
            reader.decoder.know_gtids(gtid, "1")
        return reader.decoder

    cuts = [*cut(payloads, draw, draw.choice([2, 9, 50, len(payloads)]))]
    result = both(make, cuts)
    assert damaged or not result.error


def transaction(draw: random.Random) -> Iterator[str]:
    """Mostly regular ones."""
    kind = draw.random()
    if kind < 0.05:
        yield "gtid standalone"
        yield "query ALTER TABLE t ADD COLUMN c INT"
        return
    yield "gtid"
    if kind < 0.1:
        yield "annotate"
        yield "map u"
        yield "insert u"
        yield "query ROLLBACK" if draw.random() < 0.5 else "query COMMIT"
        return
    for _ in range(draw.choice([0, 1, 1, 1, 2, 5])):
        if draw.random() < 0.2:
            yield "annotate"
        tables = draw.sample(["t", "u", "elsewhere"], draw.randint(1, 2))
        yield from (f"map {table}" for table in tables)
        for table in tables:
            yield f"{draw.choice(['insert', 'update', 'delete'])} {table} {draw.randint(0, 300)}"
    yield "xid"


@pytest.mark.parametrize(
    "words",
    ["gtid xa", "unknown", "query SAVEPOINT `a`", "stop", "rotate", "insert sequence"],
)
def test_what_is_not_regular_is_left(words, taken):
    """A transaction with anything else isn't read natively, whatever becomes of it."""
    log = Log()
    start = log.end
    for word in ("gtid", "map t", "insert t", "xid"):
        log.add(word)
    before = len(log.events)
    for word in ("gtid", "map t", words, "insert t", "xid"):
        log.add(word)
    payloads = [payload for _, _, payload in log.events]
    both(lambda: Reader(log, start).decoder, [payloads[:before], payloads[before:]])
    assert sum(whole.transactions for whole in taken) == 0


def test_a_table_is_known_from_its_first_transaction_on(taken):
    log = Log()
    reader = Reader(log, log.end)
    for _ in range(3):
        for word in ("gtid", "map t", "insert t", "xid"):
            log.add(word)
    reader.read()
    assert [whole.transactions for whole in taken] == [2]


def test_what_is_no_event_is_left():
    for payloads in ([b""], [b"\0" * 19], [b"\0" * 20], [None]):
        assert read_natively(payloads)[:2] == (0, 0)
    with pytest.raises(IndexError):
        read_natively([])


def read_natively(payloads):
    builder = library.native.BlockBuilder()
    return library.native.binlog_transactions(builder, payloads, 0, {}, False, 0, 0, "f:", None, 0, "", "")
