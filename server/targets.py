"""Operations that connect to databases, and those about schema changes of merged tables."""

from __future__ import annotations

from typing import Any

from ..compare.verification import verified_sinks
from ..engine.letters import letter_object, opened_letters
from ..engine.locks import locks, unlock
from ..engine.preflight import check_feed
from .jobs import Comparisons
from .model.comparisons import DiffJob, DiffJobs, DiffRequest, JobStarted
from .model.feeds import Document
from .model.targets import (
    CheckFinding,
    Discarded,
    FindingList,
    LetterChoice,
    LetterList,
    LettersQuery,
    LettersRetried,
    LockList,
    Said,
    Unlock,
)
from .operation import operation
from .problem import Problem
from .registry import Registry


class TargetApi:
    """Raises Problem and TidemillError."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._comparisons: Comparisons = registry.comparisons

    @operation("POST", "/check", is_slow=True)
    def check(self, body: Document) -> FindingList:
        """Check connections, privileges and settings of a feed that needn't exist; nothing is changed."""
        options = self._registry.options_of(body)
        verified_sinks(options)
        findings = check_feed(options)
        return FindingList(
            [CheckFinding(one.level, one.about, one.text, one.tables, one.remedy) for one in findings]
        )

    @operation("GET", "/feeds/{feed}/locks")
    def list_locks(self, feed: str) -> LockList:
        """List schema changes that wait for other shards."""
        return LockList(locks(self._registry.feed(feed).options().data_dir))

    @operation("POST", "/feeds/{feed}/locks/{lock:path}/unlock")
    def unlock(self, feed: str, lock: str, body: Unlock, by: str) -> Said:
        """Resolve a schema change that waits for other shards."""
        hosted = self._registry.feed(feed)
        data_dir = hosted.options().data_dir
        if lock not in {one.id for one in locks(data_dir)}:
            raise Problem(404, f"feed {feed} has no lock {lock!r}")
        said = unlock(
            data_dir,
            lock,
            owner=body.owner,
            action=body.action,
            force_remove=body.force_remove,
            dry_run=body.dry_run,
        )
        if not body.dry_run:
            hosted.note("operation", f"lock {lock}: {'; '.join(said)}", by)
        return Said(said)

    @operation("GET", "/feeds/{feed}/dead-letters", is_slow=True)
    def list_letters(self, feed: str, query: LettersQuery) -> LetterList:
        """List changes that targets rejected, in order."""
        with opened_letters(self._registry.feed(feed).options(), query.sink) as opened:
            all_letters = [(sink, one) for sink, letters in opened for one in letters.list(query.table)]
        shown = [letter_object(sink, one) for sink, one in all_letters[: query.limit]]
        return LetterList(shown, len(all_letters))

    @operation("POST", "/feeds/{feed}/dead-letters/discard", is_slow=True)
    def discard_letters(self, feed: str, body: LetterChoice, by: str) -> Discarded:
        """Delete dead letters without applying them: all, unless the body limits them."""
        hosted = self._registry.feed(feed)
        with opened_letters(hosted.options(), body.sink, body.id) as opened:
            gone = {sink: [*letters.drop(body.table, body.id)] for sink, letters in opened}
        hosted.note("operation", f"{sum(map(len, gone.values()))} dead letters discarded", by)
        return Discarded(gone)

    @operation("POST", "/feeds/{feed}/dead-letters/retry", is_slow=True)
    def retry_letters(self, feed: str, body: LetterChoice, by: str) -> LettersRetried:
        """Apply dead letters again, row by row and in order."""
        hosted = self._registry.feed(feed)
        applied: dict[str, list[int]] = {}
        rejected: list[dict[str, Any]] = []
        with opened_letters(hosted.options(), body.sink, body.id) as opened:
            for sink, letters in opened:
                result = letters.retry(body.table, body.id)
                applied[sink] = [*result.applied]
                rejected += [letter_object(sink, one) for one in result.left]
        hosted.note("operation", f"{sum(map(len, applied.values()))} dead letters applied", by)
        return LettersRetried(applied, rejected)

    @operation("POST", "/feeds/{feed}/diff", 202)
    def start_diff(self, feed: str, body: DiffRequest, by: str) -> JobStarted:
        """Compare the rows of source and target while the feed runs."""
        hosted = self._registry.feed(feed)
        started = self._comparisons.start(feed, hosted.options(), body)
        hosted.note("operation", f"comparison {started.job} started", by)
        return started

    @operation("GET", "/feeds/{feed}/diff")
    def list_diffs(self, feed: str) -> DiffJobs:
        """List the last comparisons of a feed since the server started, the newest first."""
        self._registry.feed(feed)
        return self._comparisons.list(feed)

    @operation("GET", "/feeds/{feed}/diff/{job}")
    def get_diff(self, feed: str, job: str) -> DiffJob:
        """Return a comparison and its differences."""
        return self._comparisons.job(feed, job)

    @operation("DELETE", "/feeds/{feed}/diff/{job}")
    def stop_diff(self, feed: str, job: str, by: str) -> DiffJob:
        """Stop a comparison."""
        stopped = self._comparisons.stop(feed, job)
        self._registry.feed(feed).note("operation", f"comparison {job} stopped", by)
        return stopped
