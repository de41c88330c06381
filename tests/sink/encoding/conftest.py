from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidemill.testing.schema_registry import SchemaRegistryServer, schema_registry


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as server:
        yield server
