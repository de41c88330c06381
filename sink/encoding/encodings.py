"""The encodings by name, with their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ...config import Form, build
from ...errors import ConfigError
from .avro import AvroEncoder
from .canal_json import CanalJsonEncoder
from .canal_protobuf import CanalProtobufEncoder
from .claims import ClaimStore
from .csv import CsvEncoder
from .debezium import DebeziumEncoder
from .debezium_avro import DebeziumAvroEncoder
from .definition import Describe, definition_of
from .encoder import Encoder, Milliseconds
from .maxwell import MaxwellEncoder
from .open_protocol import OpenProtocolEncoder
from .options import (
    AvroOptions,
    CanalOptions,
    CanalProtobufOptions,
    CsvOptions,
    DebeziumAvroOptions,
    DebeziumOptions,
    EncodingOptions,
    MaxwellOptions,
    OpenOptions,
    SimpleOptions,
)
from .simple import SimpleEncoder
from .simple_avro import SimpleAvroEncoder


@dataclass(frozen=True, slots=True)
class Encoding:
    """One entry: the options of an encoding, and how its encoder is made."""

    options: type[EncodingOptions]
    make: Callable[..., Encoder]
    """Called with the options, a clock and the definitions of tables."""
    has_claims: bool = False
    """True if `make` also takes a store for claim checks."""


def _simple(
    options: SimpleOptions, now: Milliseconds, describe: Describe, claims: ClaimStore | None
) -> Encoder:
    made = SimpleAvroEncoder if options.encoding_format == "avro" else SimpleEncoder
    return made(options, now, describe, claims)


ENCODINGS: Final[dict[str, Encoding]] = {
    "canal-json": Encoding(CanalOptions, CanalJsonEncoder, has_claims=True),
    "canal-protobuf": Encoding(CanalProtobufOptions, CanalProtobufEncoder),
    "open-protocol": Encoding(OpenOptions, OpenProtocolEncoder, has_claims=True),
    "debezium": Encoding(DebeziumOptions, DebeziumEncoder),
    "avro": Encoding(AvroOptions, AvroEncoder),
    "debezium-avro": Encoding(DebeziumAvroOptions, DebeziumAvroEncoder),
    "maxwell": Encoding(MaxwellOptions, MaxwellEncoder),
    "csv": Encoding(CsvOptions, CsvEncoder),
    "simple": Encoding(SimpleOptions, _simple, has_claims=True),
}


def encoding_options(name: str, options: Mapping[str, object]) -> EncodingOptions:
    """Return the options of an encoding. Names may have - or _.

    Raises ConfigError, naming what is accepted.
    """
    if name not in ENCODINGS:
        raise ConfigError(f"no encoding {name!r}; accepted: {', '.join(ENCODINGS)}")
    written = {key.replace("_", "-"): value for key, value in options.items()}
    form = Form(noun=f"option of {name}", shows_values=True)
    return build(ENCODINGS[name].options, written, "encoding", form)


def make_encoder(
    name: str,
    options: Mapping[str, object],
    now: Milliseconds,
    describe: Describe = definition_of,
    claims: ClaimStore | None = None,
) -> Encoder:
    """Return an encoder; `claims` is the store for claim checks. Raises ConfigError as `encoding_options`,
    and for claim checks without a store."""
    made = encoding_options(name, options)
    encoding = ENCODINGS[name]
    more = (claims,) if encoding.has_claims else ()
    return encoding.make(made, now, describe, *more)
