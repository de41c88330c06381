"""Options of merged tables as sections of a feed.toml have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidemill import config
from tidemill.sharding import MergeOptions, ShardingOptions
from tidemill.sharding.options import RouteRule


def sharding_options(
    section: Mapping[str, Any], routes: Sequence[Mapping[str, Any]]
) -> tuple[ShardingOptions, tuple[RouteRule, ...]]:
    found = config.build(MergeOptions, {"sharding": section, "route": routes}, "")
    return found.sharding, found.routes
