"""How long safe mode lasts after a start from a checkpoint that may be older than its target."""

from __future__ import annotations

from tidemill.actors import ManualClock
from tidemill.events import compose_ts
from tidemill.sink.safe_mode import SafeMode
from tidemill.sink.sql.drainer import SafeStart


def ts(seconds: float) -> int:
    return compose_ts(int(seconds * 1000))


def test_safe_mode_lasts_five_minutes_and_until_the_time_of_the_start_is_reached():
    clock, mode = ManualClock(), SafeMode()
    start = SafeStart(mode, clock)
    assert start.is_over
    began = clock.time()
    start.begin()
    assert mode.reasons == {"after start": 1}
    clock.advance(299)
    start.reached(ts(began + 299))
    assert mode.is_active
    clock.advance(2)
    start.reached(ts(began - 1))
    assert mode.is_active, "the feed is still at changes from before the start"
    start.begin()  # the target was away
    start.reached(ts(began + 400))
    assert mode.is_active
    clock.advance(300)
    start.reached(ts(began + 302))
    assert (mode.is_active, start.is_over) == (False, True)
