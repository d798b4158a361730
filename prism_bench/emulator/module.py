"""A compiled source: compile it, launch its kernels, set its `__constant__` and `__device__` variables."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import DTypeLike

from prism_bench.compilation.cubin import missing_entry
from prism_bench.emulator.build import MODES, build, flat_code, host_source
from prism_bench.emulator.isolation import Child
from prism_bench.emulator.library import BuiltSource, Extent, LaunchOptions, LaunchRequest, execute, three
from prism_bench.emulator.report import LaunchReport
from prism_bench.errors import CompilationFailed, SpecError


def compile_source(
    path_or_text: Path | str,
    include_dirs: Iterable[Path | str] = (),
    entries: Iterable[str] = (),
    mode: str = "fast",
    defines: Iterable[str] | Mapping[str, object] = (),
    *,
    standard: str = "",
    only_kernels: bool = False,
) -> "Module":
    """Compile a CUDA source for the CPU, or return it from the cache.

    `path_or_text` is a path, or source text (which has a newline). `entries` are names of kernels or template
    instantiations (`softmax<256, float>`). `defines` are `NAME` or `NAME=VALUE`, or a dictionary of them. `standard` is
    a version of C++ after 17, `c++20`.

    Raise CompilationFailed with the compiler's message, BackendUnavailable without a compiler; with `only_kernels`
    raise SpecError for a source whose constructors would run when it is loaded.
    """
    if mode not in MODES:
        raise SpecError(f"mode '{mode}' is none of {', '.join(MODES)}")
    pairs = defines.items() if isinstance(defines, Mapping) else ()
    names = tuple(f"{name}={value}" for name, value in pairs) or tuple(defines)
    folders, entries = tuple(Path(folder) for folder in include_dirs), tuple(entries)
    source = host_source(path_or_text, folders, entries)
    try:
        return Module(build(source.text, mode, names, standard=standard, only_kernels=only_kernels), mode)
    except CompilationFailed as error:
        name = "the source" if isinstance(path_or_text, str) and "\n" in path_or_text else str(path_or_text)
        missing = missing_entry(entries, flat_code(path_or_text, folders), name)
        if missing:
            raise CompilationFailed(missing) from error
        raise


# Loading a library twice returns the same library, with the same blocks and threads inside.
_LOCKS: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)


class Module:
    """The kernels of one source in one mode. Launches of one library do not overlap."""

    def __init__(self, path: Path, mode: str) -> None:
        self.path, self.mode = path, mode
        self._lock = _LOCKS[path]
        self._symbols: dict[str, bytes] = {}
        self._child: Child | None = None
        # A library with the sanitizer can only be loaded by a process that preloaded the sanitizer.
        self._library = None if mode == "address" else BuiltSource(path)

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the kernels that can be launched."""
        return tuple(self._library.signatures) if self._library else self._in_child().entries

    def launch(
        self,
        entry: str,
        grid: Extent,
        block: Extent,
        arguments: Sequence[object],
        *,
        isolate: bool = False,
        **options: Unpack[LaunchOptions],
    ) -> LaunchReport:
        """Run a kernel and return the findings; arrays passed as non-const pointers have its results afterwards.

        `isolate` runs it in a child process, so that a crash does not end this process; address mode always does.
        Raise SpecError if the arguments do not fit the kernel or the device.
        """
        return self.run(LaunchRequest(entry, three(grid), three(block), **options), arguments, isolate=isolate)

    def run(self, request: LaunchRequest, arguments: Sequence[object], *, isolate: bool = False) -> LaunchReport:
        """Run a kernel as `launch` does, with its configuration as one object."""
        with self._lock:
            if isolate or self._library is None:
                return self._in_child().launch(request, arguments)
            return execute(self._library, request, arguments)

    def close(self) -> None:
        """Release the child process, if the module uses one."""
        if self._child is not None:
            self._child.close()

    def set_symbol(self, name: str, value: np.ndarray) -> None:
        """Set a `__constant__` or `__device__` variable; `value` must have its size in bytes."""
        content = np.ascontiguousarray(value).tobytes()
        for home in self._homes():
            home.set_symbol(name, content)
        self._symbols[name] = content

    def get_symbol(self, name: str, dtype: DTypeLike) -> np.ndarray:
        """Return the current content of a `__constant__` or `__device__` variable, from the child if there is one."""
        return np.frombuffer(self._homes()[-1].get_symbol(name), dtype).copy()

    def _homes(self) -> list[BuiltSource | Child]:
        """Return the libraries that have the variables: in this process, in the child, or both."""
        return [home for home in (self._library, self._child) if home] or [self._in_child()]

    def _in_child(self) -> Child:
        if self._child is None:
            self._child = Child(self.path, guarded=self.mode == "address")
            for name, content in self._symbols.items():
                self._child.set_symbol(name, content)
        return self._child
