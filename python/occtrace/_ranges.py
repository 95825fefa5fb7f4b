"""Ranges of a program as NVTX push/pop ranges, which "occtrace --nvtx" records as layers.

NVTX of the program is used if it is loaded (libnvToolsExt). Else a tool that NVTX_INJECTION64_PATH names, such as
occtrace's, gets the ranges by NVTX's interface for tools (nvtx3/nvtxDetail/nvtxTypes.h), as from any program that
includes NVTX 3. Without either a range does nothing.
"""
import builtins
import contextlib
import ctypes
import os
from typing import Any, Callable, Iterator, List, Optional, Tuple

_TABLE_CALLBACKS, _MODULE_CORE = 1, 1
_PUSH_A, _POP = 9, 11  # NVTX_CBID_CORE_RangePushA, NVTX_CBID_CORE_RangePop
_SLOTS = 16  # of the core module, with the unused first one

_Push = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)
_Pop = ctypes.CFUNCTYPE(ctypes.c_int)
_GetTable = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint))
_GetExportTable = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)


class _Callbacks(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("get_table", _GetTable)]


_kept: List[Any] = []  # memory that a tool knows: it lives as long as the process
_Functions = Tuple[Callable[[bytes], int], Callable[[], int]]


def _loaded_nvtx() -> Optional[_Functions]:
    """NVTX's library, if the program has loaded it."""
    try:
        nvtx = ctypes.CDLL("libnvToolsExt.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        return _Push(("nvtxRangePushA", nvtx)), _Pop(("nvtxRangePop", nvtx))
    except (OSError, AttributeError):
        return None


def _injected_tool() -> Optional[_Functions]:
    """The tool that NVTX loads, asked as NVTX asks it."""
    path = os.environ.get("NVTX_INJECTION64_PATH")
    if not path:
        return None
    slots = (ctypes.c_void_p * _SLOTS)()  # functions, which the tool sets
    table = (ctypes.c_void_p * (_SLOTS + 1))(*(ctypes.addressof(slots) + 8 * i for i in builtins.range(_SLOTS)))

    def get_table(module: int, ret_table: Any, ret_size: Any) -> int:
        if module != _MODULE_CORE:
            return 0
        ret_table[0] = ctypes.addressof(table)
        if ret_size:
            ret_size[0] = _SLOTS
        return 1

    callbacks = _Callbacks(ctypes.sizeof(_Callbacks), _GetTable(get_table))
    get_export_table = _GetExportTable(lambda id: ctypes.addressof(callbacks) if id == _TABLE_CALLBACKS else None)
    _kept.extend([slots, table, callbacks, get_export_table])
    try:
        tool = ctypes.CDLL(path)
        initialize = tool.InitializeInjectionNvtx2
    except (OSError, AttributeError):
        return None
    initialize.restype, initialize.argtypes = ctypes.c_int, [_GetExportTable]
    _kept.append(tool)
    if initialize(get_export_table) != 1:
        return None
    push, pop = slots[_PUSH_A], slots[_POP]
    if not push or not pop:
        return None
    return _Push(push), _Pop(pop)


_functions: List[Optional[_Functions]] = []  # one entry after the first range


@contextlib.contextmanager
def range(name: str) -> Iterator[None]:  # pylint: disable=redefined-builtin
    """Marks the launches of this thread inside the block as launches of layer `name`.

    Ranges nest. Digits count as one: "step 17" and "step 18" are the same layer.
    """
    if not _functions:
        _functions.append(_loaded_nvtx() or _injected_tool())
    functions = _functions[0]
    if functions is None:
        yield
        return
    push, pop = functions
    push(name.encode("utf-8", "replace").replace(b"\0", b"?"))
    try:
        yield
    finally:
        pop()
