"""Query events: statements that the server logged as text."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

from pymysql.charset import charset_by_id

from ...codec.mysql.collation import Charset, collation
from ...codec.mysql.entry import Query
from ...codec.mysql.tokens import Tokens
from ...dialects.mysql.zone import ServerZone, offset_of
from .compression import uncompress

_head = Struct("<IIBHH").unpack_from  # thread, duration in seconds, length of schema, error, length of status
_STATUS_WIDTHS: Final = {
    0: 4,
    1: 8,
    3: 4,
    4: 6,
    7: 2,
    8: 2,
    9: 8,
    10: 4,
    13: 3,
    14: 8,
    15: 8,
    16: 1,
    17: 8,
    18: 2,
    19: 1,
    20: 1,
    128: 3,
    129: 8,
}
_FLAGS, _SQL_MODE, _CHARSET, _TIME_ZONE, _CATALOG, _INVOKER, _DATABASES = 0, 1, 4, 5, 6, 11, 12
_MICROSECONDS, _MYSQL_MICROSECONDS, _MYSQL_EXPLICIT_TIMESTAMPS = 128, 13, 16
_EXPLICIT_TIMESTAMPS: Final = 1 << 24
"""A bit of _FLAGS. Servers before 10.10 don't log it; there the variable is off unless it was set."""
_TOO_MANY_DATABASES: Final = 254
"""MySQL's number of databases if it doesn't list them."""
_HEAD: Final = 13


class LoggedStatement:
    """The body of a query event."""

    def __init__(self, body: bytes, *, compressed: bool = False) -> None:
        _, _, schema_length, self._error, status_length = _head(body)
        status_end = _HEAD + status_length
        schema_end = status_end + schema_length
        self._status = dict(_variables(body[_HEAD:status_end]))
        text = body[schema_end + 1 :]
        self.schema = body[status_end:schema_end].decode()
        """The session's default database."""
        self.text = (uncompress(text) if compressed else text).decode(self._encoding(), "replace")

    def as_query(self, epoch_seconds: int, system: ServerZone, position: str = "") -> Query:
        """Return the Query with every setting that may change its effect; `position` is the end of the event.
        Raises SourceError for a session time zone that isn't known here."""
        status = self._status
        zone = status.get(_TIME_ZONE, b"SYSTEM").decode()
        if is_system := zone == "SYSTEM":
            zone = system.name
        return Query(
            schema=self.schema,
            query=self.text,
            epoch_seconds=epoch_seconds + self._micros / 1e6,
            sql_mode=self._sql_mode,
            converts_strings=self._converts_strings,
            explicit_timestamps=self._explicit_timestamps,
            time_zone=zone,
            utc_offset_seconds=(
                system.offset_at(epoch_seconds) if is_system else offset_of(zone, epoch_seconds)
            ),
            server_charset=self._server_charset,
            position=position,
            error=self._error,
        )

    def tokens(self, *, of_mysql: bool) -> Tokens:
        """Return a reader of the text; `of_mysql` is True if the server is a MySQL, not a MariaDB."""
        return Tokens(self.text, self._sql_mode, of_mysql=of_mysql)

    @property
    def _sql_mode(self) -> int:
        return _number(self._status.get(_SQL_MODE, b""))

    @property
    def _micros(self) -> int:
        return _number(self._status.get(_MICROSECONDS) or self._status.get(_MYSQL_MICROSECONDS, b""))

    @property
    def _explicit_timestamps(self) -> bool:
        if _MYSQL_EXPLICIT_TIMESTAMPS in self._status:
            return self._status[_MYSQL_EXPLICIT_TIMESTAMPS] == b"\1"
        return bool(_number(self._status.get(_FLAGS, b"")) & _EXPLICIT_TIMESTAMPS)

    @property
    def _converts_strings(self) -> bool:
        collations = self._status.get(_CHARSET, b"")
        client, connection = (_charset(_number(collations[at : at + 2])) for at in (0, 2))
        return connection not in (client, "utf8mb4")

    @property
    def _server_charset(self) -> Charset | None:
        """Return the session's collation_server."""
        number = _number(self._status.get(_CHARSET, b"")[4:6])
        try:
            return Charset(*collation(number)) if number else None
        except LookupError:
            return None

    def _encoding(self) -> str:
        number = _number(self._status.get(_CHARSET, b"")[:2])  # character set of the client
        try:
            return charset_by_id(number).encoding
        except KeyError:
            return "utf-8"


def _variables(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the status variables (kind, value), up to the first of an unknown kind."""
    at = 0
    while at < len(data):
        code = data[at]
        at += 1
        if code in (_TIME_ZONE, _CATALOG):
            width = data[at]
            at += 1
        elif code == _INVOKER:  # a user and a host
            width = 1 + data[at]
            width += 1 + data[at + width]
        elif code == _DATABASES:
            width = _databases_width(data, at)
        elif code in _STATUS_WIDTHS:
            width = _STATUS_WIDTHS[code]
        else:
            return
        yield code, data[at : at + width]
        at += width


def _databases_width(data: bytes, at: int) -> int:
    """Return the size of MySQL's list of changed databases: their number, then names that a zero ends."""
    end = at + 1
    for _ in range(data[at] if data[at] != _TOO_MANY_DATABASES else 0):
        end = data.index(0, end) + 1
    return end - at


def _charset(number: int) -> str:
    try:
        charset: Any = charset_by_id(number)
    except KeyError:
        return ""
    return str(charset.name)


def _number(value: bytes) -> int:
    return int.from_bytes(value, "little")
