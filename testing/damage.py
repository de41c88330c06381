"""Damage for bytes and JSON, from a seed; and what it costs to read them."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator
from random import Random
from types import FrameType
from typing import Any

CALLS_A_BYTE = 20
CALLS_AT_ALL = 5_000
"""Reading a few bytes may compile code for them first."""

_ODD: tuple[object, ...] = (None, True, -1, 0, 1 << 70, 1.5, "", "x", [], [None], {}, {"O": 1}, "[" * 2000)


def damaged(data: bytes, random: Random) -> bytes:
    """The bytes with one to three of them, or runs of them, changed."""
    broken = bytearray(data)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(broken) + 1)
        end = min(len(broken), at + random.choice((1, 1, 2, 4, 8, 40)))
        match random.randrange(5):
            case 0:
                del broken[at:end]
            case 1:
                broken[at:end] = random.randbytes(end - at)
            case 2:
                broken[at:at] = broken[random.randrange(len(broken) + 1) :][:20]
            case 3:
                broken[at:end] = random.choice((b"\0", b"\xff", b"\x80", b"\x7f")) * (end - at)
            case _:
                broken[at : at + 4] = random.randrange(300).to_bytes(4, "little")
    return bytes(broken)


def damaged_json(text: bytes, random: Random) -> bytes:
    """JSON with one to three of its values exchanged for odd ones."""
    tree = {"all": json.loads(text)}
    for _ in range(random.randint(1, 3)):
        places = list(_places(tree))
        container, key = random.choice(places)
        other, its_key = random.choice(places)
        container[key] = copy.deepcopy(random.choice((*_ODD, other[its_key])))
    return json.dumps(tree["all"]).encode()


def _places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Each container in a tree with each of its keys or indexes."""
    for key in container if isinstance(container, dict) else range(len(container)):
        yield container, key
        if isinstance(container[key], (dict, list)):
            yield from _places(container[key])


def calls(work: Callable[[], object]) -> int:
    """How many functions the work calls."""
    count = 0

    def profile(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
