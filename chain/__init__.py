"""Stages between decoding and one sink, which filter, route, hold back or seek."""

from .chain import Chain
from .stage import Barrier, Element, Lag, Stage, StageContext

__all__ = ["Barrier", "Chain", "Element", "Lag", "Stage", "StageContext"]
