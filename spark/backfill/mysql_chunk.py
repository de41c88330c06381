"""Reading one chunk of a MariaDB table, from the socket into a file without decoding."""

from __future__ import annotations

from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.position import Position
from ...dialects.mysql.client import translated
from ...dialects.mysql.key_range import chunk_query
from ...dialects.mysql.result import Result
from ...events import KeyRange
from ...failpoint import reach
from ...puller.mysql.options import MysqlOptions
from ...snapshot.mysql.tables import SourceTable
from ...snapshot.mysql.view import begin, begin_unlocked, listed_end, table_view
from .chunk_file import ChunkWriter
from .directory import READ, Directory
from .plan import BackfillPlan


def read_mysql(options: MysqlOptions, directory: Directory, plan: BackfillPlan, number: int) -> None:
    """Read one chunk under a metadata lock of its table, and no other lock.

    Raises TableAltered, Retryable and SourceError.
    """
    planned, chunk = plan.find(number)
    table = planned.table
    source = SourceTable(KnownTable(table), "", planned.rows_estimated, planned.digest)
    how = begin if planned.exact else begin_unlocked
    with table_view(options, plan.source, source, how) as (session, position):
        writer = ChunkWriter(directory, READ, plan, planned, number)
        try:
            within = KeyRange(chunk.after, chunk.up_to) if planned.by_key else None
            _copy(Result(session, options, table, chunk_query(table, within)), writer)
            low = high = position
            if not planned.exact:
                low = Position.parse(planned.since)
                with translated(options):
                    high = listed_end(session).without_gtids
            reach("snapshot.chunk_read")
            writer.finish(str(low), str(high))
        except BaseException:
            writer.discard()
            raise


def _copy(result: Result, writer: ChunkWriter) -> None:
    before = 0
    while not result.done:
        if packets := result.read():
            writer.add_packets(packets, result.rows - before)
            before = result.rows
