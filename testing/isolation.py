"""A checker of isolation, after Elle's list-append: what readers of a copy saw, against what its source did.

Each transaction appends its number to the lists of some keys. A reader reads several lists in one
transaction. As lists show who appended before whom, they give the dependencies of transactions and reads:

* ww: an append comes before the next one to the same key;
* wr: an append comes before a read that sees it;
* rw: a read comes before the first append to one of its keys that it doesn't see;
* of a session: a read comes before the next one of the same reader;
* with `strict`: a transaction comes before the next one of the source.

A cycle of these is an anomaly: no order of transactions and reads explains what was seen.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

Key: TypeAlias = int
Number: TypeAlias = int


class Read(NamedTuple):
    """Lists that one transaction of a reader saw."""

    reader: int
    lists: Mapping[Key, Sequence[Number]]


class Node(NamedTuple):
    kind: str
    """"append" or "read"."""
    number: int
    """That of the transaction, or the place among the reads."""

    def __str__(self) -> str:
        return f"{'transaction' if self.kind == 'append' else 'read'} {self.number}"


class Edge(NamedTuple):
    to: Node
    why: str


def anomalies(appends: Mapping[Number, Sequence[Key]], reads: Sequence[Read], *, strict: bool) -> list[str]:
    """Return what is wrong, as sentences: lists that the source never had, and else one shortest cycle.

    `appends` are the keys of each transaction, in the source's order of commits; a reader's reads are in the
    order in which they began.
    """
    final: dict[Key, list[Number]] = defaultdict(list)
    for number, keys in appends.items():
        for key in keys:
            final[key].append(number)
    wrong = [
        f"read {place}: the list of key {key} is {_shown(seen)}, the source's begins "
        f"{_shown(final[key][: len(seen)])}"
        for place, read in enumerate(reads)
        for key, seen in read.lists.items()
        if [*seen] != final[key][: len(seen)]
    ]
    if wrong:
        return wrong
    cycle = _shortest_cycle(_edges(appends, final, reads, strict=strict))
    return [_told(cycle)] if cycle else []


def _edges(
    appends: Mapping[Number, Sequence[Key]],
    final: Mapping[Key, Sequence[Number]],
    reads: Sequence[Read],
    *,
    strict: bool,
) -> dict[Node, list[Edge]]:
    edges: dict[Node, list[Edge]] = defaultdict(list)
    for key, numbers in final.items():
        for one, following in pairwise(numbers):
            edges[Node("append", one)].append(Edge(Node("append", following), f"both append to key {key}"))
    if strict:
        for one, following in pairwise(appends):
            edges[Node("append", one)].append(Edge(Node("append", following), "the source's order"))
    last_of: dict[int, Node] = {}
    for place, read in enumerate(reads):
        node = Node("read", place)
        if (before := last_of.get(read.reader)) is not None:
            edges[before].append(Edge(node, f"both of reader {read.reader}"))
        last_of[read.reader] = node
        for key, seen in read.lists.items():
            if seen:
                edges[Node("append", seen[-1])].append(Edge(node, f"it sees its append to key {key}"))
            if len(seen) < len(final[key]):
                unseen = Node("append", final[key][len(seen)])
                edges[node].append(Edge(unseen, f"it doesn't see its append to key {key}"))
    return edges


def _shortest_cycle(edges: Mapping[Node, Sequence[Edge]]) -> list[tuple[Node, str]]:
    """Return the nodes of a shortest cycle, each with why it comes before the next one; empty if there is
    none."""
    left = _in_cycles(edges)
    best: list[tuple[Node, str]] = []
    for start in left:
        if (
            start.kind == "read"
            and (cycle := _back_to(start, edges, left))
            and (not best or len(cycle) < len(best))
        ):
            best = cycle
    return best


def _in_cycles(edges: Mapping[Node, Sequence[Edge]]) -> set[Node]:
    """Return the nodes that are left once those without a predecessor, or without a successor, are gone."""
    nodes = {*edges, *(edge.to for out in edges.values() for edge in out)}
    forwards = {node: {edge.to for edge in edges.get(node, ())} for node in nodes}
    backwards: dict[Node, set[Node]] = {node: set() for node in nodes}
    for node, following in forwards.items():
        for one in following:
            backwards[one].add(node)
    for out, into in ((forwards, backwards), (backwards, forwards)):
        ends = deque(node for node in nodes if not into[node])
        while ends:
            node = ends.popleft()
            nodes.discard(node)
            for one in out[node]:
                into[one].discard(node)
                if not into[one] and one in nodes:
                    ends.append(one)
            out[node] = set()
    return nodes


def _back_to(start: Node, edges: Mapping[Node, Sequence[Edge]], among: set[Node]) -> list[tuple[Node, str]]:
    came: dict[Node, tuple[Node, str]] = {}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for edge in edges.get(node, ()):
            if edge.to in among and edge.to not in came:
                came[edge.to] = node, edge.why
                if edge.to == start:
                    return [*_path(start, came)][::-1]
                waiting.append(edge.to)
    return []


def _path(start: Node, came: Mapping[Node, tuple[Node, str]]) -> Iterable[tuple[Node, str]]:
    node = start
    while True:
        node, why = came[node]
        yield node, why
        if node == start:
            return


def _told(cycle: Sequence[tuple[Node, str]]) -> str:
    following = [node for node, _ in [*cycle[1:], cycle[0]]]
    steps = [f"{node} before {to} ({why})" for (node, why), to in zip(cycle, following, strict=True)]
    return "no order explains this: " + ", ".join(steps)


def _shown(numbers: Sequence[Number]) -> str:
    return str([*numbers]) if len(numbers) < 10 else f"[{numbers[0]}, …, {', '.join(map(str, numbers[-8:]))}]"
