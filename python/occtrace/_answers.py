"""Histories and their answers."""
import ctypes
import html
import json
import os
import shutil
import threading
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from . import _arrow
from ._library import NOTHING, OK, ArrowStream, Error, Failure, UsageError, c_string, library

HTML_ROWS = 60  # of a table in a notebook
CELL_CHARACTERS = 120


def _cell(value: Any) -> str:
    """A value on one line. Names of kernels may hold characters that a terminal obeys."""
    if value is None:
        return "-"
    if isinstance(value, (str, bytes)):
        value = value[:CELL_CHARACTERS + 1]
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if len(text) > CELL_CHARACTERS:
        text = text[:CELL_CHARACTERS - 1] + "…"
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def _html_table(names: List[str], rows: List[Tuple[Any, ...]], more: bool) -> str:
    head = "".join(f"<th>{html.escape(_cell(name))}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_cell(value))}</td>" for value in row) + "</tr>" for row in rows)
    rest = "<p>further rows are not shown</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


class Table:
    """Rows with names and types, computed anew for each use: an Arrow C stream.

    Shape: any number of rows; `columns` names the columns. Types are int64, float64, string and binary; a missing
    value is None. pyarrow.table(table), polars.DataFrame(table) and DuckDB read it without a copy.
    """

    def _open(self) -> ArrowStream:
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow PyCapsule protocol. The types are the table's: `requested_schema` is not applied."""
        del requested_schema
        return _arrow.capsule(self._open())

    def _read(self, limit: Optional[int] = None) -> Tuple[List[str], List[Tuple[Any, ...]]]:
        """Names and at most `limit` rows."""
        stream = self._open()
        try:
            names = [name for name, _ in _arrow.read_schema(stream)]
            rows: List[Tuple[Any, ...]] = []
            for batch in _arrow.batches(stream):
                rows += zip(*(batch.values(index) for index in range(len(names))))
                if limit is not None and len(rows) >= limit:
                    return names, rows[:limit]
            return names, rows
        finally:
            stream.release(ctypes.byref(stream))

    @property
    def columns(self) -> List[str]:
        """The names of the columns, with their units: _ns, _bytes."""
        return self._read(0)[0]

    def rows(self) -> List[Dict[str, Any]]:
        """A dict for each row."""
        names, rows = self._read()
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise UsageError(f"two columns have the name {twice[0]!r}: AS gives them names")
        return [dict(zip(names, row)) for row in rows]

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.rows())

    def to_pandas(self) -> Any:
        """A pandas.DataFrame: Int64 for integers with gaps, NaN for other gaps, None for texts."""
        stream = self._open()
        try:
            return _arrow.to_pandas(stream)
        finally:
            stream.release(ctypes.byref(stream))

    def to_arrow(self) -> Any:
        """A pyarrow.Table, without a copy."""
        import pyarrow  # pylint: disable=import-outside-toplevel
        return pyarrow.table(self)

    def to_polars(self) -> Any:
        """A polars.DataFrame, without a copy."""
        import polars  # pylint: disable=import-outside-toplevel
        return polars.DataFrame(self)

    def _repr_html_(self) -> str:
        names, rows = self._read(HTML_ROWS + 1)
        return _html_table(names, rows[:HTML_ROWS], len(rows) > HTML_ROWS)


class Statement(Table):
    """The rows of a statement in SQL."""

    def __init__(self, history: "History", statement: str):
        self._history, self._statement = history, statement
        self._ready: Optional[ArrowStream] = history._stream_sql(statement)  # a wrong statement fails here

    def _open(self) -> ArrowStream:
        with self._history._lock:  # one thread takes it
            stream, self._ready = self._ready, None
        return stream if stream is not None else self._history._stream_sql(self._statement)

    def __del__(self) -> None:
        stream = getattr(self, "_ready", None)
        if stream is not None:
            stream.release(ctypes.byref(stream))

    def text(self, width: Optional[int] = None) -> str:
        """The output of `occq sql`, with all rows."""
        return self._history._text("sql", {"statement": self._statement}, width)

    def __repr__(self) -> str:
        names, rows = self._read(HTML_ROWS + 1)
        cells = [[_cell(value) for value in row] for row in [tuple(names)] + rows[:HTML_ROWS]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
        return "\n".join(lines + (["…"] if len(rows) > HTML_ROWS else []))


class Answer(Table):
    """The answer to a question.

    document  the JSON document of `occq QUESTION --json`, as a dict
    json      its text
    notes     lines that occq would print beside it: runs recorded in part, rows left out
    As a table it has the rows of the document; of show, the launch configurations.
    """

    def __init__(self, history: "History", question: str, options: Dict[str, Any]):
        self._history, self.question, self._options = history, question, options
        self.json, self.notes = history._ask(question, options)
        self.document: Dict[str, Any] = json.loads(self.json)

    def _open(self) -> ArrowStream:
        return self._history._stream_table(self.question, self._options)

    def __getitem__(self, member: str) -> Any:
        """A member of the document."""
        return self.document[member]

    def text(self, width: Optional[int] = None) -> str:
        """The output of occq on a screen of `width` characters (default: the terminal's)."""
        return self._history._text(self.question, self._options, width)

    def __repr__(self) -> str:
        return self.text().rstrip("\n")

    def _repr_html_(self) -> str:
        if self.question == "verdict":
            return f"<pre>{html.escape(repr(self))}</pre>"
        return super()._repr_html_()


class History:
    """A history of launches. Options of methods are the long options of the command of the same name:
    top(since="2h", min_loss=10) is `occq top --since 2h --min-loss 10`; a flag is True."""

    def __init__(self, where: Union[str, "os.PathLike[str]", None] = None):
        self._handle = ctypes.c_void_p()
        self._lock = threading.RLock()  # a handle answers one thread at a time, and ctypes releases the interpreter's lock
        error = Error()
        name = None if where is None else c_string(os.fsencode(where))
        if library().occ_query_open(name, ctypes.byref(self._handle), ctypes.byref(error)) != OK:
            raise error.exception()
        self.where = where

    def close(self) -> None:
        """Ends the use of the history. Tables that were made stay valid only where they were read."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        library().occ_query_close(handle)

    def __del__(self) -> None:  # no other thread has the object; after fork() another thread's lock would stay held
        if getattr(self, "_handle", None):
            self._close()

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"occtrace.open({self.where!r})"

    # ---- questions ----

    def verdict(self, **options: Any) -> Answer:
        """The use of the GPU time, and the changes with the largest savings.

        document["gpu_time"]: seconds, and ratios of the recorded GPU time that add up to 1; None: unknown.
        document["findings"]: changes, the largest predicted saving first.
        """
        return Answer(self, "verdict", options)

    def top(self, by: str = "kernel", **options: Any) -> Answer:
        """Rows with the most lost time first, `by` kernel, config, layer, range, stream, run, label, gpu and so on.

        document["top"]: one row per kernel and device; total_duration_ns is nanoseconds, theoretical, achieved and
        the parts of the loss are ratios. document["gpu_time"] and document["findings"] as in verdict().
        """
        return Answer(self, "top", dict(options, by=by))

    def show(self, kernel: Union[str, int], **options: Any) -> Answer:
        """Everything about a kernel: its number, a name as occq prints it, or a regular expression.

        document["kernels"]: a member for each kernel and device, each with launch_configs. The table has a row for
        each launch configuration, with its kernel and device.
        """
        return Answer(self, "show", dict(options, kernel=str(kernel)))

    def diff(self, a: str, b: str, **options: Any) -> Answer:
        """Changes between two sides: "run:3", "label:old", "gpu:0", another history and so on.

        document["kernels"]: a row for each pair of kernels; ratios are B / A, with 95 % intervals.
        """
        return Answer(self, "diff", dict(options, a=a, b=b))

    def history(self, kernel: Union[str, int, None] = None, **options: Any) -> Answer:
        """Launches over time, and when they changed. document["points"]: a row for each unit of time."""
        return Answer(self, "history", dict(options, kernel=None if kernel is None else str(kernel)))

    def launches(self, **options: Any) -> Answer:
        """Single launches, newest first, at most `number` (default 50). sql() has all launches."""
        return Answer(self, "launches", options)

    def runs(self, **options: Any) -> Answer:
        """Observed programs, newest first: level, losses, overhead."""
        return Answer(self, "runs", options)

    def hit_rate(self) -> Answer:
        """How often advice was right here: occq diff compares predictions with measured times and keeps both.

        document["changes"]: a row for each kind of change, the last one for all. NothingFound: no outcome is kept.
        """
        return Answer(self, "hit_rate", {})

    def check(self, rules: Union[str, "os.PathLike[str]", None] = None, side: Optional[str] = None, **options: Any) -> Answer:
        """A side (default: the last run) against a file of rules, as `occq check --rules`; with baseline=SIDE alone
        against the built-in rule: no kernel became slower.

        document["verdict"]: "holds", "fails" or "nothing judged"; document["rules"]: a row for each rule.
        """
        return Answer(self, "check", dict(options, rules=None if rules is None else os.fspath(rules), side=side))

    def sql(self, statement: str) -> Table:
        """The rows of a reading statement, in batches: a history of any size needs little memory.

        The tables are documented in docs/sql.md, and in the history: sql("SELECT * FROM column_help").
        """
        return Statement(self, statement)

    # ---- calls of the library ----

    @staticmethod
    def _options(options: Dict[str, Any]) -> bytes:
        return json.dumps({name: value for name, value in options.items() if value is not None}).encode()

    def _open_handle(self) -> ctypes.c_void_p:
        """The handle, which the library needs: it checks no pointer."""
        if not self._handle:
            raise Failure("the history is closed")
        return self._handle

    def _call(self, question: str, options: Dict[str, Any]) -> Tuple[int, Optional[str], List[str], Error]:
        document, error = ctypes.c_void_p(), Error()
        with self._lock:
            handle = self._open_handle()
            status = library().occ_query_ask(handle, question.encode(), self._options(options),
                                             ctypes.byref(document), ctypes.byref(error))
            notes = library().occ_query_notes(handle).decode("utf-8", "replace").splitlines()
        text = ctypes.string_at(document.value).decode("utf-8", "replace") if document.value else None
        library().occ_query_free(document)
        return status, text, notes, error

    def _ask(self, question: str, options: Dict[str, Any]) -> Tuple[str, List[str]]:
        status, text, notes, error = self._call(question, options)
        if text is None or status not in (OK, NOTHING):
            raise error.exception()
        if status == NOTHING and question == "show":  # an unknown kernel is no empty answer
            raise error.exception()
        return text, notes

    def _text(self, question: str, options: Dict[str, Any], width: Optional[int]) -> str:
        columns = shutil.get_terminal_size().columns if width is None else width
        status, text, notes, error = self._call(question, dict(options, format="text", width=columns))
        if status not in (OK, NOTHING):
            raise error.exception()
        return text if text is not None else "\n".join(notes) + "\n"

    def _stream_table(self, question: str, options: Dict[str, Any]) -> ArrowStream:
        stream, error = ArrowStream(), Error()
        with self._lock:
            status = library().occ_query_table(self._open_handle(), question.encode(), self._options(options),
                                               ctypes.byref(stream), ctypes.byref(error))
        if status not in (OK, NOTHING) or not stream.release:
            raise error.exception()
        return stream

    def _stream_sql(self, statement: str) -> ArrowStream:
        stream, error = ArrowStream(), Error()
        with self._lock:
            status = library().occ_query_sql(self._open_handle(), c_string(statement.encode()), ctypes.byref(stream),
                                             ctypes.byref(error))
        if status != OK:
            raise error.exception()
        return stream


def open(where: Union[str, "os.PathLike[str]", None] = None) -> History:  # pylint: disable=redefined-builtin
    """Opens a history: a file, the URL of a cluster's warehouse, or None for the history that occq chooses.

    Raises NothingFound if there is no such history, Failure if the file is damaged or no history.
    """
    return History(where)
