"""Rules about schema changes in a feed's options."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError

SOURCE = {"url": "mysql://root@localhost", "tables": ["shop.*"]}
ONE = {"tables": ["shop.*"], "action": "stop"}


def test_a_rule_is_for_all_kinds_unless_it_names_some() -> None:
    kinds = ["drop table", "truncate"]
    every, some = feed_options({"source": SOURCE, "on_ddl": [ONE, {**ONE, "kinds": kinds}]}).on_ddl
    assert every.kinds > some.kinds == set(kinds)
    assert every.action == "stop"
    assert every.tables.matches("shop", "t")
    assert not every.tables.matches("other", "t")


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        (ONE, r"on_ddl: expected \[\[on_ddl\]\] tables"),
        (
            [{**ONE, "action": "halt"}],
            r"on_ddl 1\.action: 'halt' is none of 'apply', 'stop', 'skip', 'resnapshot'",
        ),
        ([ONE, {"tables": ["shop.*"]}], r"on_ddl 2\.action: missing"),
        (
            [{**ONE, "kinds": ["drop"]}],
            r"on_ddl 1\.kinds: 'drop' is none of 'create table', 'drop table', ",
        ),
        ([{**ONE, "kinds": "truncate"}], r"on_ddl 1\.kinds: expected a list of 'create table', "),
        ([{"action": "stop"}], r"on_ddl 1\.tables: missing"),
        (
            [{**ONE, "tables": "shop.*"}],
            r'on_ddl 1\.tables: expected a list of patterns, for instance \["shop.\*"\]',
        ),
        ([{**ONE, "tables": ["shop"]}], r"on_ddl 1\.tables: 'shop' is not a pattern"),
        ([{**ONE, "kind": []}], r"on_ddl 1\.kind: no such key; did you mean 'kinds'"),
    ],
)
def test_an_error_names_the_rule_and_what_is_accepted(rules: Any, error: str) -> None:
    with pytest.raises(ConfigError, match="^" + error):
        feed_options({"source": SOURCE, "on_ddl": rules})


def test_a_source_without_rules_says_so() -> None:
    source = {"url": "tikv://pd:2379", "tables": ["shop.*"]}
    with pytest.raises(ConfigError, match=r"^on_ddl: a tikv source has no such rules"):
        feed_options({"source": source, "on_ddl": [ONE]})
