"""Many photos through a model: the same stage over parts of any source, on any engine, into sharded Parquet."""

from saywhere.build.batch.run import BatchReport, run_batch
from saywhere.build.batch.sources import SourceItem, list_parts
from saywhere.build.batch.tasks import TASKS

__all__ = ["TASKS", "BatchReport", "SourceItem", "list_parts", "run_batch"]
