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


def _release(capsule: int, owned: Dict[int, ArrowStream] = _owned, pointer: Any = _pointer, name: bytes = NAME,
             byref: Any = ctypes.byref) -> None:  # names may be gone at exit
    stream = owned.pop(pointer(capsule, name), None)
    if stream is not None and stream.release:  # a consumer that took the stream has set it to NULL
        stream.release(byref(stream))


_destroy = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_release)


def capsule(stream: ArrowStream) -> Any:
    """The stream as a PyCapsule, which owns it."""
    address = ctypes.addressof(stream)
    _owned[address] = stream
    return _new(address, NAME, ctypes.cast(_destroy, ctypes.c_void_p))


def _pieces(data: bytes, ends: List[int], is_text: bool) -> List[Any]:
    """The values between the ends."""
    if not is_text:
        return [data[start:end] for start, end in zip(ends, ends[1:])]
    if not data.isascii():
        return [data[start:end].decode() for start, end in zip(ends, ends[1:])]
    text = data.decode()  # its characters are bytes
    return [text[start:end] for start, end in zip(ends, ends[1:])]


class Batch:
    """Columns of a batch, by name: (format, array). The memory lives as long as this object."""

    def __init__(self, formats: List[str], array: ArrowArray):
        self.formats = formats
        self._array = array
        self.length = array.length

    def __del__(self) -> None:
        if self._array.release:
            self._array.release(ctypes.byref(self._array))

    def child(self, index: int) -> ArrowArray:
        """The array of a column."""
        child: ArrowArray = self._array.children[index].contents
        return child

    def valid_bits(self, index: int) -> bytes:
        """A bit for each row of a column, the lowest of a byte first: whether the row has a value."""
        array, size = self.child(index), (self.length + 7) // 8
        bits: bytes = ctypes.string_at(array.buffers[0], size) if array.null_count else b"\xff" * size
        return bits

    def values(self, index: int) -> List[Any]:
        """The values of a column: int, float, str, bytes or None."""
        array, kind = self.child(index), self.formats[index]
        if kind in "lg":
            of = ctypes.c_int64 if kind == "l" else ctypes.c_double
            found = list((of * self.length).from_address(array.buffers[1])) if self.length else []
        else:
            ends = list((ctypes.c_int32 * (self.length + 1)).from_address(array.buffers[1]))
            found = _pieces(ctypes.string_at(array.buffers[2], ends[-1]), ends, kind == "u")
        if array.null_count == 0:
            return found
        bits = self.valid_bits(index)
        return [value if bits[row >> 3] >> (row & 7) & 1 else None for row, value in enumerate(found)]


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


def to_pandas(stream: ArrowStream) -> Any:
    """A DataFrame. Integers with gaps are Int64, other gaps NaN or None."""
    import numpy  # pylint: disable=import-outside-toplevel
    import pandas  # pylint: disable=import-outside-toplevel

    names = read_schema(stream)
    parts = list(batches(stream))

    def gaps_of(part: Batch, index: int) -> Any:
        bits = numpy.frombuffer(part.valid_bits(index), dtype=numpy.uint8)
        return numpy.unpackbits(bits, bitorder="little")[:part.length] == 0

    def column(index: int, kind: str) -> Any:
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
        gaps = numpy.concatenate([gaps_of(part, index) for part in parts])
        if kind == "l":
            return pandas.Series(pandas.arrays.IntegerArray(values, gaps))
        values[gaps] = numpy.nan
        return pandas.Series(values)

    columns = [column(index, kind) for index, (_, kind) in enumerate(names)]
    frame = pandas.concat(columns, axis=1) if columns else pandas.DataFrame()
    frame.columns = [name for name, _ in names]
    return frame
