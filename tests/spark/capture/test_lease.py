"""One owner at a time."""

from __future__ import annotations

import pytest

from tidemill.actors import ManualClock
from tidemill.errors import Retryable
from tidemill.spark.capture.lease import Lease


def test_a_second_query_is_refused_while_the_first_uses_it():
    clock = ManualClock()
    lease = Lease(60.0, clock)
    lease.use("one")
    clock.advance(50)
    lease.use("one")  # renewed
    clock.advance(50)
    with pytest.raises(Retryable, match="leased to the query one for another 10 s") as refused:
        lease.use("two")
    assert refused.value.wait == 10.0
    assert lease.statistics().lease == "one"


def test_a_lease_that_nobody_used_is_free():
    clock = ManualClock()
    lease = Lease(60.0, clock)
    lease.use("one")
    clock.advance(60)
    assert lease.statistics().lease == ""
    lease.use("two")
    with pytest.raises(Retryable, match="leased to the query two"):
        lease.use("one")
