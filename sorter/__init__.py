"""Unordered changes of many tables in, whole transactions in commit order out."""

from .sorter import EventSorter as EventSorter
from .sorter import SorterOptions as SorterOptions
from .sorter import SorterStatistics as SorterStatistics
from .sorter import open_sorter as open_sorter
