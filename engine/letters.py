"""Dead letters of a feed's sinks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from ..codec.exact_json import encode_values
from ..errors import ConfigError
from ..sink.dead_letters import DeadLetter, DeadLetters
from ..sink.registry import dead_letters_of
from .options import FeedOptions


@contextmanager
def opened_letters(
    options: FeedOptions, sink: str | None = None, number: int | None = None
) -> Iterator[list[tuple[str, DeadLetters]]]:
    """Give the dead letters of a feed by sink, and close them in the end.

    `sink` limits them to one; `number`, of a letter, is allowed for one sink only. Raises ConfigError.
    """
    names = [one.name for one in options.sinks]
    if sink is not None and sink not in names:
        raise ConfigError(f"--sink {sink}: there is no such sink; accepted: {', '.join(names)}")
    stores = [
        (one.name, letters)
        for one in options.sinks
        if sink in (None, one.name) and (letters := dead_letters_of(one.given, options.name)) is not None
    ]
    if not stores:
        raise ConfigError("dead letters are kept by SQL targets only, and none is meant here")
    if number is not None and len(stores) > 1:
        raise ConfigError(f"--id {number}: add --sink, as each sink has its own numbers")
    try:
        yield stores
    finally:
        for _, letters in stores:
            letters.close()


def letter_object(sink: str, letter: DeadLetter) -> dict[str, object]:
    """Return a letter as an object of JSON, with values as docs/reference/sql-targets.md describes."""
    images = {"before": letter.before, "after": letter.after}
    rows = {
        name: row and dict(zip(letter.columns, json.loads(encode_values(row)), strict=True))
        for name, row in images.items()
    }
    rest = msgspec.to_builtins(replace(letter, columns=(), before=None, after=None))
    del rest["columns"]
    return {"sink": sink, **rest, **rows}
