"""Tables chosen by Canal's expressions."""

from __future__ import annotations

import pytest

from tidemill.chain.selection.tables import TablePatterns, split
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError


@pytest.mark.parametrize(
    ("regex", "black", "given", "left_out"),
    [
        ("", "", ["shop.a", "x.y"], []),
        (r".*\..*", "", ["shop.a"], []),
        (r"shop\.a,shop\.b", "", ["shop.a", "shop.b"], ["shop.ab", "xshop.a", "shop.c"]),
        (r"shop\.(a|b),bank\..*", "", ["shop.b", "bank.x"], ["shop.c"]),
        (r"Shop\.A.*", "", ["shop.abc", "SHOP.A"], ["shop.b"]),
        (r"shop\.t[0-9]{1,2}", "", ["shop.t1", "shop.t23"], ["shop.t", "shop.t123"]),
        (r"shop\..*", r"shop\.tmp_.*,shop\.b", ["shop.a"], ["shop.tmp_x", "shop.b"]),
        ("", r"mysql\..*", ["shop.a"], ["mysql.user"]),
        (r"test\.t.*|shop\..*", "", ["test.t1", "shop.x"], ["test.x"]),
    ],
)
def test_expressions_match_whole_names_in_any_case(regex, black, given, left_out):
    matches = TablePatterns.canal(regex, black).matches_full
    assert [name for name in given if not matches(name)] == []
    assert [name for name in left_out if matches(name)] == []


def test_only_commas_outside_brackets_separate():
    assert split(r"a\.b{1,2}, c\.(d,e) ,[,],,f\,") == [r"a\.b{1,2}", r"c\.(d,e)", "[,]", r"f\,"]


def test_expressions_without_a_table_are_named():
    assert TablePatterns.canal(r"shop\..*,bank\..*").unmatched([("shop", "a")]) == [r"bank\..*"]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"regex": "shop.("}, r"sink copy: regex: 'shop.\(' is not a regular expression"),
        ({"black_regex": ["a"]}, r"black_regex = \['a'\]: expected `str`"),
        ({"regex": "a", "tables": ["a.b"]}, "tables and regex: give one of them"),
    ],
)
def test_wrong_expressions_of_a_sink_are_refused(section, message):
    sink = {"name": "copy", "url": "sqlite:///x.db", **section}
    source = {"url": "mysql://u:p@h:1", "tables": ["shop.*"]}
    with pytest.raises(ConfigError, match=message):
        feed_options({"source": source, "sink": [sink]})
    sink = {"name": "copy", "url": "sqlite:///x.db", "regex": r"shop\.a"}
    options = feed_options({"source": source, "sink": [sink]})
    rules = options.sinks[0].rules
    assert [options.wants(rules, name) for name in ("shop.a", "shop.ab")] == [True, False]
