"""What a store says of a transaction."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ...codec.proto import kvrpcpb
from ...errors import Retryable
from ...events import Ts


class TxnStatus(Struct, frozen=True, gc=False):
    """Alive while `ttl_ms` is above 0; else ended: committed at `commit_ts`, or rolled back if that is 0."""

    ttl_ms: int = 0
    """What is left of its primary lock's time to live."""
    commit_ts: Ts = 0
    pushed: bool = False
    """Alive, and it will commit above the caller's start ts: the caller may read as if it weren't there."""
    asynchronous: bool = False
    """Alive or over its time: it commits asynchronously, so its primary alone can't tell which."""

    @property
    def ended(self) -> bool:
        return not self.ttl_ms


def status_of(answer: Any) -> TxnStatus | None:
    """Of a kvrpcpb.CheckTxnStatusResponse; None if the store knows of no such transaction."""
    if answer.HasField("error"):
        error = answer.error
        if not error.ListFields():  # txn_not_found, in a field that isn't declared
            return None
        raise Retryable(f"KvCheckTxnStatus: {error.retryable or error.abort or error}")
    return TxnStatus(
        answer.lock_ttl,
        answer.commit_version,
        answer.action == kvrpcpb.Action.MinCommitTSPushed,
        answer.lock_info.use_async_commit,
    )
