"""Bugs on the way from a region's events to a table's resolved ts."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

PULLER: Final = (
    mutant(
        "resolved ts one too high",
        "puller/tikv/feed/region_events.py",
        "            request.resolved_ts = ts\n",
        "            request.resolved_ts = ts + 1\n",
        "A region counts as resolved at a ts at which a transaction may still commit (as in "
        "TiKV with async commit before min_commit_ts was respected). The emulated cluster's writers ask "
        "for the newest ts just before they prewrite: none of 300 seeds has a commit right above one.",
        killed_by="tests/puller/tikv/test_region_worker.py::"
        "test_regions_stay_in_order_while_handles_share_the_work",
    ),
    mutant(
        "initialised before its range is covered",
        "puller/frontier.py",
        "            self._ts = min(self._values)\n",
        "            advanced = [ts for ts in self._values if self._ts < ts < NEVER]\n"
        "            self._ts = min(advanced, default=self._ts)\n",
        "A table is resolved by the regions that have advanced, while others of its span "
        "haven't been scanned.",
        within=30,
        source="ticdc#5658",
    ),
    mutant(
        "a failed region begins where others are",
        "puller/tikv/feed/event_feed.py",
        "        subscription.lock.unlock(request, request.resolved_ts)\n",
        "        subscription.lock.unlock(\n"
        "            request, max([one.resolved_ts for one in subscription.requests], default=0)\n"
        "        )\n",
        "A region that failed is requested from the newest ts of its table's regions.",
    ),
    mutant(
        "resolved at the time of the request",
        "puller/tikv/feed/event_feed.py",
        "                request.begin_at(checkpoint_ts)\n",
        "                request.begin_at(max(checkpoint_ts, subscription.start_ts + (500 << 18)))\n",
        "A region is requested half a second after its table's start.",
        within=10,
    ),
    mutant(
        "a request's first id again",
        "puller/tikv/feed/store_stream.py",
        "        request.request_id = self._ids[times]\n",
        "        request.request_id = self._ids[0]\n",
        "A region's second request on a stream can't be told from its first one.",
        within=10,
    ),
    mutant(
        "a token is lost",
        "puller/tikv/feed/event_feed.py",
        '        """End a request: release its token and its place on the stream."""\n'
        "        self._give_back(request)\n",
        '        """End a request: release its place on the stream."""\n',
        "A region that fails before its scan is complete keeps its token, until a store has none.",
        within=10,
    ),
    mutant(
        "a delayed retry is lost",
        "puller/tikv/feed/retry_limiter.py",
        "            else:\n                self._parked.append((region_id, failure))\n"
        "        self._forget(now)\n",
        "        self._forget(now)\n",
        "A region that fails often isn't requested again.",
        within=30,
    ),
    mutant(
        "unsent requests are forgotten",
        "puller/tikv/feed/store_stream.py",
        "        for request in self._left():\n            self.owner.failed(request, action)\n",
        "        self._left()\n",
        "Requests that wait when a stream ends aren't made again.",
        within=30,
    ),
    mutant(
        "only the first regions",
        "puller/tikv/feed/divide.py",
        "            span = Span(regions[-1].end, span.end)\n",
        "            return\n",
        "Of a table with more regions than PD returns at once the rest isn't pulled.",
        within=10,
    ),
    mutant(
        "changes after their resolved ts",
        "puller/tikv/feed/region_worker.py",
        "            self._handle(todo.popleft())\n            self._events.flush()\n",
        "            self._handle(todo.popleft())\n",
        "A region's changes wait for more while its resolved ts goes on.",
        within=10,
    ),
    mutant(
        "a spilled prewrite is lost",
        "puller/tikv/match/prewrites.py",
        "            self._table.load(self._quota.shared.read(place))\n",
        "            self._quota.shared.read(place)\n",
        "A prewrite that went to disk isn't there when its commit comes.",
        within=30,
    ),
    mutant(
        "a lost error of a region",
        "puller/tikv/feed/region_events.py",
        "        forget(group, request)\n        self._reports.put(report)\n",
        "        forget(group, request)\n",
        "A region whose store sends an error isn't requested again.",
        within=10,
    ),
    mutant(
        "a stream's regions are lost with it",
        "puller/tikv/feed/region_worker.py",
        "                self._reports.put(Lost(stream, forget_all([*stream.groups.values()]), action))\n",
        "                forget_all([*stream.groups.values()])\n",
        "The regions of a stream that has ended aren't requested again.",
        within=30,
    ),
)
