"""A query that begins within a second in which its capture has earlier transactions."""

from __future__ import annotations

from pathlib import Path

from tidemill.spark.capture import client
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually

from .beds import MariaBed, Running
from .history import rows_of


def held_rows(capture: Running) -> int:
    return client.status(capture.address).held.rows


def test_a_query_from_within_a_second_has_all_rows_with_its_own_ts(
    sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    with MariaBed(tmp_path, mariadb, sql.database) as bed, Running(bed).begun() as capture:
        bed.alter("SET timestamp = 2000000000")
        bed.write([("other", 1, "before")])
        start = bed.at_position(bed.latest().position)
        for first in (0, 15):  # the capture has them in two batches
            bed.write(*[[("item", number, "row")] for number in range(first, first + 15)])
            eventually(lambda: held_rows(capture) == 1 + first + 15)  # noqa: B023
        end = bed.following(start)
        alone = bed.alone(start, end)
        assert len(alone) == 30
        assert rows_of(bed.stream(capture.address, start, end)) == alone
        assert bed.rest_from == [start]
        bed.alter("SET timestamp = 2000000001")
        bed.write(*[[("item", number, "later")] for number in range(30)])
        later = bed.following(end)
        assert rows_of(bed.stream(capture.address, end, later)) == bed.alone(end, later)
        assert bed.rest_from == [start]
