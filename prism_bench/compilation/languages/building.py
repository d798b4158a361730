"""Machine code from every language: requests, their cache, the built kernels, and the child processes that compile."""

import hashlib
import inspect
import json
import os
import subprocess
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from prism_bench.compilation import compile_source, compiler_of, sass_hash
from prism_bench.compilation import source_hash as cuda_hash
from prism_bench.compilation.cubin import Resources, check_card, code_bytes
from prism_bench.compilation.languages.language import language
from prism_bench.compilation.listing import measured_resources
from prism_bench.compilation.program import is_prebuilt, toolchain_of
from prism_bench.compilation.sources import python_hash, python_texts
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError
from prism_bench.io.channels import Frame, FrameError
from prism_bench.io.documents import json_text
from prism_bench.io.files import cache_errors, cache_folder, family_folder, write_atomically
from prism_bench.io.workers import FrameWorker, Refusal, WorkerEnvironment, environment
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.launch import Instance, LaunchCard

# Messages to and from the child process that runs a language's compiler.


class CompileQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Compile an instance of a function of the file for an architecture, `90`."""

    file: str
    instance: Instance
    architecture: str


class EmulateQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Run a launch in the language's interpreter: arguments are the frame's arrays, indices in `scalars` as numbers."""

    file: str
    instance: Instance
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    scalars: tuple[int, ...]


class CompiledAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The card of the machine code in the frame's array, its resources, and the compiler's seconds."""

    card: LaunchCard
    resources: Resources
    seconds: float
    log: str


class EmulatedAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Answer that the launch is done: the frame's arrays are its arguments."""


LanguageQuestion = CompileQuestion | EmulateQuestion
LanguageAnswer = CompiledAnswer | EmulatedAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[LanguageQuestion] = msgspec.json.Decoder(LanguageQuestion)
_ANSWERS: msgspec.json.Decoder[LanguageAnswer] = msgspec.json.Decoder(LanguageAnswer)


# Child processes, one for each process of this program and language: a compiler takes a second to import, and a tenth
# of a second for the next kernel.

_LIMIT_SECONDS = 300.0  # for a kernel, and for a compiler's first import
_LARGEST = 1 << 30  # bytes of a cubin, or of an interpreter's arrays
_END_SECONDS = 5.0
_ONE_AT_A_TIME = threading.RLock()
_SERVING: dict[tuple[int, str, bool], "_CompilerProcess"] = {}  # by the asking process, which may be a fork
_Expected = TypeVar("_Expected", bound=LanguageAnswer)


def ask(
    suffix: str,
    question: LanguageQuestion,
    expected: type[_Expected],
    arrays: Sequence[np.ndarray] = (),
    *,
    limit: float = _LIMIT_SECONDS,
) -> Frame[_Expected]:
    """Return the answer of the language's child process, or raise the error that it answers.

    Raise CompilationFailed if the child dies or takes longer than `limit` seconds; the next question starts another.
    """
    with _ONE_AT_A_TIME:
        key = os.getpid(), suffix, isinstance(question, EmulateQuestion)
        if key not in _SERVING or not _SERVING[key].is_running:
            _SERVING[key] = _CompilerProcess(suffix, isinstance(question, EmulateQuestion))
        process = _SERVING[key]
        try:
            return process.ask(question, expected, arrays, limit)
        except TimeoutError:
            process.end()
            raise CompilationFailed(
                f"{question.file}: {question.instance}: {language(suffix).title} took longer than {limit:.0f} s"
            ) from None
        except (EOFError, FrameError, BrokenPipeError, ConnectionResetError):
            reason = process.worker.last_words()
            process.end()
            raise CompilationFailed(f"{question.file}: {question.instance}: {reason}") from None
        except KeyboardInterrupt:
            process.end()  # a late answer would be mistaken for the next question's
            raise


def ask_interpreter(suffix: str, question: EmulateQuestion, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the arguments of a launch after the language's interpreter has run it, in a child process."""
    return ask(suffix, question, EmulatedAnswer, arrays).arrays


class _CompilerProcess:
    """A running child of one language: its compiler, or its interpreter."""

    def __init__(self, suffix: str, interprets: bool) -> None:
        compiler = language(suffix)
        variables = {**compiler.variables, **(compiler.interpreter_variables if interprets else {})}
        environment = WorkerEnvironment(f"{__package__}.child", variables=variables)
        self.worker = FrameWorker(environment, [suffix], stdout=subprocess.STDOUT)
        self._end = weakref.finalize(self, self.worker.finish, _END_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._end.alive

    def ask(
        self, question: LanguageQuestion, expected: type[_Expected], arrays: Sequence[np.ndarray], limit: float
    ) -> Frame[_Expected]:
        self.worker.channel.send(question, arrays)
        frame = self.worker.channel.receive(_ANSWERS, limit, _LARGEST)
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        if not isinstance(frame.message, expected):
            raise FrameError(f"{type(frame.message).__name__} does not answer {type(question).__name__}")
        return Frame(frame.message, frame.arrays)

    def end(self) -> None:
        """Kill the child, whatever it is doing."""
        self.worker.kill()
        self._end()


# Requests and built kernels.

_PREBUILT = "prebuilt"  # as a compiler's name: the spec gives cubins and their cards


@dataclass(frozen=True)
class BuildRequest:
    """Instances of the functions of one source, compiled together for one architecture.

    `kernel` is the kernel's name if the source is not named after it: a file of a project, or machine code.
    """

    language: str
    source: Path
    instances: tuple[Instance, ...]
    architecture: str
    options: tuple[str, ...] = ()
    cards: tuple[LaunchCard, ...] = ()
    kernel: str = field(default="", compare=False)


@dataclass(frozen=True)
class BuiltKernel:
    """The machine code of an instance: its file, its symbol, its resources, and the launch card of other compilers.

    Without a card its parameters are the arguments of the launch in order.
    """

    path: Path
    symbol: str
    resources: Resources
    card: LaunchCard | None = None
    seconds: float = 0.0
    cached: bool = False
    log: str = field(default="", compare=False)


@dataclass(frozen=True)
class BuiltCode:
    """The kernels of a request by instance, and their compiler."""

    kernels: Mapping[Instance, BuiltKernel]
    language: str
    compiler: str

    @property
    def sass(self) -> str:
        """Return a hash of the instructions of all cubins; the hash of the cubin if there is only one."""
        paths = dict.fromkeys(kernel.path for kernel in self.kernels.values())
        hashes = sorted(sass_hash(path.read_bytes()) for path in paths)
        return hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16]

    @property
    def code_bytes(self) -> int:
        """Return the size of the instructions of all kernels, in bytes."""
        symbols: dict[Path, list[str]] = {}
        for kernel in self.kernels.values():
            symbols.setdefault(kernel.path, []).append(kernel.symbol)
        return sum(code_bytes(path.read_bytes(), in_file) for path, in_file in symbols.items())

    @property
    def seconds(self) -> float:
        """Return the compiler's seconds, now or when the cached files were made."""
        return sum({kernel.path: kernel.seconds for kernel in self.kernels.values()}.values())

    @property
    def resources(self) -> dict[str, Resources]:
        """Return the resources of each instance by its text."""
        return {str(instance): kernel.resources for instance, kernel in self.kernels.items()}


def source_hash(source: Path) -> str:
    """Return a hash of a kernel's source and its catalogue's files that it includes, without comments."""
    return python_hash(source) if source.suffix == ".py" else cuda_hash(source)


def request_of(spec: KernelSpec, instances: tuple[Instance, ...], architecture: str) -> BuildRequest:
    """Return the request for instances of a kernel's functions; raise SpecError if a card's cubin is missing."""
    source, cards = spec.source_file, []
    for card in spec.cards:
        if card.cubin is None or not (source.parent / card.cubin).is_file():
            raise SpecError(f"{source}: launch card of '{card.entry}': no cubin {card.cubin or ''} next to it")
        cards.append(replace(card, cubin=source.parent / card.cubin))
    if is_prebuilt(source):
        name = f"{spec.name}:{source.name}"
    elif toolchain_of(spec.options).compiler != "nvrtc":
        name = f"{spec.name}:{toolchain_of(spec.options).compiler}"
    else:
        name = "" if spec.file is None or family_folder(source) == spec.file.parent else spec.name
    return BuildRequest(spec.language, source, instances, architecture, spec.options, tuple(cards), name)


def build_request(case: Case, device: Device) -> BuildRequest | None:
    """Return the request for the case's launches on `device`; None if it launches nothing."""
    instances = case.plan.instances(device)
    return request_of(case.spec, instances, str(device.compute_capability)) if instances else None


def build(request: BuildRequest, *, cache: bool = True) -> BuiltCode:
    """Return the machine code of a request, from the cache if it is there.

    Raise CompilationFailed with the compiler's message, which has file and line, or BackendUnavailable without a
    compiler.
    """
    if request.cards:
        kernels = {instance: _prebuilt(request, instance) for instance in request.instances}
        return BuiltCode(kernels, request.language, _PREBUILT)
    if request.language == CUDA:
        return _of_cuda(request, cache)
    version = language(request.language).require_installed()
    compiler = f"{language(request.language).title} {version}"
    kernels = {instance: _compiled(request, instance, version, cache) for instance in request.instances}
    return BuiltCode(kernels, request.language, compiler)


def _of_cuda(request: BuildRequest, cache: bool) -> BuiltCode:
    entries = tuple(map(str, request.instances))
    made = compile_source(request.source, entries, request.architecture, request.options, cache)
    kernels: dict[Instance, BuiltKernel] = {}
    for instance in request.instances:
        symbol = made.lowered[str(instance)]
        kernels[instance] = BuiltKernel(
            made.path, symbol, made.resources[symbol], None, made.seconds, made.cached, made.log
        )
    return BuiltCode(kernels, CUDA, compiler_of(request.source, request.options))


def _prebuilt(request: BuildRequest, instance: Instance) -> BuiltKernel:
    """Return the kernel of the card for the entry and the architecture, checked against its cubin."""
    fitting = [card for card in request.cards if card.entry == instance.function]
    card = next((card for card in fitting if card.architecture.rstrip("af") == request.architecture), None)
    if card is None or card.cubin is None:
        known = ", ".join(f"{card.entry} for sm_{card.architecture}" for card in request.cards)
        raise BackendUnavailable(
            f"{request.source.name}: no cubin of '{instance.function}' for sm_{request.architecture}: there is {known}"
        )
    cubin = card.cubin.read_bytes()
    check_card(card, cubin)
    return BuiltKernel(card.cubin, card.entry, measured_resources(cubin, card.entry, card.shared), card)


def _compiled(request: BuildRequest, instance: Instance, version: str, cache: bool) -> BuiltKernel:
    path = _cache_path(request, instance, version)
    kept: CompiledAnswer | None = None
    with suppress(OSError, ValueError):
        kept = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=CompiledAnswer)
    if not path.is_file():
        kept = None
    if cache and kept:
        return BuiltKernel(path, kept.card.entry, kept.resources, kept.card, kept.seconds, True, kept.log)
    question = CompileQuestion(str(request.source), instance, request.architecture)
    frame = ask(request.language, question, CompiledAnswer)
    made = frame.message
    if not kept:
        with cache_errors(path.parent):
            write_atomically(path, frame.arrays[0].tobytes())
            write_atomically(path.with_suffix(".json"), json_text(json.loads(msgspec.json.encode(made))).encode())
    return BuiltKernel(path, made.card.entry, made.resources, made.card, made.seconds, False, made.log)


def _cache_path(request: BuildRequest, instance: Instance, version: str) -> Path:
    parts = (
        repr((request.language, version, request.options)),
        repr((instance.function, instance.passed, sorted(instance.constants.items()))),
        repr(sorted(language(request.language).variables.items())),
        repr(language(request.language).settings(environment())),
        _loader_text(request.language),
        *python_texts(request.source),
    )
    digest = hashlib.sha256("".join(parts).encode())
    stem = request.source.name.partition(".")[0]
    name = f"{stem}-{request.language}-sm{request.architecture}-{digest.hexdigest()[:20]}.cubin"
    return cache_folder("cubin") / name


@cache
def _loader_text(name: str) -> str:
    """Return the source of a language's loader: another version may make other code of the same kernel."""
    return Path(inspect.getfile(type(language(name)))).read_text()


# The machine code of a case in a run record.


def code_facts(built: BuiltCode, request: BuildRequest) -> dict[str, Any]:
    """Return language, compiler, source, machine code, size and resources of built code, as a run record has them."""
    used = [kernel.resources for kernel in built.kernels.values()]
    return {
        "sass": built.sass,
        "language": built.language,
        "compiler": built.compiler,
        "source": source_identity(request),
        "architecture": f"sm_{request.architecture}",
        "entries": [str(instance) for instance in built.kernels],
        "registers": max((entry.registers for entry in used), default=0),
        "spill_bytes": sum(entry.spill_stores + entry.spill_loads for entry in used),
        "shared_bytes": max((entry.shared_bytes for entry in used), default=0),
        "code_bytes": built.code_bytes,
        "compile_seconds": float(f"{built.seconds:.3g}"),
    }


def source_identity(request: BuildRequest) -> str | None:
    """Return a hash of the compiler's input: the source, its entries, its options.

    None if options name folders of headers, whose content is not known.
    """
    if toolchain_of(request.options).folders:
        return None
    parts = [source_hash(request.source), *map(str, request.instances), *request.options]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
