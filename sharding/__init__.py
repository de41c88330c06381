"""Many tables of one or more sources into one: routes, and schema changes that arrive shard by shard."""

from .adopted import adopted_tables
from .ghost_stage import GhostStage
from .membership import ClaimedElsewhere, Membership
from .merged_tables import known_shards, merged_states
from .options import RouteOptions, ShardingOptions, sharding_options
from .revisions import Revisions
from .route import Routes
from .shared_locks import SharedLocks
from .stage import ShardStage
from .status import FeedWait, LockStatus
from .unlock import Unlock, plan_unlock

__all__ = [
    "ClaimedElsewhere",
    "FeedWait",
    "GhostStage",
    "LockStatus",
    "Membership",
    "Revisions",
    "RouteOptions",
    "Routes",
    "ShardStage",
    "ShardingOptions",
    "SharedLocks",
    "Unlock",
    "adopted_tables",
    "known_shards",
    "merged_states",
    "plan_unlock",
    "sharding_options",
]
