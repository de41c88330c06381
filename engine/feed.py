"""A feed's life cycle: started, retried, stopped, finished or failed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Event

from msgspec.structs import replace

from ..actors import Clock, Joinable, Machine, Runtime
from ..chain import Stage
from ..errors import CheckpointError, ConfigError, TidemillError
from ..events import Parking, TablePosition, Wait
from ..sink import LoadRequired, SinkFactory, TableFailed
from ..sink.factory import reject_duplicates
from ..store.plan import StepOutcome
from .coordinator import Course, SeekRequested
from .failures import Retry, Unavailable, accounted, pause_seconds
from .lag_model import LagModel
from .live_status import LiveStatus
from .opening import make_data_dir, open_source
from .options import FeedOptions
from .parts import FeedParts, OpenSource
from .pipeline import Pipeline, TablesRequested, start
from .plan_inbox import PlanInbox
from .renewal import Renewed
from .requests import PipelineRequests, RequestFile
from .shared import Shared
from .sinks import AbandonedSink
from .status import FeedStatus, SinkStatus, State, StatusFile, first_status
from .table_verbs import TableVerb, request_tables
from .tables import FeedTables, TablesFile, TableStatus
from .telemetry import Telemetry, open_telemetry
from .verification import NoVerification, Verification
from .waits import Startup

log = logging.getLogger("tidemill")

SHOW_SECONDS = 0.25
"""Pause between two calls with a running feed's status."""
LOOK_SECONDS = 0.5
"""Pause between updates of a running feed's status and its file, ..."""
LOOKS_PART = 50
"""... but at least this multiple of the last update's duration, as there may be 100,000 tables, ..."""
MOST_LOOK_SECONDS = 5.0
"""... and at most this: a short update takes long on a busy machine, and people wait for the status."""
TABLES_SECONDS = 2.0
"""Least pause between updates of the list of all tables."""


class Feed:
    """A feed from start to end; safe to use from any thread.

    It runs pipelines one after the other: each runs until the feed is stopped, fails, is finished, or must
    restart from the sinks' checkpoints.
    """

    def __init__(
        self,
        options: FeedOptions,
        sinks: Sequence[SinkFactory],
        clock: Clock | None = None,
        *,
        stages: Mapping[str, Sequence[Stage]] | None = None,
        keeps_state: bool = True,
        shared: Shared | None = None,
        verification: Verification | None = None,
        runtime: Runtime | None = None,
        open_source: OpenSource = open_source,
    ) -> None:
        """`stages` contains additional stages of sinks' chains, by the sink's name. With `keeps_state`, the
        source keeps its state in the data directory. `shared` are resources of several feeds. `verification`
        compares the targets with the source while the feed runs. `runtime` has the threads, and a clock in
        place of `clock`; None: those of the machine. `open_source` returns a source, not connected yet.

        Raises ConfigError if there is no sink, if two have the same name or target, or if the options ask for
        a verification and there is none.
        """
        reject_duplicates(sinks)
        if verification is None:
            options.reject_verification("this program")
        self.options = options
        self.error: TidemillError | None = None
        self._runtime = runtime = runtime if runtime is not None else Machine(clock)
        self._clock = runtime.clock
        self._startup = Startup(self._clock)
        lag = LagModel()
        self._tables = FeedTables(self._clock.time())
        self._parts = FeedParts(
            options=options,
            sinks=tuple(sinks),
            runtime=runtime,
            startup=self._startup,
            lag=lag,
            stages=stages or {},
            keeps_state=keeps_state,
            shared=shared,
            tables=self._tables,
            open_source=open_source,
        )
        self._file = StatusFile(options.data_dir)
        self._plans = PlanInbox(options.data_dir)
        self._requests = RequestFile(options.data_dir)
        self._failed: dict[str, dict[str, Parking]] = {}
        """Tables that the next pipeline parks, by sink."""
        self._seek: TablePosition | None = None
        self._failures = 0  # consecutive failures of pipelines
        self._retry: Retry | None = None  # reason of the pause before the next pipeline
        self._stop = runtime.signal()
        self._ended = runtime.signal()
        self._abandoned: list[AbandonedSink] = []  # of earlier pipelines
        self._unsaved = False  # True if the last status couldn't be written
        first = first_status(
            options.name,
            options.source.options.address,
            [SinkStatus(sink.name, sink.target, "", 0, None, 0, state="starting") for sink in sinks],
            state="starting",
            now=self._clock.time(),
            sorter=options.sorter,
        )
        wants = {
            sink.name: partial(options.wants, sink.rules) for sink in sinks if sink.rules.tables is not None
        }
        self._verification: Verification = verification or NoVerification()
        self._live = LiveStatus(
            first, runtime, self._startup, lag, self._tables, wants, self._verification.statuses
        )
        self._tables_file = TablesFile(options.data_dir)
        self._next_tables = 0.0  # when the file is due
        self._saved_changes = 0  # FeedTables.changes in the file
        self._threads: list[Joinable] = []
        self._telemetry: Telemetry | None = None

    # --- life ------------------------------------------------------------------------------------

    def start(self, on_end: Callable[[], object] = lambda: None) -> None:
        """Start, and return at once; `on_end` is called in another thread when the feed has ended.

        Raises ConfigError if the data directory can't be made, or another feed runs in it.
        """
        make_data_dir(self.options)
        try:
            self._file.claim()
            self._file.save(self._live.current)
            self._telemetry = open_telemetry(self.options.telemetry, lambda: [self.status()])
        except ConfigError:
            self._file.release()
            raise
        except OSError as error:
            self._file.release()
            raise ConfigError(f"data_dir: {self.options.data_dir}: {error.strerror}") from None
        name = f"tidemill-{self.options.name}"
        self._threads = [
            self._runtime.start(f"{name}-run", partial(self._run, on_end)),
            self._runtime.start(f"{name}-watch", self._watch),
        ]
        self._verification.start()

    def run(self, stopping: Event, show: Callable[[FeedStatus], object]) -> None:
        """Run to the end, or until `stopping` is set; `show` gets the status several times a second.

        Raises ConfigError as `start` does; the error that ends the feed is in `error`.
        """
        self.start()
        try:
            while not self.wait(SHOW_SECONDS):
                show(self.status())
                if stopping.is_set():
                    self.stop()
        finally:
            self.stop()
            self.wait()

    def stop(self) -> None:
        """Request the end, with checkpoints saved, and return at once; `wait` waits for it."""
        self._stop.set()
        self._verification.stop()
        pipeline = self._live.pipeline
        if pipeline is not None:
            pipeline.course.over.set()

    def flush(self) -> None:
        """Make the sinks save acknowledgements that came from outside."""
        pipeline = self._live.pipeline
        if pipeline is not None:
            pipeline.flush()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the end; return True if it has ended."""
        if not self._ended.wait(timeout):
            return False
        for thread in self._threads:
            thread.join()
        return True

    def _run(self, on_end: Callable[[], object]) -> None:
        course = self._new_course()
        try:
            while not self._stop.is_set():
                requests = PipelineRequests()
                course = self._new_course()
                try:
                    self._await_abandoned()
                    if self._stop.is_set():
                        break
                    requests = self._next_requests()
                    pipeline = start(self._parts, requests, course)
                    self._seek, self._failed = None, {}
                    if self._attend(pipeline):
                        self._say("finished")
                        return
                except SeekRequested as error:
                    self._seek = error.at
                except Renewed:
                    self._requests.remove(replace(requests.tables, pause=()))
                except (LoadRequired, TablesRequested) as again:
                    log.info("feed %s: %s", self.options.name, again)
                except TableFailed as error:
                    self._failed.setdefault(error.sink, {})[error.table] = error.parking
                    log.warning("sink %s: table %s is parked: %s", error.sink, error.table, error)
                except Unavailable as error:
                    if course.progressed:
                        self._failures, self._retry = 0, None
                    self._wait_before_next(error)
                finally:
                    self._abandoned += course.abandoned
            self._say("stopped")
        except BaseException as error:  # any error fails the feed
            self.error = accounted(f"feed {self.options.name}", error)
            self._live.blame(course.blamed or self._startup.blamed)
            self._say("failed", str(self.error))
        finally:
            self._ended.set()
            on_end()

    def _new_course(self) -> Course:
        return Course(self._clock, self._runtime.signal())

    def _next_requests(self) -> PipelineRequests:
        """Return the requests for the next pipeline. Raises CheckpointError."""
        stored = self._requests.load()
        return PipelineRequests(stored.tables, self._failed, stored.unlock, self._seek)

    def _attend(self, pipeline: Pipeline) -> bool:
        """Run a pipeline to its end; return True if the feed is finished then."""
        self._live.begin(pipeline)
        log.info("feed %s: normal", self.options.name)
        if self._stop.is_set():
            pipeline.course.over.set()
        pipeline.course.over.wait()
        pipeline.close()
        try:
            self._live.leave(pipeline)
        except Exception as error:
            pipeline.course.note(error)
        if pipeline.course.error is not None:
            raise pipeline.course.error
        if pipeline.course.stop_requested:
            self._stop.set()
        return not self._stop.is_set()

    def _await_abandoned(self) -> None:
        """Wait until nothing writes to the targets any more, or the feed is stopped."""
        for sink in self._abandoned:
            if sink.has_ended():
                continue
            self._say("warning", f"sink {sink.name}: {sink.target} gives no answer; the feed waits for it")
            with self._startup.step(f"sink {sink.name}", sink.target):
                while not self._stop.is_set() and not sink.has_ended(LOOK_SECONDS):
                    pass
        if not self._stop.is_set():
            self._abandoned = []

    def _wait_before_next(self, error: Unavailable) -> None:
        self._failures += 1
        seconds = max(error.wait or 0.0, pause_seconds(self._failures))
        now = self._clock.now()
        since = self._retry.since if self._retry is not None else now
        self._retry = Retry(error.who, str(error), now + seconds, since)
        self._say("warning", self._retry.sentence(now), self._retry)
        self._stop.wait(seconds)

    def _say(self, state: State, detail: str = "", retry: Retry | None = None) -> None:
        self._live.change(state, detail, retry)
        log.info("feed %s: %s %s", self.options.name, state, detail)

    # --- its status ------------------------------------------------------------------------------

    def status(self) -> FeedStatus:
        """Return the feed's status as of about half a second ago."""
        return self._live.current

    def explain(self) -> list[Wait]:
        """Return the current waits."""
        pipeline = self._live.pipeline
        return pipeline.waits() if pipeline is not None else self._live.waits()

    def tables(self) -> list[TableStatus]:
        """Return the state of each table, by name. Any thread; 100,000 tables take about 0.02 s."""
        return self._tables.all()

    def table(self, name: str) -> TableStatus | None:
        """Return the state of a table by its full name; None if the feed doesn't know it. Any thread."""
        return self._tables.get(name)

    def pause_table(self, name: str) -> None:
        """Apply nothing more of a table, by its full name, while the others go on; returns at once.

        Raises ConfigError for a table that isn't followed or that is parked already, and CheckpointError if
        the request can't be stored.
        """
        self._request("pause", name)

    def resume_table(self, name: str) -> None:
        """Load a paused or failed table again, and follow it from there; returns at once. Raises as
        `pause_table` does."""
        self._request("resume", name)

    def reload_table(self, name: str) -> None:
        """Load a table again, and follow it from there; returns at once. Raises as `pause_table` does."""
        self._request("reload", name)

    def _request(self, verb: TableVerb, name: str) -> None:
        table = self.table(name)
        known = None if table is None else {name: table}
        request_tables(verb, [name], self.options, self._parts.sinks, self._clock, known)

    def _watch(self) -> None:
        try:
            self._look_until_end()
        finally:
            self._verification.stop()
            self._verification.wait()
            self._live.rest()
            self._save()
            self._save_tables()
            if self._telemetry is not None:
                self._telemetry.close()
            self._release()

    def _release(self) -> None:
        """Let other feeds use the data directory once nothing of this one writes any more. Any thread."""
        while self._abandoned:
            try:
                if not self._abandoned[-1].has_ended():
                    self._abandoned[-1].when_ended(self._release)
                    return
            except TidemillError as error:  # of its closing
                log.error("after the feed's end: %s", error)
            self._abandoned.pop()
        self._file.release()

    def _look_until_end(self) -> None:
        pause = LOOK_SECONDS
        while not self._ended.wait(pause):
            pipeline = self._live.pipeline
            if pipeline is not None:
                self._hand_on_plan(pipeline)
                with suppress(CheckpointError):  # raised at the next start
                    pipeline.carry_out(self._requests.load())
                pipeline.ask_puller()  # which may take its time to answer, but no processor's
            began = self._clock.now()
            self._live.update()
            self._save()
            if self._clock.now() >= self._next_tables or self._saved_changes != self._tables.changes:
                self._save_tables()
            took = self._clock.now() - began
            shared = self._parts.shared
            least = LOOK_SECONDS if shared is None else max(LOOK_SECONDS, shared.look_seconds)
            pause = max(least, min(LOOKS_PART * took, MOST_LOOK_SECONDS))

    def _save_tables(self) -> None:
        began = self._clock.now()
        self._saved_changes = self._tables.changes
        with suppress(OSError):  # the status says so
            self._tables_file.save(self._tables.all())
        now = self._clock.now()
        self._next_tables = now + max(TABLES_SECONDS, LOOKS_PART * (now - began))

    def _hand_on_plan(self, pipeline: Pipeline) -> None:
        try:
            plan = self._plans.take()
        except (OSError, ConfigError) as error:
            self._plans.answer([StepOutcome("", "", 0, 0, str(error))])
        else:
            if plan is not None:
                pipeline.stages.sorter.compact(plan, self._plans.answer)

    def _save(self) -> None:
        try:
            self._file.save(self._live.current)
        except OSError as error:
            if not self._unsaved:
                log.warning("%s can't be written: %s", self._file.path, error.strerror)
            self._unsaved = True
        else:
            self._unsaved = False
