"""Topics and partitions in Canal's notation, compared with what Canal itself chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.errors import SinkError
from tidemill.events import Column, Table
from tidemill.sink.kafka.address import parsed
from tidemill.sink.kafka.canal_hash import java_hash
from tidemill.sink.kafka.options import KafkaOptions
from tidemill.sink.kafka.route import Destination, Destinations, PartitionRoute
from tidemill.testing.changes import LOOSE, ORDERS, PAIRS, delete, insert, update

ROUTES = [line.split("\t") for line in (Path(__file__).parent / "canal/routes.tsv").read_text().splitlines()]
"""Written by CanalRoutes.java with Canal 1.1.7: an option, a row or table, and Canal's choice."""


def rules(**options) -> Destinations:
    address, found = parsed("kafka://b/rest", KafkaOptions(**options))
    return Destinations(address.topic, found)


def partition(table, changes, count, **options) -> list[int]:
    return PartitionRoute(table, rules(**options).of(table.schema, table.name), count).distribute(changes)[1]


def test_the_partition_of_a_row_is_canal_s():
    wrong = []
    for line in ROUTES:
        if line[0] == "topic":
            continue
        mode, entries, schema, name, count, key, fields, wanted = line
        values = dict(field.split("=", 1) for field in fields.split("&"))
        columns = tuple(Column(one, "varchar", length=500) for one in values)
        names = [column.name for column in columns]
        keys = tuple(names.index(one) for one in key.split(",") if one)
        table = Table(schema, name, columns, keys)
        row = [None if value == "NULL" else value for value in values.values()]
        with_schema = mode == "hash with schema"
        found = partition(
            table, [insert(table, *row)], int(count), partition_hash=entries, database_hash=with_schema
        )
        if found != [int(wanted)]:
            wrong.append((line, found))
    assert wrong == []
    assert sum(line[0] != "topic" for line in ROUTES) > 200


def test_the_topic_of_a_table_is_canal_s():
    lines = [line for line in ROUTES if line[0] == "topic"]
    wrong = [line for line in lines if rules(dynamic_topic=line[1]).of(*line[2:4]).topic != line[4]]
    assert wrong == []
    assert len(lines) > 60


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("polygenelubricants", -(1 << 31)), ("😀", 1772899), ("straße", -891990090)],
)
def test_a_text_s_hash_is_java_s(text, code):
    assert java_hash(text) == code


def test_numbers_are_hashed_as_their_texts():
    for number in (1, -5, 2**31 - 1):
        words = Table("shop", "orders", (Column("id", "varchar", length=20), ORDERS.columns[1]), key=(0,))
        as_text = partition(words, [insert(words, str(number), "")], 64, partition_hash="shop.orders:id")
        assert partition(ORDERS, [insert(ORDERS, number, "")], 64, partition_hash=".*:$pk$") == as_text


def test_an_update_that_moves_a_row_is_a_delete_and_an_insert():
    route = PartitionRoute(PAIRS, rules(partition_hash=r".*\..*:$pk$").of("shop", "pairs"), 8)
    moved = update(PAIRS, (1, "a", 1), (2, "a", 1))
    changes, (old, new) = route.distribute([moved])
    assert changes == [delete(PAIRS, 1, "a", 1), insert(PAIRS, 2, "a", 1)]
    assert old != new
    stays = update(PAIRS, (1, "a", 1), (1, "a", 2))
    assert route.distribute([stays]) == ([stays], [old])


def test_a_table_that_no_entry_matches_has_partition_0_and_the_url_s_topic():
    rows = [insert(ORDERS, number, "") for number in range(20)]
    options = {"partition_hash": "crm.people:id", "dynamic_topic": "people:crm"}
    assert partition(ORDERS, rows, 8, **options) == [0] * 20
    assert rules(**options).of("shop", "orders").topic == "rest"
    assert rules(**options).constant_topics() == {"rest", "people"}


def test_a_table_without_a_key_has_the_partition_of_its_schema():
    rows = [insert(LOOSE, number, "x") for number in range(20)]
    found = partition(LOOSE, rows, 8, partition_hash=r".*\..*:$pk$")
    assert found == [abs(java_hash("shop")) % 8] * 20


def test_a_column_that_the_table_does_not_have_is_an_error_with_those_that_it_has():
    with pytest.raises(
        SinkError, match=r"shop\.orders has no column 'colour' of partition_hash; it has: id, no"
    ):
        partition(ORDERS, [], 8, partition_hash="shop.orders:id^colour")


def test_without_either_option_today_s_choice_stays():
    assert rules().of("shop", "orders") == Destination("rest", "table", ())
