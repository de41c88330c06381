"""Conditions by which a target was loaded, as they are in its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from .rule import Key, Rule

KEYS: Final[tuple[Key, ...]] = ("where", "rows")
SECTIONS: Final[Mapping[Key, str]] = {"where": "where of [[filter]]", "rows": "urls, split_by and rows"}
"""Options with the conditions, by their key."""


def conditions(rules: Iterable[Rule], key: Key) -> str:
    """Return the conditions about the rows themselves, as they are in a checkpoint."""
    listed = [
        [*one.tables.patterns, one.condition.text]
        for one in rules
        if one.is_partial and one.key == key and one.condition is not None
    ]
    return json.dumps(sorted(listed)) if listed else ""


def differences(rules: Sequence[Rule], sink: str, stages: Mapping[str, str]) -> Iterator[str]:
    """Yield how the conditions of a sink's rules differ from those in its checkpoint's `stages`, by which the
    target was loaded."""
    for key in KEYS:
        state, had = conditions(rules, key), stages.get(key, "")
        if state != had:
            yield (
                f"its rows were loaded by {SECTIONS[key]} = {had or 'nothing'}, and now these are "
                f"{state or 'nothing'}: restore them, or give {sinks_with(key, sink)} an empty target"
            )


def sinks_with(key: Key, sink: str) -> str:
    """Return which sinks have the rows of these conditions."""
    return "every sink of the feed" if key == "where" else f"sink {sink}, and those that share rows with it,"
