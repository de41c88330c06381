"""Rules of sections, as a feed.toml has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidemill.chain.selection.rule import Rule
from tidemill.chain.selection.sections import FilterOptions, RowsOptions, rules_of
from tidemill.config import build


def filter_rules(sections: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    found = [build(FilterOptions, section, f"filter {number}") for number, section in enumerate(sections, 1)]
    return rules_of(found)


def row_rules(sections: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    return rules_of([build(RowsOptions, section, "rows") for section in sections])
