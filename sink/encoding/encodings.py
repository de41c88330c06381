"""The encodings by name, with their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...config import build
from ...errors import ConfigError
from .avro import AvroEncoder
from .canal_json import CanalJsonEncoder
from .canal_protobuf import CanalProtobufEncoder
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
    MaxwellOptions,
    OpenOptions,
    SimpleOptions,
)
from .simple import SimpleEncoder
from .simple_avro import SimpleAvroEncoder


@dataclass(frozen=True, slots=True)
class Encoding:
    """One entry: the options of an encoding, and how its encoder is made."""

    options: type
    make: Callable[[Any, Milliseconds, Describe], Encoder]


def _simple(options: SimpleOptions, now: Milliseconds, describe: Describe) -> Encoder:
    made = SimpleAvroEncoder if options.encoding_format == "avro" else SimpleEncoder
    return made(options, now, describe)


ENCODINGS: Final[dict[str, Encoding]] = {
    "canal-json": Encoding(CanalOptions, CanalJsonEncoder),
    "canal-protobuf": Encoding(CanalProtobufOptions, CanalProtobufEncoder),
    "open-protocol": Encoding(OpenOptions, OpenProtocolEncoder),
    "debezium": Encoding(DebeziumOptions, DebeziumEncoder),
    "avro": Encoding(AvroOptions, AvroEncoder),
    "debezium-avro": Encoding(DebeziumAvroOptions, DebeziumAvroEncoder),
    "maxwell": Encoding(MaxwellOptions, MaxwellEncoder),
    "csv": Encoding(CsvOptions, CsvEncoder),
    "simple": Encoding(SimpleOptions, _simple),
}


def make_encoder(
    name: str, options: Mapping[str, Any], now: Milliseconds, describe: Describe = definition_of
) -> Encoder:
    """Return an encoder. Names of options may have - or _. Raises ConfigError, naming what is accepted."""
    if name not in ENCODINGS:
        raise ConfigError(f"no encoding {name!r}; accepted: {', '.join(ENCODINGS)}")
    encoding = ENCODINGS[name]
    given = {key.replace("-", "_"): value for key, value in options.items()}
    return encoding.make(build(encoding.options, given, name), now, describe)
