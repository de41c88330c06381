"""Which tables a partition has."""

from __future__ import annotations

from tidemill.spark.read.parts import WHOLE, Part

NAMES = [("shop", f"t{number}") for number in range(200)]


def test_every_table_is_in_one_part_however_many_there_are() -> None:
    for count in (1, 2, 7):
        held = [[part.has(*name) for part in WHOLE.divided(count)] for name in NAMES]
        assert all(sum(one) == 1 for one in held)
        assert len({tuple(one) for one in held}) == count


def test_a_table_stays_in_its_part() -> None:
    """A query that is started again, by another tidemill maybe, plans the same partitions."""
    assert [part.number for part in WHOLE.divided(5) if part.has("shop", "orders")] == [1]


def test_schemas_and_tables_narrow_it() -> None:
    part = Part(schemas=frozenset({"shop"}), tables=frozenset({"t1", "t2"}))
    assert [name for name in NAMES if part.has(*name)] == [("shop", "t1"), ("shop", "t2")]
    assert not part.has("other", "t1")


def test_a_filter_takes_what_the_patterns_name_and_the_part_has() -> None:
    parts = WHOLE.divided(2)
    matched = [{n for n in NAMES if part.chosen(["shop.*", "!shop.t1*"]).matches(*n)} for part in parts]
    assert matched[0] | matched[1] == {n for n in NAMES if not n[1].startswith("t1")}
    assert not matched[0] & matched[1]
