"""DuckDB's library by its C interface: a reader of CSV, Parquet and Arrow that is not ours. scripts/setup --parquet installs it."""
import ctypes
import os

PATH = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "occtrace/duckdb/libduckdb.so")


class Result(ctypes.Structure):
    _fields_ = [("fields", ctypes.c_uint64 * 3), ("data", ctypes.c_void_p), ("error", ctypes.c_char_p), ("internal", ctypes.c_void_p)]


class Connection:
    """A database in memory. Raises FileNotFoundError without the library."""

    def __init__(self):
        if not os.path.exists(PATH):
            raise FileNotFoundError("no DuckDB; scripts/setup --parquet installs it")
        self._library = duckdb = ctypes.CDLL(PATH)
        duckdb.duckdb_result_error.restype = duckdb.duckdb_value_varchar.restype = ctypes.c_char_p
        duckdb.duckdb_row_count.restype = duckdb.duckdb_column_count.restype = ctypes.c_uint64
        duckdb.duckdb_value_varchar.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]
        duckdb.duckdb_value_is_null.argtypes = duckdb.duckdb_value_varchar.argtypes
        duckdb.duckdb_value_is_null.restype = ctypes.c_bool
        duckdb.duckdb_arrow_scan.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._database, self._connection = ctypes.c_void_p(), ctypes.c_void_p()
        if duckdb.duckdb_open(None, ctypes.byref(self._database)) or duckdb.duckdb_connect(self._database, ctypes.byref(self._connection)):
            raise RuntimeError("DuckDB does not start")

    def ask(self, sql):
        """The rows as tuples of texts; None: NULL. Raises RuntimeError."""
        duckdb, result = self._library, Result()
        at = ctypes.byref(result)
        try:
            if duckdb.duckdb_query(self._connection, sql.encode(), at):
                raise RuntimeError(sql + ": " + duckdb.duckdb_result_error(at).decode())
            address, columns = ctypes.addressof(result), range(duckdb.duckdb_column_count(at))
            return [tuple(None if duckdb.duckdb_value_is_null(address, column, row) else
                          (duckdb.duckdb_value_varchar(address, column, row) or b"").decode() for column in columns)
                    for row in range(duckdb.duckdb_row_count(at))]
        finally:
            duckdb.duckdb_destroy_result(at)

    def scan(self, name, stream):
        """Makes the Arrow C stream at this address a view, which can be read once."""
        if self._library.duckdb_arrow_scan(self._connection, name.encode(), stream):
            raise RuntimeError("DuckDB refuses the stream")

    def close(self):
        self._library.duckdb_disconnect(ctypes.byref(self._connection))
        self._library.duckdb_close(ctypes.byref(self._database))
