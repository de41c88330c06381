from . import kvrpcpb as _kvrpcpb_pb2
from typing import ClassVar as _ClassVar

