"""The suite of stages on built-in ones, and on ones that are wrong, which it must find."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tidemill.chain import Element, Stage
from tidemill.chain.selection.rule import only
from tidemill.chain.selection.stage import SelectionStage
from tidemill.chain.selection.tables import TablePatterns
from tidemill.chain.transform.options import TransformOptions, transforms_of
from tidemill.chain.transform.stage import TransformStage
from tidemill.events import Ddl, RowChange, Transaction
from tidemill.sink.loopback import LoopbackStage
from tidemill.testing import StageConformance

from .stages import BarrierAfter

Make = Callable[[], Stage]


class TestSelection(StageConformance):
    @pytest.fixture
    def make_stage(self) -> Make:
        return lambda: SelectionStage([only(TablePatterns.parse(["s.*", "!s.b"]))])

    def passed(self, change: RowChange) -> RowChange | None:
        return None if change.table.name == "b" else change


class TestTransform(StageConformance):
    @pytest.fixture
    def make_stage(self) -> Make:
        sections = [TransformOptions(tables=TablePatterns.parse(["s.c"]), keep=("id",))]
        return lambda: TransformStage(transforms_of(sections, ""), needs_key=True)


class TestLoopback(StageConformance):
    @pytest.fixture
    def make_stage(self) -> Make:
        return lambda: LoopbackStage(1)


class TestBarriers(StageConformance):
    @pytest.fixture
    def make_stage(self) -> Make:
        return lambda: BarrierAfter("s.b")


class Wrong(Stage):
    """Passes everything; its subclasses don't."""

    name = "wrong"

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        return batch


class Reordering(Wrong):
    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        return [*reversed(batch)]


class Counting(Wrong):
    """Drops each eleventh item, by a count that isn't in the checkpoint."""

    def __init__(self) -> None:
        self._count = 0

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        passed = []
        for element in batch:
            self._count += 1
            if self._count % 11:
                passed.append(element)
        return passed


class ByBatch(Wrong):
    """Drops the second item of a batch."""

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        return [*batch[:1], *batch[2:]]


class TransactionsOnly(Wrong):
    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        return [element for element in batch if isinstance(element, Transaction)]


class NoMarks(Wrong):
    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        return [element for element in batch if isinstance(element, Transaction | Ddl)]


TESTS = [name for name in dir(StageConformance) if name.startswith("test_")]


@pytest.mark.parametrize(
    ("stage", "failing"),
    [
        (Wrong, []),
        (Reordering, ["order_is_kept", "cut_elsewhere", "schema_changes", "marks_of"]),
        (Counting, ["order_is_kept", "opened_again"]),
        (ByBatch, ["order_is_kept", "cut_elsewhere"]),
        (TransactionsOnly, ["schema_changes", "marks_of", "unknown_mark"]),
        (NoMarks, ["marks_of", "unknown_mark"]),
    ],
)
def test_a_wrong_stage_fails(stage: Make, failing: list[str]) -> None:
    class Suite(StageConformance):
        seeds = range(3)

    failed = []
    for name in TESTS:
        try:
            getattr(Suite(), name)(stage)
        except Exception:
            failed.append(name)
    for part in failing:
        assert any(part in name for name in failed), (part, failed)
    assert bool(failed) == bool(failing), failed
