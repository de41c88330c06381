"""The DDL puller: jobs in the order in which they end, each once, the follower first."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from tidemill.actors import Failed, PooledActor, SeededSystem
from tidemill.codec.tidb.action import Action
from tidemill.codec.tidb.job import (
    CANCELLED,
    CANCELLING,
    DELETE_ONLY,
    DONE,
    PUBLIC,
    QUEUEING,
    ROLLBACK_DONE,
    ROLLING_BACK,
    RUNNING,
    SYNCED,
    WRITE_ONLY,
    Job,
    encode_job,
)
from tidemill.codec.tidb.meta import DDL_INDEX_JOBS, DDL_JOBS, list_key, list_meta_key
from tidemill.errors import SourceError
from tidemill.events import DELETE, PUT, Changes, KvChange
from tidemill.puller.tikv.ddl import DdlPuller
from tidemill.testing.tidb_model import Tidb, change_of

from ...codec.tidb.ddl_vectors import VERSIONS, effects, jobs, transactions


class Log(PooledActor):
    """Downstream, follower and supervisor in one: writes down who was told what."""

    def __init__(self, lines: list[tuple]) -> None:
        self.lines = lines

    def on_receive(self, message: Changes | Failed) -> None:
        if isinstance(message, Failed):
            self.lines.append(("failed", message.error))
        else:
            self.lines.append(("sent", [change.commit_ts for change in message.changes], message.resolved))


class Follower:
    def __init__(self, lines: list[tuple]) -> None:
        self.lines = lines

    def apply(self, job: Job, ts: int) -> None:
        self.lines.append(("applied", job.query, ts))


class Bench:
    def __init__(self, seed: int = 1, capacity: int = 64, **options) -> None:
        self.lines: list[tuple] = []
        self.system = SeededSystem(seed)
        log = self.system.spawn(Log, self.lines, capacity=capacity)
        options.setdefault("start_ts", 10)
        self.puller = self.system.spawn(
            DdlPuller, log, Follower(self.lines), supervisor=log, capacity=1 << 16, **options
        )

    def tell(self, *changes: KvChange, resolved: int = 0) -> list[tuple]:
        """Return the lines recorded for these changes."""
        before = len(self.lines)
        self.puller.tell(Changes(list(changes), resolved))
        self.system.run()
        return self.lines[before:]

    @property
    def applied(self) -> list[tuple[str, int]]:
        return [line[1:] for line in self.lines if line[0] == "applied"]


@pytest.fixture
def tidb():
    tidb = Tidb()
    tidb.create_database("shop")
    return tidb


def test_the_follower_acts_before_the_sorter_hears_of_the_job(tidb):
    bench = Bench()
    a, b = tidb.create_table("shop", "a"), tidb.create_table("shop", "b")
    assert bench.tell(change_of(b, 30), change_of(a, 20), resolved=15) == [("sent", [], 15)]
    assert bench.tell(resolved=40) == [
        ("applied", a.query, 20),
        ("applied", b.query, 30),
        ("sent", [20, 30], 40),
    ]


def test_what_is_not_resolved_waits(tidb):
    bench = Bench()
    job = tidb.create_table("shop", "a")
    assert bench.tell(change_of(job, 20)) == []
    assert bench.tell(resolved=19) == [("sent", [], 19)]
    assert bench.tell(resolved=19) == []
    assert bench.tell(resolved=20) == [("applied", job.query, 20), ("sent", [20], 20)]


def test_jobs_of_one_transaction_go_in_the_order_of_their_schema_versions(tidb):
    bench = Bench()
    a, b = tidb.create_table("shop", "a"), tidb.create_table("shop", "b")
    bench.tell(change_of(b, 20), change_of(a, 20), resolved=20)
    assert [query for query, _ in bench.applied] == [a.query, b.query]


def test_a_job_counts_once_at_the_first_change_that_ends_it(tidb):
    job = tidb.create_table("shop", "a")
    bench = Bench(max_bytes=4 * len(encode_job(job)))
    later = replace(change_of(replace(job, state=SYNCED), 25), key=list_key(DDL_INDEX_JOBS, 0))
    bench.tell(later, change_of(job, 20), change_of(job, 20), resolved=30)
    bench.tell(change_of(job, 35), resolved=40)
    bench.tell(*[change_of(job, 45)] * 9)
    assert bench.applied == [(job.query, 20)]
    assert bench.lines == [("applied", job.query, 20), ("sent", [20], 30), ("sent", [], 40)]


def test_steps_deletions_and_jobs_that_were_taken_back_are_nothing(tidb):
    bench = Bench()
    job = tidb.create_table("shop", "a")
    steps = [change_of(replace(job, state=state), 20) for state in (QUEUEING, RUNNING, ROLLBACK_DONE)]
    gone = KvChange(21, 20, DELETE, list_key(DDL_JOBS, 0), b"")
    bounds = KvChange(21, 20, PUT, list_meta_key(DDL_JOBS), bytes(16))
    assert bench.tell(*steps, gone, bounds, resolved=30) == [("sent", [], 30)]


def test_a_job_whose_columns_rows_have_before_it_is_done_takes_effect_then():
    """Nothing from there on is resolved until it is done. A job in between goes after it."""
    tidb = Tidb()
    tidb.create_database("shop")
    tidb.create_table("shop", "a")
    job = tidb.modify_column("shop", "a", "id", "id varchar(20)", id=9)
    other = tidb.create_table("shop", "b")
    states = (DELETE_ONLY, WRITE_ONLY, PUBLIC, PUBLIC)
    steps = [
        change_of(replace(job, state=RUNNING, schema_state=state, outcome=None), 20 + number)
        for number, state in enumerate(states)
    ]
    bench = Bench()
    assert bench.tell(*steps[:2], resolved=21) == [("sent", [], 21)]
    assert bench.tell(steps[3], steps[2], change_of(other, 24), resolved=30) == []
    assert bench.tell(change_of(job, 35), resolved=31) == []
    assert bench.tell(resolved=40) == [
        ("applied", job.query, 22),
        ("applied", other.query, 24),
        ("sent", [22, 24], 40),
    ]
    assert bench.tell(*steps, change_of(job, 35), change_of(replace(job, state=SYNCED), 45), resolved=50) == [
        ("sent", [], 50)
    ]


def test_a_dropped_primary_key_ends_at_the_first_step_of_its_job():
    """Rows may share a key from the second one on; a job that only waits has no effect."""
    tidb = Tidb()
    tidb.create_database("shop")
    tidb.create_table("shop", "a")
    job = tidb.alter("shop", "a", Action.DROP_PRIMARY_KEY, "drop primary key")
    steps = [
        change_of(replace(job, state=state, schema_state=schema_state, outcome=None), 20 + number)
        for number, (state, schema_state) in enumerate(
            [(QUEUEING, PUBLIC), (RUNNING, PUBLIC), (RUNNING, WRITE_ONLY), (RUNNING, DELETE_ONLY)]
        )
    ]
    bench = Bench()
    assert bench.tell(*steps[:2], resolved=21) == [("sent", [], 21)]
    assert bench.tell(*steps[2:], resolved=23) == []
    assert bench.tell(change_of(job, 35), resolved=40) == [("applied", job.query, 22), ("sent", [22], 40)]


def test_the_follower_knows_the_jobs_before_a_resolved_ts_is_told(tidb):
    """And the sorter gets it after that."""
    bench = Bench(resolved=lambda ts: bench.lines.append(("resolved", ts)))
    job = tidb.create_table("shop", "a")
    assert bench.tell(change_of(job, 20), resolved=30) == [
        ("applied", job.query, 20),
        ("resolved", 30),
        ("sent", [20], 30),
    ]


def test_new_columns_of_a_longer_statement_are_there_before_the_job_is_done():
    """ADD COLUMN m1, ADD COLUMN m2, DROP INDEX ...: rows have the columns while the index still goes."""
    bench = Bench(start_ts=1)
    every = effects("v8.1.0")
    bench.tell(*[change_of(job, ts) for ts, job in every for _ in "ab"], resolved=every[-1][0])
    assert bench.applied == [(job.query, ts) for ts, job in every]
    steps = [(ts, job) for ts, job in every if "add column m1 int, add column m2" in job.query]
    assert [job.state for _, job in steps] == [RUNNING] * 4 + [DONE]
    assert all({"m1", "m2"} <= {c.name for c in job.table_info().columns} for _, job in steps)


def test_a_part_of_a_job_may_have_an_older_schema_version(tidb):
    """It is that of the clause that ended last."""
    tidb.create_table("shop", "a")
    job = replace(tidb.add_column("shop", "a", "n"), type=Action.MULTI_SCHEMA_CHANGE, state=RUNNING)
    bench = Bench(schema_version=job.schema_version + 1)
    bench.tell(change_of(job, 20), resolved=20)
    assert bench.applied == [(job.query, 20)]


def test_a_part_of_a_job_that_is_being_taken_back_is_nothing(tidb):
    bench = Bench()
    tidb.create_table("shop", "a")
    job = replace(tidb.add_column("shop", "a", "n"), type=Action.MULTI_SCHEMA_CHANGE)
    for state in (QUEUEING, ROLLING_BACK, CANCELLING, ROLLBACK_DONE, CANCELLED):
        bench.tell(change_of(replace(job, state=state), 20))
    bench.tell(change_of(replace(job, state=RUNNING, outcome=None), 20))
    assert bench.tell(resolved=20) == [("sent", [], 20)]
    bench.tell(change_of(replace(job, state=RUNNING), 21), resolved=21)
    assert bench.applied == [(job.query, 21)]


def test_what_the_first_schema_has_is_not_told_again(tidb):
    old, new = tidb.create_table("shop", "a"), tidb.create_table("shop", "b")
    bench = Bench(start_ts=10, schema_version=old.schema_version)
    bench.tell(change_of(new, 10), resolved=0)
    assert bench.tell(change_of(old, 11), change_of(new, 12), resolved=20)[0] == ("applied", new.query, 12)
    assert len(bench.applied) == 1


def test_a_job_that_can_not_be_read_fails_the_puller(tidb):
    bench = Bench()
    change = KvChange(21, 20, PUT, list_key(DDL_JOBS, 0), b'{"id":17,"type":[]}')
    (_, error), *_ = bench.tell(change)
    assert isinstance(error, SourceError)
    assert "DDL job 17 at ts 21 can't be read" in str(error)


def test_jobs_that_never_resolve_are_bounded(tidb):
    job = tidb.create_table("shop", "a")
    size = len(encode_job(replace(job, id=10)))
    bench = Bench(max_bytes=3 * size)
    changes = [change_of(replace(job, id=number), 20 + number) for number in range(10, 14)]
    assert bench.tell(*changes[:3]) == []
    assert bench.tell(resolved=30)[-1] == ("sent", [30], 30), "this frees a place"
    assert bench.tell(changes[3]) == []
    (_, error), *_ = bench.tell(change_of(replace(job, id=14), 40))
    assert isinstance(error, SourceError)
    assert f"4 DDL jobs with {4 * size} bytes wait for the resolved ts to pass 31" in str(error)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(5))
def test_the_jobs_of_a_real_tidb_are_told_in_their_order(version, seed):
    """Changes come in disorder, and some twice, as far as a resolved ts lets them."""
    random = Random(seed)
    bench = Bench(seed, start_ts=1, capacity=1)
    every = [written.change for _, transaction in transactions(version) for written in transaction]
    every = [change for change in every if change.key[:1] in (b"m", b"t")]
    held: list[KvChange] = []
    for number, change in enumerate(every):
        held += [change] * random.choice((1, 1, 2))
        if random.random() < 0.2 or number == len(every) - 1:
            random.shuffle(held)
            resolved = change.commit_ts if random.random() < 0.7 or number == len(every) - 1 else 0
            whole = all(later.commit_ts > resolved for later in every[number + 1 :])
            bench.tell(*held, resolved=resolved if whole else 0)
            held.clear()
    assert bench.applied == [(job.query, ts) for ts, job in effects(version)]
    sent = [ts for line in bench.lines if line[0] == "sent" for ts in line[1]]
    assert sent == [ts for ts, _ in effects(version)]
    assert {query for query, _ in bench.applied} == {line["sql"] for line in jobs(version)}
