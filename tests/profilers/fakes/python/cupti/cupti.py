"""A CUPTI that needs no GPU: in each window it saw two kernels, a copy, and the calls that brought them.

They stand between the last two times that somebody asked for, which are the ends of the collector's own range.
"""

from enum import IntEnum
from threading import get_ident
from time import perf_counter_ns
from types import SimpleNamespace

KINDS = {"MEMCPY": 1, "MEMSET": 2, "DRIVER": 4, "RUNTIME": 5, "CONCURRENT_KERNEL": 10, "MARKER": 12}
ActivityKind = IntEnum("ActivityKind", KINDS)
driver_api_trace_cbid = IntEnum("driver", {"cuLaunchKernel": 307, "cuMemcpyHtoDAsync_v2": 278})
runtime_api_trace_cbid = IntEnum("runtime", {"cudaLaunchKernel_v7000": 211})
_state = SimpleNamespace(completed=None, asked=[perf_counter_ns()], flushed=0, thread=get_ident())


def activity_register_callbacks(requested, completed):
    _state.completed = completed


def activity_enable(kind):
    pass


def activity_disable(kind):
    pass


def get_timestamp():
    _state.asked.append(perf_counter_ns())
    return _state.asked[-1]


def activity_flush_all(flag):
    _state.flushed += 1
    middle = sum(_state.asked[-2:]) // len(_state.asked[-2:])
    for number, (kind, cbid) in enumerate((("kernel", 307), ("kernel", 307), ("copy", 278)), 10 * _state.flushed):
        call = {"start": middle, "end": middle + 1, "cbid": cbid, "thread_id": _state.thread}
        work = {"start": middle + 100 * number, "end": middle + 100 * number + 8, "device_id": 0}
        one = {"kind": 10, "name": "played"} if kind == "kernel" else {"kind": 1, "bytes": 4096}
        records = ({"kind": 4, **call}, {**work, **one})
        _state.completed([SimpleNamespace(**record, correlation_id=number) for record in records])


def activity_get_num_dropped_records(context, stream, address):
    pass
