"""Unordered changes of many tables in, whole transactions in commit order out."""

from .engine import SorterStatistics as SorterStatistics
from .engine import Wait as Wait
from .sorter import EventSorter as EventSorter
from .sorter import SorterOptions as SorterOptions
from .sorter import open_sorter as open_sorter
