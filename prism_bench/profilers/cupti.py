"""CUPTI's activity records, live and in this process, as a timeline: no ncu, no nsys, no permission for counters.

Records are turned into rows when CUPTI hands a full buffer over, not while work is launched. One process can be watched
by one tool at a time. Watching costs the host time at every launch: what is watched is counted, never timed for a
benchmark.
"""

import ctypes
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from prism_bench.errors import BackendUnavailable, MeasurementInvalid
from prism_bench.io.installation import pip_install
from prism_bench.profilers.timeline import COPY, KERNEL, SET, Timeline, timeline_of
from prism_bench.units import count_text

_BUFFER_BYTES = 8 << 20
_START_FLAG, _END_FLAG = 2, 4  # of markers: CUPTI_ACTIVITY_FLAG_MARKER_START and _END


class ActivityCollector:
    """Watches this process inside a `with` block; afterwards `timeline` has what happened in it.

    It may be entered again. `runtime` also records the runtime's calls, for programs that launch
    through it. Ranges that the program pushes itself are seen where NVTX_INJECTION64_PATH named CUPTI's library at its
    start.
    """

    def __init__(self, runtime: bool = False, api: Any = None) -> None:
        self._api = api or _load()
        kinds = self._api.ActivityKind
        self._readers = {
            kinds.CONCURRENT_KERNEL: self._kernel,
            kinds.MEMCPY: self._transfer(COPY),
            kinds.MEMSET: self._transfer(SET),
            kinds.DRIVER: self._call("driver_api_trace_cbid"),
            kinds.RUNTIME: self._call("runtime_api_trace_cbid"),
            kinds.MARKER: self._marker,
        }
        self._kinds = [kind for kind in self._readers if runtime or kind != kinds.RUNTIME]
        self._work, self._calls, self._ranges, self._open, self._names = [], [], [], {}, {}
        self._warm_ups = []
        self._failure = None
        self._api.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._take)

    def __enter__(self) -> Self:
        for kind in self._kinds:
            self._api.activity_enable(kind)
        return self

    def __exit__(self, *exception: object) -> None:
        """Collect the records; the device must be idle, because records of unfinished work would be missing."""
        self._api.activity_flush_all(1)
        for kind in self._kinds:
            self._api.activity_disable(kind)

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """Yield a named range of this thread, without NVTX."""
        start = self._api.get_timestamp()
        try:
            yield
        finally:
            end = self._api.get_timestamp()
            self._ranges.append((start, end, self._name(name), 0, _thread(threading.get_ident())))

    @contextmanager
    def warm_up(self) -> Iterator[None]:
        """Yield while CUPTI watches without a record in the timeline, so that its buffers exist afterwards."""
        start = self._api.get_timestamp()
        yield
        self._warm_ups.append((start, self._api.get_timestamp()))

    def timeline(self) -> Timeline:
        """Return what was seen. MeasurementInvalid where CUPTI dropped records, or saw no work at all."""
        if self._failure:
            raise self._failure
        count = ctypes.c_size_t()
        self._api.activity_get_num_dropped_records(0, 0, ctypes.addressof(count))
        dropped = count.value
        if dropped:
            raise MeasurementInvalid(f"CUPTI dropped {count_text(dropped, 'record')}; watch fewer launches at a time")
        work, calls = self._outside_warm_ups(self._work), self._outside_warm_ups(self._calls)
        if not work:
            raise MeasurementInvalid("CUPTI saw no kernel, copy or set; is another profiler attached to this process?")
        facts = {"source": f"process {os.getpid()}", "tool": "cupti", "version": _version()}
        return timeline_of(work, calls, self._ranges, self._names, **facts)

    def _outside_warm_ups(self, records: Iterable[Any]) -> list[tuple[int, ...]]:
        """Those that do not begin in a warm-up."""
        return [one for one in records if not any(start <= one[0] <= end for start, end in self._warm_ups)]

    def _take(self, records: Iterable[Any]) -> None:
        """Handle a callback of CUPTI, which swallows exceptions: keep the first one until the timeline is read."""
        try:
            for record in records:
                read = self._readers.get(record.kind)
                if read:
                    read(record)
        except Exception as error:
            self._failure = self._failure or error

    def _name(self, text: str) -> int:
        return self._names.setdefault(text, len(self._names))

    def _kernel(self, one: Any) -> None:
        name, device = self._name(one.name), one.device_id
        self._work.append((one.start, one.end, device, KERNEL, name, 0, one.correlation_id, 0))

    def _transfer(self, kind: int) -> Callable[[Any], None]:
        def read(one: Any) -> None:
            self._work.append((one.start, one.end, one.device_id, kind, -1, one.bytes, one.correlation_id, 0))

        return read

    def _call(self, numbering: str) -> Callable[[Any], None]:
        def read(one: Any) -> None:
            name = self._name(_call_name(getattr(self._api, numbering), one.cbid))
            self._calls.append((one.start, one.end, name, one.correlation_id, 0, _thread(one.thread_id)))

        return read

    def _marker(self, one: Any) -> None:
        """Record the start or end of a range; an end has no name, but the id of its start."""
        if one.flags_ & _START_FLAG:
            self._open[one.id] = one.timestamp, one.name, one.object_id.pt.thread_id
        elif one.flags_ & _END_FLAG and one.id in self._open:
            start, name, thread = self._open.pop(one.id)
            self._ranges.append((start, one.timestamp, self._name(name), 0, _thread(thread)))


def _call_name(numbering: Callable[[int], Any], number: int) -> str:
    try:
        return numbering(number).name
    except ValueError:
        return f"call {number}"


def _thread(number: int) -> int:
    """Return the id of the thread. CUPTI cuts those of pthreads to 32 bits; the lower 31 distinguish threads."""
    return number & 0x7FFFFFFF


def _version() -> str | None:
    try:
        return metadata.version("cupti-python")
    except metadata.PackageNotFoundError:
        return None


def _load() -> Any:
    try:
        from cupti import cupti  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs
    except ImportError as error:
        raise BackendUnavailable(
            f"CUPTI is not there ({error}); {pip_install('cupti')} on a machine with an NVIDIA driver; "
            "'prism-bench ledger --from FILE' reads captures of nsys without it"
        ) from None
    return cupti


def injection_library() -> str | None:
    """Return the library that NVTX must find in NVTX_INJECTION64_PATH to report ranges; None if it is not found."""
    package = find_spec("cupti")
    if package is None or not package.origin:
        return None
    installed = Path(package.origin).parent.parent.glob("nvidia/*/lib/libcupti.so.*")
    found = [*sorted(installed), *sorted(Path("/usr/local/cuda/lib64").glob("libcupti.so.*"))]
    return str(found[0]) if found else None
