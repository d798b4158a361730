"""CUPTI's activity records of this process as a timeline, without ncu, nsys or permission for counters.

Records become rows when CUPTI delivers a full buffer, not while work is launched. Only one tool at a time can watch a
process. Watching costs host time at every launch, so a watched launch is never timed for a benchmark.
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
    """Recorder of this process's activity inside a `with` block; `timeline` returns the activity afterwards.

    It may be entered again. `runtime` also records the runtime's calls, for programs that launch through it. Ranges
    that the program pushes itself are recorded if NVTX_INJECTION64_PATH named CUPTI's library at its start.
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
        """Collect the records; the device must be idle, or records of unfinished work would be missing."""
        self._api.activity_flush_all(1)
        for kind in self._kinds:
            self._api.activity_disable(kind)

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """Record a named range of this thread, without NVTX."""
        start = self._api.get_timestamp()
        try:
            yield
        finally:
            end = self._api.get_timestamp()
            self._ranges.append((start, end, self._name(name), 0, _thread(threading.get_ident())))

    @contextmanager
    def warm_up(self) -> Iterator[None]:
        """Leave the block's records out of the timeline; CUPTI's buffers exist after it."""
        start = self._api.get_timestamp()
        yield
        self._warm_ups.append((start, self._api.get_timestamp()))

    def timeline(self) -> Timeline:
        """Return the recorded activity; raise MeasurementInvalid if CUPTI dropped records or recorded no work."""
        if self._failure:
            raise self._failure
        dropped = ctypes.c_size_t()
        self._api.activity_get_num_dropped_records(0, 0, ctypes.addressof(dropped))
        if dropped.value:
            raise MeasurementInvalid(
                f"CUPTI dropped {count_text(dropped.value, 'record')}; watch fewer launches at a time"
            )
        work, calls = self._outside_warm_ups(self._work), self._outside_warm_ups(self._calls)
        if not work:
            raise MeasurementInvalid("CUPTI saw no kernel, copy or set; is another profiler attached to this process?")
        facts = {"source": f"process {os.getpid()}", "tool": "cupti", "version": _version()}
        return timeline_of(work, calls, self._ranges, self._names, **facts)

    def _outside_warm_ups(self, records: Iterable[Any]) -> list[tuple[int, ...]]:
        return [record for record in records if not any(start <= record[0] <= end for start, end in self._warm_ups)]

    def _take(self, records: Iterable[Any]) -> None:
        """Handle a callback of CUPTI, which swallows exceptions: keep the first until the timeline is read."""
        try:
            for record in records:
                read = self._readers.get(record.kind)
                if read:
                    read(record)
        except Exception as error:
            self._failure = self._failure or error

    def _name(self, text: str) -> int:
        return self._names.setdefault(text, len(self._names))

    def _kernel(self, record: Any) -> None:
        name = self._name(record.name)
        self._work.append((record.start, record.end, record.device_id, KERNEL, name, 0, record.correlation_id, 0))

    def _transfer(self, kind: int) -> Callable[[Any], None]:
        def read(record: Any) -> None:
            self._work.append(
                (record.start, record.end, record.device_id, kind, -1, record.bytes, record.correlation_id, 0)
            )

        return read

    def _call(self, numbering: str) -> Callable[[Any], None]:
        def read(record: Any) -> None:
            try:
                text = getattr(self._api, numbering)(record.cbid).name
            except ValueError:
                text = f"call {record.cbid}"
            name = self._name(text)
            self._calls.append((record.start, record.end, name, record.correlation_id, 0, _thread(record.thread_id)))

        return read

    def _marker(self, record: Any) -> None:
        """Record the start or end of a range; an end has no name, but the id of its start."""
        if record.flags_ & _START_FLAG:
            self._open[record.id] = record.timestamp, record.name, record.object_id.pt.thread_id
        elif record.flags_ & _END_FLAG and record.id in self._open:
            start, name, thread = self._open.pop(record.id)
            self._ranges.append((start, record.timestamp, self._name(name), 0, _thread(thread)))


def _thread(number: int) -> int:
    """Return the id of the thread: CUPTI cuts ids of pthreads to 32 bits; the lower 31 distinguish threads."""
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
            "'prism-bench profile FILE' reads captures of nsys without it"
        ) from None
    return cupti


def injection_library() -> str | None:
    """Return the library that NVTX_INJECTION64_PATH must name for NVTX to report ranges; None without it."""
    package = find_spec("cupti")
    if package is None or not package.origin:
        return None
    installed = Path(package.origin).parent.parent.glob("nvidia/*/lib/libcupti.so.*")
    libraries = [*sorted(installed), *sorted(Path("/usr/local/cuda/lib64").glob("libcupti.so.*"))]
    return str(libraries[0]) if libraries else None
