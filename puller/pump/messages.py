"""Messages between pumps' pullers and the Collector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from ...codec.tidb.job import Job
from ...codec.tidb.record import JobRecord
from ...events import KvChange, Ts
from .pumps import PumpStatus


class Pulled(Struct, frozen=True, gc=False):
    """To the Collector: binlogs of one pump, in the order in which it sent them."""

    node_id: str
    origin: int
    """Number of its keyspace."""
    changes: list[KvChange]
    """The list belongs to the Collector from now on."""
    jobs: list[JobRecord]
    least: Ts
    """The lowest commit ts, of fake binlogs as well."""
    last: Ts
    """The highest commit ts of all that this pump has sent."""


class PumpsListed(Struct, frozen=True):
    """To the Collector: the pumps as their registry shows them."""

    pumps: Sequence[PumpStatus]


class JobFound(Struct, frozen=True):
    """To the Collector: the job of a step."""

    node_id: str
    origin: int
    step: JobRecord
    job: Job
    data: bytes


class CollectorFailed(Struct, frozen=True):
    """To the Collector: an error that ends the feed."""

    error: BaseException


class Pause(Struct, frozen=True):
    """To a PumpPuller: stop pulling until Resume."""


class Resume(Struct, frozen=True):
    """To a PumpPuller: pull, at this address."""

    host: str


ToCollector: TypeAlias = Pulled | PumpsListed | JobFound | CollectorFailed
