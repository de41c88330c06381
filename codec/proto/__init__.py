"""The protobuf messages of PD, TiKV, pump, Canal and Avro's integers, and the calls of the services.

`cdcpb.Event`, `pdpb.TsoRequest` and so on are message classes; an enum's values are ints under its
class. The messages are in a separate descriptor pool, so another TiKV client in the same process doesn't
conflict. Only the fields in use are declared; the others are skipped.

`descriptors.binpb` and the types, in .pyi files, are made by protoc of the .proto files beside them (`make
proto`).
"""

from __future__ import annotations

from importlib import resources
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message as Message
from msgspec import Struct


class Method(Struct, frozen=True):
    """One call of a service."""

    path: str
    """The HTTP/2 path: "/pdpb.PD/GetMembers"."""
    request: type[Message]
    response: type[Message]
    client_streaming: bool
    server_streaming: bool


def _load() -> tuple[dict[str, SimpleNamespace], dict[str, dict[str, Method]]]:
    files = descriptor_pb2.FileDescriptorSet.FromString(
        resources.files(__package__).joinpath("descriptors.binpb").read_bytes()
    )
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    packages: dict[str, SimpleNamespace] = {}
    services: dict[str, dict[str, Method]] = {}
    for file in files.file:
        described = pool.FindFileByName(file.name)
        package = packages.setdefault(described.package, SimpleNamespace())
        for name, message in described.message_types_by_name.items():
            setattr(package, name, message_factory.GetMessageClass(message))
        for name, enum in described.enum_types_by_name.items():
            setattr(package, name, SimpleNamespace(**{v.name: v.number for v in enum.values}))
        for service in described.services_by_name.values():
            services[service.full_name] = {
                method.name: Method(
                    f"/{service.full_name}/{method.name}",
                    message_factory.GetMessageClass(method.input_type),
                    message_factory.GetMessageClass(method.output_type),
                    method.client_streaming,
                    method.server_streaming,
                )
                for method in service.methods
            }
    return packages, services


_packages, _services = _load()

if TYPE_CHECKING:
    from . import avro as avro
    from . import binlog as binlog
    from . import canal as canal
    from . import cdcpb as cdcpb
    from . import errorpb as errorpb
    from . import kvrpcpb as kvrpcpb
    from . import metapb as metapb
    from . import pdpb as pdpb
else:
    metapb = _packages["metapb"]
    errorpb = _packages["errorpb"]
    kvrpcpb = _packages["kvrpcpb"]
    cdcpb = _packages["cdcpb"]
    pdpb = _packages["pdpb"]
    binlog = _packages["binlog"]
    """The messages that a TiDB writes, and the service of a pump."""
    canal = _packages["canal"]
    """The messages that a Canal server sends."""
    avro = _packages["avro"]
    """A list of integers as Avro writes them."""

PD: Final = _services["pdpb.PD"]
"""The calls of a placement driver, by name."""
TIKV: Final = _services["tikvpb.Tikv"]
CHANGE_DATA: Final = _services["cdcpb.ChangeData"]
PUMP: Final = _services["binlog.Pump"]
CISTERN: Final = _services["binlog.Cistern"]
"""The service of a drainer, called by pumps."""
