"""The contract of sinks, with a store and a directory."""

from __future__ import annotations

import pytest

from tidemill.testing.sink_conformance import HISTORY, SinkConformance, expected, feed, found

from .places import BucketPlace, DirectoryPlace


class TestDirectory(SinkConformance):
    @pytest.fixture(params=["ndjson", "ndjson with a journal", "parquet by size"])
    def place(self, request, tmp_path):
        form, _, when = request.param.partition(" ")
        options = {
            "": {},
            "with a journal": {"flush_seconds": 60.0, "journal_seconds": 0.0},
            "by size": {"flush_seconds": 60.0, "file_bytes": 200},
        }
        return DirectoryPlace(tmp_path / "copy", format=form, **options[when])


@pytest.mark.parametrize("form", ["ndjson", "parquet"])
def test_a_store_ends_with_the_rows_of_the_source(s3_server, bucket, form):
    place = BucketPlace(s3_server, f"{bucket}/copy", format=form, file_bytes=1000, flush_seconds=60.0)
    feed(place.sink(), HISTORY[:9])
    feed(place.sink(), HISTORY)
    assert found(place) == expected(HISTORY)
