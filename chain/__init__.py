"""The stages between decoding and one sink: filters, and whatever routes, holds back or seeks."""

from .chain import Chain
from .stage import Barrier, Element, Lag, Stage, StageContext

__all__ = ["Barrier", "Chain", "Element", "Lag", "Stage", "StageContext"]
