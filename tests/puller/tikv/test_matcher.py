"""Matching of a region's rows, as text: rows in, changes out.

Each case is played twice, row by row and all rows at once, and must end alike. `region [<start> <end>]`
begins a region with checkpoint 1, of raw keys; `.cut` ends a bound inside the encoding of its key,
`.more` behind it. `waiting`
counts prewrites. `--rewrite` writes down what comes out now.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.codec.proto import cdcpb
from tidemill.codec.tidb.key import encode_bytes
from tidemill.errors import TidemillError
from tidemill.events import PUT
from tidemill.puller.tikv.match.matcher import Matcher, PrewriteNotMatch
from tidemill.puller.tikv.match.spill import PrewriteMemory
from tidemill.puller.tikv.region import RegionState
from tidemill.puller.tikv.span import UPPER_BOUND, Span
from tidemill.store.scratch import Scratch
from tidemill.store.store import Store
from tidemill.testing import cases

from .rows import fed, parsed, row

pytestmark = pytest.mark.usefixtures("decoder")

CASES = Path(__file__).with_name("matcher.txt")


@pytest.fixture
def quota(tmp_path):
    scratch = Scratch(tmp_path)
    store = Store(scratch.new_store())
    shared = PrewriteMemory(store)
    quota = shared.quota()
    yield quota
    quota.close()
    store.close()
    scratch.close()


@pytest.mark.parametrize("case", cases.load(CASES), ids=cases.title)
def test_case(case, quota, rewrite):
    case.expect(play(quota, case.commands, at_once=False), rewrite)
    assert not quota.bytes


@pytest.mark.parametrize(
    "case", [case for case in cases.load(CASES) if "waiting" not in case.commands], ids=cases.title
)
def test_a_case_ends_alike_when_its_rows_come_at_once(case, quota):
    assert play(quota, case.commands, at_once=True) == lines_without_errors(case.wanted)
    assert not quota.bytes


def lines_without_errors(wanted: str) -> str:
    """A batch that fails gives nothing: its changes come again when the region is requested again."""
    lines = wanted.splitlines()
    failed = [line for line in lines if line.startswith("error")]
    return "\n".join(failed or sorted(lines)).strip()


def play(quota, block: str, at_once: bool) -> str:
    matcher = None
    out = []
    rows = []
    try:
        for line in block.splitlines():
            match line.split():
                case []:
                    pass
                case ["region", *bounds]:
                    matcher = Matcher(RegionState(7, span(*bounds), 1, 1, 1), quota)
                case ["start", ts]:
                    matcher.region.start_ts = matcher.region.checkpoint_ts = int(ts)
                    matcher.region.resolved_ts = int(ts)
                case ["resolved", ts]:
                    out += feed(matcher, rows)
                    rows = []
                    matcher.region.resolved_ts = int(ts)
                case ["waiting"]:
                    out.append(f"waiting {matcher.waiting}")
                case ["unknown", kind, *key]:
                    rows.append(cdcpb.Event.Row(type=int(kind), start_ts=5, key="".join(key).encode()))
                case _:
                    rows.append(parsed(line))
            if not at_once:
                out += feed(matcher, rows)
                rows = []
        out += feed(matcher, rows)
    except TidemillError as error:
        if at_once:
            out = []
        out.append(f"error {type(error).__name__}: {error}")
    matcher.close()
    return "\n".join(sorted(out) if at_once else out) or "nothing" * (not at_once)


def feed(matcher, rows) -> list[str]:
    return [
        f"{c.start_ts}-{c.commit_ts} {'put' if c.op == PUT else 'delete'} {c.key.decode()}"
        f" {c.value.decode() or '-'} {c.old_value.decode() or '-'}"
        for c in fed(matcher, rows)
    ]


def span(start: str = "", end: str = "") -> Span:
    return Span(bound(start) if start else b"", bound(end) if end else UPPER_BOUND)


def bound(text: str) -> bytes:
    key, _, how = text.partition(".")
    encoded = encode_bytes(key.encode())
    return {"": encoded, "cut": encoded[:-2] + b"\1", "more": encoded + b"\0"}[how]


def test_the_error_names_region_key_and_start_ts(quota):
    matcher = Matcher(RegionState(7, span(), 1, 1, 1), quota)
    matcher.region.initialised = True
    with pytest.raises(PrewriteNotMatch) as caught:
        fed(matcher, [row("commit", "k", "put", start_ts=5, commit_ts=9)])
    assert (caught.value.region_id, caught.value.key, caught.value.start_ts) == (7, b"k", 5)
    assert caught.value.wait == 1.0


def test_a_change_names_its_region_and_has_the_raw_key(quota):
    matcher = Matcher(RegionState(7, span(), 1, 1, 1), quota)
    rows = [row("committed", "k", "put", start_ts=5, commit_ts=9, value="v")]
    (change,) = fed(matcher, rows)
    assert (change.region_id, change.key) == (7, b"k")


def test_a_commit_of_each_type_of_batch_is_checked_against_the_resolved_ts(quota):
    for kind in ("commit", "committed"):
        matcher = Matcher(RegionState(7, span(), 1, 1, 1), quota)
        matcher.region.initialised = True
        fed(matcher, [row("prewrite", key, "put", start_ts=5, value="v") for key in "abc"])
        matcher.region.resolved_ts = 8
        rows = [row(kind, key, "put", start_ts=5, commit_ts=8 if key == "b" else 9) for key in "abc"]
        with pytest.raises(TidemillError, match=r"region 7 .* committed at 8, not above its resolved ts 8"):
            fed(matcher, rows)
        matcher.close()
