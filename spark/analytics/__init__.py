"""Analysis of a sorter's store and of a Parquet archive: DataFrames, figures, a plan and a page."""

from .archive_job import analyze_archive as analyze_archive
from .store_job import analyze_store as analyze_store
from .store_job import store_facts as store_facts
