"""Many tables of one or more sources into one: routes, and schema changes that arrive shard by shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from .adopted import adopted_tables as adopted_tables
    from .ghost_stage import GhostStage as GhostStage
    from .membership import ClaimedElsewhere as ClaimedElsewhere
    from .membership import Membership as Membership
    from .merged_tables import merged_states as merged_states
    from .options import MergeOptions as MergeOptions
    from .options import ShardingOptions as ShardingOptions
    from .route import Routes as Routes
    from .shared_locks import Revisions as Revisions
    from .shared_locks import SharedLocks as SharedLocks
    from .stage import ShardStage as ShardStage
    from .status import FeedWait as FeedWait
    from .status import LockStatus as LockStatus
    from .unlock import Unlock as Unlock
    from .unlock import plan_unlock as plan_unlock

_NAMES = Names(
    __name__,
    {
        "ClaimedElsewhere": ".membership",
        "FeedWait": ".status",
        "GhostStage": ".ghost_stage",
        "LockStatus": ".status",
        "Membership": ".membership",
        "MergeOptions": ".options",
        "Revisions": ".shared_locks",
        "Routes": ".route",
        "ShardStage": ".stage",
        "ShardingOptions": ".options",
        "SharedLocks": ".shared_locks",
        "Unlock": ".unlock",
        "adopted_tables": ".adopted",
        "merged_states": ".merged_tables",
        "plan_unlock": ".unlock",
    },
)
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
