"""A lake with one table, whose feed runs in this process, and the rows that the table must have."""

from __future__ import annotations

from random import Random
from typing import Any

from tidemill.events import Batch, Checkpoint, Column, CreateTable, Ddl, RowChange, Table
from tidemill.sink import Sink
from tidemill.sink.files.lakes.upkeep import (
    Lake,
    LakeOutcome,
    LakePlan,
    LakeReport,
    analyze_lake,
    carry_out,
    decode_lake_plan,
    encode_lake_plan,
    lake_of,
    plan_of,
)
from tidemill.sink.registry import given_sink
from tidemill.testing.changes import delete, insert, transaction, update

from .copies import CopyPlace
from .lakes import Lake as LakePlace

ITEM = Table(
    "shop", "item", (Column("id", "int", nullable=False), Column("note", "varchar", length=40)), (0,)
)
NAME = "shop.item"
DAY_MS = 86_400_000


class Ahead:
    """A clock that is some days ahead, for which files are old."""

    def __init__(self, days: float = 0.0) -> None:
        from tidemill.actors import SystemClock

        self._clock = SystemClock()
        self._days = days

    def time(self) -> float:
        return self._clock.time() + self._days * DAY_MS / 1000

    def now(self) -> float:
        return self._clock.now()


class FedLake:
    """Commits of a feed into a place, in one of the modes."""

    def __init__(self, place: LakePlace | CopyPlace, seed: int = 0) -> None:
        self.place = place
        self.ts = 0
        self.rows: dict[int, str] = {}
        self.changes = 0
        self.random = Random(seed)
        self.sink: Sink = self.opened()
        self.write(Ddl(self._tick(), 0, "src", "shop", "item", "", (CreateTable(ITEM),)))

    def opened(self) -> Sink:
        sink = self.place.sink("f")
        sink.open()
        return sink

    def reopen(self) -> None:
        """Go on as after a restart, whatever the sink was doing."""
        self.sink._commits._target.layout.close()  # type: ignore[attr-defined]
        self.sink = self.opened()

    def _tick(self) -> int:
        self.ts += 10
        return self.ts

    def write(self, item: Any) -> None:
        self.sink.write(Batch([item], Checkpoint(item.commit_ts, "", None, "somewhere")))
        self.sink.flush()

    def commit(self, *rows: RowChange) -> None:
        self.changes += len(rows)
        for row in rows:
            if row.before is not None:
                del self.rows[row.before[0]]  # type: ignore[arg-type]
            if row.after is not None:
                self.rows[row.after[0]] = row.after[1]  # type: ignore[index,assignment]
        self.write(transaction(self._tick(), *rows))

    def insert(self, commits: int = 1, rows: int = 1) -> None:
        for _ in range(commits):
            first = max(self.rows, default=0) + 1
            self.commit(*[insert(ITEM, key, f"note {key}") for key in range(first, first + rows)])

    def change(self) -> None:
        """Commit an insert, an update, a delete and a change of a key, as far as there are rows."""
        self.insert(1, self.random.randint(1, 3))
        keys = self.random.sample(sorted(self.rows), min(3, len(self.rows)))
        own = dict(self.rows)
        changes = []
        for key, kind in zip(keys, ("update", "delete", "move"), strict=False):
            match kind:
                case "update":
                    changes.append(update(ITEM, (key, own[key]), (key, f"{own[key][:30]}+")))
                case "delete":
                    changes.append(delete(ITEM, key, own[key]))
                case _:
                    to = max(self.rows) + 1
                    changes.append(update(ITEM, (key, own[key]), (to, own[key])))
        self.commit(*changes)

    def check(self) -> None:
        """Each change is in the table once, or each row."""
        if isinstance(self.place, CopyPlace):
            found = [(row["id"], row["note"]) for row in self.place.list(NAME)]
            assert sorted(found) == sorted(self.rows.items())
        else:
            changes = self.place.list(NAME)
            keys = [(one["commit_ts"], one["sequence"]) for one in changes]
            assert len({*keys}) == len(keys) == self.changes
            rows: dict[int, str] = {}
            for one in changes:
                if one["before"] is not None:
                    del rows[one["before"]["id"]]
                if one["after"] is not None:
                    rows[one["after"]["id"]] = one["after"]["note"]
            assert rows == self.rows

    # --- upkeep

    def lake(self) -> Lake:
        options = {name: value for name, value in self.place.options.items() if name != "mode"}
        given = given_sink("lake", self.place.url(), options)
        return lake_of(self.place.url(), given.options)

    def analyzed(self, days: float = 0.0, hours: int = 168) -> tuple[LakeReport, LakePlan]:
        lake = self.lake()
        report = analyze_lake(lake, Ahead(days), hours)
        lake.close()
        return report, decode_lake_plan(encode_lake_plan(plan_of(report)), "plan")

    def kept(self, plan: LakePlan, days: float = 0.0) -> list[LakeOutcome]:
        lake = self.lake()
        outcomes = list(carry_out(lake, plan, Ahead(days)))
        lake.close()
        return outcomes


def actions(plan: LakePlan, folder: str = NAME) -> list[str]:
    return [step.action for step in plan.steps if step.folder == folder]
