"""Types of events in a binlog.

Source: MariaDB's sql/log_event.h, MySQL's libs/mysql/binlog/event/binlog_event.h.
"""

from __future__ import annotations

from typing import Final

QUERY: Final = 2
ROTATE: Final = 4
FORMAT_DESCRIPTION: Final = 15
XID: Final = 16
EXECUTE_LOAD_QUERY: Final = 18
TABLE_MAP: Final = 19
INCIDENT: Final = 26
HEARTBEAT: Final = 27
XA_PREPARE: Final = 38
TRANSACTION_PAYLOAD: Final = 40
HEARTBEAT_V2: Final = 41
GTID: Final = 162
MYSQL_GTIDS: Final = frozenset({33, 34, 42})  # with a GTID, without one, with a tagged one
PARTIAL_ROW_DATA: Final = 172
QUERY_COMPRESSED: Final = 165
ROWS_EVENTS: Final = frozenset({
    23, 24, 25,  # write, update, delete
    30, 31, 32, 39,  # MySQL's, and its update with changes of JSON documents
})  # fmt: skip
WITHOUT_EFFECT: Final = frozenset({
    3,  # the end of a file
    5, 13, 14,  # values that the next statement uses
    9, 17,  # data of the next LOAD DATA statement
    29, 35, 36, 37,  # MySQL: annotation, list of GTIDs, a group's members
    160, 161, 163, 164,  # MariaDB: annotation, checkpoint, list of GTIDs, start of encryption
})  # fmt: skip
