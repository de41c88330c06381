"""Shards are compared before the first load: keys are read only where their ranges meet."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tidemill.errors import SinkError
from tidemill.events import Column, Table
from tidemill.sharding import Routes
from tidemill.sharding.key_space import check_shards

from .rules import sharding_options

ITEM = Table("app", "item", (Column("id", "int", nullable=False), Column("n", "int")), (0,))
ROUTE = {"tables": ["app.item_*"], "target": "all.item"}


class Space:
    def __init__(self, name: str, *keys: int, table: Table = ITEM) -> None:
        self.source = ""
        self.table = replace(table, name=name)
        self._keys = keys
        self.reads = 0

    def ends(self):
        return ((self._keys[0],), (self._keys[-1],)) if self._keys else None

    def keys(self):
        self.reads += 1
        return iter([(key,) for key in self._keys])


def check(*spaces: Space, route=ROUTE, keys: bool = True) -> list[int]:
    """The number of times that each space's keys were read."""
    check_shards(Routes(sharding_options({}, [route])[1]), spaces, keys=keys)
    return [space.reads for space in spaces]


def test_disjoint_ranges_are_not_read():
    assert check(Space("item_1", 1, 5, 9), Space("item_2"), Space("item_3", 10, 20)) == [0, 0, 0]


def test_ranges_that_meet_are_read_and_others_not():
    assert check(Space("item_1", 1, 5, 9), Space("item_2", 2, 8), Space("item_3", 10, 20)) == [1, 1, 0]


def test_equal_keys_are_named_up_to_three_of_them():
    with pytest.raises(
        SinkError, match=r"\(1\) is in app\.item_1 and app\.item_2; \(2\) .*; \(3\) is in [^;]*$"
    ):
        check(Space("item_1", 1, 2, 3, 4), Space("item_2", 1, 2, 3, 4))


def test_equal_keys_are_not_looked_for_if_that_is_so_configured():
    assert check(Space("item_1", 1), Space("item_2", 1), keys=False) == [0, 0]


def test_an_extracted_column_in_the_key_tells_shards_apart():
    route = {**ROUTE, "extract": [{"column": "part", "part": "table"}]}
    assert check(Space("item_1", 1), Space("item_2", 1), route=route) == [0, 0]


def test_an_extracted_column_beside_the_key_does_not():
    route = {**ROUTE, "extract": [{"column": "part", "part": "table", "in_key": False}]}
    with pytest.raises(SinkError, match=r"rows of its shards have the same key \(id\)"):
        check(Space("item_1", 1), Space("item_2", 1), route=route)


def test_a_table_of_the_target_s_name_is_refused():
    own = Space("item", table=replace(ITEM, schema="all"))
    with pytest.raises(
        SinkError, match=r"^route: all\.item is a table of its own, and the target of app\.item_1"
    ):
        check(Space("item_1", 1), own)


def test_shards_whose_collations_differ_are_described_by_them():
    text = Column("n", "varchar", length=9, charset="utf8mb4", collation="utf8mb4_bin")
    other = replace(text, collation="utf8mb4_general_ci")
    one, two = (replace(ITEM, columns=(ITEM.columns[0], column)) for column in (text, other))
    with pytest.raises(SinkError, match=r"utf8mb4_general_ci in place of varchar\(9\) utf8mb4_bin"):
        check(Space("item_1", 1, table=one), Space("item_2", 2, table=two))
