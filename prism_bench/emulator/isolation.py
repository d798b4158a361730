"""The parent's side of a child process: ask, and read what it said when it died."""

import os
import pickle
import subprocess
import sys
import tempfile
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


class Child:
    """A library in a process of its own. The process starts with the first question, and anew after each finding."""

    def __init__(self, path: Path, guarded: bool):
        self._path, self._guarded = path, guarded
        self._process = None
        self._symbols = {}

    def launch(self, request, arguments) -> LaunchReport:
        """As Module.launch; a death of the child is a finding, with the place of its crash."""
        arrays, passed = _unique_arrays(arguments)
        answer = self._ask("launch", request, [_content(array) for array in arrays], passed)
        died = answer is None
        status = self._process.wait() if died else None
        told = read_last_words(self._path, self._process.words(), died, status)
        report, results = answer or (LaunchReport(request.entry), [])
        for array, result in zip(arrays, results, strict=False):
            _content(array)[...] = result
        if told or died:
            self.close()
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
        """Ends the process, if there is one."""
        if self._process is not None:
            self._end()
            self._process = None

    def _ask(self, method, *arguments):
        """The child's answer, or None when it died over the question. Errors that it answers with are raised here."""
        self._start()
        try:
            answer = self._process.ask((method, arguments))
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            return None
        if isinstance(answer, PrismBenchError):
            raise answer
        return answer

    def _start(self):
        if self._process is not None:
            return
        self._process = _Process(self._path, self._guarded)
        # The process goes when this object does, whoever forgets to close it.
        self._end = weakref.finalize(self, self._process.end)
        for name, content in self._symbols.items():
            self._ask("set_symbol", name, content)


class _Process:
    """A running child: a pipe there, a pipe back, and a file for what it says on standard error."""

    def __init__(self, path: Path, guarded: bool):
        child_reads, parent_writes = os.pipe()
        parent_reads, child_writes = os.pipe()
        self._stderr = tempfile.TemporaryFile()
        self._to_child, self._from_child = open(parent_writes, "wb"), open(parent_reads, "rb")
        command = [sys.executable, "-m", f"{__package__}.child", str(path), str(child_reads), str(child_writes)]
        self._process = subprocess.Popen(
            [*command, "guarded" if guarded else "plain"],
            pass_fds=(child_reads, child_writes),
            stdin=subprocess.DEVNULL,
            stderr=self._stderr,
            env=_environment(guarded),
        )
        os.close(child_reads)
        os.close(child_writes)

    def ask(self, question):
        """The answer; EOFError or BrokenPipeError when the child is no more."""
        pickle.dump(question, self._to_child)
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
        """Closes its questions, which ends it, and waits for that."""
        with suppress(BrokenPipeError):
            self._to_child.close()
        self._process.wait()
        self._from_child.close()
        self._stderr.close()


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
