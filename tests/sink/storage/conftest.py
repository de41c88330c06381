from __future__ import annotations

import pytest

from tidemill.testing.s3 import S3Store

from .places import BucketPlace


@pytest.fixture
def place(s3_server: S3Store, bucket: str) -> BucketPlace:
    return BucketPlace(s3_server, f"{bucket}/copy")
