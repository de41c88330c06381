"""Feeds inside a Python program: `for`, `async for`, or a callback."""

from .arrow_batch import ArrowBatch as ArrowBatch
from .callback import FollowHandle as FollowHandle
from .callback import follow as follow
from .embedded import OpenFeed as OpenFeed
from .embedded import open_feed as open_feed
from .merged import MergeHandle as MergeHandle
from .merged import merge as merge
