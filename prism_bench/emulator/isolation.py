"""The parent's side of the child processes that kernels run in: questions, answers and crashes."""

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
from prism_bench.emulator.library import EMULATED, DeviceBuffer, LaunchRequest, NotAnArgument, describe, is_own, locate
from prism_bench.emulator.report import Access, LaunchFinding, LaunchReport
from prism_bench.errors import BackendUnavailable
from prism_bench.io.channels import Frame, FrameError, can_be_sent
from prism_bench.io.workers import FrameWorker, Refusal, WorkerEnvironment

# What a child process wrote to standard error, sanitizers' reports and crashes, as findings.

_ADDRESS = re.compile(r"ERROR: AddressSanitizer: (?P<what>.+)")
_UNDEFINED = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):\d+: runtime error: (?P<what>.+)$", re.MULTILINE)
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


def _read_last_words(library: Path, text: str, died: bool, status: int | None) -> tuple[LaunchFinding, ...]:
    """Return the findings in `text`; a death that the text does not explain is one too."""
    found = [*_undefined(text), *_address(text), *_crash(library, text)]
    if died and not any(finding.kind != "undefined behaviour" for finding in found):
        found.append(LaunchFinding("crash", f"the kernel's process ended ({_ending(status)}): {text.strip()[-300:]}"))
    return tuple(found)


def crash_in(text: str) -> LaunchFinding | None:
    """Return the crash that a process reported about one of its libraries, with its line; None without one."""
    report = _CRASH.search(text)
    libraries = _EMULATED.findall(text[: report.start()]) if report else []
    return next(_crash(Path(libraries[-1]), text), None) if libraries else None


def _address(text: str) -> Iterator[LaunchFinding]:
    report = _ADDRESS.search(text)
    if not report:
        return
    rest = text[report.start() :]
    what, size, place = report["what"].split(" on ")[0], _SIZE.search(rest), _PLACE.search(rest)
    message = what + (f", {size['verb'].lower()} of {size['bytes']} bytes" if size else "")
    message += f", {place['where']}" if place else ""
    kind = "crash" if what.startswith(("SEGV", "stack-overflow", "FPE")) else "out of bounds"
    yield LaunchFinding(kind, message, _first_frame(rest, bool(size and size["verb"] == "WRITE")))


def _undefined(text: str) -> Iterator[LaunchFinding]:
    for report in _UNDEFINED.finditer(text):
        what = report["what"]
        kind = next((kind for words, kind in _UNDEFINED_KINDS if words in what), "undefined behaviour")
        if is_own(report["file"]):
            accesses = _first_frame(text[report.end() :])
        else:
            accesses = (Access(report["file"], int(report["line"])),)
        yield LaunchFinding(kind, what, accesses)


def _first_frame(text: str, is_write: bool = False) -> tuple[Access, ...]:
    """Return the innermost frame in a file of the kernel author's, or nothing."""
    for frame in _FRAME.finditer(text):
        if not is_own(frame["file"]):
            return (Access(frame["file"], int(frame["line"]), is_write=is_write),)
    return ()


def _crash(library: Path, text: str) -> Iterator[LaunchFinding]:
    report = _CRASH.search(text)
    if not report:
        return
    number, code = int(report[1]), int(report[2], 16)
    bx, by, bz, tx, ty, tz = map(int, report.groups()[2:])
    file, line = locate(library, {code}).get(code, ("", 0))
    yield LaunchFinding(
        "crash",
        f"the kernel crashed ({signal.Signals(number).name})",
        (Access(file, line, (bx, by, bz), (tx, ty, tz)),),
    )


def _ending(status: int | None) -> str:
    if status is None:
        return "how is not known"
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"


# Messages between a process that launches kernels and the child process that runs them.
#
# Arrays travel behind the message, in the same frame. Nothing in a message is code: the child runs kernels as native
# code, so its answers are checked like anything else from outside.


class ArgumentPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where one argument of a launch is: the frame's array of that index, as it is or as a scalar.

    An argument that no kernel takes has no array, only the description that an error message needs.
    """

    array: int | None
    is_scalar: bool = False
    description: str = ""


class LoadQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Load the library, with its global variables as they were at first."""

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
    """The library was loaded or the variable set."""


class LaunchAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The report of a launch; the frame's arrays are those of the question at the indexes `returned`."""

    report: LaunchReport
    returned: tuple[int, ...]


class EntriesAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The kernels of the library."""

    names: tuple[str, ...]


class SymbolAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The frame's array holds the content of the variable."""


Question = LoadQuestion | LaunchQuestion | EntriesQuestion | SetSymbolQuestion | GetSymbolQuestion
Answer = DoneAnswer | LaunchAnswer | EntriesAnswer | SymbolAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
ANSWERS: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)

Argument = np.ndarray | DeviceBuffer | np.generic | NotAnArgument


def pack_arguments(arguments: Sequence[object]) -> tuple[tuple[ArgumentPlace, ...], list[np.ndarray]]:
    """Return where each argument is, and the arrays to send: an array that is passed twice is sent once."""
    arrays: list[np.ndarray] = []
    indexes: dict[int, int] = {}
    places = []
    for argument in arguments:
        content = _content_of(argument)
        if content is None:
            places.append(ArgumentPlace(None, description=describe(argument)))
            continue
        if id(argument) not in indexes:
            indexes[id(argument)] = len(arrays)
            arrays.append(content)
        places.append(ArgumentPlace(indexes[id(argument)], isinstance(argument, np.generic)))
    return tuple(places), arrays


def _content_of(argument: object) -> np.ndarray | None:
    """Return the array of a buffer or scalar, without a copy where it has one; None where it cannot be sent."""
    if isinstance(argument, DeviceBuffer):
        return argument.array
    if isinstance(argument, np.ndarray | np.generic) and can_be_sent(argument.dtype):
        return np.asarray(argument)
    return None


def unpack_arguments(places: Sequence[ArgumentPlace], arrays: Sequence[np.ndarray]) -> list[Argument]:
    """Return the arguments of a launch from the arrays of its frame."""
    return [_unpacked(place, arrays) for place in places]


def _unpacked(place: ArgumentPlace, arrays: Sequence[np.ndarray]) -> Argument:
    if place.array is None:
        return NotAnArgument(place.description)
    array = arrays[place.array]
    return array[()] if place.is_scalar else array


# The parent's side of the child processes that kernels run in: questions, answers, and findings about a death.
#
# One process serves many libraries of its kind, with the sanitizers or without, until a finding ends it: to start
# Python takes far longer than to run a small kernel. It unloads none of them, because the sanitizer does not survive
# that.

_SANITIZER = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
_ONE_AT_A_TIME = threading.RLock()
_MOST_LIBRARIES = 64  # in one process; each takes some fifty of its 65,530 mappings
_END_SECONDS = 10.0  # for a child that notices that nobody asks it any more
_LARGEST_SYMBOL = 4 << 30  # bytes
_Expected = TypeVar("_Expected", bound=Answer)


class ChildDied(Exception):
    """The child ended over a question, or sent something that is no answer to it."""


class Child:
    """A library in another process. It is loaded with the first question, and again after each finding."""

    def __init__(self, path: Path, guarded: bool) -> None:
        self._path, self._guarded = path, guarded
        self._home: _ChildProcess | None = None
        self._symbols: dict[str, bytes] = {}

    def launch(self, request: LaunchRequest, arguments: Sequence[object]) -> LaunchReport:
        """Launch as `Module.launch` does; a death of the child is a finding, with the place of its crash."""
        places, arrays = pack_arguments(arguments)
        question = LaunchQuestion(str(self._path), request, places)
        with _ONE_AT_A_TIME:
            try:
                frame = self._ask(question, arrays, LaunchAnswer)
                _copy_back(frame, arrays)
            except ChildDied as death:
                return LaunchReport(request.entry, self._last_words(str(death)))
            report = frame.message.report
            return LaunchReport(request.entry, (*report.findings, *self._last_words()), report.traffic)

    @property
    def entries(self) -> tuple[str, ...]:
        """The kernels of the library."""
        return self._require(EntriesQuestion(str(self._path)), EntriesAnswer).message.names

    def set_symbol(self, name: str, content: bytes) -> None:
        """Set a global variable, in this child and in those that follow it."""
        self._require(SetSymbolQuestion(str(self._path), name), DoneAnswer, content)
        self._symbols[name] = content

    def get_symbol(self, name: str) -> bytes:
        """Return the content of a global variable."""
        (content,) = self._require(GetSymbolQuestion(str(self._path), name), SymbolAnswer).arrays
        return content.tobytes()

    def close(self) -> None:
        """Give the library up; the process continues with others."""
        self._home = None

    def _require(self, question: Question, expected: type[_Expected], content: bytes | None = None) -> Frame[_Expected]:
        """Return the answer to a question that no kernel runs for; BackendUnavailable where the child died."""
        arrays = () if content is None else (np.frombuffer(content, np.uint8),)
        with _ONE_AT_A_TIME:
            try:
                return self._ask(question, arrays, expected)
            except ChildDied as death:
                findings = "; ".join(map(str, self._last_words(str(death))))
                raise BackendUnavailable(f"the emulator's process gave no answer: {findings}") from death

    def _ask(self, question: Question, arrays: Sequence[np.ndarray], expected: type[_Expected]) -> Frame[_Expected]:
        """Return the child's answer; an error that it answers with is raised, ChildDied where there is no answer."""
        try:
            return self._settled().ask(question, arrays, expected)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise ChildDied("") from None
        except FrameError as error:
            raise ChildDied(f"it sent no answer: {error}") from error

    def _settled(self) -> "_ChildProcess":
        """Return the process that has the library loaded; a new one where the last one ended."""
        if self._home is not None and self._home.lives:
            return self._home
        path = str(self._path)
        self._home = _serving(self._guarded)
        self._home.libraries.add(self._path)
        self._home.ask(LoadQuestion(path), (), DoneAnswer)
        for name, content in self._symbols.items():
            self._home.ask(SetSymbolQuestion(path, name), (np.frombuffer(content, np.uint8),), DoneAnswer)
        return self._home

    def _last_words(self, reason: str | None = None) -> tuple[LaunchFinding, ...]:
        """Return what the process wrote about the launch as findings, and end it where there are any.

        With a `reason`, which may be empty, the process died or is of no more use.
        """
        home, died = self._home, reason is not None
        if home is None:
            return ()
        status = home.ended(now=bool(reason)) if died else None
        words = home.worker.stderr_text() + (f"\n{reason}" if reason else "")
        findings = _read_last_words(self._path, words, died, status)
        if findings or died:
            home.end()
        return findings


def _copy_back(frame: Frame[LaunchAnswer], arrays: Sequence[np.ndarray]) -> None:
    """Copy the arrays of an answer into those that were sent; ChildDied where they are not the same kind."""
    returned = frame.message.returned
    if len(returned) != len(frame.arrays) or not set(returned) <= set(range(len(arrays))):
        raise ChildDied("it returned other arrays than it was sent")
    pairs = [(arrays[index], result) for index, result in zip(returned, frame.arrays, strict=True)]
    if any((sent.shape, sent.nbytes) != (result.shape, result.nbytes) for sent, result in pairs):
        raise ChildDied("it returned arrays of other shapes or types than it was sent")
    for sent, result in pairs:
        if sent.size:
            sent[...] = result.view(sent.dtype)


# By the process that asks, which may be a fork, by kind, and by the block of `own_children` that it is for.
_SERVING: dict[tuple[int, bool, object], "_ChildProcess"] = {}
_BLOCK: ContextVar[object] = ContextVar("block", default=None)


@contextmanager
def own_children() -> Iterator[None]:
    """Launch what this thread launches in the block in processes that end with it, and that nobody else asks."""
    block = object()
    token = _BLOCK.set(block)
    try:
        yield
    finally:
        _BLOCK.reset(token)
        for key in [key for key in _SERVING if key[2] is block]:
            _SERVING.pop(key).end()


def _serving(guarded: bool) -> "_ChildProcess":
    """Return the process for one more library. A full one ends when nobody asks it any more."""
    key = (os.getpid(), guarded, _BLOCK.get())
    if key not in _SERVING or not _SERVING[key].lives or len(_SERVING[key].libraries) >= _MOST_LIBRARIES:
        _SERVING[key] = _ChildProcess(guarded)
    return _SERVING[key]


class _ChildProcess:
    """A running child and the libraries that it has loaded."""

    def __init__(self, guarded: bool) -> None:
        self.libraries: set[Path] = set()
        self.worker = FrameWorker(_environment(guarded), ["guarded" if guarded else "plain"])
        self._end = weakref.finalize(self, _end, self.worker)

    @property
    def lives(self) -> bool:
        """Whether it has not been ended."""
        return self._end.alive

    def ask(self, question: Question, arrays: Sequence[np.ndarray], expected: type[_Expected]) -> Frame[_Expected]:
        """Return the answer, which has the expected type and arrays no larger than it may have.

        EOFError, BrokenPipeError or ConnectionResetError where the child has ended, FrameError for other answers.
        """
        largest = _LARGEST_SYMBOL if expected is SymbolAnswer else sum(array.nbytes for array in arrays)
        try:
            self.worker.channel.send(question, arrays)
            frame = self.worker.channel.receive(ANSWERS, largest=largest)
        except KeyboardInterrupt:
            self.worker.kill()  # an answer that comes later would be taken for the next question's
            self.end()
            raise
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        if not isinstance(frame.message, expected):
            raise FrameError(f"{type(frame.message).__name__} does not answer {type(question).__name__}")
        return Frame(frame.message, frame.arrays)

    def ended(self, now: bool) -> int | None:
        """Return how the process ended, minus the signal's number where a signal ended it; `now` kills it."""
        if now:
            self.worker.kill()
        return self.worker.wait()

    def end(self) -> None:
        """End it now, not when nobody asks it any more."""
        self._end()


def _end(worker: FrameWorker) -> None:
    """Close the child's channel, which ends it, and wait for that; kill it where it does not end."""
    worker.channel.close()
    if worker.wait(_END_SECONDS) is None:
        worker.kill()
        worker.wait()
    worker.release()


def _environment(guarded: bool) -> WorkerEnvironment:
    variables = {"OPENBLAS_NUM_THREADS": "1"}
    if guarded:
        variables |= {**_SANITIZER, "LD_PRELOAD": sanitizer_library()}
    return WorkerEnvironment(f"{__package__}.child", variables=variables)
