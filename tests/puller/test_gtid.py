"""Sets of GTIDs, and positions that have them."""

from __future__ import annotations

from struct import pack
from uuid import UUID

import pytest

from tidemill.errors import CheckpointError, SourceError
from tidemill.events import Checkpoint
from tidemill.puller.mysql.gtid import MariaDbGtids, MySqlGtids, parse_gtids
from tidemill.puller.mysql.position import CommitClock, Position

A = "a81daf36-e698-11f1-b231-02fc00000001"
B = "b81daf36-e698-11f1-b231-02fc00000001"


def mariadb_event(domain: int, server: int, number: int) -> bytes:
    return pack("<IBI10x", 0, 162, server) + pack("<QI", number, domain)


def mysql_event(uuid: str, number: int) -> bytes:
    return pack("<IBI10x", 0, 33, 1) + pack("<B16sQ", 1, UUID(uuid).bytes, number)


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
    gtids = MySqlGtids(f"{A}:1-3:backup:1-2:4")
    assert str(gtids) == f"{A}:1-3,{A}:backup:1-2:4"
    assert gtids.has_tags


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
