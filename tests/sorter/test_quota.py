"""One quota of memory for several sorters."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tidemill.sorter.quota import MemoryQuota
from tidemill.sorter.tier import Tier

TOTAL = 1 << 20


@dataclass(eq=False)
class Member:
    held_bytes: int = 0


def test_a_busy_member_gets_half_of_all_beside_its_part() -> None:
    quota = MemoryQuota(TOTAL)
    members = [Member() for _ in range(4)]
    for member in members:
        quota.join(member)
    part = TOTAL // 8
    assert [quota.limit_bytes(member) for member in members] == [part] * 4
    members[0].held_bytes = part + 1
    assert quota.limit_bytes(members[0]) == part + TOTAL // 2
    members[0].held_bytes = part + TOTAL // 2
    members[1].held_bytes = part + 1
    assert quota.limit_bytes(members[1]) == part  # its own part is never taken


def test_a_member_that_leaves_gives_its_part_back() -> None:
    quota = MemoryQuota(TOTAL)
    one, other = Tier(TOTAL, shared=quota), Tier(TOTAL, shared=quota)
    assert (quota.members, quota.part_bytes) == (2, TOTAL // 4)
    other.close()
    other.close()
    assert (quota.members, quota.part_bytes) == (1, TOTAL // 2)
    assert one.limit_bytes == TOTAL // 2
    assert Tier(1000, shared=quota).limit_bytes == 1000  # the smaller one counts


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, TOTAL)), max_size=60))
def test_all_together_never_hold_more_than_the_quota(wants) -> None:
    quota = MemoryQuota(TOTAL)
    members = [Member() for _ in range(10)]
    for member in members:
        quota.join(member)
    for index, wanted in wants:
        member = members[index]
        member.held_bytes = wanted
        member.held_bytes = min(wanted, quota.limit_bytes(member))  # the rest is spilled
        assert sum(one.held_bytes for one in members) <= TOTAL
