"""The child process that kernels run in when a crash must not end the caller.

Started as `python -m prism_bench.emulator.child IN OUT KIND`: two inherited file descriptors, and whether buffers come
from the sanitizer's allocator ("guarded"). A message is pickled: the libraries that nobody wants any more, the one that
is asked, a method's name and its arguments.
"""

import pickle
import sys
from pathlib import Path

from prism_bench.emulator.buffers import DeviceBuffer, GuardedBuffer
from prism_bench.emulator.execute import execute
from prism_bench.emulator.library import Library
from prism_bench.emulator.request import Place
from prism_bench.errors import PrismBenchError


class Service:
    """What the parent may ask a library for, by method name."""

    def __init__(self, path: Path, guarded: bool):
        self._library, self._guarded, self._users = Library(path), guarded, 0

    def load(self):
        """One more asks for it."""
        self._users += 1

    def leave(self) -> bool:
        """One asks no more; whether that was the last."""
        self._users -= 1
        return self._users == 0

    def launch(self, request, arrays, arguments):
        """Runs a launch, in whose arguments a Place stands for one of the arrays. Gives report and arrays back."""
        if not self._guarded:
            self._library.tell_crashes()
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
            unwanted, path, method, arguments = pickle.load(questions)
        except EOFError:
            return
        for one in unwanted:
            if services[one].leave():
                del services[one]
        if path not in services:
            services[path] = Service(path, guarded)
        try:
            answer = getattr(services[path], method)(*arguments)
        except PrismBenchError as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


def main(questions, answers, kind):
    """Serves until there is nobody to ask."""
    with open(int(questions), "rb") as reading, open(int(answers), "wb") as writing:
        serve(kind == "guarded", reading, writing)


if __name__ == "__main__":
    main(*sys.argv[1:])
