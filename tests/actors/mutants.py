"""Ways to break tidemill.actors, each of which the tests must notice."""

# ruff: noqa: E501 (the code is quoted as it stands)
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    """Where it must be noticed: files of this folder without "test_"."""


MUTANTS = [
    # --- the mailbox: bound, order, no lost wake-up ---
    Mutant(
        "mailbox.py",
        "if len(messages) >= self.limit or self.line:",
        "if len(messages) > self.limit or self.line:",
        "the bound holds",
        ("mailbox", "outbox"),
    ),
    Mutant(
        "ref.py",
        "accepted = len(messages) < process.limit",
        "accepted = process.limit > 0",
        "the bound holds for tell",
        ("interleavings",),
    ),
    Mutant(
        "ref.py",
        "                if process.scheduled:\n                    return\n                process.scheduled = True\n",
        "                if process.scheduled:\n                    return\n",
        "one turn at a time: a tell schedules an actor once",
        ("interleavings",),
    ),
    Mutant(
        "ref.py",
        "        lock.acquire()\n",
        "        lock.acquire()\n        lock.release()\n        lock = Lock()\n        lock.acquire()\n",
        "the check for room and the append are one step",
        ("interleavings",),
    ),
    Mutant(
        "mailbox.py",
        "if len(self.messages) + len(messages) > self.limit:",
        "if not self.limit:",
        "the bound holds for tell_many",
        ("interleavings",),
    ),
    Mutant(
        "mailbox.py",
        "            messages.append(message)\n            self.marks += mark\n            if self.scheduled:\n                return True\n            self.scheduled = True\n",
        "            messages.append(message)\n            self.marks += mark\n            if self.scheduled:\n                return True\n",
        "one turn at a time: a process is scheduled once",
        ("interleavings",),
    ),
    Mutant(
        "mailbox.py",
        "messages = messages[:count]\n                del self.messages[:count]",
        "messages = messages[-count:]\n                del self.messages[-count:]",
        "first in, first out",
        ("turns",),
    ),
    Mutant(
        "mailbox.py",
        "admitted = self._admit() if self.line else None",
        "admitted = None",
        "those in line are let in when there is room",
        ("mailbox",),
    ),
    Mutant(
        "mailbox.py",
        "            for waiter in admitted:\n                waiter.resume()",
        "            pass",
        "those let in are woken",
        ("mailbox",),
    ),
    Mutant(
        "mailbox.py",
        "        for waiter in line:\n            waiter.resume()\n",
        "",
        "those in line wake when the actor stops",
        ("interleavings",),
    ),
    Mutant(
        "mailbox.py",
        "            self.line.remove(waiter)\n            waiter.step_out()\n            return True",
        "            return True",
        "a message that was given up is not delivered",
        ("mailbox",),
    ),
    Mutant(
        "mailbox.py",
        "        self.accepted += len(entries)\n        return self.done",
        "        self.accepted = len(self.entries)\n        return self.done",
        "a tell_many larger than the room is taken whole",
        ("mailbox",),
    ),
    Mutant(
        "mailbox.py",
        " or self.line:",
        ":",
        "nobody overtakes those in line",
        ("stream",),
    ),
    # --- turns ---
    Mutant(
        "process.py",
        "        with self.lock:\n            if self.state is RUNNING and self.limit",
        "        if True:\n            if self.state is RUNNING and self.limit",
        "no lost wake-up: the last look and the flag are one step",
        ("interleavings",),
    ),
    Mutant(
        "process.py",
        "and not self.messages and not self.hand:",
        "and not self.messages:",
        "no lost wake-up: messages in hand are still to be delivered",
        ("outbox", "turns"),
    ),
    Mutant(
        "process.py",
        "                if closed:\n                    self.retire()",
        "                self.retire()",
        "an actor that woke with nothing to do is not done",
        ("outbox", "interleavings"),
    ),
    Mutant(
        "process.py",
        "            closed = not self.limit  # looked at first: nothing can come between this and an empty take\n"
        "            hand = self.take(self.chunk)\n",
        "            hand = self.take(self.chunk)\n            closed = not self.limit\n",
        "stop drains: a message accepted just before the end is delivered",
        ("life",),
    ),
    Mutant(
        "process.py",
        "if self.outbox is not None or now() >= deadline:",
        "if self.outbox is not None:",
        "turns are bounded by time",
        ("turns",),
    ),
    Mutant(
        "process.py",
        "if self.outbox is not None or now() >= deadline:",
        "if now() >= deadline:",
        "an actor gets no messages while its outbox waits",
        ("outbox",),
    ),
    Mutant(
        "process.py",
        "self.chunk = max(1, size // 2)",
        "pass",
        "batches are bounded by time",
        ("turns",),
    ),
    Mutant(
        "process.py",
        "hand = self.take(self.chunk)",
        "hand = self.take(1 << 30)",
        "turns are bounded by count",
        ("turns",),
    ),
    Mutant(
        "process.py",
        "except BaseException as error:  # a worker outlives whatever an actor raises",
        "except Exception as error:",
        "a failing actor never kills a worker",
        ("life",),
    ),
    Mutant(
        "process.py",
        "an actor raises\n            self.fail(message, error)\n",
        "an actor raises\n            self.fail(message, error)\n            left = iter([message, *left])\n",
        "a message that failed does not come again",
        ("supervision",),
    ),
    Mutant(
        "process.py",
        "message = self._open(hand.pop(0))",
        "message = self._open(hand.pop())",
        "asks and tells keep their order in batches",
        ("ask",),
    ),
    # --- asks ---
    Mutant(
        "process.py",
        "            entry.answer(answer)\n        return NOTHING",
        "            entry.answer(answer)\n        return entry.message",
        "an ask is delivered once",
        ("ask",),
    ),
    Mutant(
        "life.py",
        '                entry.fail(pykka.ActorDeadError(f"{self.name} stopped before handling the message"))',
        "                pass",
        "every ask is answered, also when the actor stops first",
        ("ask", "supervision"),
    ),
    Mutant(
        "ref.py",
        "        if not process.limit:\n            return pykka.ActorDeadError",
        "        if False:\n            return pykka.ActorDeadError",
        "a stopped actor refuses with ActorDeadError",
        ("life",),
    ),
    Mutant(
        "ref.py",
        "        if in_turn():\n            full",
        "        if False:\n            full",
        "an actor never blocks a worker",
        ("mailbox",),
    ),
    # --- stopping and failing ---
    Mutant(
        "life.py",
        "            if self.limit:\n                when",
        "            if True:\n                when",
        "an actor that pauses can be stopped",
        ("interleavings",),
    ),
    Mutant(
        "life.py",
        "        self.failures += 1\n        self._cancel_timers()",
        "        self.failures += 1",
        "the timers of a failed actor are silent",
        ("timer",),
    ),
    Mutant(
        "process.py",
        "                if self.system.hurry:\n                    self.step_out_of_line()\n                return False",
        "                return False",
        "a stop that ran out of time releases an actor that lines up at that moment",
        ("interleavings",),
    ),
    Mutant(
        "life.py",
        "            self.dropped += 1",
        "            pass",
        "what is not delivered is counted",
        ("statistics", "supervision"),
    ),
    Mutant(
        "supervision.py",
        "pause_seconds(failures, self.first_seconds, self.max_seconds, self.factor)",
        "self.first_seconds",
        "the pauses before restarts grow",
        ("supervision",),
    ),
    Mutant(
        "system.py",
        "self._to_stop.pop()",
        "self._to_stop.pop(0)",
        "the last spawned stops first, so that a pipeline drains whole",
        ("life",),
    ),
    # --- outboxes ---
    Mutant(
        "process.py",
        "        if self.outbox is None:\n            if target.offer",
        "        if True:\n            if target.offer",
        "a message does not overtake those in the outbox",
        ("interleavings", "outbox"),
    ),
    Mutant(
        "outbox.py",
        "mailbox.messages.append(queue.popleft()[1])",
        "mailbox.messages.append(queue.pop()[1])",
        "an outbox is first in, first out",
        ("interleavings", "outbox"),
    ),
    Mutant(
        "outbox.py",
        "self._owner.undelivered += len(self._queue) - len(kept)",
        "pass",
        "what goes to a stopped actor is counted",
        ("outbox",),
    ),
    Mutant(
        "outbox.py",
        "            if cycle:\n                raise DeadlockError(cycle)\n",
        "",
        "a circle of full mailboxes is found",
        ("outbox",),
    ),
    Mutant(
        "outbox.py",
        "    def step_out(self) -> None:\n        with _graph:\n            self.waiting_on = None",
        "    def step_out(self) -> None:\n        with _graph:\n            pass",
        "only who waits is part of a circle",
        ("network", "outbox"),
    ),
    # --- timers ---
    Mutant(
        "timer.py",
        "if not self._waiting:",
        "if True:",
        "ticks coalesce",
        ("timer", "interleavings"),
    ),
    Mutant(
        "timer.py",
        "        if self._process is None:\n            return False\n        if self._period",
        "        if self._period",
        "a cancelled timer is silent",
        ("timer",),
    ),
    Mutant(
        "mailbox.py",
        "            if not self.limit:\n                return False\n            self.messages.append(message)",
        "            if len(self.messages) >= self.limit:\n                return False\n"
        "            self.messages.append(message)",
        "ticks and reports get through to a full mailbox",
        ("timer", "supervision"),
    ),
    # --- streams and clocks ---
    Mutant(
        "stream.py",
        "            if self.messages:\n                return True\n",
        "",
        "a reader does not sleep on items",
        ("interleavings",),
    ),
    Mutant(
        "stream.py",
        "super()._admit() if len(self.messages) <= self._low_water else []",
        "super()._admit()",
        "senders go on at the low-water mark",
        ("stream",),
    ),
    Mutant(
        "stream.py",
        "            self.scheduled = False\n        return None",
        "            pass\n        return None",
        "a sleeping reader is woken",
        ("interleavings",),
    ),
    Mutant(
        "future.py",
        "            if not self._done:\n                self._callbacks.append(callback)\n                return\n",
        "            self._callbacks.append(callback)\n            return\n",
        "an answer that came first wakes who asks for it later",
        ("interleavings",),
    ),
    Mutant(
        "clock.py",
        "                    if due is None:\n                        self._running = False\n                        return",
        "                    if due is None:\n                        return",
        "the clock's thread starts again when it is needed",
        ("interleavings",),
    ),
]
