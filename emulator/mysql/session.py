"""One connection of the emulated server: bytes in, bytes out; no I/O, no clock."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from hashlib import sha1
from typing import Final

from ...codec.mysql.result_rows import LONGEST_PAYLOAD
from ...codec.mysql.result_writer import ResultWriter, packets_of
from . import packets
from .answers import Answer, Answers, Refused
from .gtids import IntervalGtids
from .log import NotInLog, Reader
from .server import MysqlServer

_ACCESS_DENIED, _UNKNOWN_COMMAND, _UNKNOWN_STATEMENT, _NO_BINLOG = 1045, 1047, 1243, 1236
_BY_COORDINATES: Final = struct.Struct("<IHI")
"""Offset, flags and the replica's server id of a dump; the file's name follows, empty for one by GTID."""
_AFTER_GTIDS: Final = struct.Struct("<HII")
"""The beginning of a MySQL's dump by GTID: flags, server id, length of a file's name."""
_SET: Final = struct.Struct("<QI")
"""Offset, and length of the set of GTIDs."""
_HEARTBEAT_PERIOD: Final = "master_heartbeat_period"
_CONNECT_STATE: Final = "slave_connect_state"
_DEFAULT_HEARTBEAT_SECONDS: Final = 60.0


class Command(IntEnum):
    QUIT = 0x01
    INIT_DB = 0x02
    QUERY = 0x03
    PING = 0x0E
    BINLOG_DUMP = 0x12
    REGISTER_SLAVE = 0x15
    PREPARE = 0x16
    EXECUTE = 0x17
    CLOSE = 0x19
    BINLOG_DUMP_GTID = 0x1E


class Session:
    """The server's side of a connection. Not thread-safe."""

    def __init__(self, server: MysqlServer, thread: int) -> None:
        """`thread` is a number that no other connection has."""
        self._server = server
        self._reader = packets.PacketReader()
        self._salt = sha1(b"salt %d" % thread).hexdigest()[:20].encode()
        self._answers: Answers | None = None
        self._statements: dict[int, str] = {}
        self._following: Reader | None = None
        self._sequence = 0
        self._out = bytearray(packets_of(packets.greeting(server.vendor, thread, self._salt)))
        self.is_closed = False
        """True if the connection ends after the bytes that are to be sent."""

    @property
    def is_following(self) -> bool:
        """True if the connection gets the log."""
        return self._following is not None

    @property
    def heartbeat_seconds(self) -> float:
        """Silence after which a replica wants a heartbeat."""
        wanted = self._answers.variables.get(_HEARTBEAT_PERIOD) if self._answers is not None else None
        return int(wanted) / 1e9 if wanted else _DEFAULT_HEARTBEAT_SECONDS

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        for number, payload in self._reader.feed(data):
            if self.is_closed:
                return
            self._sequence = number + 1
            if self._answers is None:
                self._log_in(payload)
            else:
                self._command(payload, self._answers)

    def take(self, max_bytes: int) -> bytes:
        """Return bytes for the client, as many as `max_bytes` or one event more; empty if there are none."""
        while self._following is not None and len(self._out) < max_bytes:
            try:
                event = self._following.next()
            except NotInLog as error:
                self._end_of_log(str(error))
                break
            if not event:
                break
            self._send(b"\0" + event)
        taken = bytes(self._out)
        self._out.clear()
        return taken

    def beat(self) -> None:
        """Have a heartbeat sent, if the connection gets the log."""
        if self._following is not None:
            self._send(b"\0" + self._server.log.heartbeat(self._following))

    # --- commands --------------------------------------------------------------------------------

    def _log_in(self, payload: bytes) -> None:
        try:
            user, scrambled = packets.read_login(payload)
        except (LookupError, ValueError):
            self._end(_UNKNOWN_COMMAND, "the login can't be read")
            return
        if (user, scrambled) != (self._server.user, packets.scramble(self._server.password, self._salt)):
            used = "YES" if scrambled else "NO"
            self._end(_ACCESS_DENIED, f"Access denied for user '{user}'@'127.0.0.1' (using password: {used})")
            return
        self._answers = Answers(self._server, f"{user}@127.0.0.1")
        self._send(packets.ok())

    def _command(self, payload: bytes, answers: Answers) -> None:
        command, body = payload[0], payload[1:]
        self._following = None
        try:
            match command:
                case Command.QUIT:
                    self.is_closed = True
                case Command.PING | Command.INIT_DB | Command.REGISTER_SLAVE:
                    self._send(packets.ok())
                case Command.QUERY:
                    self._answer(answers.to(body.decode(errors="surrogateescape")))
                case Command.PREPARE:
                    self._prepare(answers, body.decode())
                case Command.EXECUTE:
                    self._execute(answers, int.from_bytes(body[:4], "little"))
                case Command.CLOSE:
                    self._statements.pop(int.from_bytes(body[:4], "little"), None)
                case Command.BINLOG_DUMP:
                    self._dump(answers, body)
                case Command.BINLOG_DUMP_GTID if self._server.vendor == "MySQL":
                    self._dump_after(body)
                case _:
                    raise Refused(_UNKNOWN_COMMAND, f"the emulated server has no command {command:#04x}")
        except Refused as refused:
            self._send(packets.error(refused.number, str(refused)))

    def _answer(self, answer: Answer) -> None:
        if answer.names:
            self._send_all(packets.text_rows(answer.names, answer.rows))
        else:
            self._send(packets.ok())

    def _prepare(self, answers: Answers, sql: str) -> None:
        table = answers.to(sql).table
        if table is None:
            raise Refused(_UNKNOWN_COMMAND, f"the emulated server prepares SELECTs of rows only, not: {sql}")
        number = max(self._statements, default=0) + 1
        self._statements[number] = sql
        self._send(packets.prepared(number, len(table.columns)))
        self._send_all(packets.definitions(table))

    def _execute(self, answers: Answers, number: int) -> None:
        if number not in self._statements:
            raise Refused(_UNKNOWN_STATEMENT, f"there is no prepared statement {number}")
        answer = answers.to(self._statements[number])
        assert answer.table is not None
        writer = ResultWriter(answer.table)
        self._send(bytes((len(answer.table.columns),)))
        self._send_all(packets.definitions(answer.table))
        self._send_all(map(writer.payload, answer.rows))
        self._send(packets.eof())

    def _dump(self, answers: Answers, body: bytes) -> None:
        offset, _, _ = _BY_COORDINATES.unpack_from(body)
        file = body[_BY_COORDINATES.size :].rstrip(b"\0").decode()
        log = self._server.log
        try:
            if file:
                self._following = log.reader(file, offset)
            else:
                gtids = log.read_gtids(answers.variables.get(_CONNECT_STATE, ""))
                self._following = log.reader_after(gtids, offset)
        except (NotInLog, ValueError) as error:
            self._end_of_log(str(error))

    def _dump_after(self, body: bytes) -> None:
        try:
            _, _, name_bytes = _AFTER_GTIDS.unpack_from(body)
            offset, _ = _SET.unpack_from(body, _AFTER_GTIDS.size + name_bytes)
            gtids = IntervalGtids.decode(body[_AFTER_GTIDS.size + name_bytes + _SET.size :])
            self._following = self._server.log.reader_after(gtids, offset)
        except (NotInLog, ValueError, struct.error) as error:
            self._end_of_log(str(error))

    # --- output ----------------------------------------------------------------------------------

    def _end_of_log(self, text: str) -> None:
        self._following = None
        self._send(packets.error(_NO_BINLOG, text))

    def _end(self, number: int, text: str) -> None:
        self._send(packets.error(number, text))
        self.is_closed = True

    def _send_all(self, payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            self._send(payload)

    def _send(self, payload: bytes) -> None:
        self._out += packets_of(payload, self._sequence)
        self._sequence += 1 + len(payload) // LONGEST_PAYLOAD
