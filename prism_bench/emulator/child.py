"""The child process that kernels run in when a crash must not end the caller.

Started as `python -m prism_bench.emulator.child LIBRARY IN OUT GUARDED`: the library, two inherited file descriptors,
and whether buffers come from the sanitizer's allocator. A message is a method's name and its arguments, pickled.
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
    """What the parent may ask for, by method name."""

    def __init__(self, library: Library, make_buffer):
        self._library, self._make_buffer = library, make_buffer

    def launch(self, request, arrays, arguments):
        """Runs a launch, in whose arguments a Place stands for one of the arrays. Gives report and arrays back."""
        passed = [arrays[argument.index] if isinstance(argument, Place) else argument for argument in arguments]
        report = execute(self._library, request, passed, self._make_buffer)
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


def serve(service: Service, questions, answers):
    """Answers until the parent closes its end; an expected error is the answer itself."""
    while True:
        try:
            method, arguments = pickle.load(questions)
        except EOFError:
            return
        try:
            answer = getattr(service, method)(*arguments)
        except PrismBenchError as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


def main(path, questions, answers, guarded):
    """Loads the library and serves it."""
    library = Library(Path(path))
    is_guarded = guarded == "guarded"
    if not is_guarded:
        library.tell_crashes()
    service = Service(library, GuardedBuffer if is_guarded else DeviceBuffer)
    with open(int(questions), "rb") as reading, open(int(answers), "wb") as writing:
        serve(service, reading, writing)


if __name__ == "__main__":
    main(*sys.argv[1:])
