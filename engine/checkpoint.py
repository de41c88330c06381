"""Checkpoints in files, for targets that can't hold them, and the position that the source resumes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ..codec.checkpoint import decode_checkpoint, encode_checkpoint
from ..errors import CheckpointError
from ..events import CREATED, REST, STALE, Checkpoint, SnapshotProgress, TableProgress, progress_of
from ..sources.source import Rank
from ..store import disk


class CheckpointFile:
    """One checkpoint in its own file, replaced atomically.

    After a crash the file is the old or the new one, never a mixture. A checkpoint survives a power failure
    once `save` has returned.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> tuple[Checkpoint, int] | None:
        """Return the checkpoint and the length saved with it; None if there is none yet.

        Raises CheckpointError if the file can't be read or is damaged; it is left as it is.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            text = ""
        except OSError as error:
            raise CheckpointError(f"can't read the checkpoint {self.path}: {error.strerror}") from error
        return decode_checkpoint(text, str(self.path))

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        """Replace the checkpoint. Raises CheckpointError if it can't be written; the previous one stays."""
        try:
            disk.make_private(self.path.parent)
            disk.replace(self.path, (encode_checkpoint(checkpoint, length) + "\n").encode())
        except OSError as error:
            raise CheckpointError(f"can't write the checkpoint {self.path}: {error.strerror}") from error


def lowest(
    checkpoints: Iterable[Checkpoint | None],
    order: Callable[[str], Rank],
    wants: Sequence[Callable[[str], bool]] = (),
) -> Checkpoint | None:
    """Return the checkpoint from which the source serves every sink; None: with a first snapshot.

    `checkpoints` has one entry per sink, None for a sink without one. `order` is a sort key for the source's
    positions. `wants` has a function per sink that returns True if the sink is given the table of an origin
    name; empty: every sink is given all tables. The content of each sink is an invariant: the rows of the
    tables in its `loading` (up to the key given there), as of its position, and nothing else; with `loading`
    None, the rows of all tables. A table in its `tables` is at the position given there. So

    * the position (with its ts) is the lowest one, positions of lagging tables included; a sink or table that
    is ahead skips by ts what it has. A sink without a checkpoint, or without a position in it, is empty and
    accepts any position, as nothing before its snapshot concerns it;
    * if no sink has a position, the source begins at its end; so it does, from the highest ts, for targets
    that have stale copies of tables;
    * a parked table isn't loaded, and its changes may come as those of any other table: the sink drops them;
    * the progress of a table is that of the sink that has least of it; a sink that has more drops the rows
    that it has. A table that is missing in some sink isn't in the result, or is stale if REST is in it, or if
    it is stale in some sink and none is empty.

    Raises CheckpointError when the checkpoints come from different sources.
    """
    known = list(checkpoints)
    placed = [c for c in known if c is not None and c.position]
    if not placed:
        return _unplaced([c for c in known if c is not None])
    sources = {c.source for c in placed}
    if len(sources) > 1:
        raise CheckpointError(
            f"the checkpoints of this feed's sinks belong to different sources: {', '.join(sorted(sources))}"
        )
    start = min((c.resume for c in placed), key=lambda place: (order(place.position), place.ts))
    loadings: list[SnapshotProgress | None] = [{} if c is None else c.to_load for c in known]
    if wants:
        loadings = [
            None if loading is None else _filled(loading, wanted, loadings)
            for loading, wanted in zip(loadings, wants, strict=True)
        ]
    return Checkpoint(start.ts, start.position, _least_loaded(loadings), placed[0].source)


def _unplaced(known: Sequence[Checkpoint]) -> Checkpoint | None:
    """Return the start for targets without a position; None if they have no copies of tables."""
    loading = _least_loaded([c.to_load for c in known])
    if not loading:
        return None
    return Checkpoint(max(c.ts for c in known), "", loading, known[0].source)


def _filled(
    loading: SnapshotProgress, wanted: Callable[[str], bool], all_: list[SnapshotProgress | None]
) -> SnapshotProgress:
    """Return the progress of a sink, with tables that it isn't given counted as loaded."""
    names = {name for each in all_ if each is not None for name in each if name != REST}
    others = {name for name in names if not wanted(name)}
    return {**loading, **dict.fromkeys(others, TableProgress())}


def _least_loaded(loadings: list[SnapshotProgress | None]) -> SnapshotProgress | None:
    """Return the least progress of each table over the sinks; None means all of every table."""
    unfinished = [loading for loading in loadings if loading is not None]
    if not unfinished:
        return None
    least = {}
    for name in sorted(set().union(*unfinished)):
        loaded = _less([progress_of(loading, name) for loading in unfinished])
        if loaded.last != ():
            least[name] = loaded
    for loading in unfinished if all(unfinished) else ():  # a sink that has nothing gets everything
        # With REST, the names that are missing are those of tables to be loaded again.
        names = [name for name, one in loading.items() if REST in least or one.stale]
        least |= dict.fromkeys(sorted(set(names) - least.keys()), STALE)
    return least


def _less(loaded: list[TableProgress | None]) -> TableProgress:
    """Return the least progress, CREATED if there is none."""
    progress = [CREATED if one is None else one for one in loaded]
    try:
        return TableProgress(min((one.last for one in progress if one.last is not None), default=None))
    except TypeError:  # the key has another type in one sink; one with older rows loads the table again
        return CREATED
