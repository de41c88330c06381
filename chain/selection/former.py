"""The choice of tables before patterns changed, as it is in a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from .tables import TablePatterns


def with_former(state: str, choices: Sequence[TablePatterns]) -> str:
    """Return the state of a checkpoint whose tables were chosen by all of these patterns, too."""
    listed: list[object] = json.loads(state) if state else []
    listed += [one for choice in choices if (one := choice.document) not in listed]
    return json.dumps(listed)


def former_tables(state: str) -> Callable[[str], bool] | None:
    """Return the choice of tables by full name: what all patterns in `state` match; None if it is empty."""
    if not state:
        return None
    choices = [TablePatterns.of_document(one) for one in json.loads(state)]
    return lambda name: all(choice.matches_full(name) for choice in choices)
