"""Waiting for a DDL job: until it is in the history, or its reads fail too often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from tidemill.actors import SystemClock
from tidemill.codec.tidb.action import Action
from tidemill.codec.tidb.job import SYNCED, Job, JobOutcome, encode_job
from tidemill.errors import Retryable, SourceError
from tidemill.puller.pump.jobs import ERRORS, Jobs

JOB = Job(id=7, type=5, state=SYNCED)
NO_ANSWER = Retryable("no leader")


class History:
    """Answers reads in turn: with a value, or an error."""

    def __init__(self, answers: Iterable[bytes | Retryable | None]) -> None:
        self._answers = iter(answers)

    async def tso(self) -> int:
        return 1

    async def get(self, _key: bytes, _ts: int) -> bytes | None:
        answer = next(self._answers)
        if isinstance(answer, Retryable):
            raise answer
        return answer


def wait_for(*answers: bytes | Retryable | None) -> Job:
    history = History(answers)
    job, _ = asyncio.run(Jobs(history, history, SystemClock(), 0.0001).wait_for(JOB.id))
    return job


def test_a_job_is_read_again_until_it_is_in_the_history():
    assert wait_for(*[None] * 30, encode_job(JOB)) == JOB


def test_ten_failed_reads_in_a_row_give_a_job_up():
    with pytest.raises(Retryable, match="no leader"):
        wait_for(*[NO_ANSWER] * ERRORS)


def test_fewer_failed_reads_in_a_row_do_not():
    assert wait_for(*([NO_ANSWER] * (ERRORS - 1) + [None]) * 2, encode_job(JOB)) == JOB


class Finished:
    """A history of these jobs."""

    def __init__(self, *jobs: Job) -> None:
        self._jobs = jobs

    async def tso(self) -> int:
        return 1

    async def scan(self, _start: bytes, _end: bytes, _ts: int) -> AsyncIterator[tuple[bytes, bytes]]:
        for job in self._jobs:
            yield b"", encode_job(job)


def check(*jobs: Job) -> None:
    history = Finished(*jobs)
    asyncio.run(Jobs(history, history, SystemClock(), 0).check(0, 9, {}, 0))


def statement(action: Action) -> Job:
    return Job(id=7, type=action, state=SYNCED, schema_name="shop", outcome=JobOutcome(schema_version=3))


@pytest.mark.parametrize(
    "action",
    [
        Action.UPDATE_TIFLASH_REPLICA_STATUS,
        Action.ALTER_TABLE_ALTER_PARTITION,
        Action.ALTER_CACHE_TABLE,
        Action.ALTER_NO_CACHE_TABLE,
    ],
)
def test_jobs_that_tidb_logs_nowhere_are_not_missed(action):
    check(statement(action))
    with pytest.raises(SourceError, match=r"no pump has sent the DDL job 7 \(schema version 3\): add column"):
        check(statement(action), statement(Action.ADD_COLUMN))
