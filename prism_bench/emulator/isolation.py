"""The parent's side of a child process: ask, and read what it said when it died."""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from prism_bench.emulator.buffers import DeviceBuffer
from prism_bench.emulator.compiler import sanitizer_library
from prism_bench.emulator.last_words import read_last_words
from prism_bench.emulator.report import LaunchReport
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
        arrays, indices = _unique_arrays(arguments)
        answer = self._ask("launch", request, [_content(array) for array in arrays], indices)
        died = answer is None
        if died:
            self._process.wait()
        told = read_last_words(self._path, self._words(), died, self._process.poll())
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
        if self._process is None:
            return
        self._to_child.close()
        self._process.wait()
        self._from_child.close()
        self._stderr.close()
        self._process = None

    def _ask(self, method, *arguments):
        """The child's answer, or None when it died over the question. Errors that it answers with are raised here."""
        self._start()
        try:
            pickle.dump((method, arguments), self._to_child)
            self._to_child.flush()
            answer = pickle.load(self._from_child)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            return None
        if isinstance(answer, PrismBenchError):
            raise answer
        return answer

    def _start(self):
        if self._process is not None:
            return
        child_reads, parent_writes = os.pipe()
        parent_reads, child_writes = os.pipe()
        self._stderr = tempfile.TemporaryFile()
        command = [sys.executable, "-m", __package__ + ".child", str(self._path), str(child_reads), str(child_writes)]
        self._process = subprocess.Popen(
            [*command, "guarded" if self._guarded else "plain"],
            pass_fds=(child_reads, child_writes), stdin=subprocess.DEVNULL, stderr=self._stderr,
            env=self._environment(),
        )  # fmt: skip
        os.close(child_reads)
        os.close(child_writes)
        self._to_child, self._from_child = open(parent_writes, "wb"), open(parent_reads, "rb")
        for name, content in self._symbols.items():
            self._ask("set_symbol", name, content)

    def _environment(self) -> dict:
        path = os.pathsep.join(filter(None, [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
        extra = {**_SANITIZER, "LD_PRELOAD": sanitizer_library()} if self._guarded else {}
        return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", **extra}

    def _words(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")


def _unique_arrays(arguments):
    """Each buffer once, and the arguments with indices in place of buffers: one array passed twice stays one."""
    arrays, places, indices = [], {}, []
    for argument in arguments:
        if isinstance(argument, np.ndarray | DeviceBuffer):
            if id(argument) not in places:
                places[id(argument)] = len(arrays)
                arrays.append(argument)
            indices.append(places[id(argument)])
        else:
            indices.append(argument)
    return arrays, indices


def _content(array) -> np.ndarray:
    return array.array if isinstance(array, DeviceBuffer) else array
