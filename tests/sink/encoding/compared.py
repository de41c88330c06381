"""Comparison of encoders with the messages that the originals wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tidemill.errors import TidemillError
from tidemill.sink.encoding.encoder import Encoder, Message
from tidemill.sink.encoding.encodings import make_encoder
from tidemill.sink.encoding.simple import SimpleEncoder
from tidemill.sink.encoding.simple_avro import SimpleAvroEncoder

from .recorded import NOW, Recorded, ddl_of, definition_for, definition_of_table, recorded, row_change


def encode(encoder: Encoder, events: Sequence[dict[str, Any]]) -> list[Message] | None:
    """Return the messages of these events; None if no source delivers them."""
    found = []
    for event in events:
        match event["op"]:
            case "watermark":
                found += encoder.watermark(event["commit_ts"])
            case "bootstrap":
                assert isinstance(encoder, SimpleEncoder | SimpleAvroEncoder)
                found += encoder.bootstrap(definition_for(event).table)
            case "ddl":
                ddl = ddl_of(event)
                if ddl is None:
                    return None
                found += encoder.ddl(ddl)
            case _:
                found += of_rows(encoder, [event])
    return found


def of_rows(encoder: Encoder, events: Sequence[dict[str, Any]]) -> list[Message]:
    """Return the messages of these rows, without the definitions before them."""
    return [message for message in encoder.rows([row_change(event) for event in events]) if message.rows]


def option_sets(file: str) -> list[Any]:
    """Return one parameter for each set of options that the original was run with."""
    found = {(one.encoding, json.dumps(one.options)): one for one in recorded(file)}
    return [pytest.param(file, *key, id="-".join(key)) for key in found]


def differences(
    file: str,
    encoding: str,
    options: str,
    make: Callable[[Recorded], Encoder],
    form: Callable[[bytes | None, bytes | None], Any],
    known: Callable[[Recorded], str] = lambda one: "",
) -> list[str]:
    """Return how messages differ from the recorded ones of the same events."""
    found = []
    for one in recorded(file):
        if (one.encoding, json.dumps(one.options)) != (encoding, options) or known(one):
            continue
        try:
            messages = (of_rows if one.batched else encode)(make(one), one.events)
        except TidemillError as error:
            if not one.error:
                found.append(f"{one}: {error}")
            continue
        if messages is None:
            continue
        ours = [form(message.key, message.value) for message in messages]
        theirs = [form(one.key, one.value)] if one.rows or one.value is not None else []
        if ours != theirs or one.error:
            found.append(f"{one}\n{first_difference(str(ours), str(one.error or theirs))}")
    return found


def first_difference(ours: str, theirs: str) -> str:
    """Return the part of both texts around the first place where they differ."""
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), 0)
    start = max(at - 60, 0)
    return f"  ours   …{ours[start : at + 100]}\n  theirs …{theirs[start : at + 100]}"


def encoder(name: str, one: Recorded, **changed: Any) -> Encoder:
    options = {"time-zone": one.time_zone, **one.options, **changed}
    return make_encoder(name, options, lambda: NOW, definition_of_table)
