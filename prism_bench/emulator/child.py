"""The child process that kernels run in when a crash must not end the caller.

Started as `python -m prism_bench.emulator.child IN OUT KIND`: two inherited file descriptors, and whether buffers come
from the sanitizer's allocator ("guarded"). A message is pickled: the library that is asked, a method's name and its
arguments.
"""

import pickle
import sys
from pathlib import Path

from prism_bench.child import end_with
from prism_bench.emulator.buffers import DeviceBuffer, GuardedBuffer
from prism_bench.emulator.execute import execute, report_crashes
from prism_bench.emulator.library import Library
from prism_bench.emulator.request import Place
from prism_bench.errors import PrismBenchError


class Service:
    """What the parent may ask a library for, by method name."""

    def __init__(self, path: Path, guarded: bool):
        self._library, self._guarded = Library(path), guarded
        self._first = {name: self._library.get_symbol(name) for name in self._library.symbols}

    def load(self):
        """Global variables hold what they held at first, as in a library that was just loaded."""
        for name, content in self._first.items():
            self._library.set_symbol(name, content)

    def launch(self, request, arrays, arguments):
        """Runs a launch, in whose arguments a Place stands for one of the arrays. Gives report and arrays back."""
        passed = [arrays[argument.index] if isinstance(argument, Place) else argument for argument in arguments]
        report = execute(self._library, request, passed, GuardedBuffer if self._guarded else DeviceBuffer)
        return report, arrays

    def entries(self):
        """The library's kernels."""
        return tuple(self._library.signatures)

    def set_symbol(self, name, content):
        """Sets a global variable."""
        self._library.set_symbol(name, content)

    def get_symbol(self, name):
        """The content of a global variable."""
        return self._library.get_symbol(name)


def serve(guarded: bool, questions, answers):
    """Answers until the parent closes its end; an expected error is the answer itself."""
    services = {}
    while True:
        try:
            path, method, arguments = pickle.load(questions)
        except EOFError:
            return
        if path not in services:
            services[path] = Service(path, guarded)
        try:
            answer = getattr(services[path], method)(*arguments)
        except PrismBenchError as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


def main(questions, answers, kind):
    """Serves until there is nobody to ask, and over a launch that never ends no longer than its parent lives."""
    end_with(int(questions))
    if kind != "guarded":
        report_crashes()
    with open(int(questions), "rb") as reading, open(int(answers), "wb") as writing:
        serve(kind == "guarded", reading, writing)


if __name__ == "__main__":
    main(*sys.argv[1:])
