"""Faults of live feeds, and what is said of each: python -m tidemill.benchmarks.faults [NAME ...]

Makes each fault of `testing/faults/`, or those whose names have one of the words. The first line is read
where people read it: as the command `explain` prints it, in the API, and on the page. It has to name the
cause and what to do within 10 s, and must not blame the innocent. Prints each result, and the share that
was right.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest

from ..actors import SystemClock
from ..client import Client
from ..engine.progress import explanation
from ..engine.status import StatusFile
from ..server.asgi import application
from ..server.hosted import GivenFeed
from ..server.registry import Registry
from ..server.security import Access
from ..server.serving import HttpServer
from ..testing.chromium import chromium, missing
from ..testing.faults import FAULTS, Fault, Place
from ..testing.progress import Stalled, eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SOON_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 60.0
"""Time after which a fault counts as never named."""
_NUMBER: Final = re.compile(r"[\d.,]+")

_Readers: TypeAlias = Mapping[str, Callable[[], str]]
"""The first line, by where it is read."""


@dataclass
class Diagnosis:
    """The lines that were read of a fault."""

    fault: Fault
    seconds: dict[str, float] = field(default_factory=dict)
    """Time until the cause was named, by where it is read; without those that didn't name it."""
    wrong: str = ""
    """A line that blamed the innocent; empty: none did."""
    last: dict[str, str] = field(default_factory=dict)
    """The last line, by where it was read."""

    is_everywhere: bool = False
    """True if all lines named the cause in the end."""

    @property
    def is_right(self) -> bool:
        return self.is_everywhere and not self.wrong and self.slowest < SOON_SECONDS

    @property
    def slowest(self) -> float:
        return max(self.seconds.values(), default=0.0)


def main(words: Sequence[str]) -> int:
    chosen = [one for one in FAULTS if not words or any(word in one.name for word in words)]
    if reason := missing():
        print(f"THE PAGE IS NOT READ: {reason}")
    results, untested = [], 0
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-faults-") as folder,
        nullcontext(None) if missing() else chromium() as browser,
    ):
        for number, fault in enumerate(chosen):
            directory = Path(folder) / str(number)
            directory.mkdir()
            try:
                result = _diagnosed(fault, directory, Path(folder) / "template", browser)
            except pytest.skip.Exception as reason_of_skip:
                untested += 1
                print(f"{fault.name}: NOT TESTED: {reason_of_skip}", flush=True)
            else:
                results.append(result)
                print(_row(result), flush=True)
    right = sum(one.is_right for one in results)
    slowest = max((one.slowest for one in results), default=0.0)
    blaming = sum(bool(one.wrong) for one in results)
    print(f"{right} of {len(results)} are right ({100 * right / max(1, len(results)):.0f} %)")
    print(f"the slowest after {slowest:.1f} s; {blaming} blamed the innocent; {untested} weren't tested")
    return 0 if right >= 0.95 * len(results) else 1


def _row(result: Diagnosis) -> str:
    seconds = ", ".join(f"{where} {took:.1f} s" for where, took in result.seconds.items())
    verdict = "right" if result.is_right else "WRONG"
    lines = [f"{result.fault.name.replace('_', ' ')}: {verdict}: {seconds or 'never'}"]
    lines += [f"    {where}: {line}" for where, line in _distinct(result.last)]
    if result.wrong:
        lines.append(f"    BLAMES THE INNOCENT: {result.wrong}")
    return "\n".join(lines)


def _distinct(lines: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the line of the command, and those of others that say something else."""
    known = _NUMBER.sub("", lines["explain"])
    return [item for item in lines.items() if item[0] == "explain" or _NUMBER.sub("", item[1]) not in known]


def _diagnosed(fault: Fault, directory: Path, template: Path, browser: Browser | None) -> Diagnosis:
    result = Diagnosis(fault)
    with ExitStack() as stack:
        place = Place(directory, template, stack)
        fault.make(place)
        began = monotonic()
        readers = stack.enter_context(_reading(place, browser))

        def look() -> bool:
            for where, read in readers.items():
                line = read()
                if fault.is_wrong(line):
                    result.wrong = f"{where}: {line}"
                if where not in result.seconds:
                    result.last[where] = line
                    if fault.is_named(line):
                        result.seconds[where] = monotonic() - began
            return len(result.seconds) == len(readers)

        with suppress(Stalled):
            eventually(look, LONGEST_SECONDS)
        result.is_everywhere = look()
    return result


@contextmanager
def _reading(place: Place, browser: Browser | None) -> Iterator[_Readers]:
    """Serve the feed; yield how the first line is read."""
    clock = SystemClock()
    registry = Registry([GivenFeed(place.feed, {}, clock)], clock=clock)
    http = HttpServer(application(registry, Access()), "127.0.0.1:0")
    with closing(http), registry, http:
        options = place.feed.options
        client = Client(http.url)
        status = StatusFile(options.data_dir)

        def explained() -> str:
            last = status.load()
            return explanation(last, last.waits)[0]

        readers = {"explain": explained, "API": lambda: client.waits(options.name).explanation[0]}
        if browser is None:
            yield readers
            return
        page = browser.new_page()
        try:
            page.goto(f"{http.url}/#/feeds/{options.name}")
            yield {**readers, "page": lambda: _line_of(page)}
        finally:
            page.close()


def _line_of(page: Page) -> str:
    """Return the page's diagnosis in the form of the explanation."""
    said = " ".join(page.locator(".diagnosis .cause").all_inner_texts())
    return "feed: normal" if said == "Nothing waits." else said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
