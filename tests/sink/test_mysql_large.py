"""Large values of statements: what is sent is what the text would be, in packets of the protocol."""

from __future__ import annotations

import pytest
from pymysql.connections import MAX_PACKET_LEN
from pymysql.constants import COMMAND

from tidemill.dialects.mysql.connection import Connection
from tidemill.dialects.mysql.large import LARGE, LargeValues
from tidemill.dialects.mysql.text import compile_set, compile_values
from tidemill.events import Column, Table

TABLE = Table("shop", "t", (Column("b", "blob", length=4), Column("c", "text", length=4, nullable=True)))
LONG = "it's ünïcode 🜁 " * (LARGE // 10)
ROWS = [
    (b"small", "it's"),
    (b"\0\xff'" * LARGE, None),
    (b"", LONG),
    (b"x" * LARGE, "\udc80" * LARGE),
]


@pytest.mark.parametrize("row", ROWS, ids=["small", "bytes", "text", "both"])
def test_the_pieces_are_the_text(row):
    large = LargeValues()
    for plain, with_tokens in (
        (compile_values(TABLE), compile_values(TABLE, large.add)),
        (compile_set(TABLE, (0, 1)), compile_set(TABLE, (0, 1), large.add)),
    ):
        (wanted,), (text,) = plain([row]), with_tokens([row])
        encoded = wanted.encode(errors="surrogateescape")
        assert b"".join(large.pieces(text)) == encoded
        assert large.byte_size(text) == len(encoded)
        assert large.size(text) <= len(wanted) + 200
        assert large.has(text) == (row is not ROWS[0])
        assert len(text) < 200
        large.drop(text)
        assert not large.has(text)


def test_people_see_the_length_of_a_value():
    large = LargeValues()
    (text,) = compile_values(TABLE, large.add)([(b"x" * LARGE, None)])
    assert large.shown(text) == f"(<value of length {LARGE}>,NULL)"


class _Recording(Connection):
    def __init__(self):
        self.sent = bytearray()
        self._sock = self._result = True
        self.encoding = "utf8"

    def _write_bytes(self, data):
        self.sent += data

    def __del__(self):
        self._sock = None


@pytest.mark.parametrize("more", [-2, -1, 0, 1, MAX_PACKET_LEN - 1, MAX_PACKET_LEN, MAX_PACKET_LEN + 1])
def test_the_packets_are_the_driver_s(more):
    large = LargeValues()
    token = large.add(b"x" * LARGE)
    text = f"SELECT {token}, "
    text += "y" * (MAX_PACKET_LEN - large.byte_size(text) + more)
    whole = b"".join(large.pieces(text))
    ours, theirs = _Recording(), _Recording()
    ours.send(text, large)
    theirs._result = None
    theirs._execute_command(COMMAND.COM_QUERY, whole)
    assert ours.sent == theirs.sent
    assert ours._next_seq_id == theirs._next_seq_id
