"""The Collector, as text: what pumps send, and what leaves for the sorter."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from tidemill.actors import Failed, PooledActor, SeededSystem
from tidemill.codec.tidb.action import Action
from tidemill.codec.tidb.job import CANCELLED, DELETE_ONLY, PUBLIC, SYNCED, Job, encode_job, make_outcome
from tidemill.codec.tidb.record import JobRecord
from tidemill.errors import SourceError
from tidemill.events import PUT, KvChange
from tidemill.puller.pump.collector import Collector
from tidemill.puller.pump.messages import CollectorFailed, JobFound, Pause, Pulled, PumpsListed, Resume
from tidemill.puller.pump.progress import BinlogMergeProgress
from tidemill.puller.pump.pumps import PumpStatus
from tidemill.testing import cases

PATH = Path(__file__).with_name("collector.txt")


class Log(PooledActor):
    """A Writer, a PumpPuller or the supervisor."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self._said = name
        self._lines = lines

    def on_receive(self, message) -> None:
        match message:
            case Failed(error=error):
                self._lines.append(f"failed: {error}")
            case Pause():
                self._lines.append(f"pause {self._said}")
            case Resume():
                pass
            case _:
                sent = "".join(f" {change.commit_ts}" for change in message.changes)
                resolved = f" resolved {message.resolved}" if message.resolved else ""
                self._lines.append(f"{self._said}:{sent}{resolved}")


class Script:
    """The follower, and the player of a case's lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.system = SeededSystem(1)
        self.merge = BinlogMergeProgress(1)
        self.drops = False
        self.left = 0
        self.names: dict[int, str] = {}
        self.steps: dict[int, list[tuple[str, int, JobRecord]]] = {}
        self.numbers = count(1)
        self._collector = None

    @property
    def collector(self):
        if self._collector is None:
            supervisor = self.system.spawn(Log, "supervisor", self.lines)
            self._collector = self.system.spawn(
                Collector, self, self.merge, 10, drops=self.drops, supervisor=supervisor
            )
        return self._collector

    # --- for the Collector

    def apply(self, job, ts):
        self.lines.append(f"apply job {job.id} at {ts}")

    def add(self, number, resolved):
        self.lines.append(f"keyspace {number} from {resolved}")
        return self.system.spawn(Log, f"{number}", self.lines)

    def remove(self, number):
        self.lines.append(f"keyspace {number} ends")

    def sent(self):
        return self.left

    def pull(self, number, progress):
        self.names[number] = progress.node_id
        return self.system.spawn(Log, progress.node_id, self.lines)

    def fetch(self, node_id, number, step):
        self.lines.append(f"fetch job {step.job_id}")
        self.steps.setdefault(step.job_id, []).append((node_id, number, step))

    # --- lines

    def play(self, line: str) -> None:
        word, *rest = line.split()
        match word:
            case "pumps":
                pairs = [name.partition("=")[::2] for name in rest]
                self.collector.tell(
                    PumpsListed([PumpStatus(n, f"{n}:8250", s or "online") for n, s in pairs])
                )
            case "drops":
                self.drops = True
            case "left":
                self.left = int(rest[0])
            case "show":
                for pump in self.merge.pumps:
                    counts = f"{pump.duplicates} duplicates, {pump.disordered} lost"
                    self.lines.append(f"{pump.node_id} {pump.state} at {pump.last}, {counts}")
                self.lines.append(f"merged {self.merge.merged}")
            case "found":
                job_id, *options = rest
                for node_id, number, step in self.steps.pop(int(job_id)):
                    job = self.job(int(job_id), options)
                    self.collector.tell(JobFound(node_id, number, step, job, encode_job(job)))
            case "broken":
                self.collector.tell(CollectorFailed(SourceError("no answer")))
            case _:
                self.pulled(word, rest)
        self.system.run()

    def pulled(self, name: str, words: list[str]) -> None:
        number = max(number for number, its in self.names.items() if its == name)
        changes, jobs, timestamps = [], [], []
        for word in words:
            if word.startswith(("job=", "setval")):
                job, _, at = word.removeprefix("job=").partition("@")
                at, _, state = at.partition("/")
                query = "SELECT SETVAL(`s`.`q`, 1000)" if job == "setval" else "alter"
                state = DELETE_ONLY if state else PUBLIC
                jobs.append(
                    JobRecord(int(at), int(at) - 1, int(job) if job != "setval" else 99, state, query)
                )
                timestamps.append(int(at))
            elif word != "fake":
                timestamps.append(int(word))
                if "fake" not in words:
                    changes.append(KvChange(int(word), int(word) - 1, PUT, b"", b"x", b"", number))
        last = max(timestamps)
        self.collector.tell(Pulled(name, number, changes, jobs, min(timestamps), last))

    def job(self, job_id: int, options: list[str]) -> Job:
        version = int(options[0].partition("=")[2])
        job = Job(id=job_id, type=Action.ADD_COLUMN, state=SYNCED, outcome=make_outcome(version))
        if "cancelled" in options:
            job = replace(job, state=CANCELLED)
        return replace(job, type=Action.DROP_COLUMN) if "drop_column" in options else job


@pytest.mark.parametrize("case", cases.load(PATH), ids=cases.title)
def test_case(case, rewrite):
    script = Script()
    for line in case.commands.splitlines():
        script.play(line)
    case.expect("\n".join(script.lines), rewrite)
