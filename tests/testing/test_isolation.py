"""The checker of isolation finds what no order of transactions explains, and nothing else."""

from random import Random

import pytest

from tidemill.testing.isolation import Read, anomalies

APPENDS = {1: [0, 1], 2: [2], 3: [0], 4: [1, 2]}


def lists(seen: set[int], keys=(0, 1, 2)) -> dict[int, list[int]]:
    return {key: [number for number, own in APPENDS.items() if key in own and number in seen] for key in keys}


@pytest.mark.parametrize("strict", [True, False])
def test_prefixes_of_the_source_are_in_order(strict):
    reads = [Read(0, lists({*range(1, last + 1)})) for last in range(5)]
    assert anomalies(APPENDS, reads, strict=strict) == []


def test_a_transaction_that_is_there_before_an_earlier_one_is_an_anomaly_of_strict_order_alone():
    reads = [Read(0, lists({1, 3}))]  # without 2, which has no key in common with 3
    assert anomalies(APPENDS, reads, strict=False) == []
    assert anomalies(APPENDS, reads, strict=True) == [
        "no order explains this: read 0 before transaction 2 (it doesn't see its append to key 2), "
        "transaction 2 before transaction 3 (the source's order), "
        "transaction 3 before read 0 (it sees its append to key 0)"
    ]


@pytest.mark.parametrize("strict", [True, False])
def test_half_a_transaction_is_an_anomaly(strict):
    reads = [Read(0, {0: [1], 1: []})]
    assert anomalies(APPENDS, reads, strict=strict) == [
        "no order explains this: read 0 before transaction 1 (it doesn't see its append to key 1), "
        "transaction 1 before read 0 (it sees its append to key 0)"
    ]


def test_two_readers_that_see_two_orders_are_an_anomaly():
    reads = [Read(0, lists({1, 2}, (0, 2))), Read(1, lists({1, 3}, (0, 2)))]
    said = anomalies(APPENDS, reads, strict=False)
    assert len(said) == 1
    assert "read 0 before transaction 3" in said[0]
    assert "read 1 before transaction 2" in said[0]


def test_a_reader_that_goes_back_is_an_anomaly():
    later = [lists({1, 2, 3}), lists({1, 2})]
    assert anomalies(APPENDS, [Read(0, later[0]), Read(1, later[1])], strict=False) == []
    assert "both of reader 0" in anomalies(APPENDS, [Read(0, one) for one in later], strict=False)[0]


@pytest.mark.parametrize(
    "seen", [[3], [3, 1], [1, 1], [1, 4]], ids=["a gap", "an order", "twice", "another's"]
)
def test_a_list_that_the_source_never_had_is_wrong(seen):
    (said,) = anomalies(APPENDS, [Read(0, {0: seen})], strict=False)
    assert said.startswith(f"read 0: the list of key 0 is {seen}, the source's begins [1")


@pytest.mark.parametrize("seed", range(20))
def test_any_order_that_keeps_each_key_is_explained_and_a_torn_read_is_not(seed):
    random = Random(seed)
    appends = {number: random.sample(range(8), random.randint(2, 3)) for number in range(1, 60)}
    applied: list[int] = []
    waiting = [*appends]
    reads = []
    while waiting:
        number = random.choice(waiting[:4])
        if all(not {*appends[number]} & {*appends[one]} for one in waiting[: waiting.index(number)]):
            waiting.remove(number)
            applied.append(number)
        keys = random.sample(range(8), 4)
        lists = {key: [one for one in applied if key in appends[one]] for key in keys}
        reads.append(Read(0, lists))
    assert anomalies(appends, reads, strict=False) == []
    torn = next(one for one in reversed(reads) if sum(map(bool, one.lists.values())) == 4)
    last = max(number for seen in torn.lists.values() for number in seen)
    key = next(key for key in appends[last] if key in torn.lists)
    if sum(key in torn.lists for key in appends[last]) > 1:
        reads.append(Read(1, {**torn.lists, key: torn.lists[key][:-1]}))
        assert anomalies(appends, reads, strict=False)
