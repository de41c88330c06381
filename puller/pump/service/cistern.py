"""The gRPC service of a drainer, which pumps call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import grpc

from ....codec.proto import CISTERN
from ....failpoint import reach


def cistern(notify: Callable[[], Future[None]]) -> grpc.GenericRpcHandler[object, object]:
    """Return the handlers of binlog.Cistern.

    Notify is answered when the future of `notify` is done; its error is the call's, with the code UNKNOWN as
    in TiDB-Binlog. Other calls are answered with UNIMPLEMENTED.
    """
    method = CISTERN["Notify"]

    async def answer(_request: Any, context: Any) -> Any:
        reach("drainer.notified")
        try:
            await asyncio.wrap_future(notify())
        except Exception as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        reach("drainer.accepted")
        return method.response()

    handler = grpc.unary_unary_rpc_method_handler(
        answer, method.request.FromString, method.response.SerializeToString
    )
    return grpc.method_handlers_generic_handler("binlog.Cistern", {"Notify": handler})
