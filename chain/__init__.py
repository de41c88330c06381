"""Stages between decoding and one sink, which filter, route, hold back or seek."""

from .emptied import emptied, narrowed
from .stage import Barrier, Chain, Element, Keep, Lag, Mark, Stage, StageContext

__all__ = [
    "Barrier",
    "Chain",
    "Element",
    "Keep",
    "Lag",
    "Mark",
    "Stage",
    "StageContext",
    "emptied",
    "narrowed",
]
