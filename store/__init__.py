"""The scratch LSM that what doesn't fit in memory goes to: Store, Batch and Iterator over RocksDB."""

from .batch import Batch as Batch
from .generation import Generation as Generation
from .iterator import Iterator as Iterator
from .scratch import Scratch as Scratch
from .store import Store as Store
