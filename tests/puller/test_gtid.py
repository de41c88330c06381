"""Sets of GTIDs, and positions that have them."""

from __future__ import annotations

from struct import pack
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.codec.mysql.gtid import MariaDbGtids, MySqlGtids, parse_gtids
from tidemill.codec.mysql.position import Position
from tidemill.errors import CheckpointError, SourceError
from tidemill.events import Checkpoint
from tidemill.puller.mysql.commit_clock import CommitClock

A = "a81daf36-e698-11f1-b231-02fc00000001"
B = "b81daf36-e698-11f1-b231-02fc00000001"


def mariadb_event(domain: int, server: int, number: int) -> bytes:
    return pack("<IBI10x", 0, 162, server) + pack("<QI", number, domain)


def mysql_event(uuid: str, number: int) -> bytes:
    return pack("<IBI10x", 0, 33, 1) + pack("<B16sQ", 1, UUID(uuid).bytes, number)


def tagged_event(uuid: str, tag: str, number: int) -> bytes:
    fields = varint(0) + varint(0)  # its flags
    fields += varint(1) + b"".join(map(varint, UUID(uuid).bytes))
    fields += varint(2) + varint(number << 1)
    fields += varint(3) + varint(len(tag)) + tag.encode()
    body = varint(1) + varint(len(fields) + 3) + varint(4) + fields
    return pack("<IBI10x", 0, 42, 1) + body


def varint(number: int) -> bytes:
    size = next((size for size in range(1, 9) if number < 1 << 7 * size), 9)
    if size == 9:
        return b"\xff" + number.to_bytes(8, "little")
    return (number << size | (1 << size - 1) - 1).to_bytes(size, "little")


def test_mariadb_has_the_last_transaction_of_each_domain() -> None:
    gtids = MariaDbGtids("0-1-100,1-2-5")
    gtids.add(mariadb_event(0, 3, 101))
    gtids.add(mariadb_event(2, 3, 1))
    assert str(gtids) == "0-3-101,1-2-5,2-3-1"
    assert gtids.transactions == 107


def test_mysql_has_intervals_which_grow_together() -> None:
    gtids = MySqlGtids(f"{A}:1-3:6-8:12,{B}:1")
    for number in (5, 4, 10, 11, 7):
        gtids.add(mysql_event(A, number))
    gtids.add(mysql_event(B, 2))
    assert str(gtids) == f"{A}:1-8:10-12,{B}:1-2"
    assert gtids.transactions == 13


def test_a_tag_makes_a_sequence_of_its_own() -> None:
    gtids = MySqlGtids(f"{A}:1-3:Backup:1-2:4")
    gtids.add(tagged_event(A, "backup", 3))
    gtids.add(tagged_event(A, "", 4))
    gtids.add(tagged_event(B, "backup", 1 << 40))
    assert str(gtids) == f"{A}:1-4,{A}:backup:1-4,{B}:backup:{1 << 40}"


@given(st.integers(0, (1 << 63) - 1), st.uuids(), st.from_regex(r"[a-z_][a-z0-9_]{0,31}", fullmatch=True))
def test_an_event_with_any_tag_and_number_is_read(number: int, uuid: UUID, tag: str) -> None:
    gtids = MySqlGtids()
    gtids.add(tagged_event(str(uuid), tag, number))
    assert str(gtids) == f"{uuid}:{tag}:{number}"


def test_a_tagged_event_that_is_cut_off_is_refused() -> None:
    event = tagged_event(A, "backup", 1000)
    for end in range(19, len(event)):
        with pytest.raises((ValueError, IndexError)):
            MySqlGtids().add(event[:end])


def test_a_set_is_encoded_as_servers_exchange_it() -> None:
    uuid = UUID(A).bytes
    assert MySqlGtids(f"{A}:1-3:7").encode() == pack("<Q16s5Q", 1, uuid, 2, 1, 4, 7, 8)
    tagged = pack("<Q16s", 1 << 56 | 2 << 8 | 1, uuid) + b"\0" + pack("<3Q", 1, 1, 4)
    tagged += uuid + b"\x0cbackup" + pack("<3Q", 1, 5, 6)
    assert MySqlGtids(f"{A}:1-3:backup:5").encode() == tagged


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        ("0-1-100,1-2-5", "0-9-100"),
        ("0-1-100,1-2-5", "1-2-4,0-1-1"),
        (f"{A}:1-10,{B}:1", f"{A}:2-3:5"),
        (f"{A}:1-10", f"{A}:1-10"),
    ],
)
def test_a_larger_set_contains_a_smaller_one(larger: str, smaller: str) -> None:
    assert parse_gtids(larger).contains(parse_gtids(smaller))
    assert parse_gtids(larger).meets(parse_gtids(smaller))


@pytest.mark.parametrize(
    ("one", "other"),
    [("0-1-100", "0-1-101"), ("0-1-100", "1-1-1"), (f"{A}:1-3:5-9", f"{A}:3-5"), (f"{A}:1-3", "0-1-1")],
)
def test_a_set_that_lacks_some_does_not_contain_the_other(one: str, other: str) -> None:
    assert not parse_gtids(one).contains(parse_gtids(other))


@pytest.mark.parametrize(
    "text",
    [
        "binlog.000003:4711",
        "binlog.000003:4711 gtid=0-1-100,1-2-5 server=1",
        f"binlog.000003:4711 gtid={A}:1-3:5 server={A}",
        "binlog.000003:4711 gtid=0-1-100 server=2 by=gtid",
        "0-1-100,1-2-5",
        f"{A}:1-3:5,{B}:1",
    ],
)
def test_a_position_is_read_as_it_is_written(text: str) -> None:
    assert str(Position.parse(text)) == text


@pytest.mark.parametrize("text", ["", "binlog", "0-1", f"{A}:x-y", "binlog.1:2 gtid="])
def test_what_is_no_position_is_named(text: str) -> None:
    with pytest.raises(CheckpointError, match="nor a set of GTIDs"):
        Position.parse(text)


def test_positions_on_one_server_are_compared_by_file_and_offset_others_by_their_gtids() -> None:
    old = Position.parse("binlog.000009:10")
    first = Position.parse("binlog.000009:100 gtid=0-1-5 server=1")
    moved = Position.parse("binlog.000002:4 gtid=0-1-5 server=2 by=gtid")
    later = Position.parse("binlog.000001:900 gtid=0-2-6 server=2 by=gtid")
    assert old.rank < first.rank == moved.rank < later.rank
    assert sorted([later, first, old], key=lambda at: at.rank) == [old, first, later]


def test_after_a_move_no_transaction_gets_a_ts_above_that_of_a_sink_that_has_it() -> None:
    ahead = Checkpoint(13, "binlog.000001:500 gtid=0-1-13 server=1", None, "")
    clock = CommitClock(10, [ahead])
    clock.move()
    given = []
    for number in (11, 12, 13, 14):
        clock.last = clock.next(1_700_000_000)
        given.append(clock.last)
        clock.pass_to(Position.parse(f"binlog.000007:{number} gtid=0-1-{number} server=2 by=gtid"))
    assert given[:3] == [11, 12, 13]
    assert given[3] > 1_700_000_000


def test_another_order_of_transactions_than_a_sink_has_is_an_error() -> None:
    ahead = Checkpoint(13, f"binlog.000001:500 gtid={A}:1-5,{B}:1 server=1", None, "")
    clock = CommitClock(10, [ahead])
    with pytest.raises(SourceError, match="in another order"):
        clock.pass_to(Position.parse(f"binlog.000007:1 gtid={A}:1-6 server=2 by=gtid"))
