"""The script of a simulated world, drawn from a seed; single steps of it can be left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...emulator.mysql.log import Vendor
from ...emulator.options import CommitMode
from ...failpoint import POINTS
from .disk import DISK_FAULTS
from .limits import Limits
from .mutants.mutant import WorldSource
from .target import TARGET_FAULTS

CLUSTER_FAULTS: Final = (
    "split",
    "merge",
    "transfer_leader",
    "store_down",
    "slow_store",
    "fail_next",
    "fail_feed",
    "drop_streams",
    "cut_streams",
    "hold_scans",
    "pause_resolved",
    "pd_leader",
    "pd_down",
    "clock",
)
"""Words of the emulator's own schedule of faults."""
NETWORK_FAULTS: Final = ("cut_store", "hold_store", "cut_pd", "hold_pd")
BINLOG_FAULTS: Final = (
    "rotate",
    "cut_log",
    "silence",
    "slow_log",
    "down",
    "cut",
    "hold",
    "stall",
    "stall_log",
)
"""Faults of an emulated MariaDB or MySQL, and of the way to it."""
WRITES: Final = ("write", "slow write", "dying write")
"""A slow writer holds its locks for seconds, a dying one leaves them."""
RELOAD: Final = "reload"
"""A request to load a table again."""
PAUSE: Final = "pause"
RESUME: Final = "resume"
"""Requests to apply nothing of a table for a while."""
DISK: Final = "disk"
ROT: Final = "rot"
"""A kill, after which a bit is turned over in the file of a binlog's definitions."""
STOP_SCANS: Final = "stop_scans"
"""Incremental scans of a store begin again, and stop after their first batch."""
GC: Final = "gc"
"""Garbage collection of the cluster, up to the safe points of services."""
KILLS: Final = ("kill", "kill at", "restart")
"""A kill now, a kill at the n-th pass of a failpoint, and an orderly stop and start."""
MOST_TABLES: Final = 3
LARGE: Final = 64 << 20
"""Memory of a sorter that never spills here."""
SLOW: Final = (
    "sink",
    "decoder",
    "coordinator",
    "merger",
    "intake",
    "region worker",
    "table",
    "schema jobs",
    "loader",
    "advancer",
    "cluster",
    "tidemill-tikv",
    "watch",
)
CALM_SECONDS: Final = 2.5
"""Maximum duration of a fault of the source."""
BUSY_LOAD_SECONDS: Final = (0.3, 1.0, 4.0)
"""Times in which much happens beside the load of a binlog's tables."""
BUSY_LOAD_FAULTS: Final = (("slow_log", "cut_log", "hold", "stall"), ("stall_log",) * 2, ("stall_log",) * 4)
"""Faults beside such a load; one of these."""
EARLY_SECONDS: Final = 4.0
"""Time in which a binlog's tables are described and loaded, unless much goes wrong."""
LONG_LATENCY_SECONDS: Final = 0.05
DESCRIBED_SECONDS: Final = 12.0
"""Time in which a binlog's tables are described where latencies are long."""
LOAD_SECONDS: Final = 0.8
"""About as long as it takes until the tables are loaded."""
_OF_SOURCE: Final[dict[WorldSource, tuple[str, ...]]] = {
    "tikv": ("snapshot.chunk_read", "tikv.batch_read", "tikv.mounted"),
    "binlog": ("snapshot.chunk_read", "binlog.batch_read", "definitions.written"),
}
REACHED: Final = {
    source: tuple(point for point in POINTS if point in points or point.startswith(("sink.", "tables.")))
    for source, points in _OF_SOURCE.items()
}
"""Points that a feed from this source into a SQL database passes."""


class Step(Struct, frozen=True):
    """One event of the script."""

    at: float
    """Virtual time."""
    word: str
    seed: int
    """For what the step draws when it runs."""
    detail: str = ""
    in_load: bool = False
    """True if `at` counts from the first chunk of rows that is read."""

    @property
    def is_fault(self) -> bool:
        return self.word not in WRITES and self.word != "ddl"

    @property
    def text(self) -> str:
        return f"{self.word} {self.detail}".strip()


class Plan(Struct, frozen=True):
    """A world before it begins, and its script."""

    seed: int
    rows: int
    """Rows of each table before the feed starts."""
    tables: int
    regions: int
    """Number of splits before the feed starts."""
    latency_seconds: float
    target_latency_seconds: float
    pd_members: int
    coarse_resolved: bool
    tick_seconds: float
    """Interval of resolved ts."""
    filter_span: bool
    commit_mode: CommitMode
    slow: str
    """Part of the names of fibers, actors and loops that get few turns."""
    scan_page: int
    """Rows of a chunk when a table is loaded."""
    sorter: dict[str, str | int]
    steps: tuple[Step, ...]
    limits: Limits = Limits()
    scan_rows: int = 1024
    """Rows of a batch of an incremental scan."""
    region_batch: int = 20
    region_scan_limit: int = 40
    prewrite_bytes: int = 128 << 20
    """Memory for prewrites that wait for their commit."""
    is_wide: bool = False
    """True if rows of one table have thousands of bytes."""
    is_filtered: bool = False
    """True if the target has a part of one table's rows."""
    leaves_out: bool = False
    """True if one table isn't followed, unless it is renamed."""
    merges: bool = False
    """True if the changes of a row in a batch are applied as one."""
    source: WorldSource = "tikv"
    servers: int = 1
    """Number of servers with the same transactions, in binlogs of their own."""
    vendor: Vendor = "MariaDB"
    """Program of the servers with a binlog."""
    domains: int = 1
    """Number of a MariaDB's GTID domains."""
    is_permissive: bool = False
    """True if some transactions of a MySQL have no GTID."""
    visible_seconds: float = 0.0
    """Time after which new views have a transaction that is in the binlog."""
    seek_seconds: float = 0.0
    """Time for which a server looks for the position from which it is to send its binlog."""
    snapshot_workers: int = 0
    """Connections that load tables beside a binlog."""
    batch_bytes: int = 1 << 20
    """Size of a binlog's transaction beyond which it comes in parts."""

    @property
    def end(self) -> float:
        return max((step.at for step in self.steps if not step.in_load), default=0.0)


def plan_of(seed: int) -> Plan:
    """Draw a world."""
    random = Random(f"plan {seed}")
    seconds = random.choice((3.0, 8.0, 15.0))
    writes = WRITES if random.random() < 0.15 else WRITES[:2]  # a lock that is left costs many seconds
    steps = [_write(random, seconds, writes) for _ in range(random.randint(5, 30))]
    if random.random() < 0.5:
        steps += [
            Step(random.random() * seconds, "ddl", random.getrandbits(32))
            for _ in range(random.randint(1, 4))
        ]
    calm = random.random() < 0.1
    if not calm:
        steps += [_fault(random, seconds) for _ in range(random.randint(1, 8))]
        steps += [_kill(random, seconds) for _ in range(random.choice((0, 0, 1, 1, 2, 4)))]
    plan = Plan(
        seed,
        rows=random.choice((0, 3, 12)),
        tables=random.randint(1, MOST_TABLES),
        regions=random.randint(0, 4),
        latency_seconds=random.choice((0.0, 0.002, 0.05)),
        target_latency_seconds=random.choice((0.0, 0.0, 0.01, 0.1)),
        pd_members=random.choice((1, 3)),
        tick_seconds=random.choice((0.2, 0.5)),
        coarse_resolved=random.random() < 0.3,
        filter_span=random.random() < 0.3,
        commit_mode=random.choice(("two_phase", "async_commit", "one_pc")),
        slow=random.choice(SLOW) if random.random() < 0.4 else "",
        scan_page=random.choice((1, 3, 256)),
        sorter=_sorter(random),
        steps=_ordered(steps),
    )
    return _varied(plan, Random(f"variety {seed}"), seconds, calm=calm)


def binlog_plan_of(seed: int) -> Plan:
    """Draw a world whose source is a MariaDB or MySQL."""
    random = Random(f"binlog {seed}")
    plan = plan_of(seed)
    seconds = max(plan.end, 3.0)
    steps = [
        replace(step, word="write") if step.word in WRITES else step
        for step in plan.steps
        if step.word in (*WRITES, "ddl", "target", "kill", "restart", RELOAD, PAUSE, RESUME, DISK)
    ]
    if any(step.is_fault for step in plan.steps):
        steps += [_step(random, seconds, random.choice(BINLOG_FAULTS)) for _ in range(random.randint(0, 6))]
        steps += [_step(random, seconds, "stall_log") for _ in range(random.choice((0, 0, 4)))]
        steps += [_step(random, EARLY_SECONDS, "rotate") for _ in range(random.choice((0, 0, 0, 6)))]
        steps += [_step(random, seconds, DISK, "full") for _ in range(random.choice((0, 0, 0, 1)))]
        if random.random() < 0.2:
            point = f"definitions.written:{random.choice((1, 2, 3, 5))}"
            steps.append(_step(random, EARLY_SECONDS, "kill at", point))
        for _ in range(random.choice((0, 0, 1, 2))):
            point = f"{random.choice(REACHED['binlog'])}:{random.choice((1, 2, 5))}"
            steps.append(_step(random, seconds, "kill at", point))
    servers = random.choice((1, 1, 2))
    if servers > 1:
        steps += [_step(random, seconds, "fail_over") for _ in range(random.randint(0, 3))]
    if random.random() < 0.5:  # much happens while the tables are loaded
        words = ("write",) * 12 + ("ddl", "ddl") + random.choice(BUSY_LOAD_FAULTS)
        words += ("fail_over",) * random.randint(0, 2) * (servers > 1)
        busy_seconds = random.choice(BUSY_LOAD_SECONDS)
        steps += [replace(_step(random, busy_seconds, word), in_load=True) for word in words]
        plan = replace(
            plan, rows=12, scan_page=random.choice((1, 3)), latency_seconds=random.choice((0.002, 0.05))
        )
    plan = replace(
        plan,
        source="binlog",
        servers=servers,
        snapshot_workers=random.choice((0, 1, 2, 2)),
        batch_bytes=random.choice((1, 500, 1 << 20)),
        steps=_ordered(steps),
        slow=random.choice(("puller", "sink", "decoder", "chunks", "mariadb", "coordinator", "", "")),
    )
    return _of_vendor(plan, Random(f"vendor {seed}"))


def _of_vendor(plan: Plan, random: Random) -> Plan:
    """Draw what the servers with the binlog are, and what befalls them and the file of definitions once."""
    is_calm = not any(step.is_fault for step in plan.steps)
    steps = [*plan.steps]
    seconds = max(plan.end, 3.0)
    if plan.servers > 1 and not is_calm and random.random() < 0.4:
        steps.append(_step(random, seconds, "lose"))
    if not is_calm and any(step.word == "ddl" for step in steps):
        steps += [_step(random, seconds, ROT) for _ in range(random.choice((0, 0, 1)))]
    if not is_calm and plan.latency_seconds >= LONG_LATENCY_SECONDS:
        steps += [_step(random, DESCRIBED_SECONDS, "rotate") for _ in range(random.choice((0, 24)))]
    plan = replace(
        plan,
        steps=_ordered(steps),
        seek_seconds=random.choice((0.0, 0.0, 0.0, 0.0, 2.5)),
        visible_seconds=random.choice((0.0, 0.3)) if plan.latency_seconds else 0.0,
    )
    if random.random() < 0.6:
        return replace(plan, domains=random.choice((1, 2, 3)))
    slow = plan.slow.replace("mariadb", "mysql")
    return replace(plan, vendor="MySQL", slow=slow, is_permissive=plan.servers == 1 and random.random() < 0.7)


PLANS: Final[dict[WorldSource, Callable[[int], Plan]]] = {"tikv": plan_of, "binlog": binlog_plan_of}
"""How a world with this source is drawn."""


def _varied(plan: Plan, random: Random, seconds: float, *, calm: bool) -> Plan:
    """Draw what few worlds have: small limits, requests about tables, filters, and a disk that fails."""
    steps = list(plan.steps)
    sorter = dict(plan.sorter)
    if not calm and random.random() < 0.15:
        steps += [_step(random, seconds, random.choice((PAUSE, PAUSE, RESUME))) for _ in range(4)]
    if sorter["engine"] == "db" and random.random() < 0.3:
        sorter["layout"] = "event"
    fails = 0.7 if "layout" in sorter else 0.3  # few worlds have an iterator, which fails in its own way
    if not calm and sorter.get("memory_bytes", LARGE) != LARGE and random.random() < fails:
        steps += [
            _step(random, seconds, DISK, random.choice(DISK_FAULTS)) for _ in range(random.randint(1, 3))
        ]
    scan_rows = random.choice((1, 2)) if random.random() < 0.4 else 1024
    if not calm and scan_rows < 1024:
        steps += [_step(random, seconds, STOP_SCANS) for _ in range(random.randint(0, 2))]
    if not calm and random.random() < 0.3:
        steps += [
            _step(random, seconds, random.choice(("split", "merge", "merge")))
            for _ in range(random.randint(2, 6))
        ]
    limits = Limits()
    if random.random() < 0.3:
        limits = Limits(*random.choice(((2, 10_000, 50_000, 1), (2, 3, 50_000, 16_384), (5, 2, 2, 1))))
    varied = replace(
        plan,
        sorter=sorter,
        limits=limits,
        scan_rows=scan_rows,
        region_batch=random.choice((1, 20)),
        region_scan_limit=random.choice((1, 40)),
        is_wide=(is_wide := random.random() < 0.15),
        prewrite_bytes=1 if is_wide or random.random() < 0.1 else plan.prewrite_bytes,
        is_filtered=random.random() < 0.2,
        leaves_out=plan.tables == MOST_TABLES and random.random() < 0.3,
        merges=random.random() < 0.2,
    )
    latency_seconds = plan.target_latency_seconds
    if not calm and random.random() < 0.15:
        latency_seconds = 0.1  # so that much happens before a commit that comes late
        steps += [_step(random, seconds, "target", "late_commit") for _ in range(5)]
    if not calm and limits != Limits():  # tables of several chunks
        steps += [_step(random, seconds, RELOAD) for _ in range(5)]
    return replace(varied, steps=_ordered(steps), target_latency_seconds=latency_seconds)


def _ordered(steps: Sequence[Step]) -> tuple[Step, ...]:
    return tuple(sorted(steps, key=lambda step: step.at))


def _write(random: Random, seconds: float, words: Sequence[str]) -> Step:
    word = random.choices(words, (8, 2, 1)[: len(words)])[0]
    return _step(random, seconds, word)


def _step(random: Random, seconds: float, word: str, detail: str = "") -> Step:
    return Step(random.random() * seconds, word, random.getrandbits(32), detail)


def _fault(random: Random, seconds: float) -> Step:
    kind = random.choices(("cluster", "network", "target", RELOAD, GC), (8, 2, 6, 1, 1))[0]
    if kind in (RELOAD, GC):
        return _step(random, seconds, kind)
    if kind == "target":
        return _step(random, seconds, "target", random.choice(TARGET_FAULTS))
    return _step(random, seconds, random.choice(NETWORK_FAULTS if kind == "network" else CLUSTER_FAULTS))


def _kill(random: Random, seconds: float) -> Step:
    word = random.choices(KILLS, (3, 4, 2))[0]
    detail = ""
    if word == "kill at":
        detail = f"{random.choice(REACHED['tikv'])}:{random.choice((1, 1, 2, 3, 7))}"
    in_load = random.random() < 0.3
    return _step(random, min(seconds, LOAD_SECONDS) if in_load else seconds, word, detail)


def _sorter(random: Random) -> dict[str, str | int]:
    engine = random.choice(("db", "db", "unified", "memory"))
    memory = random.choice((0, 200, LARGE))
    options: dict[str, str | int] = {"engine": engine}
    if engine != "memory":
        options["memory_bytes"] = memory
    if random.random() < 0.5:
        options["block_changes"] = random.choice((1, 5))
        options["merge_bytes"] = random.choice((1, 500))
    return options
