"""The scratch LSM that what doesn't fit in memory goes to: Store, Batch and Iterator over RocksDB."""

from .batch import Batch as Batch
from .iterator import Iterator as Iterator
from .scratch import Scratch as Scratch
from .store import Store as Store
from .window import Window as Window
