"""The contract of every database server as a target, besides that of every SQL database."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from tidemill.errors import Retryable
from tidemill.events import Column, Table
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.testing.changes import LOOSE, ORDERS, batch, delete, insert, transaction
from tidemill.testing.sink_conformance import HISTORY, STATES, expected, feed

from ..sink.sql_conformance import loaded


class ServerConformance:
    words = ("a", "A", "á", "a ", "", None, "\uff41")
    """Texts that a collation may call equal, as far as the target can store them."""

    # --- values

    def test_a_row_without_key_is_told_from_those_that_only_look_alike(self, place):
        words = list(self.words)
        loaded(place, LOOSE, rows=[(1, word) for word in words])
        for ts, word in enumerate(words, 30):
            feed(place.sink(), [transaction(ts, delete(LOOSE, 1, word))])
            left = words[ts - 29 :]
            assert Counter(place.rows(LOOSE)) == Counter((1, word) for word in left)

    @pytest.mark.parametrize("key", [(), (0,)], ids=["keyless", "keyed"])
    def test_decimals_that_are_the_same_as_doubles_are_told_apart(self, place, key):
        price = Column("price", "decimal", length=65, scale=30, nullable=False)
        table = Table("shop", "prices", (price,), key)
        prices = [Decimal(f"1234567890123456789.00000000000000000000000000000{n}") for n in range(5)]
        loaded(place, table, rows=[(price,) for price in prices])
        changes = [transaction(30 + n, delete(table, prices[gone])) for n, gone in enumerate((3, 1))]
        feed(place.sink(), changes)
        assert sorted(place.rows(table)) == [(prices[n],) for n in (0, 2, 4)]

    # --- a target that can't, for now

    def test_a_connection_that_is_killed_is_made_anew_and_nothing_is_lost(self, place):
        sink = place.sink(workers=1)
        work = Delivery(sink, sink.open(), "src", DeliveryOptions(max_rows=2, rowless_seconds=0))
        retries = 0
        for number, item in enumerate(HISTORY):
            if number % 2:
                place.kill(sink._database.session)
            work.accept([item])
            while True:
                try:
                    work.run(0)
                    break
                except Retryable:
                    retries += 1
        sink.close()
        assert retries >= len(HISTORY) // 2
        assert {table.full_name: Counter(place.rows(table)) for table in STATES} == expected(HISTORY)

    def test_a_commit_whose_answer_is_lost_is_not_done_twice(self, place, monkeypatch):
        loaded(place, ORDERS)
        sink = place.sink(workers=1)
        work = Delivery(sink, sink.open(), "src")
        target = type(sink._database)
        commit = target.commit

        def answer_is_lost(self):
            commit(self)
            raise Retryable("connection lost")

        work.accept([transaction(30, insert(ORDERS, 1, "x"), insert(ORDERS, 2, "x"))])
        with monkeypatch.context() as patched:
            patched.setattr(target, "commit", answer_is_lost)
            with pytest.raises(Retryable):
                work.run(0)
        work.accept([transaction(31, insert(ORDERS, 3, "x"))])
        work.run(0)
        sink.close()
        assert place.rows(ORDERS) == [(1, "x"), (2, "x"), (3, "x")]
        assert work.statistics().checkpoint.ts == 31

    # --- size

    def test_a_large_transaction_is_one_transaction_in_the_target(self, place):
        loaded(place, ORDERS)
        sink = place.sink()
        sink.open()
        for first in range(0, 3000, 1000):
            piece = [insert(ORDERS, n, "x") for n in range(first, first + 1000)]
            sink.write(batch(transaction(30, *piece, last=False)))
            assert place.rows(ORDERS) == []
        sink.write(batch(transaction(30, *[delete(ORDERS, n, "x") for n in range(3000) if n % 3])))
        sink.flush()
        sink.close()
        assert sorted(place.rows(ORDERS)) == [(n, "x") for n in range(0, 3000, 3)]
