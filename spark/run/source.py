"""The data source of `tidemill run`, with an end and a lease."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from ...events import Ts
from ..data_source import TidemillSource
from ..offsets.offset import Offset, Offsets
from ..read.options import ReadOptions, read_options
from ..read.output import Output
from ..read.schema import exact_type
from ..read.stream_reader import StreamReader

FORMAT = "tidemill-run"
UNTIL = "until"
OLDEST = "oldest"
"""Field of an offset: a ts at or below all changes of its batch."""
LEASE = "lease"
"""Option and field of an offset: the lease under which the query reads from captures."""
LOADED = "loaded"
"""Option: the ts up to which the target was loaded. Later changes are above it, whatever time they tell."""


class RunSource(TidemillSource):
    """Adds the options `until`, for the trigger availableNow, `lease` and `loaded`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        texts = dict(self.options)
        until, lease, loaded = texts.pop(UNTIL, ""), texts.pop(LEASE, ""), int(texts.pop(LOADED, 0))
        options = read_options(texts)
        return BoundedReader(options, self._output(options, schema), until, lease, loaded)

    def schema(self) -> StructType:
        return exact_type()


class BoundedReader(StreamReader):
    """Reads up to `until`; empty: up to the source's end at the query's start."""

    def __init__(self, options: ReadOptions, output: Output, until: str, lease: str, loaded: Ts) -> None:
        super().__init__(options, output)
        self._loaded = loaded
        self._until = until
        self._lease = lease
        self._first: dict[str, object] | None = None

    def initialOffset(self) -> dict[str, object]:  # noqa: N802
        """Return the same start each time: Spark calls this before each batch until there is a first one."""
        if self._first is None:
            self._first = super().initialOffset()
        return self._first

    def _initial(self, offsets: Offsets) -> Offset:
        offset = super()._initial(offsets)
        return Offset(max(offset.ts, self._loaded), offset.position, offset.source)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        if self._until:
            self._end = self._source.ask(self._given_end)
        else:
            super().prepareForTriggerAvailableNow()

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        end = self._end
        reading = self.options.reading
        if end is not None and not reading.by_ts:
            loaded = Offset.read(start)
            if reading.rank(end.position) < reading.rank(loaded.position):
                return start  # the loaded rows may be newer than the end
        latest = super().latestOffset(start, limit)
        if latest == start:
            return start
        begin = Offset.read(start)
        return {**latest, OLDEST: self._source.ask(lambda offsets: offsets.oldest(begin))}

    def _given_end(self, offsets: Offsets) -> Offset:
        return (
            offsets.at(int(self._until)) if self.options.reading.by_ts else offsets.at_position(self._until)
        )

    def _fields(self, offset: Offset, before: dict[str, object]) -> dict[str, object]:
        return super()._fields(offset, {**before, LEASE: self._lease} if self.captures else {})

    def commit(self, end: dict[str, object]) -> None:
        """Acknowledge nothing: `Acknowledging` does it when all queries of the feed have a batch."""
