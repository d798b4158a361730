"""The child process in which kernels run when a crash must not end the caller.

Started as `python -m prism_bench.emulator.child CHANNEL KIND`: the inherited descriptor of a socket, and whether
buffers come from the sanitizer's allocator ("guarded"). Each question names its library.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from prism_bench.emulator.isolation import (
    QUESTIONS,
    Answer,
    DoneAnswer,
    EntriesAnswer,
    EntriesQuestion,
    GetSymbolQuestion,
    LaunchAnswer,
    LaunchQuestion,
    LoadQuestion,
    Question,
    SetSymbolQuestion,
    SymbolAnswer,
    unpack_arguments,
)
from prism_bench.emulator.library import BuiltSource, DeviceBuffer, GuardedBuffer, execute, report_crashes
from prism_bench.errors import PrismBenchError
from prism_bench.io.channels import Frame, FrameChannel
from prism_bench.io.workers import Refusal, end_with

_Reply = tuple[Answer, Sequence[np.ndarray]]


class _LoadedLibrary:
    """A library in this process, which answers questions."""

    def __init__(self, path: Path, guarded: bool) -> None:
        self._library, self._guarded = BuiltSource(path), guarded
        self._initial = {name: self._library.get_symbol(name) for name in self._library.symbols}

    def reply(self, question: Question, arrays: Sequence[np.ndarray]) -> _Reply:
        """Return the answer to a question, with its arrays."""
        match question:
            case LaunchQuestion():
                return self._launch(question, arrays)
            case LoadQuestion():
                for name, content in self._initial.items():  # as in a library that was just loaded
                    self._library.set_symbol(name, content)
                return DoneAnswer(), ()
            case EntriesQuestion():
                return EntriesAnswer(tuple(self._library.signatures)), ()
            case SetSymbolQuestion(name=name):
                self._library.set_symbol(name, arrays[0].tobytes())
                return DoneAnswer(), ()
            case GetSymbolQuestion(name=name):
                return SymbolAnswer(), (np.frombuffer(self._library.get_symbol(name), np.uint8),)

    def _launch(self, question: LaunchQuestion, arrays: Sequence[np.ndarray]) -> _Reply:
        """Run a launch and return the buffers that the kernel can write."""
        arguments = unpack_arguments(question.arguments, arrays)
        make_buffer = GuardedBuffer if self._guarded else DeviceBuffer
        report = execute(self._library, question.request, arguments, make_buffer)
        signature = self._library.signatures[question.request.entry]
        pairs = zip(question.arguments, signature, strict=True)
        written = {place.array for place, parameter in pairs if place.map or parameter.is_pointer > parameter.is_const}
        returned = tuple(sorted(index for index in written if index is not None))
        return LaunchAnswer(report, returned), [arrays[index] for index in returned]


class _ChildService:
    """All libraries that this process has loaded, by path."""

    def __init__(self, guarded: bool) -> None:
        self._guarded, self._libraries = guarded, {}

    def reply(self, frame: Frame[Question]) -> _Reply:
        """Return the answer to a question; an expected error becomes a Refusal."""
        path = frame.message.path
        try:
            if path not in self._libraries:
                self._libraries[path] = _LoadedLibrary(Path(path), self._guarded)
            return self._libraries[path].reply(frame.message, frame.arrays)
        except PrismBenchError as error:
            return Refusal.of(error), ()


def main(descriptor: str, kind: str) -> None:
    """Serve until the parent closes the channel; end with the parent even if a launch hangs."""
    end_with(int(descriptor))
    guarded = kind == "guarded"
    if not guarded:
        report_crashes()
    FrameChannel.inherited(int(descriptor)).serve(QUESTIONS, _ChildService(guarded).reply)


if __name__ == "__main__":
    main(*sys.argv[1:])
