"""ctypes over libocctrace-query. See occtrace-query.h for the contract."""
import ctypes
import os
from typing import Any, Iterator, Optional

NAME = "libocctrace-query.so.0"
MESSAGE_BYTES = 1024
OK, FAILURE, USAGE, NOTHING = 0, 1, 2, 3


class Failure(Exception):
    """The question failed: a damaged file, no memory, a limit."""


class UsageError(Failure, ValueError):
    """An unknown question, a wrong option or statement."""


class NothingFound(Failure, LookupError):
    """There is no such history, or nothing matches."""


for _class in (Failure, UsageError, NothingFound):  # their public name, in messages
    _class.__module__ = "occtrace"
EXCEPTIONS = {FAILURE: Failure, USAGE: UsageError, NOTHING: NothingFound}


class Error(ctypes.Structure):
    """occ_query_error."""

    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * MESSAGE_BYTES)]

    def exception(self) -> Failure:
        """The exception for this failure."""
        return EXCEPTIONS.get(self.code, Failure)(self.message.decode("utf-8", "replace"))


class ArrowSchema(ctypes.Structure):
    """struct ArrowSchema of the Arrow C data interface."""


class ArrowArray(ctypes.Structure):
    """struct ArrowArray of the Arrow C data interface."""


class ArrowStream(ctypes.Structure):
    """struct ArrowArrayStream of the Arrow C stream interface."""


def _method(result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments)


ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))), ("dictionary", ctypes.c_void_p),
    ("release", _method(None, ctypes.POINTER(ArrowSchema))), ("private_data", ctypes.c_void_p)]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))), ("dictionary", ctypes.c_void_p),
    ("release", _method(None, ctypes.POINTER(ArrowArray))), ("private_data", ctypes.c_void_p)]
ArrowStream._fields_ = [
    ("get_schema", _method(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowSchema))),
    ("get_next", _method(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowArray))),
    ("get_last_error", _method(ctypes.c_char_p, ctypes.POINTER(ArrowStream))),
    ("release", _method(None, ctypes.POINTER(ArrowStream))), ("private_data", ctypes.c_void_p)]

# Each function of the library: result, arguments.
_FUNCTIONS = {
    "occ_query_version": (ctypes.c_char_p, []),
    "occ_query_open": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Error)]),
    "occ_query_close": (None, [ctypes.c_void_p]),
    "occ_query_ask": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p,
                                     ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Error)]),
    "occ_query_free": (None, [ctypes.c_void_p]),
    "occ_query_notes": (ctypes.c_char_p, [ctypes.c_void_p]),
    "occ_query_table": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p,
                                       ctypes.POINTER(ArrowStream), ctypes.POINTER(Error)]),
    "occ_query_sql": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ArrowStream),
                                     ctypes.POINTER(Error)]),
}


def _candidates() -> Iterator[Optional[str]]:
    """Paths of the library, the most specific first."""
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.environ.get("OCCTRACE_QUERY_LIBRARY")
    yield os.path.join(here, "_lib", NAME)  # a wheel
    yield os.path.join(here, "..", "..", "..", "..", "lib", NAME)  # share/occtrace/python of the bundle
    yield NAME  # the system's


_loaded: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """The library, opened at the first call."""
    global _loaded  # pylint: disable=global-statement
    if _loaded is not None:
        return _loaded
    for path in _candidates():
        if path and (path == NAME or os.path.exists(path)):
            loaded = ctypes.CDLL(path)
            break
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    _loaded = loaded
    return loaded


def c_string(text: bytes) -> bytes:
    """The text, which the library would read up to a NUL."""
    if b"\0" in text:
        raise UsageError("a text has a null character")
    return text


def version() -> str:
    """The version of the library, such as "0.1.0"."""
    return str(library().occ_query_version(), "utf-8")
