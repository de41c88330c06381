"""The server's side of a connection, by its bytes: no socket, no clock."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count

import pytest

from tidemill.codec.mysql.result_rows import LONGEST_PAYLOAD
from tidemill.codec.mysql.result_writer import packets_of
from tidemill.dialects.mysql.packets import PacketCutter
from tidemill.emulator.mysql.packets import scramble
from tidemill.emulator.mysql.server import MysqlServer
from tidemill.emulator.mysql.session import Command, Session

ROTATE, FORMAT, GTID_LIST, GTID, QUERY, TABLE_MAP, WRITE, XID, HEARTBEAT = 4, 15, 163, 162, 2, 19, 23, 16, 27
PACKET_BYTES = 1 << 30


@pytest.fixture
def seconds() -> Iterator[int]:
    return count(1_700_000_000)


@pytest.fixture
def server(seconds: Iterator[int]) -> MysqlServer:
    server = MysqlServer(lambda: next(seconds), server_id=7, user="root", password="secret")
    server.execute("create database shop")
    server.execute("create table shop.t (id int primary key, v longtext)")
    return server


def logged_in(server: MysqlServer, password: str = "secret") -> Session:
    session = Session(server, 1)
    (greeting,) = PacketCutter().feed(session.take(PACKET_BYTES))
    start = greeting.index(b"\0") + 5
    salt = greeting[start : start + 8] + greeting[start + 27 : start + 39]
    token = scramble(password, salt)
    login = struct.pack("<IIB23x", 0x8A201, LONGEST_PAYLOAD, 45) + b"root\0" + bytes((len(token),)) + token
    session.receive(packets_of(login + b"mysql_native_password\0", 1))
    return session


def answers(session: Session) -> list[bytes]:
    return PacketCutter().feed(session.take(PACKET_BYTES))


def ask(session: Session, command: Command, body: bytes = b"") -> list[bytes]:
    session.receive(packets_of(bytes((command,)) + body))
    return answers(session)


def follow(session: Session, file: bytes, offset: int) -> list[int]:
    """Return the types of the events up to the log's end."""
    return [one[5] for one in ask(session, Command.BINLOG_DUMP, struct.pack("<IHI", offset, 0, 99) + file)]


def insert(server: MysqlServer, *rows: tuple[object, ...]) -> None:
    with server.transaction() as txn:
        for row in rows:
            txn.insert("shop.t", row)


def test_a_login_a_ping_and_a_query(server: MysqlServer) -> None:
    session = logged_in(server)
    assert answers(session)[0][0] == 0
    assert ask(session, Command.PING)[0][0] == 0
    number, definition, _, row, _ = ask(session, Command.QUERY, b"SELECT @@server_id")
    assert (number, row) == (b"\1", b"\x017")
    assert b"@@server_id" in definition
    ask(session, Command.QUIT)
    assert session.is_closed


def test_bytes_may_come_one_by_one(server: MysqlServer) -> None:
    session = logged_in(server)
    answers(session)
    for byte in packets_of(b"\x03SELECT CURRENT_USER()"):
        session.receive(bytes((byte,)))
    assert answers(session)[3] == b"\x0eroot@127.0.0.1"


def test_a_wrong_password_ends_the_connection(server: MysqlServer) -> None:
    session = logged_in(server, "guess")
    (error,) = answers(session)
    assert error[:3] == b"\xff" + (1045).to_bytes(2, "little")
    assert session.is_closed


def test_an_unknown_command_is_named(server: MysqlServer) -> None:
    session = logged_in(server)
    answers(session)
    (error,) = ask_raw(session, 0x1F)
    assert error.endswith(b"the emulated server has no command 0x1f")


def ask_raw(session: Session, command: int) -> list[bytes]:
    session.receive(packets_of(bytes((command,))))
    return answers(session)


def test_the_log_goes_on_where_it_was_taken_and_beats_at_its_end(server: MysqlServer) -> None:
    session = logged_in(server)
    answers(session)
    statement = [GTID, QUERY]
    assert follow(session, b"binlog.000001", 4) == [ROTATE, FORMAT, GTID_LIST, *statement, *statement]
    assert answers(session) == []
    session.beat()
    assert [one[5] for one in answers(session)] == [HEARTBEAT]
    insert(server, (1, "a"), (2, None))
    server.log.rotate()
    insert(server, (3, "b"))
    events = [GTID, TABLE_MAP, WRITE, XID]
    assert [one[5] for one in answers(session)] == [
        *events, ROTATE, ROTATE, FORMAT, GTID_LIST, *events,
    ]  # fmt: skip
    _, offset = server.log.end
    assert follow(session, b"binlog.000002", offset) == [ROTATE, FORMAT]


def test_a_place_that_the_log_does_not_have_is_an_error(server: MysqlServer) -> None:
    session = logged_in(server)
    answers(session)
    for file, offset in (b"binlog.000009", 4), (b"binlog.000001", 5), (b"binlog.000001", 1 << 20):
        (error,) = ask(session, Command.BINLOG_DUMP, struct.pack("<IHI", offset, 0, 99) + file)
        assert error[:3] == b"\xff" + (1236).to_bytes(2, "little")


def test_rows_events_are_divided_and_packets_of_16_megabytes_are_continued(server: MysqlServer) -> None:
    session = logged_in(server)
    answers(session)
    follow(session, b"binlog.000001", server.log.end[1])
    insert(server, *[(number, "x" * 3000) for number in range(7)])
    assert [one[5] for one in answers(session)] == [GTID, TABLE_MAP, WRITE, WRITE, WRITE, XID]
    insert(server, (7, "y" * (2 * LONGEST_PAYLOAD)))
    _, _, write, _ = answers(session)
    assert len(write) > 2 * LONGEST_PAYLOAD
    assert write.count(b"y") == 2 * LONGEST_PAYLOAD


def test_a_view_has_the_rows_of_its_moment(server: MysqlServer) -> None:
    insert(server, (1, "a"))
    session = logged_in(server)
    answers(session)
    ask(session, Command.QUERY, b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    insert(server, (2, "b"))
    count_rows = b"SELECT COUNT(*) FROM shop.t"
    assert ask(session, Command.QUERY, count_rows)[3] == b"\x011"
    ask(session, Command.QUERY, b"ROLLBACK")
    assert ask(session, Command.QUERY, count_rows)[3] == b"\x012"
    ask(session, Command.QUERY, b"START TRANSACTION")
    server.execute("alter table shop.t add w int")
    (error,) = ask(session, Command.QUERY, count_rows)
    assert error[1:3] == (1412).to_bytes(2, "little")


def test_the_time_is_the_one_that_was_given(server: MysqlServer, seconds: Iterator[int]) -> None:
    session = logged_in(server)
    answers(session)
    row = ask(session, Command.QUERY, b"SELECT UNIX_TIMESTAMP(NOW(6))")[3]
    assert row[1:] == b"%d.000000" % (next(seconds) - 1)
