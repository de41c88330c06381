"""docs/reference/monitoring.md has every metric and every field as they are declared."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tidemill.engine.declared_metrics import METRICS, Metric
from tidemill.engine.lag import Lag
from tidemill.engine.status import FeedStatus, State

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "monitoring.md"
BEGIN, END = "<!-- metrics -->\n", "<!-- end of the metrics -->\n"


def row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.series}` | {metric.kind} | {labels} | {metric.text} |\n"


def test_the_table_is_that_of_the_declarations(rewrite: bool) -> None:
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    table = "| metric | kind | labels | meaning |\n|---|---|---|---|\n" + "".join(map(row, METRICS))
    made = f"{before}{BEGIN}\n{table}\n{END}{after}"
    if rewrite:
        DOCUMENT.write_text(made)
    assert DOCUMENT.read_text() == made


@pytest.mark.parametrize("name", Lag.__struct_fields__)
def test_the_table_of_the_lag_has_every_part(name: str) -> None:
    table = next(part for part in DOCUMENT.read_text().split("\n\n") if part.startswith("| part of"))
    assert f"`{name}`" in table


def test_fields_and_states_exist() -> None:
    text = DOCUMENT.read_text()
    fields = ("lag", "idle", "connected", "head", "head_time", "last_event_seconds")
    for name in (*fields, "checkpoint_moved_seconds", "log_hours_left"):
        assert name in FeedStatus.__struct_fields__
        assert f"`{name}`" in text
    for state in get_args(State):
        assert f"| `{state}` |" in text
