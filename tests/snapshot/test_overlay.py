"""Rows of a chunk that is read at some time between two positions, brought to either of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemill.events import Column, KeyRange, Row, RowChange, Run, Table
from tidemill.snapshot.overlay import Overlay, changed_within, ordered_keys

TABLE = Table("shop", "t", (Column("n", "int"), Column("id", "int")), (1,))
KEYS = st.integers(0, 9)
STEPS = st.lists(st.tuples(KEYS, KEYS, st.sampled_from(["put", "delete", "move"])), max_size=20)
STATES = st.dictionaries(KEYS, st.integers(0, 3), max_size=9)

State = dict[int, int]


def change(before: Row | None, after: Row | None) -> RowChange:
    op = "insert" if before is None else "delete" if after is None else "update"
    return RowChange(7, 7, TABLE, op, before, after)


def lived(state: State, steps: list[tuple[int, int, str]]) -> list[tuple[RowChange | None, State]]:
    """Return each change, with the rows after it; first the rows before all."""
    history: list[tuple[RowChange | None, State]] = [(None, state)]
    for number, (key, other, what) in enumerate(steps, 10):
        state = dict(state)
        if what == "delete" and key in state:
            made = change((state.pop(key), key), None)
        elif what == "move" and key in state and other not in state:
            made = change((state[key], key), (number, other))
            del state[key]
            state[other] = number
        elif what == "put":
            made = change((state[key], key) if key in state else None, (number, key))
            state[key] = number
        else:
            continue
        history.append((made, state))
    return history


def rows_of(state: State, within: KeyRange) -> list[Row]:
    return sorted((n, key) for key, n in state.items() if within.has((key,)))


def brought(overlay: Overlay[tuple[int | str, ...]], read: list[Row], within: KeyRange) -> list[Row]:
    run = Run(7, 7, TABLE, "insert", [change(None, row) for row in read])
    changes = [*overlay.unchanged(run).changes(), *changed_within(overlay, within)]
    assert all((one.op, one.before) == ("insert", None) for one in changes)
    return sorted(one.after for one in changes if one.after is not None)


@given(STATES, STEPS, st.data())
def test_a_chunk_is_brought_forward_and_back(
    state: State, steps: list[tuple[int, int, str]], data: st.DataObject
) -> None:
    history = lived(state, steps)
    place = data.draw(st.integers(0, len(history) - 1))
    within = KeyRange(data.draw(st.none() | st.tuples(KEYS)), data.draw(st.none() | st.tuples(KEYS)))
    read = rows_of(history[place][1], within)
    changes = [made for made, _ in history if made is not None]
    forward, back = Overlay(ordered_keys), Overlay(ordered_keys)
    forward.add(changes[data.draw(st.integers(0, place)) :])  # some that the rows have already
    back.undo(changes[: data.draw(st.integers(place, len(changes)))])  # some that they haven't
    assert brought(forward, read, within) == rows_of(history[-1][1], within)
    assert brought(back, read, within) == rows_of(history[0][1], within)
