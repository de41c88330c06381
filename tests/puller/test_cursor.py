"""The read position: checksums, GTIDs and the order of positions."""

from __future__ import annotations

from struct import pack
from uuid import UUID
from zlib import crc32

import pytest

from tidemill.codec.mysql.gtid import MariaDbGtids
from tidemill.codec.mysql.position import Position
from tidemill.errors import SourceError
from tidemill.puller.mysql.cursor import LogCursor


def payload(body: bytes) -> bytes:
    event = pack("<IBIIIH", 0, 16, 1, 19 + len(body) + 4, 0, 0) + body
    return b"\0" + event + pack("<I", crc32(event))


def test_an_event_is_returned_without_its_checksum() -> None:
    sent = payload(b"12345678")
    assert LogCursor(Position("binlog.000001", 4)).event(sent) == sent[1:-4]


@pytest.mark.parametrize("at", [0, 1, 19, 27, 28])
def test_a_changed_byte_is_noticed(at: int) -> None:
    sent = bytearray(payload(b"12345678"))
    sent[at] ^= 1
    with pytest.raises(SourceError, match="checksum is wrong"):
        LogCursor(Position("binlog.000001", 4)).event(bytes(sent))


def test_the_text_follows_each_transaction_of_several_domains() -> None:
    cursor = LogCursor(Position("binlog.000001", 4, "0-1-5,1-1-7,2-1-9", "1"))
    texts = []
    for domain, number in ((1, 8), (1, 9), (0, 6), (2, 10), (3, 1), (3, 2)):
        cursor.begin(pack("<IBIIIH", 0, 162, 2, 0, 0, 0) + pack("<QI", number, domain))
        cursor.commit()
        texts.append(str(cursor))
        assert texts[-1] == str(cursor.position)
    assert texts[-1] == "binlog.000001:4 gtid=0-2-6,1-2-9,2-2-10,3-2-2 server=1"


@pytest.mark.parametrize(
    ("here", "there", "reached"),
    [
        ("b.000002:5", "b.000001:900", True),
        ("b.000002:5", "b.000002:6", False),
        ("b.000010:5", "b.000009:6", True),
        ("b.000001:5 gtid=0-1-7 server=1", "b.000009:6 gtid=0-1-7 server=2", True),
        ("b.000009:5 gtid=0-1-6 server=1", "b.000001:6 gtid=0-1-7 server=2", False),
        ("b.000009:5 gtid=0-1-6 server=1", "0-1-7", False),
        ("b.000001:5", "b.000001:5 gtid=0-1-7 server=2", True),
    ],
)
def test_a_position_is_reached_by_gtid_on_another_server(here: str, there: str, *, reached: bool) -> None:
    rank = Position.parse(there).rank
    assert LogCursor(Position.parse(here)).has_reached(rank) == reached
    assert (Position.parse(here).rank >= rank) == reached


def test_a_transaction_without_a_gtid_leaves_no_set_in_the_position() -> None:
    """With gtid_mode = ON_PERMISSIVE some transactions have none: a set that stands still would be another
    position than that of the file."""
    uuid = UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")
    cursor = LogCursor(Position("binlog.000001", 4, f"{uuid}:1-18", "1"))
    gtid, anonymous = (pack("<IBIIIH", 0, kind, 1, 0, 0, 0) + pack("<B", 0) for kind in (33, 34))
    cursor.begin(gtid + uuid.bytes + pack("<Q", 19))
    cursor.commit()
    assert str(cursor) == f"binlog.000001:4 gtid={uuid}:1-19 server=1"
    cursor.begin(anonymous + bytes(24))
    cursor.commit()
    assert not cursor.has_gtids
    assert str(cursor) == str(cursor.position) == "binlog.000001:4"


def test_a_set_tells_its_domains_in_their_order() -> None:
    assert str(MariaDbGtids("2-1-1,0-1-1")) == "2-1-1,0-1-1"
