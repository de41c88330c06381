"""Faults of live feeds: the first line of an explanation names each, and blames no innocent part."""

from . import databases, kinds
from .fault import FAULTS as FAULTS
from .fault import Fault as Fault
from .place import Place as Place

assert databases, kinds  # they fill FAULTS
