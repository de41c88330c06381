"""Streams that are read by way of a capture: the same rows, whatever becomes of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tidemill.engine.checkpoint import CheckpointFile
from tidemill.errors import ConfigError
from tidemill.spark.capture import client
from tidemill.spark.capture.captures import Captures, captures_of
from tidemill.spark.capture.server import CaptureStatus
from tidemill.spark.data_source import TidemillSource
from tidemill.spark.read.bounded import change_items
from tidemill.spark.read.options import READ_FORM, read_options
from tidemill.spark.read.partition import TaskPartition
from tidemill.spark.read.parts import WHOLE
from tidemill.spark.read.stream_reader import StreamReader
from tidemill.testing.progress import eventually

from . import history
from .capture.beds import Bed, Running
from .capture.conftest import bed  # noqa: F401 - a fixture
from .job import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNREACHABLE = "127.0.0.1:1"


def reader(given: dict[str, str], columns: str = "") -> StreamReader:
    """As Spark makes one."""
    source = TidemillSource(given)
    schema = source.schema()
    made = source.streamReader(StructType([schema[name] for name in columns.split() or schema.names]))
    assert isinstance(made, StreamReader)
    return made


KINDS = (
    ({"tables": "{}.*"}, ""),
    ({"tables": "{}.*", "operations": "insert"}, "commit_ts after"),
    ({"tables": "{}.*", "values": "none"}, "op position"),
    ({"table": "{}.item"}, ""),
)


def test_it_makes_no_difference_to_a_task(bed: Bed) -> None:  # noqa: F811
    with Running(bed).begun() as capture:
        start = bed.latest()
        bed.burst(0, 10)
        end = bed.following(start)
        for more, columns in KINDS:
            given = {"source": bed.url, **{name: text.format(bed.schema) for name, text in more.items()}}
            made = reader({**given, "capture": f"{UNREACHABLE},{capture.address}"}, columns)
            alone, before = reader(given, columns), answered(capture)
            rows = 0
            for part in WHOLE.divided(2):
                partition = TaskPartition(part, start, end, "query")
                tables = [
                    pa.Table.from_batches(one.read(partition), one.output.schema) for one in (made, alone)
                ]
                assert tables[0].equals(tables[1])
                rows += tables[0].num_rows
            assert rows >= 10
            assert answered(capture) == before + 2


def expected(bed: Bed, job: Job) -> list[Any]:  # noqa: F811
    """Return the lines read from the source, after the first batch, which had no rows."""
    ends = job.ends()
    return history.lines(
        item for items in change_items(bed.options, WHOLE, ends[0], ends[-1]) for item in items
    )


def started(job: Job) -> Any:
    """With its beginning written down."""
    query = job.start()
    eventually(job.ends)
    return query


def answered(capture: Running) -> int:
    return client.status(capture.address).answered


def burst(bed: Bed, job: Job, number: int) -> None:  # noqa: F811
    """Ten transactions, until all their rows have come."""
    bed.burst(10 * number, 10)
    rows = sum(n % 4 + 1 for n in range(10 * number, 10 * number + 10))
    before = len(job.found)
    eventually(lambda: len(job.found) >= before + rows)


def test_a_capture_is_killed_and_restarted_between_batches_and_so_is_the_driver(
    spark: SparkSession,
    bed: Bed,  # noqa: F811
    tmp_path: Path,
) -> None:
    with Running(bed).begun() as capture:
        job = Job(spark, tmp_path / "job", bed.url, tables=f"{bed.schema}.*", capture=capture.address)
        query = started(job)
        try:
            burst(bed, job, 0)
            first = len(job.found)
            assert answered(capture) > 0
            burst(bed, job, 1)
            # The begin of a batch tells that the one before is done with.
            held = eventually(lambda: _freed(client.status(capture.address), len(job.found) - first))
            assert held.lease.lease == job.fields()[-1]["lease"]
            eventually(CheckpointFile(bed.directory / "state" / "capture.checkpoint").load)
            capture.kill()
            burst(bed, job, 2)
            with Running(bed, listen=capture.address).begun() as again:
                burst(bed, job, 3)
                eventually(lambda: answered(again) > 0)
                query.stop()
                before = answered(again)
                query = job.start()
                burst(bed, job, 4)
                assert answered(again) > before
                assert client.status(again.address).lease.lease == held.lease.lease
        finally:
            query.stop()
    assert job.found == expected(bed, job)
    assert len({fields["lease"] for fields in job.fields()}) == 1


def _freed(status: CaptureStatus, at_most: int) -> CaptureStatus | None:
    return status if status.held.rows <= at_most else None


def killing(pid: int) -> type[TidemillSource]:
    """A source whose first task kills the capture once it has rows. Made here, as workers get all of it."""

    class KillingReader(StreamReader):
        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            for batch in StreamReader.read(self, partition):
                yield batch
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    class KillingSource(TidemillSource):
        @classmethod
        def name(cls) -> str:
            return "killing"

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            options = read_options(self.options)
            return KillingReader(options, self._output(options, schema))

    return KillingSource


def test_a_capture_is_killed_in_the_middle_of_a_batch(
    spark: SparkSession,
    bed: Bed,  # noqa: F811
    tmp_path: Path,
) -> None:
    with Running(bed).begun() as capture:
        spark.dataSource.register(killing(capture.process.pid))
        job = Job(spark, tmp_path / "job", bed.url, tables=f"{bed.schema}.*", capture=capture.address)
        job.format = "killing"
        query = started(job)
        try:
            text = "x" * 8000  # so much that no buffer between two processes holds it
            for part in range(3):
                bed.write([("item", 1000 * part + n, text) for n in range(700)])
            eventually(lambda: len(job.found) >= 3 * 700)
        finally:
            query.stop()
        assert capture.process.poll() == -signal.SIGKILL
    assert job.found == expected(bed, job)


def test_what_a_query_is_told_of_its_captures(tmp_path: Path) -> None:
    token, ca = tmp_path / "token", tmp_path / "ca.pem"
    token.write_text("secret\n")
    ca.write_bytes(b"-----BEGIN CERTIFICATE-----\n")
    given = {"source": "tikv://pd:2379", "tables": "shop.*"}
    assert captures_of(read_options(given), READ_FORM) is None
    more = {"capture": "a:1, [::1]:2", "captureTokenFile": str(token), "captureCaFile": str(ca)}
    more |= {"captureTls": "true", "captureWaitSeconds": "3"}
    found = captures_of(read_options({**given, **more}), READ_FORM)
    assert isinstance(found, Captures)
    assert (found.addresses, found.wait_seconds) == (("a:1", "[::1]:2"), 3.0)
    assert (found.access.token, found.access.tls, found.access.ca) == ("secret", True, ca.read_bytes())
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"capture": "10.0.0.5"},
            "option capture = '10.0.0.5': addresses host:port, for instance 10",
        ),
        ({"capture": ","}, "option capture = ',': addresses host:port"),
        (
            {"captureTokenFile": "x"},
            "option captureTokenFile: it is for captures; give their addresses as capture",
        ),
        ({"capture": "a:1", "captureTls": "maybe"}, "option captureTls = 'maybe': accepted: true, false"),
        ({"capture": "a:1", "captureTokenFile": "/none"}, "option captureTokenFile: /none: No such file"),
        ({"capture": "a:1", "captureCaFile": "/none"}, "option captureCaFile: /none: No such file"),
        (
            {"capture": "a:1", "captureCaFile": history.__file__},
            "option captureCaFile: .*: expected certificates as PEM",
        ),
    ],
)
def test_what_is_wrong_with_it_is_said(more: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        reader({"source": "tikv://pd:2379", "tables": "shop.*", **more})


def test_a_batch_takes_none() -> None:
    source = TidemillSource({"source": "tikv://pd:2379", "tables": "shop.*", "capture": "a:1"})
    with pytest.raises(ConfigError, match="option capture: it is for streams"):
        source.reader(source.schema())
