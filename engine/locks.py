"""Schema changes of merged tables that wait for shards, as a feed's last status has them."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ..actors import SystemClock
from ..sharding import LockStatus, plan_unlock
from .requests import RequestFile
from .status import StatusFile


def locks(data_dir: str | Path) -> list[LockStatus]:
    """Return the schema changes that wait, of the feed with this data directory, running or not.

    Raises CheckpointError if no feed has run there.
    """
    status = StatusFile(Path(data_dir)).load()
    age = max(0.0, SystemClock().time() - status.updated)
    return [replace(lock, seconds=lock.seconds + age) for lock in status.locks]


def unlock(
    data_dir: str | Path,
    lock: str,
    *,
    owner: str = "",
    action: str = "exec",
    force_remove: str = "",
    dry_run: bool = False,
) -> list[str]:
    """Resolve a schema change although some shards haven't made it; return sentences that say what happens.

    `lock` is a LockStatus's `id`. The statement of its owner, or of the shard `owner`, which must be waiting,
    is executed; with `action = "skip"` the target has its effect already. The feed does it when it runs, and
    skips the same statement of the other shards later. Of several feeds that share the merged table, `owner`
    names the feed that executes it, and `force_remove` one that has left for good: then nothing waits for it
    any more, and nothing else is done. With `dry_run`, nothing is requested. Raises ConfigError for a lock
    that isn't there, and CheckpointError.
    """
    request, sentences = plan_unlock(locks(data_dir), lock, owner=owner, action=action, remove=force_remove)
    if not dry_run:
        RequestFile(Path(data_dir)).add(unlock=(request,))
    return sentences
