"""The contract of SQL databases as sinks, for every dialect of the registry."""

from __future__ import annotations

import pytest

from ..dialects.places import MAKERS
from .sql_conformance import SqlConformance


class TestDialects(SqlConformance):
    @pytest.fixture(params=MAKERS)
    def place(self, request):
        place = MAKERS[request.param](request)
        with place.kept_open():
            yield place
