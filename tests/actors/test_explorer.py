"""The explorer itself: what it must find, it finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidemill.actors import mailbox

from .explorer import Explorer, Stuck, explore


class Careless(mailbox.Mailbox):
    """Forgets to call its consumer."""

    def schedule(self) -> None:
        pass


def test_two_threads_are_switched_between_lines_of_the_package() -> None:
    orders = set()

    def scenario(explorer: Explorer) -> None:
        box = Careless(100, "box")
        first = explorer.thread(lambda: [box.offer("a") for _ in range(5)])
        second = explorer.thread(lambda: [box.offer("b") for _ in range(5)])
        first.join()
        second.join()
        orders.add("".join(box.messages))

    explore(scenario, seeds=40)
    assert len(orders) > 10


def test_the_same_seed_gives_the_same_order() -> None:
    orders = []

    def scenario(explorer: Explorer) -> None:
        box = Careless(100, "box")
        threads = [explorer.thread(lambda name=name: [box.offer(name) for _ in range(5)]) for name in "abc"]
        for thread in threads:
            thread.join()
        orders.append("".join(box.messages))

    for _ in range(2):
        Explorer(11).run(scenario)
    assert orders[0] == orders[1]


def test_a_thread_that_nobody_wakes_is_reported_with_its_stack() -> None:
    def scenario(explorer: Explorer) -> None:
        asleep = mailbox.Lock()
        asleep.acquire()
        asleep.acquire()

    with pytest.raises(Stuck, match=r"asleep\.acquire\(\)"):
        Explorer(0).run(scenario)


def test_an_error_in_any_thread_fails_the_run_and_names_the_seed() -> None:
    def scenario(explorer: Explorer) -> None:
        explorer.thread(lambda: [][0])

    with pytest.raises(IndexError) as caught:
        explore(scenario)
    assert caught.value.__notes__ == ["with the explorer's seed 0"]


@pytest.mark.soak
def test_a_thousand_seeds_find_nothing() -> None:
    test_file = Path(__file__).with_name("test_interleavings.py")
    environment = {**os.environ, "TIDEMILL_EXPLORER_SEEDS": "1000"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", str(test_file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
