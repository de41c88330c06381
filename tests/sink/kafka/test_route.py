"""Topics and partitions of rows."""

from __future__ import annotations

import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.errors import SinkError
from tidemill.events import Column, RowChange, Table
from tidemill.sink.kafka.address import parsed
from tidemill.sink.kafka.options import Dispatch, KafkaOptions
from tidemill.sink.kafka.route import Destination, Destinations, PartitionRoute
from tidemill.testing.changes import LOOSE, ORDERS, PAIRS, delete, insert, update

WORDS = Table(
    "shop",
    "words",
    (
        Column(
            "word", "varchar", length=9, charset="utf8mb4", collation="utf8mb4_general_ci", nullable=False
        ),
        Column("n", "int"),
    ),
    key=(0,),
)


def route(table, partition, *columns, count=8):
    return PartitionRoute(table, Destination("rows", partition, columns), count)


def spread(partition, *columns):
    rows = [insert(ORDERS, number, "even" if number % 2 else "odd") for number in range(200)]
    return route(ORDERS, partition, *columns).distribute(rows)[1]


def test_by_table_all_rows_have_one_partition():
    assert len(set(spread("table"))) == 1
    assert (
        route(ORDERS, "table").distribute([insert(ORDERS, 1, "")])[1]
        != route(PAIRS, "table").distribute([insert(PAIRS, 1, "", 1)])[1]
    )


def test_by_key_the_rows_spread_over_all_partitions():
    assert set(spread("key")) == set(range(8))


def test_by_columns_equal_values_have_one_partition():
    assert len(set(spread("columns", "note"))) == 2


def test_by_ts_a_transaction_has_one_partition():
    changes = [RowChange(ts, 0, ORDERS, "insert", None, (1, "")) for ts in (16, 16, 17)]
    assert route(ORDERS, "ts").distribute(changes)[1] == [0, 0, 1]


def test_the_partitions_of_keys_are_the_same_in_every_version():
    rows = [insert(ORDERS, number, "") for number in (1, 2, 2**31 - 1, -5)]
    assert route(ORDERS, "key").distribute(rows)[1] == [7, 5, 0, 3]


def test_the_changes_of_a_row_have_one_partition():
    by_key = route(PAIRS, "key")
    changes = [insert(PAIRS, 1, "a", 1), update(PAIRS, (1, "a", 1), (1, "a", 2)), delete(PAIRS, 1, "a", 2)]
    assert len({by_key.distribute([change])[1][0] for change in changes}) == 1


def test_keys_that_the_source_holds_for_equal_have_one_partition():
    by_key = route(WORDS, "key")
    words = [insert(WORDS, word, 1) for word in ("straße", "STRASE", "Strasé")]
    found = by_key.distribute(words)[1]
    assert found[1] == found[2]
    assert by_key.distribute([update(WORDS, ("a", 1), ("A", 1))])[0][0].op == "update"


def test_an_update_that_moves_a_row_to_another_partition_is_a_delete_and_an_insert():
    changes, partitions = route(ORDERS, "key").distribute([update(ORDERS, (1, "x"), (2, "y"))])
    assert [(one.op, one.before, one.after) for one in changes] == [
        ("delete", (1, "x"), None),
        ("insert", None, (2, "y")),
    ]
    assert partitions[0] != partitions[1]


def test_a_table_without_a_key_has_one_partition():
    rows = [insert(LOOSE, number, "x") for number in range(50)]
    assert len(set(route(LOOSE, "key").distribute(rows)[1])) == 1


def test_a_column_that_the_table_does_not_have_is_an_error_with_those_that_it_has():
    with pytest.raises(SinkError, match=r"shop\.orders has no column 'colour'.*it has: id, note"):
        route(ORDERS, "columns", "colour")


def test_the_first_dispatch_that_matches_a_table_decides():
    options = KafkaOptions(
        dispatch=(
            Dispatch(tables=TablePatterns.parse(("shop.o*", "!shop.~o[a-m].*")), partition="key"),
            Dispatch(tables=TablePatterns.parse(("shop.*", "crm.*")), topic="all_{schema}", partition="ts"),
        )
    )
    address, _ = parsed("kafka://b/rows", options)
    rules = Destinations(address.topic, options)
    assert rules.of("shop", "orders") == Destination("rows", "key", ())
    assert rules.of("shop", "offers") == Destination("all_shop", "ts", ())
    assert rules.of("crm", "people") == Destination("all_crm", "ts", ())
    assert rules.of("hr", "people") == Destination("rows", "table", ())
    assert rules.constant_topics() == {"rows"}


def test_a_topic_longer_than_names_may_be_is_an_error():
    address, options = parsed("kafka://b/{schema}_{table}", KafkaOptions())
    with pytest.raises(SinkError, match=r"can't have the topic .* up to 249 characters"):
        Destinations(address.topic, options).of("s" * 200, "t" * 60)
