"""Feeds the native decoder, built with sanitisers, with rows, messages and columns: whole, damaged and cut.

Arguments: the extension module, the first seed, the number of seeds.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ExtensionFileLoader
from random import Random

NAME = "tidemill.codec.native._native"


def use(path: str) -> None:
    """Load that build of the extension module in place of the installed one."""
    spec = importlib.util.spec_from_file_location(NAME, path, loader=ExtensionFileLoader(NAME, path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)


def main(path: str, first: int, count: int) -> None:
    use(path)
    from tests.codec import test_packed_blocks
    from tests.codec.native import (
        test_change_data,
        test_images,
        test_item_passes,
        test_json_texts,
        test_prewrites,
        test_results,
        test_row_texts,
        test_tidb,
        test_time_texts,
    )
    from tests.mounter import test_mounter
    from tests.mounter.tidb import test_runs
    from tests.puller import test_whole
    from tidemill.codec.native import library

    assert library.native is not None
    assert library.native.__file__ == path
    for seed in range(first, first + count):
        if seed % 20 == 0:  # each seed is thousands of changes
            test_packed_blocks.compare(seed)
        test_packed_blocks.damage(seed)
        test_change_data.compare(seed)
        test_images.compare(seed)
        test_images.compare_columns(seed)
        test_item_passes.compare(seed)
        test_json_texts.compare(seed)
        test_json_texts.compare_images(seed)
        test_json_texts.compare_doubles(Random(seed), 1_000)
        test_prewrites.compare(seed, is_native=True)
        test_mounter.compare(seed)
        test_results.compare(seed)
        test_results.compare_columns(seed)
        test_row_texts.compare(seed)
        test_tidb.compare(seed)
        test_tidb.compare_columns(seed)
        test_runs.compare(seed, damaged=seed % 2 == 0)
        test_time_texts.compare(seed)
        test_whole.compare(seed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
