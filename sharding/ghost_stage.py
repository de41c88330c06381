"""The stage that makes an online schema change of a shard a schema change of the shard."""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

from msgspec import Struct, json
from msgspec.structs import replace

from ..chain import Element, Keep, Mark, Stage, StageContext, emptied, narrowed
from ..codec.ddl_bytes import decode_ddl, encode_ddl
from ..errors import SinkError
from ..events import (
    CREATED,
    Checkpoint,
    Chunk,
    CreateTable,
    Ddl,
    DropTable,
    RenameTables,
    TableName,
    Transaction,
    Ts,
)
from .route import Routes
from .shard import Shard
from .statement import is_alteration

log = logging.getLogger("tidemill.sharding")

_KEY = "ghost "
"""Beginning of the keys of this stage in a checkpoint."""


class _State(Struct, frozen=True, omit_defaults=True):
    """The online schema changes of one shard, in a checkpoint."""

    shard: Shard
    made: str = ""
    """The changes of its shadow since that was created, as one Ddl; empty if there is no shadow."""
    renamed: dict[Ts, str] = {}
    """The changes that were made by a rename at a ts, which the target may not have yet."""


class GhostStage(Stage):
    """Drops the tables of online schema changes of shards, and puts the change in the place of the rename.

    The tools copy a shard's rows into a shadow, which has the new columns. The shadow's schema changes are
    those of the shard from the rename on that puts it there. Their rows are the same by then, so those of the
    shadow aren't needed.
    """

    name = "online schema changes"

    def __init__(self, routes: Routes, sources: Sequence[str]) -> None:
        """`sources` has the names of several sources by lane: a commit ts tells its source."""
        self._routes = routes
        self._sources = tuple(sources) or ("",)
        self._states: dict[Shard, _State] = {}

    def open(self, context: StageContext) -> None:
        self._states = _restored(context.checkpoint.stages)

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        passed: list[Element] = []
        for element in batch:
            if isinstance(element, Mark):
                passed.append(element)
            elif isinstance(element, Ddl):
                passed += self._ddl(element)
            else:
                passed.append(self._rows(element))
        return passed

    def _rows(self, item: Transaction) -> Transaction:
        ts = item.commit_ts
        return narrowed(item, lambda run: self._ghost(ts, (run.table.schema, run.table.name)) is None)

    def _ghost(self, ts: Ts, name: TableName) -> tuple[Shard, bool] | None:
        """Return the shard that a table belongs to, with True for its shadow; None for any other table."""
        return self._routes.ghost(self._sources[ts % len(self._sources)], *name)

    def _ddl(self, ddl: Ddl) -> list[Element]:
        if ddl.actions and isinstance(ddl.actions[0], RenameTables):
            return self._rename(ddl, ddl.actions[0])
        ghost = self._ghost(ddl.commit_ts, (ddl.schema, ddl.table))
        if ghost is None:
            return [ddl]
        shard, is_shadow = ghost
        passed = emptied(ddl)
        if not ddl.query:  # for its snapshot: note that it is there
            log.info("%s: left out, as a table of an online schema change", ddl.origin_name)
            passed = replace(passed, chunk=Chunk(ddl.origin_name, CREATED))
        return [*(self._note(shard, ddl) if is_shadow else []), passed]

    def _note(self, shard: Shard, ddl: Ddl) -> list[Element]:
        """Note a schema change of a shard's shadow."""
        state = self._states.get(shard, _State(shard))
        first = ddl.actions[0] if ddl.actions else None
        match first:
            case CreateTable():
                made = encoded(replace(ddl, query="", actions=())) if ddl.query else ""
            case DropTable():
                made = ""
            case _ if not state.made or not (is_alteration(ddl) or ddl.refusal or ddl.reload):
                return []
            case _:
                before = decoded(state.made)
                made = encoded(
                    replace(
                        before,
                        query="; ".join(filter(None, [before.query, ddl.query])),
                        actions=(*before.actions, *ddl.actions),
                        refusal=before.refusal or ddl.refusal or ddl.reload,
                    )
                )
        return [self._keep(replace(state, made=made))]

    def _rename(self, ddl: Ddl, action: RenameTables) -> list[Element]:
        """Return the schema change of the shard in whose place a shadow comes, or the rename itself."""
        names = [self._ghost(ddl.commit_ts, name) for pair in action.pairs for name in pair]
        if not any(names):
            return [ddl]
        if all(names):
            return [emptied(ddl)]
        comes = [(ghost, new) for old, new in action.pairs if (ghost := self._ghost(ddl.commit_ts, old))]
        leaves = [(old, ghost) for old, new in action.pairs if (ghost := self._ghost(ddl.commit_ts, new))]
        if not (len(action.pairs) == 2 and len(comes) == len(leaves) == 1):
            return [ddl]
        (shard, is_shadow), name = comes[0]
        if not (is_shadow and name == leaves[0][0] == (shard.schema, shard.table) == leaves[0][1][0][1:]):
            return [ddl]
        state = self._states.get(shard, _State(shard))
        made = state.renamed.get(ddl.commit_ts) or state.made
        if not made:
            raise SinkError(
                f"{shard}: {ddl.query}: the online schema change began before the snapshot, so its "
                "statements aren't known: load everything into an empty target"
            )
        kept: list[Element] = []
        if ddl.commit_ts not in state.renamed:
            kept.append(self._keep(_State(shard, "", {**state.renamed, ddl.commit_ts: made})))
        change = decoded(made)
        if not (change.actions or change.refusal):
            return [*kept, emptied(ddl)]
        actions = () if change.refusal else change.actions
        schema, table = shard.schema, shard.table
        change = replace(
            ddl, schema=schema, table=table, query=change.query, actions=actions, refusal=change.refusal
        )
        return [*kept, change]

    def _keep(self, state: _State) -> Keep:
        self._states[state.shard] = state
        is_empty = not (state.made or state.renamed)
        if is_empty:
            del self._states[state.shard]
        text = "" if is_empty else json.encode(state).decode()
        return Keep(f"{_KEY}{state.shard.origin_name}", text)

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:
        """Forget the changes that the target has: while their shard lags, their renames may come again."""
        kept: list[Element] = []
        for state in list(self._states.values()):
            name = state.shard.origin_name
            left = {ts: made for ts, made in state.renamed.items() if not checkpoint.covers(name, ts)}
            if len(left) < len(state.renamed):
                kept.append(self._keep(replace(state, renamed=left)))
        return kept


def encoded(ddl: Ddl) -> str:
    return b64encode(encode_ddl(ddl)).decode()


def decoded(text: str) -> Ddl:
    return decode_ddl(b64decode(text))


def _restored(states: Mapping[str, str]) -> dict[Shard, _State]:
    ghosts = [json.decode(text, type=_State) for key, text in states.items() if key.startswith(_KEY)]
    return {state.shard: state for state in ghosts}
