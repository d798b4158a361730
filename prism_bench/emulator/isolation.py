"""The parent's side of the child processes that kernels run in: ask, and read what one said when it died.

One process serves many libraries of its kind, with the sanitizers or without, until a finding ends it: to start Python
takes far longer than to run a small kernel. It unloads none of them, because the sanitizer does not survive that.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
import weakref
from contextlib import suppress
from pathlib import Path

import numpy as np

from prism_bench.emulator.buffers import DeviceBuffer
from prism_bench.emulator.compiler import sanitizer_library
from prism_bench.emulator.last_words import read_last_words
from prism_bench.emulator.report import LaunchReport
from prism_bench.emulator.request import Place
from prism_bench.errors import PrismBenchError

_SANITIZER = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_ONE_AT_A_TIME = threading.RLock()
_MOST_LIBRARIES = 64  # in one process; each takes some fifty of its 65,530 mappings


class Child:
    """A library in another process. It is loaded with the first question, and anew after each finding."""

    def __init__(self, path: Path, guarded: bool):
        self._path, self._guarded = path, guarded
        self._home = None
        self._symbols = {}

    def launch(self, request, arguments) -> LaunchReport:
        """As Module.launch; a death of the child is a finding, with the place of its crash."""
        arrays, passed = _unique_arrays(arguments)
        with _ONE_AT_A_TIME:
            answer = self._ask("launch", request, [_content(array) for array in arrays], passed)
            told = self._last_words(died=answer is None)
        report, results = answer or (LaunchReport(request.entry), [])
        for array, result in zip(arrays, results, strict=False):
            _content(array)[...] = result
        return LaunchReport(request.entry, (*report.findings, *told), report.traffic)

    @property
    def entries(self) -> tuple[str, ...]:
        """The kernels of the library."""
        return self._ask("entries")

    def set_symbol(self, name: str, content: bytes):
        """Sets a global variable, in this child and in those that follow it."""
        self._ask("set_symbol", name, content)
        self._symbols[name] = content

    def get_symbol(self, name: str) -> bytes:
        """The content of a global variable."""
        return self._ask("get_symbol", name)

    def close(self):
        """Gives the library up; the process goes on with others."""
        self._home = None

    def _ask(self, method, *arguments):
        """The child's answer, or None when it died over the question. Errors that it answers with are raised here."""
        with _ONE_AT_A_TIME:
            try:
                self._settle()
                answer = self._home.ask(self._path, method, arguments)
            except (EOFError, BrokenPipeError, pickle.UnpicklingError):
                return None
        if isinstance(answer, PrismBenchError):
            raise answer
        return answer

    def _settle(self):
        """Loads the library in a process that serves, unless one that has it lives."""
        if self._home is not None and self._home.lives:
            return
        self._home = _serving(self._guarded)
        self._home.load(self._path)
        for name, content in self._symbols.items():
            self._ask("set_symbol", name, content)

    def _last_words(self, died: bool):
        """What the process said of the launch as findings; they are the end of it."""
        status = self._home.wait() if died else None
        told = read_last_words(self._path, self._home.words(), died, status)
        if told or died:
            self._home.end()
        return told


_SERVING: dict[tuple[int, bool], "_Process"] = {}  # by the process that asks, which may be a fork, and by kind


def _serving(guarded: bool) -> "_Process":
    """The process for one more library. A full one ends when nobody asks it any more."""
    key = (os.getpid(), guarded)
    if key not in _SERVING or not _SERVING[key].lives or len(_SERVING[key].libraries) >= _MOST_LIBRARIES:
        _SERVING[key] = _Process(guarded)
    return _SERVING[key]


class _Process:
    """A running child: a pipe there, a pipe back, and a file for what it says on standard error."""

    def __init__(self, guarded: bool):
        child_reads, parent_writes = os.pipe()
        parent_reads, child_writes = os.pipe()
        self.libraries = set()
        self._stderr = tempfile.TemporaryFile()
        self._to_child, self._from_child = open(parent_writes, "wb"), open(parent_reads, "rb")
        command = [sys.executable, "-m", f"{__package__}.child", str(child_reads), str(child_writes)]
        self._process = subprocess.Popen(
            [*command, "guarded" if guarded else "plain"],
            pass_fds=(child_reads, child_writes),
            stdin=subprocess.DEVNULL,
            stderr=self._stderr,
            env=_environment(guarded),
            process_group=0,
        )
        os.close(child_reads)
        os.close(child_writes)
        self._end = weakref.finalize(self, _end, self._process, self._to_child, self._from_child, self._stderr)

    @property
    def lives(self) -> bool:
        """Whether it has not been ended."""
        return self._end.alive

    def load(self, path: Path):
        """Makes a library one of its own; EOFError or BrokenPipeError when the child is no more."""
        self.libraries.add(path)
        self.ask(path, "load", ())

    def ask(self, path: Path, method: str, arguments: tuple):
        """The library's answer; EOFError or BrokenPipeError when the child is no more."""
        pickle.dump((path, method, arguments), self._to_child)
        self._to_child.flush()
        return pickle.load(self._from_child)

    def wait(self) -> int:
        """How the process ended: minus the signal's number where a signal ended it."""
        return self._process.wait()

    def words(self) -> str:
        """All that it has said so far."""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def end(self):
        """Ends it, now and not when nobody asks it any more."""
        self._end()


def _end(process, to_child, from_child, stderr):
    """Closes the child's questions, which ends it, and waits for that."""
    with suppress(BrokenPipeError):
        to_child.close()
    process.wait()
    from_child.close()
    stderr.close()


def _environment(guarded: bool) -> dict:
    path = os.pathsep.join(filter(None, [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
    extra = {**_SANITIZER, "LD_PRELOAD": sanitizer_library()} if guarded else {}
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", **extra}


def _unique_arrays(arguments):
    """Each buffer once, and the arguments with places instead of buffers: one array passed twice stays one."""
    arrays, places, passed = [], {}, []
    for argument in arguments:
        if isinstance(argument, np.ndarray | DeviceBuffer):
            if id(argument) not in places:
                places[id(argument)] = len(arrays)
                arrays.append(argument)
            passed.append(Place(places[id(argument)]))
        else:
            passed.append(argument)
    return arrays, passed


def _content(array) -> np.ndarray:
    return array.array if isinstance(array, DeviceBuffer) else array
