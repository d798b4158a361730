"""What this process asks of the device, call by call: CUPTI's callbacks, for a few calls that are not timed.

The library comes with the toolkit and with PyTorch. One tool at a time can listen; where another one does, or where the
library is missing, there is a reason instead of a list.
"""

import ctypes
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from prism_bench.backends.cuda.driver import ACCESS_POLICY, PERSISTING_LIMIT
from prism_bench.backends.cuda.stream_order import Operation
from prism_bench.errors import BackendUnavailable

_DOMAINS = (1, 2)  # the driver's calls and the runtime's
_ENTER = 0
_VERSION = re.compile(r"(_v\d+|_ptsz|_ptds)+$")
# By function: where in its packed parameters the stream is; a pair where a parameter points to it.
_WORK: dict[str, tuple[int, ...]] = {
    "cuLaunchKernel": (40,), "cuLaunchCooperativeKernel": (40,), "cuLaunchKernelEx": (0, 32),
    "cuGraphLaunch": (8,), "cuMemcpyAsync": (24,), "cuMemcpyHtoDAsync": (24,), "cuMemcpyDtoHAsync": (24,),
    "cuMemcpyDtoDAsync": (24,), "cuMemcpy2DAsync": (8,), "cuMemcpy3DAsync": (8,), "cuMemcpyPeerAsync": (40,),
    "cuMemsetD8Async": (24,), "cuMemsetD16Async": (24,), "cuMemsetD32Async": (24,), "cuMemsetD2D8Async": (40,),
    "cuMemsetD2D16Async": (40,), "cuMemsetD2D32Async": (40,),
    "cudaLaunchKernel": (48,), "cudaLaunchCooperativeKernel": (48,), "cudaLaunchKernelExC": (0, 32),
    "cudaGraphLaunch": (8,), "cudaMemcpyAsync": (32,), "cudaMemsetAsync": (24,),
}  # fmt: skip
_RECORD = {"cuEventRecord", "cuEventRecordWithFlags", "cudaEventRecord", "cudaEventRecordWithFlags"}  # event, stream
_WAIT = {"cuStreamWaitEvent", "cudaStreamWaitEvent"}  # stream, event
_LIMIT = {"cuCtxSetLimit", "cudaDeviceSetLimit"}  # limit, value
_ATTRIBUTE = {"cuStreamSetAttribute", "cudaStreamSetAttribute"}  # stream, attribute, value


class _Data(ctypes.Structure):
    """CUpti_CallbackData."""

    _fields_ = [
        ("site", ctypes.c_int), ("function", ctypes.c_char_p), ("parameters", ctypes.c_void_p),
        ("returned", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("context", ctypes.c_void_p),
        ("context_id", ctypes.c_uint32), ("data", ctypes.c_void_p), ("id", ctypes.c_uint32),
    ]  # fmt: skip


CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(_Data))


_CALLBACKS: list[Any] = []  # kept: another thread may still be in one when nobody listens any more


@contextmanager
def listening(cupti: Any = None) -> Iterator[list[Operation]]:
    """Give a list that grows by every operation of this process; BackendUnavailable where nobody can listen."""
    cupti, operations, handle = cupti or _library(), [], ctypes.c_void_p()

    def heard(user: object, domain: int, number: int, data: Any) -> None:
        if data.contents.site == _ENTER:
            operation = _operation(data.contents)
            if operation:
                operations.append(operation)

    callback = CALLBACK(heard)
    _CALLBACKS.append(callback)
    status = cupti.cuptiSubscribe(ctypes.byref(handle), callback, None)
    if status:
        raise BackendUnavailable(f"CUPTI does not let this process listen to its launches (error {status})")
    try:
        for domain in _DOMAINS:
            cupti.cuptiEnableDomain(1, handle, domain)
        yield operations
    finally:
        for domain in _DOMAINS:
            cupti.cuptiEnableDomain(0, handle, domain)
        cupti.cuptiUnsubscribe(handle)


def _operation(data: _Data) -> Operation | None:
    """Return the operation behind a call; None if it enqueues nothing."""
    name, at = _VERSION.sub("", data.function.decode()), data.parameters
    if name in _WORK:
        first, *rest = _WORK[name]
        return Operation("work", name, _word(_word(at) + rest[0]) if rest else _word(at + first))
    if name in _RECORD:
        return Operation("record", name, _word(at + 8), _word(at))
    if name in _WAIT:
        return Operation("wait", name, _word(at), _word(at + 8))
    pins = (name in _LIMIT and _number(at) == PERSISTING_LIMIT) or (
        name in _ATTRIBUTE and _number(at + 8) == ACCESS_POLICY
    )
    return Operation("pin", name) if pins else None


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _number(address: int) -> int:
    return ctypes.c_int.from_address(address).value


def _library() -> Any:
    """Return the CUPTI that is loaded already, or the first that is found."""
    for path in chain(_loaded(), _installed()):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise BackendUnavailable("CUPTI's library is not there to listen to launches with")


def _loaded() -> list[str]:
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.is_file() else []
    return sorted({line.split(maxsplit=5)[5] for line in lines if "/libcupti.so" in line})


def _installed() -> Iterator[str]:
    for folder in map(Path, sys.path):
        yield from (str(path) for path in sorted(folder.glob("nvidia/*/lib/libcupti.so.*"), reverse=True))
    for folder in ("lib64", "extras/CUPTI/lib64"):
        yield from (str(path) for path in sorted(Path("/usr/local/cuda", folder).glob("libcupti.so.*")))
    yield from ("libcupti.so.13", "libcupti.so.12")
