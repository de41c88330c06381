"""Networks of actors of any shape and size: nothing lost, nothing twice, nothing out of order, no hang."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pykka
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.actors import DeadlockError, Failed, PooledActor, PooledRef, SeededSystem

from .cast import Supervisor


@dataclass(frozen=True)
class Network:
    capacities: list[int]
    edges: list[tuple[int, int]]
    sources: list[int]
    seed: int


@st.composite
def networks(draw: st.DrawFn, *, circles: bool) -> Network:
    size = draw(st.integers(2, 7))
    nodes = st.integers(0, size - 1)
    pairs = st.tuples(nodes, nodes)
    if not circles:
        pairs = pairs.filter(lambda pair: pair[0] > pair[1])
    return Network(
        capacities=draw(st.lists(st.integers(1, 5), min_size=size, max_size=size)),
        edges=draw(st.lists(pairs, max_size=10, unique=True)),
        sources=draw(st.lists(nodes, min_size=1, max_size=40)),
        seed=draw(st.integers(0, 2**16)),
    )


class Node(PooledActor):
    """Counts per sender what it gets and sends its own sequence on, while the message has hops left."""

    def __init__(self, number: int, nodes: list[PooledRef[Any]], targets: list[int]) -> None:
        self.number = number
        self.nodes = nodes
        self.targets = targets
        self.sent: Counter[int] = Counter()
        self.received: Counter[int] = Counter()

    def on_receive(self, message: tuple[int, int, int]) -> None:
        sender, sequence, hops = message
        assert sequence == self.received[sender], "out of order, lost or twice"
        self.received[sender] += 1
        if hops:
            for target in self.targets:
                self.send(self.nodes[target], (self.number, self.sent[target], hops - 1))
                self.sent[target] += 1


def run(network: Network) -> tuple[SeededSystem, list[Node], list[Failed]]:
    system = SeededSystem(network.seed)
    reports: list[Failed] = []
    boss = system.spawn(Supervisor, reports)
    nodes: list[PooledRef[Any]] = []
    for number, capacity in enumerate(network.capacities):
        targets = [target for source, target in network.edges if source == number]
        nodes.append(system.spawn(Node, number, nodes, targets, capacity=capacity, supervisor=boss))
    actors = [ref.actor_inbox.actor for ref in nodes]
    outside: Counter[int] = Counter()
    for number in network.sources:
        with suppress(pykka.ActorDeadError):
            nodes[number].tell((-1, outside[number], 4))
            outside[number] += 1
    system.run()
    return system, actors, reports


@given(networks(circles=False))
@settings(deadline=None, max_examples=150)
def test_without_circles_everything_arrives_once_and_in_order(network: Network) -> None:
    system, actors, reports = run(network)
    assert reports == []
    for actor in actors:
        for target, count in actor.sent.items():
            assert actors[target].received[actor.number] == count
    statistics = system.statistics()
    assert statistics.waiting == ()
    assert all(figures.delivered == figures.received for figures in statistics.actors)
    system.stop()
    assert system.statistics().totals.dropped == system.statistics().totals.undelivered == 0


@given(networks(circles=True))
@settings(deadline=None, max_examples=150)
def test_with_circles_nothing_hangs_and_what_fails_is_a_deadlock_with_its_circle(network: Network) -> None:
    system, _, reports = run(network)
    for report in reports:
        assert isinstance(report.error, DeadlockError)
        cycle = report.error.cycle
        assert [waiting.waiting_on for waiting in cycle] == [
            waiting.name for waiting in [*cycle[1:], cycle[0]]
        ]
        assert all(waiting.depth >= waiting.capacity for waiting in cycle)
    assert system.statistics().waiting == ()
    assert all(figures.outbox == 0 for figures in system.statistics().actors)
    system.stop()
