"""Where checkpoints are kept that no target can hold, and which one the source resumes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..codec.checkpoint import decode_checkpoint, encode_checkpoint
from ..errors import CheckpointError
from ..events import Checkpoint, SnapshotProgress, TableProgress
from ..store.disk import replace


class CheckpointFile:
    """One checkpoint in a file of its own, replaced as a whole.

    A crash leaves the old file or the new one, never a mixture; what `save` returned from survives
    a power failure.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> tuple[Checkpoint, int] | None:
        """The checkpoint and the length saved with it; None if there is none yet.

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
        """Raises CheckpointError if it can't be written; the previous one stays."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace(self.path, (encode_checkpoint(checkpoint, length) + "\n").encode())
        except OSError as error:
            raise CheckpointError(f"can't write the checkpoint {self.path}: {error.strerror}") from error


def lowest(
    checkpoints: Iterable[Checkpoint | None],
    order: Callable[[str], Any],
    wants: Sequence[Callable[[str], bool]] = (),
) -> Checkpoint | None:
    """Return where the source resumes so that every sink gets what it lacks; None: with a first snapshot.

    `checkpoints` has one entry a sink, None for a sink that has none. `order` is a sort key for the
    source's positions. `wants` says of each sink whether it is given a table, by its full name; empty:
    every sink is given all. What each sink holds is an invariant: the rows of the tables in its
    `loading` (up to the key given there), as of its position, and nothing else; with `loading`
    None, the rows of all tables. A table in its `tables` is at the position given there. So

    * the position (with its ts) is the lowest, that of a table behind its feed included: a sink, or a
      table, that is further skips what it has by its ts. A sink without a checkpoint, or with one
      without a position, holds nothing and is content with any position, as nothing before its
      snapshot concerns it;
    * a table is loaded as far as the sink that has least of it: a sink that has more drops the rows
      that it has. A table that some sink has nothing of isn't in the result.

    Raises CheckpointError when the checkpoints come from different sources.
    """
    found = list(checkpoints)
    placed = [c for c in found if c is not None and c.position]
    if not placed:
        return None
    sources = {c.source for c in placed}
    if len(sources) > 1:
        raise CheckpointError(
            f"the checkpoints of this feed's sinks belong to different sources: {', '.join(sorted(sources))}"
        )
    start = min((c.resume for c in placed), key=lambda at: (order(at.position), at.ts))
    loadings: list[SnapshotProgress | None] = [{} if c is None else c.loading for c in found]
    if wants:
        loadings = [
            None if loading is None else _filled(loading, wanted, loadings)
            for loading, wanted in zip(loadings, wants, strict=True)
        ]
    return Checkpoint(start.ts, start.position, _least_loaded(loadings), placed[0].source)


def _filled(
    loading: SnapshotProgress, wanted: Callable[[str], bool], all_: list[SnapshotProgress | None]
) -> SnapshotProgress:
    """Return the progress of a sink to which tables that it isn't given are as good as loaded."""
    others = {name for each in all_ if each is not None for name in each if not wanted(name)}
    return {**loading, **dict.fromkeys(others, TableProgress())}


def _least_loaded(loadings: list[SnapshotProgress | None]) -> SnapshotProgress | None:
    """For each table what the sink that has least of it has; a None has all of every table."""
    unfinished = [loading for loading in loadings if loading is not None]
    if not unfinished:
        return None
    names = set.intersection(*(set(loading) for loading in unfinished))
    least = {name: _less([loading[name] for loading in unfinished]) for name in sorted(names)}
    return {name: loaded for name, loaded in least.items() if loaded.last != ()}


def _less(loaded: list[TableProgress]) -> TableProgress:
    return TableProgress(min((one.last for one in loaded if one.last is not None), default=None))
