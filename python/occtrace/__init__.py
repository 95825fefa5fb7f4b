"""Questions to a history of occtrace.

    import occtrace
    history = occtrace.open("history.db")      # or occtrace.open(): the history that occq chooses
    history.verdict()                          # where GPU time went
    history.top(by="layer").to_pandas()        # rows as a DataFrame
    history.sql("SELECT * FROM launch")        # a table that pyarrow, polars and DuckDB read without a copy

    with occtrace.range("attention"):          # a layer, recorded under "occtrace --nvtx"
        ...

SQL has the same units: columns that end in _ns are nanoseconds, in _bytes bytes; ratios are 0 to 1. A value that
was not measured or is not known is None, never 0.

A History and its answers belong to one thread at a time; different ones may be used by different threads.
"""
from ._answers import Answer, History, Table, open  # pylint: disable=redefined-builtin
from ._library import Failure, NothingFound, UsageError, version
from ._ranges import range  # pylint: disable=redefined-builtin

__all__ = ["Answer", "Failure", "History", "NothingFound", "Table", "UsageError", "open", "range", "version"]
