"""Sections [sharding] and [[route]]: mistakes are named, and engines that can't merge refuse them."""

from __future__ import annotations

import pytest

from tidemill.actors import ManualClock
from tidemill.compare.diff import open_diff
from tidemill.engine.coordination import FeedCoordination
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError, SinkError
from tidemill.sharding import Routes
from tidemill.spark.run.run import run as run_on_spark

from .rules import sharding_options

ROUTE = {"tables": ["shop_*.~orders_[0-9]+"], "target": "shop.orders"}
SOURCE = {"name": "a", "url": "mysql://a", "tables": ["shop_1.*"]}


def feed(**sections):
    return {"source": [SOURCE], "sink": [{"url": "sqlite:///x.db"}], "route": [ROUTE], **sections}


def test_a_route_matches_by_wildcards_and_by_a_regular_expression():
    routes = Routes(feed_options(feed()).routes)
    found = routes.find("a", "shop_1", "orders_12")
    assert found is not None
    assert found.target == ("shop", "orders")
    assert routes.find("a", "shop_1", "orders_x") is None
    assert routes.find("a", "other", "orders_1") is None


def test_a_table_with_two_targets_is_an_error():
    _, rules = sharding_options({}, [ROUTE, {**ROUTE, "target": "shop.other"}])
    with pytest.raises(SinkError, match=r"is routed to shop\.orders \(route 1\) and shop\.other \(route 2\)"):
        Routes(rules).find("a", "shop_1", "orders_1")


@pytest.mark.parametrize(
    ("route", "target"),
    [
        ({"tables": ["shop_*.*"], "target": "all.{table}"}, ("all", "Orders_12")),
        ({"tables": ["SHOP_*.orders_*"], "target": "all.o", "case_sensitive": False}, ("all", "o")),
        ({"tables": ["SHOP_*.*"], "target": "all.o"}, None),
        ({"tables": ["shop_*.*", "!*.Orders_12"], "target": "all.o"}, None),
        ({"tables": [r"~([a-z]+)_\d.*"], "target": "{schema.1}.{table}"}, ("shop", "Orders_12")),
        (
            {
                "tables": [r"~shop_(\d).~(?P<name>\w+)_(\d+)"],
                "target": "{source}-{schema.1}.{table.name}.{table.2}",
            },
            ("a-1", "Orders.12"),
        ),
    ],
)
def test_a_target_is_made_of_the_names_of_the_shard(route, target):
    found = Routes(sharding_options({}, [route])[1]).find("a", "shop_1", "Orders_12")
    assert (None if found is None else found.target) == target


def test_a_target_without_a_name_is_an_error():
    _, rules = sharding_options({}, [{"tables": ["a.~x(y)?"], "target": "all.{table.1}"}])
    assert Routes(rules).find("", "a", "xy").target == ("all", "y")
    with pytest.raises(
        SinkError, match=r"^route\.target = 'all\.\{table\.1\}': a\.x would go to 'all\.', as a group"
    ):
        Routes(rules).find("", "a", "x")


def test_routes_that_fill_other_columns_of_one_table_are_an_error():
    plain = {"tables": ["a.*"], "target": "all.{table}"}
    extracting = {"tables": ["b.*"], "target": "all.x", "extract": [{"column": "n", "part": "schema"}]}
    routes = Routes(sharding_options({}, [plain, extracting])[1])
    assert routes.find("", "a", "x") is not None
    assert routes.find("", "a", "y") is not None
    with pytest.raises(SinkError, match=r"^route 2: fills other columns of all\.x than route 1"):
        routes.find("", "b", "x")


def test_an_expression_that_doesn_t_match_is_an_error():
    _, rules = sharding_options({}, [{**ROUTE, "extract": [{"column": "n", "part": "schema", "regex": "x"}]}])
    with pytest.raises(
        SinkError, match=r"column n: 'x' doesn't match schema 'shop_1' of a: shop_1\.orders_1"
    ):
        Routes(rules).find("a", "shop_1", "orders_1")


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"sharding": {"mode": "loose"}}, r"^sharding\.mode: 'loose' is none of"),
        ({"sharding": {"max_held_rows": -1}}, r"^sharding\.max_held_rows: expected `int` >= 0"),
        ({"sharding": {"mode": "off"}, "route": []}, r"^sharding: no \[\[route\]\] names a merged table"),
        ({"route": [{**ROUTE, "target": "orders"}]}, r"^route 1\.target = 'orders': write"),
        (
            {"route": [{**ROUTE, "target": "all.{host}"}]},
            r"^route 1\.target = 'all\.\{host\}': \{host\} is none of \{source\}, \{schema\}, \{table\}",
        ),
        (
            {"route": [{**ROUTE, "target": "all.{table.1}"}]},
            r"^route 1\.target = .*: \{table\.1\}: table '~orders_\[0-9\]\+' has no groups: write",
        ),
        (
            {"route": [{**ROUTE, "tables": ["a.~(x)"], "target": "all.{table.2}"}]},
            r"^route 1\.target = .*: \{table\.2\}: table '~\(x\)' has only the groups 1: write",
        ),
        ({"route": [{**ROUTE, "target": "all.{table"}]}, r"^route 1\.target = 'all\.\{table': write"),
        ({"route": [{**ROUTE, "tables": ["a.~("]}]}, r"^route 1\.tables = '~\(': not a regular expression"),
        ({"route": [{"tables": ["a.b"]}]}, r"^route 1\.target"),
        ({"route": [{**ROUTE, "extract": [{"column": "n", "part": "host"}]}]}, r"^route 1\.extract 1\.part"),
        (
            {"route": [{**ROUTE, "extract": [{"column": c, "part": "table"} for c in ("n", "N")]}]},
            r"^route 1\.extract: two of them fill column 'n'",
        ),
        (
            {"route": [ROUTE, {**ROUTE, "extract": [{"column": "n", "part": "table"}]}]},
            r"^route 2: fills other columns of shop\.orders than route 1",
        ),
        ({"sharding": {"coordination": "etcd"}}, r"^sharding\.coordination = 'etcd': one of \"process\", "),
        ({"sharding": {"coordination": "etcd://host/name"}}, r"^sharding\.coordination = 'etcd://host/name'"),
        (
            {"sharding": {"coordination": "target", "mode": "optimistic"}},
            r"^sharding\.mode = \"optimistic\": several feeds that share merged tables change them in",
        ),
        (
            {"source": {"url": "tikv://pd:2379", "tables": ["a.*"]}},
            r"^route: tables of a tikv source can't be",
        ),
        (
            {"sink": [{"url": "mysql://b", "copy": "definition"}]},
            r"^sink sink-1: copy = \"definition\": indexes",
        ),
    ],
)
def test_a_mistake_is_named(sections, sentence):
    with pytest.raises(ConfigError, match=sentence):
        feed_options(feed(**sections))


def test_spark_refuses_routes():
    with pytest.raises(ConfigError, match=r"^route: Spark can't merge tables"):
        run_on_spark(feed())


@pytest.mark.parametrize(
    ("sinks", "sentence"),
    [
        ([], "a feed that shares merged tables has one sink, not 0"),
        (
            [{"url": "sqlite:///a"}, {"url": "sqlite:///b"}],
            "a feed that shares merged tables has one sink, not 2",
        ),
        ([{"url": "file:out"}], "feeds can't share tables of a "),
    ],
)
def test_feeds_share_merged_tables_of_one_sql_target(sinks, sentence, tmp_path):
    options = feed_options(feed(sharding={"coordination": "target"}, sink=sinks, data_dir=str(tmp_path)))
    with pytest.raises(ConfigError, match=f"^sharding.coordination: {sentence}"):
        FeedCoordination(options, [], ManualClock())


def test_tables_that_several_feeds_share_aren_t_compared():
    with pytest.raises(
        ConfigError, match=r"^sharding\.coordination: merged tables that several feeds share can't"
    ):
        open_diff(feed(sharding={"coordination": "target"}))


def test_the_place_in_etcd_has_endpoints_and_a_name():
    options = feed_options(feed(sharding={"coordination": "etcd://a:2379,b:2380/orders"})).sharding
    assert options.etcd == (("a:2379", "b:2380"), "orders")
