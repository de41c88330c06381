"""Answers of a store whose connection is cut within their head: none is taken for one without content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidemill.errors import Retryable
from tidemill.sink.files.address import BucketAddress
from tidemill.sink.files.bucket import Bucket
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.ledger import Ledger
from tidemill.sink.files.options import BucketOptions
from tidemill.testing.network_faults import NetworkFault, PlannedFaults
from tidemill.testing.proxy import Proxy
from tidemill.testing.s3 import S3Store

IN_HEADS = (20, 90, 170, 210)
"""Bytes of an answer after which its connection ends: within the head, after the line of the status."""


@contextmanager
def cut(server: S3Store, bucket: str, after_bytes: int) -> Iterator[Bucket]:
    """A store whose first connection is cut in an answer."""
    host, _, port = server.endpoint.removeprefix("http://").rpartition(":")
    fault = NetworkFault("cut", "to client", after_bytes, 0.0)
    with Proxy(host, int(port), faults=PlannedFaults(fault)) as proxy:
        yield Bucket(
            BucketAddress(bucket, "rows"),
            BucketOptions(endpoint=f"http://{proxy.host}:{proxy.port}", timeout_seconds=2),
        )


@pytest.fixture
def whole(s3_server: S3Store, bucket: str) -> Bucket:
    store = Bucket(BucketAddress(bucket, "rows"), BucketOptions(endpoint=s3_server.endpoint))
    for number in range(3):
        store.write(f"some/{number}", b"content")
    return store


@pytest.mark.parametrize("after_bytes", IN_HEADS)
def test_a_list_is_never_empty_by_it(
    whole: Bucket, s3_server: S3Store, bucket: str, after_bytes: int
) -> None:
    with cut(s3_server, bucket, after_bytes) as store:
        assert store.names("some") == whole.names("some") == ["0", "1", "2"]
    with cut(s3_server, bucket, after_bytes) as store:
        assert store.entries() == ["some"]


@pytest.mark.parametrize("after_bytes", IN_HEADS)
def test_an_object_is_never_empty_by_it(
    whole: Bucket, s3_server: S3Store, bucket: str, after_bytes: int
) -> None:
    with cut(s3_server, bucket, after_bytes) as store:
        if after_bytes > len("HTTP/1.1 200 OK"):
            with pytest.raises(Retryable, match="the store's answer about some/1 broke off"):
                store.read("some/1")
        assert store.read("some/1") == whole.read("some/1") == b"content"


def test_a_writer_whose_claim_is_not_listed_does_not_go_on(tmp_path: Path) -> None:
    ledger = Ledger(Directory(tmp_path), "feed", "sink")
    ledger.claim()
    (claim,) = (tmp_path / "_tidemill/states").iterdir()
    claim.unlink()
    with pytest.raises(Retryable, match="the store doesn't list what feed 'feed' has written"):
        ledger.check()
