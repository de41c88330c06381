"""Several `[[source]]` sections: what they say, their positions, and their tables."""

from __future__ import annotations

import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.cli.flags import feed_tables
from tidemill.engine.options import feed_options
from tidemill.errors import CheckpointError, ConfigError, SourceError
from tidemill.sharding import Routes
from tidemill.sources.positions import Ranks, decode_clocks, decode_positions, encode_positions
from tidemill.sources.table_names import own_tables
from tidemill.spark.reading import reading_of_kind

from ..sharding.rules import sharding_options

NORTH = {"name": "north", "url": "mysql://north", "tables": ["north.*"]}
SOUTH = {"name": "south", "url": "mysql://south", "tables": ["south.*"]}


def test_the_order_of_the_sections_says_nothing():
    found = feed_options({"source": [SOUTH, NORTH]})
    assert found.source.options.address == "north:3306, south:3306"
    assert found.tables.patterns == ("north: north.*", "south: south.*")
    assert found.tables.matches("south", "t")
    assert not found.tables.matches("west", "t")


def test_an_exclusion_is_of_its_own_source():
    north = {**NORTH, "tables": ["*.*", "!south.*"]}
    assert feed_options({"source": [north, SOUTH]}).tables.matches("south", "t")


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ([NORTH, "mysql://south"], r"^source: expected a table, or \[\[source\]\]"),
        ([NORTH, {**SOUTH, "name": "north"}], r"^source\.name: two sources are called 'north'"),
        ([NORTH, {"url": "mysql://db", "tables": ["a.*"]}], r"^source 2\.name: each of several needs one"),
        ([NORTH, {"name": "b", "tables": ["a.*"]}], r"^source b\.url: missing"),
        ([NORTH, {**SOUTH, "tables": "south.*"}], r"^source south\.tables: expected a list"),
        ([NORTH, {**SOUTH, "tables": []}], r"^source south\.tables: no pattern given"),
        ([NORTH, {**SOUTH, "hsot": "x"}], r"^source south: source\.hsot: no such key"),
        ([NORTH, {**SOUTH, "snapshot": False}], r"^source\.snapshot: some sources of this feed load"),
        ([NORTH, {**SOUTH, "url": "tikv://pd:2379"}], r"^source south: url: tikv can't be one of several"),
        ([NORTH, {**SOUTH, "on_idle": "continue"}], r"^source south\.on_idle: 'continue' is none of 'wait'$"),
    ],
)
def test_a_mistake_is_named_with_its_source(sections, sentence):
    with pytest.raises(ConfigError, match=sentence):
        feed_options({"source": sections})


def test_flags_for_the_one_source_are_refused(tmp_path):
    file = tmp_path / "feed.toml"
    file.write_text('[[source]]\nname = "north"\n[[source]]\nname = "south"\n')
    with pytest.raises(ConfigError, match=r"^--source, --table: the file has several"):
        feed_tables(file, "mysql://db", None, None, None, None)


def test_spark_can_t_read_them():
    kind = feed_options({"source": [NORTH, SOUTH]}).source.kind
    with pytest.raises(ConfigError, match="Spark can't read several sources, only mysql, tikv"):
        reading_of_kind(kind)


def test_positions_are_of_each_source():
    positions = {"north": "binlog.000001:4", "south": "binlog.000002:99"}
    assert decode_positions(encode_positions(positions), ["north", "south"]) == positions


@pytest.mark.parametrize(
    "text",
    ["", "binlog.000001:4", "[]", "{}", '{"north": "a.1:4"}', '{"north": "a.1:4", "south": ""}',
     '{"north": "a.1:4", "south": 4}', '{"north": "a.1:4", "south": "a.1:4", "west": "a.1:4"}'],
)  # fmt: skip
def test_another_text_is_no_position(text):
    with pytest.raises(CheckpointError, match="position of each of its sources, north, south"):
        decode_positions(text, ["north", "south"])


def test_a_position_is_reached_when_every_source_has():
    end = Ranks((5, 5))
    assert not Ranks((9, 4)) >= end
    assert Ranks((5, 5)) >= end
    assert Ranks((6, 5)) > end
    assert Ranks((9, 4)) > end  # that source is ahead of its own end
    assert Ranks((4, 5)) < end
    assert min((Ranks((5, 6)), 2), (Ranks((5, 5)), 1)) == (end, 1)


def test_a_table_of_two_sources_is_refused():
    owners: dict[tuple[str, str], str] = {}
    north = own_tables(TablePatterns.parse(["*.*"]), "north", owners, Routes())
    south = own_tables(TablePatterns.parse(["*.*", "!shop.own"]), "south", owners, Routes())
    assert north.matches("shop", "item")
    assert not south.matches("shop", "own")
    assert south.matches("shop", "order")
    for _ in range(2):
        with pytest.raises(SourceError, match=r"^shop\.item is followed in source north and in source south"):
            south.matches("shop", "item")


def test_a_table_of_two_sources_is_accepted_if_it_is_merged():
    owners: dict[tuple[str, str], str] = {}
    _, rules = sharding_options({}, [{"tables": ["shop.item_*"], "target": "shop.item"}])
    routes = Routes(rules)
    every = TablePatterns.parse(["*.*"])
    north, south = (own_tables(every, name, owners, routes) for name in ("north", "south"))
    assert north.matches("shop", "item_1")
    assert south.matches("shop", "item_1")
    assert north.matches("shop", "own")
    with pytest.raises(SourceError, match=r"^shop\.own is followed in source north and in source south"):
        south.matches("shop", "own")


def test_a_position_contains_the_ts_of_each_source_s_last_transaction():
    positions = {"north": "binlog.000001:4", "south": "binlog.000002:4"}
    text = encode_positions(positions, {"north": 70, "south": 41})
    assert decode_positions(text, ["north", "south"]) == positions
    assert decode_clocks(text) == {"north": 70, "south": 41}
    assert decode_clocks(encode_positions(positions)) == {}
