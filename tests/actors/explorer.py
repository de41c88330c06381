"""Runs real threads one at a time and switches between lines (or bytecodes), by a seed.

    explore(scenario)           # scenario(explorer) under many seeds; a failure names its seed

Inside, the locks, queues and threads of tidemill.actors and tidemill.timeline are replaced by ones that know
who is blocked on what. So a lost wake-up shows at once as "nobody can run", with everybody's stack, and the
same seed shows it again.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import tidemill.actors
import tidemill.timeline

PACKAGES = ("tidemill.actors.", "tidemill.timeline.")
FOLDERS = tuple(str(Path(package.__file__).parent) for package in (tidemill.actors, tidemill.timeline))
MOST_DRAWS = 200_000
SEEDS = int(os.environ.get("TIDEMILL_EXPLORER_SEEDS", "60"))


class Stuck(AssertionError):
    """Threads are left and none of them can run."""


class Abandoned(BaseException):
    """Unwinds a thread after the run has failed."""


def explore(scenario: Callable[[Explorer], None], seeds: int = SEEDS) -> None:
    """Run the scenario once for each seed, in a thread of a new explorer."""
    for seed in range(seeds):
        try:
            Explorer(seed).run(scenario)
        except BaseException as error:
            error.add_note(f"with the explorer's seed {seed}")
            raise


class Explorer:
    """One run: at any time one of its threads holds the turn."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        # From long stretches of one thread to a switch at almost every line: each finds its own bugs.
        self._switching = self.random.choice([0.02, 0.1, 0.3, 0.7])
        # Mostly between lines; every fourth seed also within them.
        self._within_lines = seed % 4 == 3
        self._threads: list[Thread] = []
        self._current: Thread | None = None
        self._failure: BaseException | None = None
        self._over = threading.Event()
        self._draws = 0
        self.seconds = 0.0
        """The time of those who wait with a timeout; passes when one of them gives up."""

    def run(self, scenario: Callable[[Explorer], None]) -> None:
        with self._replaced():
            first = self.thread(lambda: scenario(self), name="scenario")
            self._current = first
            first.turn.release()
            self._over.wait()
            for thread in self._threads:
                thread.real.join(5)
        if self._failure is not None:
            raise self._failure

    def thread(self, body: Callable[[], None], name: str = "") -> Thread:
        """Start a thread under this explorer."""
        thread = Thread(self, body, name or f"thread-{len(self._threads)}")
        thread.start()
        return thread

    def queue(self) -> SimpleQueue:
        return SimpleQueue(self)

    # --- whose turn it is ------------------------------------------------------------------------

    def pause(self, until: Callable[[], bool] | None = None, *, timed: bool = False) -> bool:
        """Let others run, at least until `until()`; a timed pause may end before: then False."""
        me = self._current
        assert me is not None
        if threading.current_thread() is not me.real:  # unwinding after a failure
            raise Abandoned
        me.until, me.timed = until, timed
        self._hand_over(me)
        if self._failure is not None:
            raise Abandoned
        return until is None or until()

    def _hand_over(self, me: Thread) -> None:
        following = self._draw()
        if following is me:
            return
        self._current = following
        if following is not None:
            following.turn.release()
        if me.alive:
            me.turn.acquire()

    def _draw(self) -> Thread | None:
        alive = [thread for thread in self._threads if thread.alive]
        able = [thread for thread in alive if thread.until is None or thread.until()]
        timed = [thread for thread in alive if thread.timed and thread not in able]
        # Sometimes a thread is delayed, so that the others advance far beyond it.
        self._draws += 1
        able = [thread for thread in able if thread.held_until <= self._draws] or able
        if self._draws > MOST_DRAWS:
            self.fail(Stuck(f"no end in {MOST_DRAWS} switches:\n{self._stacks(alive)}"))
            return None
        if able and (not timed or self.random.random() < 0.95):
            return self.random.choice(able)
        if timed:
            return self.random.choice(timed)
        if alive:
            self.fail(Stuck(f"nobody can run:\n{self._stacks(alive)}"))
        else:
            self._over.set()
        return None

    def _stacks(self, threads: list[Thread]) -> str:
        frames = sys._current_frames()
        return "\n".join(
            f"--- {thread.name}\n{''.join(traceback.format_stack(frames[thread.real.ident]))}"
            for thread in threads
            if thread.real.ident in frames
        )

    def fail(self, error: BaseException) -> None:
        """End the run: every thread unwinds."""
        if self._failure is None:
            self._failure = error
        for thread in self._threads:
            thread.turn.release()
        self._over.set()

    def finished(self, thread: Thread) -> None:
        thread.alive = False
        if self._failure is None:
            self._hand_over(thread)

    # --- what the threads run --------------------------------------------------------------------

    def trace(self, frame: FrameType, _event: str, _arg: object) -> Any:
        if not frame.f_code.co_filename.startswith(FOLDERS):
            return None
        frame.f_trace_opcodes = self._within_lines
        return self._trace_line

    def _trace_line(self, _frame: FrameType, event: str, _arg: object) -> Any:
        if event in ("line", "opcode") and self.random.random() < self._switching:
            me = self._current
            if me is not None and self.random.random() < 0.2:
                me.held_until = self._draws + self.random.randrange(200)
            self.pause()
        return self._trace_line

    @contextmanager
    def _replaced(self) -> Iterator[None]:
        """Give the modules of PACKAGES this explorer's primitives."""
        primitives = {
            "Lock": lambda: Lock(self),
            "Condition": lambda: Condition(self),
            "SimpleQueue": lambda: SimpleQueue(self),
            "Thread": lambda target, args=(), name="", daemon=None: Thread(self, lambda: target(*args), name),
        }
        before: list[tuple[Any, str, Any]] = []
        for name, module in list(sys.modules.items()):
            if name.startswith(PACKAGES):
                for attribute, primitive in primitives.items():
                    if hasattr(module, attribute):
                        before.append((module, attribute, getattr(module, attribute)))
                        setattr(module, attribute, primitive)
        outbox = sys.modules["tidemill.actors.outbox"]
        before.append((outbox, "_graph", outbox._graph))
        outbox._graph = Lock(self)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            for module, attribute, value in before:
                setattr(module, attribute, value)


class Thread:
    """A real thread that runs only while it holds the explorer's turn."""

    def __init__(self, explorer: Explorer, body: Callable[[], None], name: str) -> None:
        self._explorer = explorer
        self._body = body
        self.name = name
        self.turn = threading.Semaphore(0)
        self.alive = True
        self.until: Callable[[], bool] | None = None
        self.timed = False
        self.held_until = 0
        self.real = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._explorer._threads.append(self)
        self.real.start()

    def join(self) -> None:
        self._explorer.pause(lambda: not self.alive)

    def _run(self) -> None:
        self.turn.acquire()
        sys.settrace(self._explorer.trace)
        try:
            if self._explorer._failure is None:
                self._body()
        except Abandoned:
            pass
        except BaseException as error:
            self._explorer.fail(error)
        finally:
            sys.settrace(None)
            self._explorer.finished(self)


class Lock:
    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._held and not blocking:
            return False
        if self._held and not self._explorer.pause(lambda: not self._held, timed=timeout >= 0):
            return False
        self._held = True
        return True

    def release(self) -> None:
        assert self._held
        self._held = False

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_exc_info: object) -> None:
        self.release()


class Condition:
    """Reentrant, like the default of threading.Condition."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._owner: Thread | None = None
        self._depth = 0
        self._waiting: deque[threading.Event] = deque()
        """An event for each waiting thread, set once it is notified."""

    def __enter__(self) -> None:
        me = self._explorer._current
        if self._owner is not me:
            if self._owner is not None:
                self._explorer.pause(lambda: self._owner is None)
            self._owner = me
        self._depth += 1

    def __exit__(self, *_exc_info: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None

    def wait(self, timeout: float | None = None) -> bool:
        me, depth = self._owner, self._depth
        self._owner, self._depth = None, 0
        own = threading.Event()
        self._waiting.append(own)
        notified = self._explorer.pause(own.is_set, timed=timeout is not None)
        if not notified and timeout is not None:
            self._explorer.seconds += max(0.0, timeout)
            self._waiting.remove(own)
        if self._owner is not None:
            self._explorer.pause(lambda: self._owner is None)
        self._owner, self._depth = me, depth
        return notified

    def notify(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()

    def notify_all(self) -> None:
        while self._waiting:
            self.notify()


class SimpleQueue:
    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self) -> Any:
        self._explorer.pause(lambda: bool(self._items))
        return self._items.popleft()
