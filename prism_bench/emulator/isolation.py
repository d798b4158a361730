"""The parent's side of the child processes in which kernels run: crashes as findings, messages, processes."""

import os
import re
import signal
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from prism_bench.emulator.build import sanitizer_library
from prism_bench.emulator.library import (
    EMULATED,
    DeviceBuffer,
    LaunchRequest,
    MappedBuffer,
    NotAnArgument,
    describe,
    is_of_emulator,
    locate,
)
from prism_bench.emulator.report import Access, LaunchFinding, LaunchReport
from prism_bench.errors import BackendUnavailable
from prism_bench.io.channels import Frame, FrameError, can_be_sent
from prism_bench.io.workers import FrameWorker, Refusal, WorkerEnvironment
from prism_bench.spec.launch import TensorMap

# A child's standard error, with sanitizers' reports and crashes, as findings.

_ADDRESS = re.compile(r"ERROR: AddressSanitizer: (?P<error>.+)")
_UNDEFINED = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):\d+: runtime error: (?P<error>.+)$", re.MULTILINE)
_UNDEFINED_KINDS = (
    ("misaligned", "misaligned"),
    ("out of bounds", "out of bounds"),
    ("insufficient space", "out of bounds"),
)
_FRAME = re.compile(r"^\s+#\d+ 0x[0-9a-f]+ .*?(?P<file>/?[^\s():]+):(?P<line>\d+)(?::\d+)?\s*$", re.MULTILINE)
_SIZE = re.compile(r"^(?P<verb>READ|WRITE) of size (?P<bytes>\d+)", re.MULTILINE)
_PLACE = re.compile(r"is located (?P<where>.+?)(?: \[0x.*| \(0x.*)?$", re.MULTILINE)
_CRASH = re.compile(r"^crashed-at (\d+) 0x([0-9a-f]+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$", re.MULTILINE)
_EMULATED = re.compile(rf"^{EMULATED}(.+)$", re.MULTILINE)


def crash_in(text: str) -> LaunchFinding | None:
    """Return the crash that a process reported about one of its libraries, with its line, or None."""
    report = _CRASH.search(text)
    libraries = _EMULATED.findall(text[: report.start()]) if report else []
    return next(_crash(Path(libraries[-1]), text), None) if libraries else None


def _address(text: str) -> Iterator[LaunchFinding]:
    report = _ADDRESS.search(text)
    if not report:
        return
    rest = text[report.start() :]
    error, size, place = report["error"].split(" on ")[0], _SIZE.search(rest), _PLACE.search(rest)
    message = error + (f", {size['verb'].lower()} of {size['bytes']} bytes" if size else "")
    message += f", {place['where']}" if place else ""
    kind = "crash" if error.startswith(("SEGV", "stack-overflow", "FPE")) else "out of bounds"
    yield LaunchFinding(kind, message, _first_frame(rest, bool(size and size["verb"] == "WRITE")))


def _undefined(text: str) -> Iterator[LaunchFinding]:
    for report in _UNDEFINED.finditer(text):
        error = report["error"]
        kind = next((kind for text, kind in _UNDEFINED_KINDS if text in error), "undefined behaviour")
        if is_of_emulator(report["file"]):
            accesses = _first_frame(text[report.end() :])
        else:
            accesses = (Access(report["file"], int(report["line"])),)
        yield LaunchFinding(kind, error, accesses)


def _first_frame(text: str, is_write: bool = False) -> tuple[Access, ...]:
    """Return the innermost frame in a file of the kernel's author, or nothing."""
    for frame in _FRAME.finditer(text):
        if not is_of_emulator(frame["file"]):
            return (Access(frame["file"], int(frame["line"]), is_write=is_write),)
    return ()


def _crash(library: Path, text: str) -> Iterator[LaunchFinding]:
    report = _CRASH.search(text)
    if not report:
        return
    number, code = int(report[1]), int(report[2], 16)
    bx, by, bz, tx, ty, tz = map(int, report.groups()[2:])
    file, line = locate(library, {code}).get(code, ("", 0))
    reason = ": a vector at a misaligned address, or a number that is no address" if number == signal.SIGBUS else ""
    yield LaunchFinding(
        "crash",
        f"the kernel crashed ({signal.Signals(number).name}){reason}",
        (Access(file, line, (bx, by, bz), (tx, ty, tz)),),
    )


# Messages to and from the child process.
#
# Arrays follow the message in the same frame. A message has no code: the child runs kernels as native code, so its
# answers are checked like any other input from outside.


class ArgumentPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Place of an argument of a launch: the index of the frame's array, passed as an array, a scalar or a tensor map.

    An argument that no kernel accepts has no array, only a description for the error message.
    """

    array: int | None
    is_scalar: bool = False
    description: str = ""
    map: TensorMap | None = None


class LoadQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Load the library, with the initial values of its global variables."""

    path: str


class LaunchQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Launch a kernel of the library; buffers and scalars are the frame's arrays."""

    path: str
    request: LaunchRequest
    arguments: tuple[ArgumentPlace, ...]


class EntriesQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """List the kernels of the library."""

    path: str


class SetSymbolQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Set a global variable to the bytes of the frame's array."""

    path: str
    name: str


class GetSymbolQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Return the content of a global variable."""

    path: str
    name: str


class DoneAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Answer that the library was loaded or the variable set."""


class LaunchAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The report of a launch; the frame's arrays are the question's arrays at the indexes `returned`."""

    report: LaunchReport
    returned: tuple[int, ...]


class EntriesAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The kernels of the library."""

    names: tuple[str, ...]


class SymbolAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The content of the variable, in the frame's array."""


Question = LoadQuestion | LaunchQuestion | EntriesQuestion | SetSymbolQuestion | GetSymbolQuestion
Answer = DoneAnswer | LaunchAnswer | EntriesAnswer | SymbolAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
ANSWERS: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)

Argument = np.ndarray | DeviceBuffer | MappedBuffer | np.generic | NotAnArgument


def pack_arguments(arguments: Sequence[object]) -> tuple[tuple[ArgumentPlace, ...], list[np.ndarray]]:
    """Return the place of each argument, and the arrays to send; an array that is passed twice is sent once."""
    arrays: list[np.ndarray] = []
    indexes: dict[int, int] = {}
    places = []
    for passed in arguments:
        argument, tensor_map = (passed.buffer, passed.wanted) if isinstance(passed, MappedBuffer) else (passed, None)
        content = _content_of(argument)
        if content is None:
            places.append(ArgumentPlace(None, description=describe(argument)))
            continue
        if id(argument) not in indexes:
            indexes[id(argument)] = len(arrays)
            arrays.append(content)
        places.append(ArgumentPlace(indexes[id(argument)], isinstance(argument, np.generic), map=tensor_map))
    return tuple(places), arrays


def _content_of(argument: object) -> np.ndarray | None:
    """Return the content of a buffer, array or scalar as an array; None if it cannot be sent."""
    if isinstance(argument, DeviceBuffer):
        return argument.array
    if isinstance(argument, np.ndarray | np.generic) and can_be_sent(argument.dtype):
        return np.asarray(argument)
    return None


def unpack_arguments(places: Sequence[ArgumentPlace], arrays: Sequence[np.ndarray]) -> list[Argument]:
    """Return the arguments of a launch from the arrays of its frame."""
    arguments: list[Argument] = []
    for place in places:
        if place.array is None:
            arguments.append(NotAnArgument(place.description))
        else:
            array = arrays[place.array]
            mapped = MappedBuffer(array, place.map) if place.map else array
            arguments.append(array[()] if place.is_scalar else mapped)
    return arguments


# Child processes.
#
# A process serves many libraries of its kind, with the sanitizers or without, until a finding ends it, because starting
# Python takes far longer than running a small kernel. It unloads no library, because the sanitizer does not survive
# that.

_SANITIZER = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
_ONE_AT_A_TIME = threading.RLock()
_MOST_LIBRARIES = 64  # of one process; each takes about 50 of its 65,530 mappings
_END_SECONDS = 10.0  # for a child to end after its channel was closed
_LARGEST_SYMBOL = 4 << 30  # bytes
_Expected = TypeVar("_Expected", bound=Answer)


class ChildDied(Exception):
    """The child ended during a question, or sent a message that is no answer to it."""


class Child:
    """A library in another process. It is loaded for the first question, and again after each finding."""

    def __init__(self, path: Path, guarded: bool) -> None:
        self._path, self._guarded = path, guarded
        self._process: _ChildProcess | None = None
        self._symbols: dict[str, bytes] = {}

    def launch(self, request: LaunchRequest, arguments: Sequence[object]) -> LaunchReport:
        """Run a launch; a death of the child is a finding, with the place of its crash."""
        places, arrays = pack_arguments(arguments)
        question = LaunchQuestion(str(self._path), request, places)
        with _ONE_AT_A_TIME:
            try:
                frame = self._ask(question, arrays, LaunchAnswer)
                _copy_back(frame, arrays)
            except ChildDied as death:
                return LaunchReport(request.entry, self._findings(str(death)))
            report = frame.message.report
            return LaunchReport(request.entry, (*report.findings, *self._findings()), report.traffic)

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the kernels of the library."""
        return self._require(EntriesQuestion(str(self._path)), EntriesAnswer).message.names

    def set_symbol(self, name: str, content: bytes) -> None:
        """Set a global variable, in this process and in later processes."""
        self._require(SetSymbolQuestion(str(self._path), name), DoneAnswer, content)
        self._symbols[name] = content

    def get_symbol(self, name: str) -> bytes:
        """Return the content of a global variable."""
        (content,) = self._require(GetSymbolQuestion(str(self._path), name), SymbolAnswer).arrays
        return content.tobytes()

    def close(self) -> None:
        """Release the process, which continues with other libraries."""
        self._process = None

    def _require(self, question: Question, expected: type[_Expected], content: bytes | None = None) -> Frame[_Expected]:
        """Return the answer to a question that runs no kernel; raise BackendUnavailable if the child died."""
        arrays = () if content is None else (np.frombuffer(content, np.uint8),)
        with _ONE_AT_A_TIME:
            try:
                return self._ask(question, arrays, expected)
            except ChildDied as death:
                findings = "; ".join(map(str, self._findings(str(death))))
                raise BackendUnavailable(f"the emulator's process gave no answer: {findings}") from death

    def _ask(self, question: Question, arrays: Sequence[np.ndarray], expected: type[_Expected]) -> Frame[_Expected]:
        """Return the child's answer, or raise the error that it answers; raise ChildDied without an answer."""
        try:
            return self._loaded().ask(question, arrays, expected)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise ChildDied("") from None
        except FrameError as error:
            raise ChildDied(f"it sent no answer: {error}") from error

    def _loaded(self) -> "_ChildProcess":
        """Return the process that has loaded the library; another process if the last one ended."""
        if self._process is not None and self._process.is_running:
            return self._process
        # A full process ends when no library uses it any more.
        key = (os.getpid(), self._guarded, _BLOCK.get())
        serving = _SERVING.get(key)
        if serving is None or not serving.is_running or len(serving.libraries) >= _MOST_LIBRARIES:
            serving = _SERVING[key] = _ChildProcess(self._guarded)
        path, self._process = str(self._path), serving
        serving.libraries.add(self._path)
        serving.ask(LoadQuestion(path), (), DoneAnswer)
        for name, content in self._symbols.items():
            serving.ask(SetSymbolQuestion(path, name), (np.frombuffer(content, np.uint8),), DoneAnswer)
        return serving

    def _findings(self, reason: str | None = None) -> tuple[LaunchFinding, ...]:
        """Return the findings that the process wrote about the launch, and end the process if there are any.

        A `reason`, which may be empty, means that the process died or cannot be used any more. A death that its output
        does not explain is a finding too.
        """
        process, died = self._process, reason is not None
        if process is None:
            return ()
        status = process.ended(now=bool(reason)) if died else None
        text = process.worker.stderr_text() + (f"\n{reason}" if reason else "")
        findings = [*_undefined(text), *_address(text), *_crash(self._path, text)]
        if died and not any(finding.kind != "undefined behaviour" for finding in findings):
            ending = "how is not known" if status is None else f"exit status {status}"
            ending = signal.Signals(-status).name if status is not None and status < 0 else ending
            message = f"the kernel's process ended ({ending}): {text.strip()[-300:]}"
            findings.append(LaunchFinding("crash", message))
        if findings or died:
            process.end()
        return tuple(findings)


def _copy_back(frame: Frame[LaunchAnswer], arrays: Sequence[np.ndarray]) -> None:
    """Copy the arrays of an answer into the arrays that were sent; raise ChildDied if they do not match."""
    returned = frame.message.returned
    if len(returned) != len(frame.arrays) or not set(returned) <= set(range(len(arrays))):
        raise ChildDied("it returned other arrays than it was sent")
    pairs = [(arrays[index], result) for index, result in zip(returned, frame.arrays, strict=True)]
    if any((sent.shape, sent.nbytes) != (result.shape, result.nbytes) for sent, result in pairs):
        raise ChildDied("it returned arrays of other shapes or types than it was sent")
    for sent, result in pairs:
        if sent.size:
            sent[...] = result.view(sent.dtype)


# By the asking process, which may be a fork, by kind, and by the block of `own_children`.
_SERVING: dict[tuple[int, bool, object], "_ChildProcess"] = {}
_BLOCK: ContextVar[object] = ContextVar("block", default=None)


@contextmanager
def own_children() -> Iterator[None]:
    """Run this thread's launches in the block in separate processes that end with the block."""
    block = object()
    token = _BLOCK.set(block)
    try:
        yield
    finally:
        _BLOCK.reset(token)
        for key in [key for key in _SERVING if key[2] is block]:
            _SERVING.pop(key).end()


class _ChildProcess:
    """A running child and the libraries that it has loaded."""

    def __init__(self, guarded: bool) -> None:
        self.libraries: set[Path] = set()
        self.worker = FrameWorker(_environment(guarded), ["guarded" if guarded else "plain"])
        self._end = weakref.finalize(self, self.worker.finish, _END_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._end.alive

    def ask(self, question: Question, arrays: Sequence[np.ndarray], expected: type[_Expected]) -> Frame[_Expected]:
        """Return the answer, which has the expected type and arrays up to the size of the question's or a variable's.

        Raise EOFError, BrokenPipeError or ConnectionResetError if the child has ended, FrameError for other answers.
        """
        largest = _LARGEST_SYMBOL if expected is SymbolAnswer else sum(array.nbytes for array in arrays)
        try:
            self.worker.channel.send(question, arrays)
            frame = self.worker.channel.receive(ANSWERS, largest=largest)
        except KeyboardInterrupt:
            self.worker.kill()  # a late answer would be mistaken for the next question's
            self.end()
            raise
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        if not isinstance(frame.message, expected):
            raise FrameError(f"{type(frame.message).__name__} does not answer {type(question).__name__}")
        return Frame(frame.message, frame.arrays)

    def ended(self, now: bool) -> int | None:
        """Return the exit status of the process, or minus the number of the signal that ended it; `now` kills it."""
        if now:
            self.worker.kill()
        return self.worker.wait()

    def end(self) -> None:
        """End the process now, even if other libraries use it."""
        self._end()


def _environment(guarded: bool) -> WorkerEnvironment:
    variables = {"OPENBLAS_NUM_THREADS": "1"}
    if guarded:
        variables |= {**_SANITIZER, "LD_PRELOAD": sanitizer_library()}
    return WorkerEnvironment(f"{__package__}.child", variables=variables)
