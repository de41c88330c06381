"""The actors that play in these tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidemill.actors import Failed, PooledActor, Target


class Recorder(PooledActor):
    """Keeps everything in a list that the test holds."""

    def __init__(self, heard: list[Any], pause: Callable[[], object] = lambda: None) -> None:
        self.heard = heard
        self.pause = pause
        self.inside = False

    def on_start(self) -> None:
        self.heard.append("start")

    def on_receive(self, message: Any) -> Any:
        assert not self.inside, "two turns at once"
        self.inside = True
        self.heard.append(message)
        self.pause()
        self.inside = False
        if message == "boom":
            raise ValueError(message)
        return ("heard", message)

    def on_stop(self) -> None:
        self.heard.append("stop")

    def on_failure(self, *exc_info: Any) -> None:
        self.inside = False
        self.heard.append("failure")


class BatchRecorder(Recorder):
    """Keeps batches as lists, asks as they are."""

    def on_receive_batch(self, messages: Sequence[Any]) -> None:
        assert not self.inside, "two turns at once"
        self.inside = True
        self.heard.append(list(messages))
        self.pause()
        self.inside = False
        if "boom" in messages:
            raise ValueError("boom")


class Forwarder(PooledActor):
    """Sends each message to its targets, with a number of copies to each."""

    def __init__(self, *targets: Target, copies: int = 1) -> None:
        self.targets = targets
        self.copies = copies

    def on_receive(self, message: Any) -> None:
        if isinstance(message, tuple) and message[0] == "targets":
            self.targets = message[1:]
            return
        for target in self.targets:
            for _ in range(self.copies):
                self.send(target, message)


class Supervisor(PooledActor):
    """Keeps the reports of those that failed."""

    def __init__(self, reports: list[Failed]) -> None:
        self.reports = reports

    def on_receive(self, message: Failed) -> None:
        self.reports.append(message)


def messages(heard: list[Any]) -> list[Any]:
    """Return the messages heard, one by one, without the actor's start, stop and failure."""
    flat: list[Any] = []
    for entry in heard:
        flat.extend(entry if isinstance(entry, list) else [entry])
    return [entry for entry in flat if entry not in ("start", "stop", "failure")]
