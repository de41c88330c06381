"""The table of places: a dialect that it lacks isn't left out silently."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemill.dialects.registry import DIALECTS
from tidemill.dialects.sqlite.entry import SQLITE

from .places import PLACES, makers


def test_a_dialect_without_a_place_fails_with_a_sentence(request: pytest.FixtureRequest) -> None:
    made = makers(iter([SQLITE, replace(SQLITE, name="Another")]))
    assert list(made) == ["sqlite", "Another"]
    with pytest.raises(
        pytest.fail.Exception, match="Another has no empty database for tests: add one to PLA"
    ):
        made["Another"](request)


def test_places_are_of_dialects_that_there_are() -> None:
    assert set(PLACES) <= {dialect.name for dialect in DIALECTS}
