"""Arrow C streams: as capsules for other libraries, and read by ctypes alone."""
import ctypes
from typing import Any, Dict, Iterator, List, Tuple

from ._library import ArrowArray, ArrowSchema, ArrowStream, Failure

NAME = b"arrow_array_stream"

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
# the capsule as an address: its destructor gets an object that nothing may count anymore
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]

_owned: Dict[int, ArrowStream] = {}  # streams of capsules, by address


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule, owned=_owned, pointer=_pointer, name=NAME, byref=ctypes.byref):  # names may be gone at exit
    stream = owned.pop(pointer(capsule, name), None)
    if stream is not None and stream.release:  # a consumer that took the stream has set it to NULL
        stream.release(byref(stream))


def capsule(stream: ArrowStream) -> Any:
    """The stream as a PyCapsule, which owns it."""
    address = ctypes.addressof(stream)
    _owned[address] = stream
    return _new(address, NAME, ctypes.cast(_destroy, ctypes.c_void_p))


class Batch:
    """Columns of a batch, by name: (format, array). The memory lives as long as this object."""

    def __init__(self, formats: List[str], array: ArrowArray):
        self.formats = formats
        self._array = array
        self.length = array.length

    def __del__(self):
        if self._array.release:
            self._array.release(ctypes.byref(self._array))

    def child(self, index: int) -> ArrowArray:
        """The array of a column."""
        return self._array.children[index].contents

    def is_valid(self, index: int) -> List[bool]:
        """Which rows of a column have a value."""
        array = self.child(index)
        if array.null_count == 0:
            return [True] * self.length
        bits = ctypes.string_at(array.buffers[0], (self.length + 7) // 8)
        return [bool(bits[row >> 3] >> (row & 7) & 1) for row in range(self.length)]

    def values(self, index: int) -> List[Any]:
        """The values of a column: int, float, str, bytes or None."""
        array, kind = self.child(index), self.formats[index]
        if kind in "lg":
            of = ctypes.c_int64 if kind == "l" else ctypes.c_double
            found = list((of * self.length).from_address(array.buffers[1])) if self.length else []
        else:
            ends = (ctypes.c_int32 * (self.length + 1)).from_address(array.buffers[1])
            data = ctypes.string_at(array.buffers[2], ends[self.length])
            found = [data[ends[row]:ends[row + 1]] for row in range(self.length)]
            if kind == "u":
                found = [value.decode() for value in found]
        if array.null_count == 0:
            return found
        return [value if valid else None for value, valid in zip(found, self.is_valid(index))]


def read_schema(stream: ArrowStream) -> List[Tuple[str, str]]:
    """Name and format of each column."""
    schema = ArrowSchema()
    if stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) != 0:
        raise Failure((stream.get_last_error(ctypes.byref(stream)) or b"").decode())
    columns = [(schema.children[i].contents.name.decode(), schema.children[i].contents.format.decode())
               for i in range(schema.n_children)]
    schema.release(ctypes.byref(schema))
    return columns


def batches(stream: ArrowStream) -> Iterator[Batch]:
    """The batches of a stream, which the caller releases."""
    formats = [kind for _, kind in read_schema(stream)]
    while True:
        array = ArrowArray()
        if stream.get_next(ctypes.byref(stream), ctypes.byref(array)) != 0:
            raise Failure((stream.get_last_error(ctypes.byref(stream)) or b"").decode("utf-8", "replace"))
        if not array.release:
            return
        yield Batch(formats, array)


def to_pandas(stream: ArrowStream):
    """A DataFrame without pyarrow. Integers with gaps are Int64, other gaps NaN or None."""
    import numpy  # pylint: disable=import-outside-toplevel
    import pandas  # pylint: disable=import-outside-toplevel

    names = read_schema(stream)
    parts = list(batches(stream))

    def column(index: int, kind: str):
        if kind not in "lg":
            return pandas.Series([value for part in parts for value in part.values(index)], dtype=object)
        of = numpy.int64 if kind == "l" else numpy.float64
        arrays = []
        for part in parts:
            memory = (ctypes.c_char * (8 * part.length)).from_address(part.child(index).buffers[1])
            arrays.append(numpy.frombuffer(memory, dtype=of))
        values = numpy.concatenate(arrays) if arrays else numpy.empty(0, of)
        if not any(part.child(index).null_count for part in parts):
            return pandas.Series(values)
        gaps = numpy.array([not valid for part in parts for valid in part.is_valid(index)])
        if kind == "l":
            return pandas.Series(pandas.arrays.IntegerArray(values, gaps))
        values[gaps] = numpy.nan
        return pandas.Series(values)

    columns = [column(index, kind) for index, (_, kind) in enumerate(names)]
    frame = pandas.concat(columns, axis=1) if columns else pandas.DataFrame()
    frame.columns = [name for name, _ in names]
    return frame
