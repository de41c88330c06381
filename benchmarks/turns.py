"""Several clients of one store, measured in turn; the store and each client are processes of their own."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

Server: TypeAlias = dict[str, Any]
"""The address of a store, and the requests to send."""
Subject: TypeAlias = Callable[[Server], float]
"""Returns its duration in seconds. A function of a module, since it is passed to its process by name."""


@contextmanager
def serving(serve: Callable[..., None], *arguments: object) -> Iterator[Server]:
    """Run `serve` in a process of its own: it gets a pipe and the arguments, and calls
    `serve_until_ended`."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        ours.close()
        process.join()


def serve_until_ended(pipe: Connection, server: Server) -> None:
    """Send the store's address, and wait until it isn't needed any more."""
    gc.collect()
    gc.freeze()
    pipe.send(server)
    with suppress(EOFError):
        pipe.recv()


def take_turns(server: Server, subjects: dict[str, Subject], rounds: int) -> dict[str, dict[str, Any]]:
    """Return the best round of each: seconds, CPU seconds and peak RSS."""
    results_of: dict[str, list[dict[str, object]]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                results_of[name].append(process.submit(_measure, subject, server).result())
    return {
        name: min(results, key=lambda result: float(result["seconds"]))
        for name, results in results_of.items()
    }


def note(into: dict[str, object], name: str, best: dict[str, object]) -> None:
    """Add a subject's resources to its rate."""
    into[f"{name}_cpu_seconds"] = best["cpu_seconds"]
    into[f"{name}_peak_rss_mb"] = best["peak_rss_mb"]


def _measure(subject: Subject, server: Server) -> dict[str, object]:
    gc.collect()
    gc.freeze()
    before = resource.getrusage(resource.RUSAGE_SELF)
    seconds = subject(server)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu_seconds": round(cpu, 2), "peak_rss_mb": after.ru_maxrss >> 10}
