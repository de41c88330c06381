"""The contract of SQL databases as sinks, for every dialect of the registry."""

from __future__ import annotations

import pytest

from tidemill.errors import Retryable
from tidemill.testing.changes import ORDERS, at, batch, insert, transaction

from ..dialects.places import MAKERS
from .sql_conformance import SqlConformance, loaded


class TestDialects(SqlConformance):
    @pytest.fixture(params=MAKERS)
    def place(self, request):
        place = MAKERS[request.param](request)
        with place.kept_open():
            yield place

    def test_a_commit_of_an_earlier_connection_that_comes_late_is_not_repeated(self, place, request):
        loaded(place, ORDERS)
        name = request.node.callspec.params["place"].lower()
        options = {"workers": 1} if name.startswith(("mariadb", "mysql", "postgres")) else {}
        earlier, sink = place.sink(**options), place.sink(**options)
        earlier.open(), sink.open()
        items = batch(transaction(30, insert(ORDERS, 1, "x")))
        earlier.write(items)
        earlier.flush()
        with pytest.raises(Retryable, match="a commit of an earlier connection came late"):
            sink.write(items)
        sink.write(items)
        sink.write(batch(transaction(31, insert(ORDERS, 2, "x"))))
        assert sink.flush() == at(31)
        sink.close(), earlier.close()
        assert place.rows(ORDERS) == [(1, "x"), (2, "x")]
