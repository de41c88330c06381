"""Counts of changes, and the time of the last success."""

from __future__ import annotations

from tidemill.actors import ManualClock
from tidemill.puller.pump.activity import Activity
from tidemill.testing.changes import ORDERS, delete, insert, transaction, update


def test_changes_are_counted_by_kind():
    activity = Activity(ManualClock())
    activity.delivered(
        [
            transaction(5, insert(ORDERS, 1, "a"), insert(ORDERS, 2, "b")),
            transaction(6, update(ORDERS, (1, "a"), (1, "c")), delete(ORDERS, 2, "b")),
            transaction(7),
        ]
    )
    assert activity.events == {"Insert": 2, "Update": 1, "Delete": 1, "DDL": 0}


def test_there_is_success_until_the_last_change_is_applied_and_not_by_an_idle_cluster():
    clock = ManualClock()
    activity = Activity(clock)
    activity.delivered([transaction(5, insert(ORDERS, 1, "a")), transaction(8, insert(ORDERS, 2, "b"))])
    succeeded = []
    for ts in (4, 5, 6, 8, 9):
        clock.advance(1)
        activity.acknowledged(ts)
        succeeded.append(activity.last_success)
    assert succeeded == [0, 2, 3, 4, 4]
