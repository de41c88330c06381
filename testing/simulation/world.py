"""A whole feed in a simulated world: source, machine, target, faults, and what became of them."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from ... import failpoint
from ...engine.options import FeedOptions, feed_options
from ...errors import StoreError, TidemillError
from ...events import parked_tables
from .auditor import Violation, audit
from .binlog import Binlog
from .cluster import Cluster
from .disk import DISK_FAULTS, Disk
from .feed_machine import FeedMachine
from .network import Network
from .plan import CALM_SECONDS, DISK, PAUSE, RELOAD, RESUME, ROT, Plan, Step
from .scheduler import Host, Scheduler
from .selection import Selection
from .story import readable
from .target import TARGET_FAULTS, TargetServer
from .truth import Truth
from .upstream import Surroundings, Upstream

FEED: Final = "feed"
RESTART_SECONDS: Final = 3.0
"""Maximum time until a killed machine is started again."""
SETTLE_SECONDS: Final = 120.0
"""Virtual time within which the target has everything once all faults have ended."""
STOP_SECONDS: Final = 40.0
LOAD_WAIT_SECONDS: Final = 60.0
"""Maximum wait for the first chunk of rows, beside which a part of the script is played."""
LOOK_SECONDS: Final = 0.1

log = logging.getLogger("tidemill")


class Result(Struct, frozen=True):
    plan: Plan
    violations: list[Violation]
    story: list[str]
    digest: str
    """Hash of all steps."""
    points: Counter[str]
    """Passes of failpoints."""
    steps: int
    seconds: float
    """Virtual time."""
    kills: int
    commits: int
    """Commits of the target."""
    changes: int
    """Transactions and schema changes of the source."""

    @property
    def trace(self) -> str:
        return "\n".join([*self.story, f"{self.steps} steps, {self.digest}"])


class World:
    """Runs a plan."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.plan = plan
        self.directory = directory
        self.scheduler = scheduler = Scheduler(f"schedule {plan.seed}", plan.slow)
        self.network = Network(scheduler, plan.latency_seconds)
        self.disk = Disk(self.note)
        self.target = TargetServer(
            directory / "copy.db", scheduler, plan.target_latency_seconds, self.note, merges=plan.merges
        )
        self.story: list[str] = []
        self.points: Counter[str] = Counter()
        self.machine: FeedMachine | None = None
        self._host = Host("world")
        self._truth = Truth()
        self._selection = Selection(plan.is_filtered, plan.leaves_out)
        self._violations: list[Violation] = []
        self._machines = 0
        self._kills = 0
        self._armed: tuple[str, int] | None = None
        """The failpoint that kills the machine, and after how many passes."""
        self._rots = False
        """True if the definitions are damaged before the next machine starts."""
        self._is_over = False
        self._is_load_played = True
        """False while a part of the script is to be played beside a load."""
        self._writing = 0
        self._upstream: Upstream | None = None

    def note(self, who: str, what: str) -> None:
        what = readable(what.replace(f"{self.directory}/", ""))
        self.story.append(f"{self.scheduler.clock.now():9.3f}  {who:10}  {what}")

    def run(self) -> Result:
        with self._observed(), self._log_in_story(), self.disk.attached(), self.plan.limits.set():
            self.scheduler.start(self._host, "script", self._play)
            done = self.scheduler.run(
                self._has_ended, self.plan.end + LOAD_WAIT_SECONDS + 2 * SETTLE_SECONDS + STOP_SECONDS
            )
            if not done:
                self.wrong("the world didn't come to its end")
            self._violations += [
                Violation(self.scheduler.clock.now(), f"{name} failed: {error!r}")
                for name, error in self.scheduler.errors
            ]
            assert self._upstream is not None
            self._violations += audit(
                self._truth, self.target.snapshots, self._selection, self._upstream.as_of
            )
            result = Result(
                plan=self.plan,
                violations=sorted(self._violations, key=lambda one: one.time),
                story=self.story,
                digest=self.scheduler.digest,
                points=self.points,
                steps=self.scheduler.steps,
                seconds=self.scheduler.clock.now(),
                kills=self._kills,
                commits=len(self.target.snapshots),
                changes=len(self._truth.changes),
            )
            self._dispose()
            return result

    @property
    def _source(self) -> Upstream:
        assert self._upstream is not None
        return self._upstream

    def _has_ended(self) -> bool:
        return self._is_over or bool(self.scheduler.errors)

    def wrong(self, text: str) -> None:
        self.note("auditor", text)
        self._violations.append(Violation(self.scheduler.clock.now(), text))

    # --- the script, in a fiber ------------------------------------------------------------------

    def _play(self) -> None:
        plan, scheduler = self.plan, self.scheduler
        around = Surroundings(plan, scheduler, self.network, self._host, self._truth, self.note)
        self._upstream = Binlog(around) if plan.source == "binlog" else Cluster(around)
        self._upstream.create(Random(f"world {plan.seed}"))
        self._start_machine()
        if in_load := [step for step in plan.steps if step.in_load]:
            self._is_load_played = False
            scheduler.start(self._host, "script of the load", lambda: self._play_in_load(in_load))
        self._play_steps([step for step in plan.steps if not step.in_load])
        scheduler.wait(lambda: self._is_load_played)
        self._end()

    def _play_in_load(self, steps: Sequence[Step]) -> None:
        if self.scheduler.wait(lambda: self.points["snapshot.chunk_read"] > 0, LOAD_WAIT_SECONDS):
            self._play_steps(steps)
        self._is_load_played = True

    def _play_steps(self, steps: Sequence[Step]) -> None:
        begin = self.scheduler.clock.now()
        for step in steps:
            self.scheduler.sleep(begin + step.at - self.scheduler.clock.now())
            self._perform(step)

    def _perform(self, step: Step) -> None:
        word = step.word
        if word in ("write", "slow write", "dying write", "ddl"):
            self._write(step)
            return
        self.note("fault", step.text)
        if word == "target":
            self.target.faults.append(TARGET_FAULTS[TARGET_FAULTS.index(step.detail)])
        elif word == DISK:
            self.disk.faults.append(DISK_FAULTS[DISK_FAULTS.index(step.detail)])
        elif word in (RELOAD, PAUSE, RESUME):
            if self.machine is not None and not self.machine.is_dead:
                self.machine.request(word, Random(step.seed), self.note)
        elif word == "kill":
            self._kill("killed")
        elif word == ROT:
            self._rots = True
            self._kill("killed, and its disk is damaged")
        elif word == "kill at":
            point, _, nth = step.detail.partition(":")
            self._armed = point, int(nth)
        elif word == "restart":
            if self._stop_machine():
                self._start_machine()
        else:
            self._source.perform(step)

    def _write(self, step: Step) -> None:
        def work() -> None:
            try:
                writers = self._source.writers
                (writers.alter if step.word == "ddl" else writers.write)(step)
            finally:
                self._writing -= 1

        self._writing += 1
        self.scheduler.start(self._host, step.word, work)

    def _end(self) -> None:
        """End all faults; then the target must get everything."""
        scheduler = self.scheduler
        scheduler.wait(lambda: not self._writing, 60)
        scheduler.sleep(CALM_SECONDS)  # the faults' own ends
        self._source.calm()
        self._armed = None
        self.target.calm()
        self.disk.calm()
        self.note("world", "all faults have ended")
        wanted = self._truth.last
        end = scheduler.clock.now() + SETTLE_SECONDS
        while not self._is_complete(wanted) and scheduler.clock.now() < end:
            scheduler.sleep(LOOK_SECONDS)
            if self.machine is not None and not self.machine.is_dead:
                self.machine.resume_all()
        if self.machine is not None and self.machine.has_ended:
            self.wrong(f"{self.machine.name}: the feed has ended, and nobody has stopped it")
        elif not self._is_complete(wanted):
            checkpoint = self.target.snapshots[-1].checkpoint if self.target.snapshots else None
            at = "none" if checkpoint is None else checkpoint.ts
            self.wrong(
                f"the target is at checkpoint {at} {SETTLE_SECONDS:g} s after the last fault; the source's "
                f"last commit is {wanted}"
            )
        self._stop_machine()
        self._is_over = True

    def _is_complete(self, ts: int) -> bool:
        if not self.target.snapshots or (machine := self.machine) is None or machine.has_ended:
            return self.machine is not None and self.machine.has_ended
        checkpoint = self.target.snapshots[-1].checkpoint
        return (
            checkpoint is not None
            and checkpoint.is_loaded
            and self._source.as_of(checkpoint) >= ts
            and not parked_tables(checkpoint.loading)
        )

    # --- the machine -----------------------------------------------------------------------------

    def _feed_options(self, data_dir: Path) -> FeedOptions:
        options: FeedOptions = feed_options(
            {
                "name": FEED,
                "data_dir": str(data_dir),
                "source": {"tables": self._selection.tables, **self._source.options()},
                "sorter": self.plan.sorter,
                "filter": self._selection.filters,
            }
        )
        return options

    def _start_machine(self) -> None:
        before = self.machine
        self._machines += 1
        options = self._feed_options(self.directory / f"machine-{self._machines}")
        self.machine = machine = FeedMachine(
            self._machines, options, self.scheduler, self.target, self._forgives, self._source, self.disk
        )
        if before is not None and before.left.exists():
            before.left.rename(machine.data_dir)
        if self._rots:
            self._rots = False
            self.disk.rot(machine.definitions, self.scheduler.random)
        self.note(machine.name, "starts")
        self.scheduler.start(machine, f"{machine.name} main", machine.run)

    def _forgives(self, error: TidemillError) -> bool:
        """Return True for the error of a feed that its disk has failed: then it is started again."""
        if isinstance(error, StoreError) and self.disk.hits:
            self.note("disk", f"the feed has ended: {error}")
            if self.machine is not None and self.disk.is_rotten:
                self.machine.remove_named_in(error)
            self.scheduler.start(self._host, "recovery", lambda: self._kill("is started again"))
            return True
        self.wrong(f"the feed failed: {type(error).__name__}: {error}")
        return False

    def _stop_machine(self) -> bool:
        """Stop the feed in an orderly way; return False if the machine was killed meanwhile."""
        machine = self.machine
        if machine is None or machine.is_dead:
            self.scheduler.wait(lambda: self.machine is not None and not self.machine.is_dead)
            machine = self.machine
        assert machine is not None
        self.scheduler.wait(lambda: machine.feed is not None)
        assert machine.feed is not None
        machine.feed.stop()
        if not self.scheduler.wait(lambda: machine.has_ended or machine.is_dead, STOP_SECONDS):
            self.wrong(f"{machine.name} hasn't stopped after {STOP_SECONDS:g} s")
        if machine.is_dead:
            return False
        self.note(machine.name, "has stopped")
        self.scheduler.die(machine)
        self.network.leave(machine)
        self.target.leave(machine)
        return True

    def _kill(self, why: str) -> None:
        machine = self.machine
        if machine is None or machine.is_dead:
            return
        self._kills += 1
        self.note(machine.name, why)
        self.scheduler.die(machine)
        self._recover(machine)

    def _recover(self, machine: FeedMachine) -> None:
        """Start another machine in place of a killed one, after a while."""
        self.network.leave(machine)
        self.target.leave(machine)

        def again() -> None:
            self.scheduler.sleep(self.scheduler.random.random() * RESTART_SECONDS)
            self._start_machine()

        self.scheduler.start(self._host, "restart", again)

    def _reached(self, point: str) -> None:
        """A failpoint is passed, by the code of a machine."""
        fiber = self.scheduler.fiber
        machine = self.machine
        if fiber is None or machine is None or fiber.host is not machine or machine.is_dead:
            return
        self.points[point] += 1
        if self._armed is None or self._armed[0] != point:
            return
        left = self._armed[1] - 1
        if left:
            self._armed = point, left
            return
        self._armed = None
        self._kills += 1
        self.note(machine.name, f"killed at {point}")
        self.scheduler.start(self._host, "recovery", lambda: self._recover(machine))
        self.scheduler.die(machine)

    # --- around it -------------------------------------------------------------------------------

    @contextmanager
    def _observed(self) -> Iterator[None]:
        failpoint.observe(self._reached)
        try:
            yield
        finally:
            failpoint.observe(None)

    @contextmanager
    def _log_in_story(self) -> Iterator[None]:
        world = self

        class Noting(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                fiber = world.scheduler.fiber
                if fiber is not None and not fiber.host.is_dead:
                    text = record.getMessage()
                    if record.exc_info and record.exc_info[1] is not None:
                        text += f": {record.exc_info[1]!r}"
                    world.note(fiber.host.name, text)

        handler = Noting(logging.INFO)
        before = log.level, log.propagate
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.level, log.propagate = before

    def _dispose(self) -> None:
        for host in (self.machine, self._host):
            if host is not None:
                host.is_dead = True
                for fiber in list(host.fibers):
                    fiber.end()
                host.buried()
        if self._upstream is not None:
            self._upstream.end()
        self.target.close()
        shutil.rmtree(self.directory, ignore_errors=True)
