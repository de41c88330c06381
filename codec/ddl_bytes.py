"""Schema changes as MessagePack, exactly."""

from __future__ import annotations

from typing import Final, get_args

import msgspec
from msgspec import structs

from ..events import Action, Ddl

_ACTIONS: Final[dict[str, type[Action]]] = {one.__name__: one for one in get_args(Action)}
_encode = msgspec.msgpack.Encoder().encode


def encode_ddl(ddl: Ddl) -> bytes:
    actions = [(type(action).__name__, action) for action in ddl.actions]
    return _encode(structs.asdict(ddl) | {"actions": actions})


def decode_ddl(change: bytes) -> Ddl:
    fields = msgspec.msgpack.decode(change)
    actions = [msgspec.convert(action, _ACTIONS[name]) for name, action in fields["actions"]]
    return Ddl(**fields | {"actions": tuple(actions)})
