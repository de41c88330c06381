"""Faults and steps as lines of text, for test cases: `split t1/5`, `fail_next 2 not_leader`.

A key is `t5` (the start of table 5's rows), `t5/17` (its row 17), `x:0a0b` (hex), or its own letters. A
region is its id, or `@` and a key that it contains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...codec.tidb.key import record_key, record_prefix

if TYPE_CHECKING:
    from .faults import Faults


def key_of(text: str) -> bytes:
    """Return the raw key of a word."""
    if text.startswith("x:"):
        return bytes.fromhex(text[2:])
    table, slash, handle = text[1:].partition("/")
    if text[:1] == "t" and table.isdigit() and not slash:
        return record_prefix(int(table))
    if text[:1] == "t" and table.isdigit() and handle.lstrip("-").isdigit():
        return record_key(int(table), int(handle))
    return text.encode()


def region_of(cluster: Faults, text: str) -> int:
    """Return the region id of a word."""
    return cluster.region_of(key_of(text[1:])) if text.startswith("@") else int(text)


def play(cluster: Faults, line: str) -> str:
    """Execute one line; return its result as text. Raises ValueError for an unknown word."""
    word, *rest = line.split()
    match word, rest:
        case "split", [key]:
            left, right = cluster.split(key_of(key))
            return f"regions {left} and {right}"
        case "merge", [region]:
            return f"region {cluster.merge(region_of(cluster, region))}"
        case "transfer_leader", [region, *store]:
            return f"store {cluster.transfer_leader(region_of(cluster, region), *map(int, store))}"
        case (("add_peer" | "remove_peer"), [region, store]):
            getattr(cluster, word)(region_of(cluster, region), int(store))
        case (("store_down" | "store_up" | "remove_store" | "hold_scans" | "free_scans"), [*store]):
            getattr(cluster, word)(*map(int, store))
        case "slow_store", [store, seconds]:
            cluster.slow_store(int(store), float(seconds))
        case (("fail_next" | "fail_feed"), [region, error, *times]):
            getattr(cluster, word)(region_of(cluster, region), error, *map(int, times))
        case "lock", [key, *options]:
            ttl = next((int(option[4:]) for option in options if option.startswith("ttl=")), 3_000)
            start = cluster.leave_lock(key_of(key), ttl_ms=ttl, committed="committed" in options)
            return f"start {start}"
        case "async_lock", [key, *options]:
            ttl = next((int(option[4:]) for option in options if option.startswith("ttl=")), 3_000)
            complete = "complete" in options
            return f"start {cluster.leave_async_commit(key_of(key), ttl_ms=ttl, complete=complete)}"
        case (("drop_streams" | "cut_streams"), [*store]):
            getattr(cluster, word)(*map(int, store))
        case (("pause_streams" | "resume_streams"), [*store]):
            getattr(cluster, word)(*map(int, store))
        case (("pause_resolved" | "resume_resolved" | "pd_down" | "pd_up"), []):
            getattr(cluster, word)()
        case "pd_leader", [*member]:
            return f"member {cluster.pd_leader(*map(int, member))}"
        case "clock", [seconds]:
            cluster.jump_clock(float(seconds))
        case "gc", [*safe_point]:
            cluster.gc(*map(int, safe_point))
        case "pump_late", [pump, seconds]:
            cluster.pump_late(pump, float(seconds))
        case (("pump_duplicates" | "pump_cluster"), [pump, number]):
            getattr(cluster, word)(pump, int(number))
        case "pump_state", [pump, state]:
            cluster.pump_state(pump, state)
        case (
            ("pump_silent" | "pump_speaks" | "pump_disorders" | "pump_half" | "pump_down" | "pump_up"),
            [pump],
        ):
            getattr(cluster, word)(pump)
        case _:
            raise ValueError(f"no fault is called {line!r}; there are: {', '.join(WORDS)}")
    return "done"


WORDS = (
    "split",
    "merge",
    "transfer_leader",
    "add_peer",
    "remove_peer",
    "store_down",
    "store_up",
    "remove_store",
    "slow_store",
    "hold_scans",
    "free_scans",
    "fail_next",
    "fail_feed",
    "lock",
    "async_lock",
    "drop_streams",
    "cut_streams",
    "pause_streams",
    "resume_streams",
    "pause_resolved",
    "resume_resolved",
    "pd_down",
    "pd_up",
    "pd_leader",
    "clock",
    "gc",
    "pump_late",
    "pump_silent",
    "pump_speaks",
    "pump_duplicates",
    "pump_disorders",
    "pump_half",
    "pump_cluster",
    "pump_state",
    "pump_down",
    "pump_up",
)
"""The words of all faults."""
