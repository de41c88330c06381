"""Faults of the emulated cluster and of its network, by the words of a plan."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ...emulator.faults.schedule import Schedule
from ...emulator.sql.sql import Tidb
from .network import Network
from .plan import CALM_SECONDS, CLUSTER_FAULTS, GC, NETWORK_FAULTS, STOP_SCANS, Step
from .scheduler import Host, Scheduler


class ClusterFaults:
    """To be used in fibers of the world."""

    words = frozenset((*CLUSTER_FAULTS, *NETWORK_FAULTS, STOP_SCANS, GC))

    def __init__(
        self,
        tidb: Tidb,
        network: Network,
        scheduler: Scheduler,
        host: Host,
        keys: Callable[[], list[bytes]],
        note: Callable[[str, str], None],
    ) -> None:
        """`keys` returns raw keys at which regions may be split."""
        self._tidb = tidb
        self._network = network
        self._scheduler = scheduler
        self._host = host
        self._keys = keys
        self._note = note

    def perform(self, step: Step) -> None:
        """Begin a fault, and end it after a while."""
        if step.word == GC:
            self._collect_garbage()
        elif step.word in NETWORK_FAULTS:
            self._cut(step)
        else:
            if step.word == STOP_SCANS:
                self._stop_scans(Random(step.seed))
            else:
                Schedule(self._tidb, step.seed, self._keys(), (step.word,)).step()
            self._calm_later(step)

    def split(self, seed: int) -> None:
        Schedule(self._tidb, seed, self._keys(), ("split",)).step()

    def calm(self) -> None:
        Schedule(self._tidb, 0, self._keys()).calm()

    def _stop_scans(self, random: Random) -> None:
        store = random.choice(sorted(self._tidb.stores))
        self._tidb.hold_scans(store, 1)
        self._tidb.drop_streams(store)

    def _cut(self, step: Step) -> None:
        random = Random(step.seed)
        of_pd = step.word.endswith("pd")
        members = [member.server for member in self._tidb.pd.members]
        servers = members if of_pd else [store.server for store in self._tidb.stores.values()]
        address = random.choice(servers).address
        if step.word.startswith("cut"):
            self._network.cut(address)
        else:
            self._network.hold(address, random.random() * CALM_SECONDS)

    def _collect_garbage(self) -> None:
        """Collect what the feed's safe point permits; a cluster keeps what is younger than minutes anyway."""
        holds = self._tidb.pd.safe_points.holds
        if any(name.startswith(b"tidemill-") for name in holds):
            self._note("pd", f"garbage is collected up to {self._tidb.gc()}")

    def _calm_later(self, step: Step) -> None:
        seconds = Random(step.seed).random() * CALM_SECONDS

        def calm() -> None:
            self._scheduler.sleep(seconds)
            self.calm()

        self._scheduler.start(self._host, f"end of {step.word}", calm)
