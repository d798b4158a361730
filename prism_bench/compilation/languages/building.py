"""Machine code from every language: a request, its cache, and the child process that compiles."""

import hashlib
import inspect
import json
import os
import subprocess
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
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
from prism_bench.io.workers import FrameWorker, Refusal, WorkerEnvironment
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.launch import Instance, LaunchCard

# Messages between a process that needs machine code and the child process that runs a language's compiler.


class CompileQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Compile an instance of a function of the file for an architecture, `90`."""

    file: str
    instance: Instance
    architecture: str


class EmulateQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Run a launch in the language's interpreter: arguments are the frame's arrays, those in `scalars` as numbers."""

    file: str
    instance: Instance
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    scalars: tuple[int, ...]


class CompiledAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The card of the machine code in the frame's array, what it takes, and the compiler's seconds."""

    card: LaunchCard
    resources: Resources
    seconds: float
    log: str


class EmulatedAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The launch is done: the frame's arrays are its arguments."""


LanguageQuestion = CompileQuestion | EmulateQuestion
LanguageAnswer = CompiledAnswer | EmulatedAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[LanguageQuestion] = msgspec.json.Decoder(LanguageQuestion)
_ANSWERS: msgspec.json.Decoder[LanguageAnswer] = msgspec.json.Decoder(LanguageAnswer)


# The parent's side of the child processes that compilers run in: questions, answers, a time limit.
#
# A process of this program has one child for each language that it compiles: a compiler takes a second to import, and a
# tenth of one for the next kernel.

_LIMIT_SECONDS = 300.0  # for one kernel, and for a compiler's first import
_LARGEST = 1 << 30  # bytes of a cubin, or of an interpreter's arrays
_END_SECONDS = 5.0
_ONE_AT_A_TIME = threading.RLock()
_SERVING: dict[tuple[int, str, bool], "_CompilerProcess"] = {}  # by the process that asks, which may be a fork
_Expected = TypeVar("_Expected", bound=LanguageAnswer)


def ask(
    suffix: str,
    question: LanguageQuestion,
    expected: type[_Expected],
    arrays: Sequence[np.ndarray] = (),
    *,
    limit: float = _LIMIT_SECONDS,
) -> Frame[_Expected]:
    """Return the answer of the language's child process; the error that it answers with is raised.

    CompilationFailed where the child dies, or takes longer than `limit` seconds; another takes its place.
    """
    with _ONE_AT_A_TIME:
        process = _serving(suffix, isinstance(question, EmulateQuestion))
        try:
            return process.ask(question, expected, (arrays, limit))
        except TimeoutError:
            process.end()
            raise CompilationFailed(
                f"{question.file}: {question.instance}: {language(suffix).title} took longer than {limit:.0f} s"
            ) from None
        except (EOFError, FrameError, BrokenPipeError, ConnectionResetError):
            words = process.worker.last_words()
            process.end()
            raise CompilationFailed(f"{question.file}: {question.instance}: {words}") from None
        except KeyboardInterrupt:
            process.end()  # an answer that comes later would be taken for the next question's
            raise


def ask_interpreter(suffix: str, question: EmulateQuestion, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the arguments of a launch after the language's interpreter has run it, in a child process."""
    return ask(suffix, question, EmulatedAnswer, arrays).arrays


def _serving(suffix: str, interprets: bool) -> "_CompilerProcess":
    key = os.getpid(), suffix, interprets
    if key not in _SERVING or not _SERVING[key].lives:
        _SERVING[key] = _CompilerProcess(suffix, interprets)
    return _SERVING[key]


class _CompilerProcess:
    """A running child of one language: its compiler, or its interpreter."""

    def __init__(self, suffix: str, interprets: bool) -> None:
        spoken = language(suffix)
        variables = {**spoken.variables, **(spoken.interpreter_variables if interprets else {})}
        where = WorkerEnvironment(f"{__package__}.child", variables=variables)
        self.worker = FrameWorker(where, [suffix], stdout=subprocess.STDOUT)
        self._end = weakref.finalize(self, _end, self.worker)

    @property
    def lives(self) -> bool:
        """Whether it has not been ended."""
        return self._end.alive

    def ask(
        self, question: LanguageQuestion, expected: type[_Expected], sent: tuple[Sequence[np.ndarray], float]
    ) -> Frame[_Expected]:
        """Return the answer to a question with its arrays and its limit in seconds."""
        arrays, limit = sent
        self.worker.channel.send(question, arrays)
        frame = self.worker.channel.receive(_ANSWERS, limit, _LARGEST)
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        if not isinstance(frame.message, expected):
            raise FrameError(f"{type(frame.message).__name__} does not answer {type(question).__name__}")
        return Frame(frame.message, frame.arrays)

    def end(self) -> None:
        """End it now, whatever it is doing."""
        self.worker.kill()
        self._end()


def _end(worker: FrameWorker) -> None:
    """Close the child's channel, which ends it, and wait for that; kill it where it does not end."""
    worker.channel.close()
    if worker.wait(_END_SECONDS) is None:
        worker.kill()
        worker.wait()
    worker.release()


# The way to machine code for every language: a request, its cache, and the kernels that were built.

_PREBUILT = "prebuilt"  # as a compiler's name: the spec gives cubins and their cards


@dataclass(frozen=True)
class BuildRequest:
    """What is compiled together: instances of the functions of one source, for one architecture.

    `kernel` is the name of a kernel whose source is not called like it: a file of a project, or machine code.
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
    """The machine code of one instance: its file, the symbol in it, what it takes, and how other compilers launch it.

    Without a card it takes the arguments of the launch in order.
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
    """The kernels of a request by instance, and which compiler made them."""

    kernels: Mapping[Instance, BuiltKernel]
    language: str
    compiler: str

    @property
    def sass(self) -> str:
        """A hash of the instructions of all cubins; of one cubin, its own."""
        paths = dict.fromkeys(kernel.path for kernel in self.kernels.values())
        found = sorted(sass_hash(path.read_bytes()) for path in paths)
        return found[0] if len(found) == 1 else hashlib.sha256(" ".join(found).encode()).hexdigest()[:16]

    @property
    def code_bytes(self) -> int:
        """The size of the instructions of all kernels, those of one file together."""
        symbols: dict[Path, list[str]] = {}
        for kernel in self.kernels.values():
            symbols.setdefault(kernel.path, []).append(kernel.symbol)
        return sum(code_bytes(path.read_bytes(), own) for path, own in symbols.items())

    @property
    def seconds(self) -> float:
        """What the compiler took, whether now or when the cached files were made."""
        return sum({kernel.path: kernel.seconds for kernel in self.kernels.values()}.values())

    @property
    def resources(self) -> dict[str, Resources]:
        """What each instance takes, by its text."""
        return {str(instance): kernel.resources for instance, kernel in self.kernels.items()}


def source_hash(source: Path) -> str:
    """Return a hash of a kernel's source and of its catalogue's own files that it includes, without their comments."""
    return python_hash(source) if source.suffix == ".py" else cuda_hash(source)


def request_of(spec: KernelSpec, instances: tuple[Instance, ...], architecture: str) -> BuildRequest:
    """Return the request for instances of a kernel's functions."""
    cards = tuple(_placed(card, spec.source_file) for card in spec.cards)
    name = _name_beyond(spec)
    return BuildRequest(spec.language, spec.source_file, instances, architecture, spec.options, cards, name)


def _name_beyond(spec: KernelSpec) -> str:
    """Return the kernel's name where its source is not next to the spec, with the compiler if it is not NVRTC."""
    if is_prebuilt(spec.source_file):
        return f"{spec.name}:{spec.source_file.name}"
    if toolchain_of(spec.options).compiler != "nvrtc":
        return f"{spec.name}:{toolchain_of(spec.options).compiler}"
    beside = spec.file is None or family_folder(spec.source_file) == spec.file.parent
    return "" if beside else spec.name


def build_request(case: Case, device: Device) -> BuildRequest | None:
    """Return what the case launches on `device`; None where it launches nothing."""
    instances = case.plan.instances(device)
    return request_of(case.spec, instances, str(device.compute_capability)) if instances else None


def build(request: BuildRequest, *, cache: bool = True) -> BuiltCode:
    """Return the machine code of a request, from the cache if there.

    CompilationFailed holds the compiler's message, with file and line; BackendUnavailable means that the compiler is
    missing.
    """
    if request.cards:
        kernels = {one: _prebuilt(request, one) for one in request.instances}
        return BuiltCode(kernels, request.language, _PREBUILT)
    if request.language == CUDA:
        return _of_cuda(request, cache)
    version = language(request.language).require_installed()
    compiler = f"{language(request.language).title} {version}"
    kernels = {one: _compiled(request, one, version, cache) for one in request.instances}
    return BuiltCode(kernels, request.language, compiler)


def _of_cuda(request: BuildRequest, cache: bool) -> BuiltCode:
    entries = tuple(str(one) for one in request.instances)
    made = compile_source(request.source, entries, request.architecture, request.options, cache)
    kernels = {
        one: BuiltKernel(
            made.path,
            made.lowered[str(one)],
            made.resources[made.lowered[str(one)]],
            None,
            made.seconds,
            made.cached,
            made.log,
        )
        for one in request.instances
    }
    return BuiltCode(kernels, CUDA, compiler_of(request.source, request.options))


def _placed(card: LaunchCard, source: Path) -> LaunchCard:
    """Return the card with the whole path of its cubin; a SpecError where there is none."""
    if card.cubin is None or not (source.parent / card.cubin).is_file():
        raise SpecError(f"{source}: launch card of '{card.entry}': no cubin {card.cubin or ''} next to it")
    return replace(card, cubin=source.parent / card.cubin)


def _prebuilt(request: BuildRequest, instance: Instance) -> BuiltKernel:
    """Return the card for the entry and the architecture, checked against its cubin."""
    fitting = [card for card in request.cards if card.entry == instance.function]
    card = next((one for one in fitting if one.architecture.rstrip("af") == request.architecture), None)
    if card is None or card.cubin is None:
        known = ", ".join(f"{one.entry} for sm_{one.architecture}" for one in request.cards)
        raise BackendUnavailable(
            f"{request.source.name}: no cubin of '{instance.function}' for sm_{request.architecture}: there is {known}"
        )
    cubin = card.cubin.read_bytes()
    check_card(card, cubin)
    return BuiltKernel(card.cubin, card.entry, measured_resources(cubin, card.entry, card.shared), card)


def _compiled(request: BuildRequest, instance: Instance, version: str, cache: bool) -> BuiltKernel:
    path = _cache_path(request, instance, version)
    kept = _from_cache(path)
    if cache and kept:
        return kept
    question = CompileQuestion(str(request.source), instance, request.architecture)
    frame = ask(request.language, question, CompiledAnswer)
    made = frame.message
    if not kept:
        _to_cache(path, frame.arrays[0].tobytes(), made)
    return BuiltKernel(path, made.card.entry, made.resources, made.card, made.seconds, False, made.log)


def _cache_path(request: BuildRequest, instance: Instance, version: str) -> Path:
    digest = hashlib.sha256(repr((request.language, version, request.options)).encode())
    for part in _key_parts(request, instance):
        digest.update(part.encode())
    stem = request.source.name.partition(".")[0]
    name = f"{stem}-{request.language}-sm{request.architecture}-{digest.hexdigest()[:20]}.cubin"
    return cache_folder("cubin") / name


def _key_parts(request: BuildRequest, instance: Instance) -> Iterator[str]:
    yield repr((instance.function, instance.passed, sorted(instance.constants.items())))
    yield repr(sorted(language(request.language).variables.items()))
    yield _loader_text(request.language)
    yield from python_texts(request.source)


@cache
def _loader_text(name: str) -> str:
    """Return the source of a language's loader: another one may make other code of the same kernel."""
    return Path(inspect.getfile(type(language(name)))).read_text()


def _from_cache(path: Path) -> BuiltKernel | None:
    """Return what was kept, or None where nothing was or it cannot be read."""
    try:
        kept = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=CompiledAnswer)
    except (OSError, ValueError):
        return None
    if not path.is_file():
        return None
    return BuiltKernel(path, kept.card.entry, kept.resources, kept.card, kept.seconds, True, kept.log)


def _to_cache(path: Path, cubin: bytes, made: CompiledAnswer) -> None:
    with cache_errors(path.parent):
        write_atomically(path, cubin)
        write_atomically(path.with_suffix(".json"), json_text(json.loads(msgspec.json.encode(made))).encode())


# What a run record keeps of a case's machine code: who made it, of what, and what it takes.


def code_facts(built: BuiltCode, request: BuildRequest) -> dict[str, Any]:
    """Return language, compiler, source and machine code of what was built, its size, and what its entries take."""
    used = [kernel.resources for kernel in built.kernels.values()]
    return {
        "sass": built.sass,
        "language": built.language,
        "compiler": built.compiler,
        "source": source_identity(request),
        "architecture": f"sm_{request.architecture}",
        "entries": [str(instance) for instance in built.kernels],
        "registers": max((one.registers for one in used), default=0),
        "spill_bytes": sum(one.spill_stores + one.spill_loads for one in used),
        "shared_bytes": max((one.shared_bytes for one in used), default=0),
        "code_bytes": built.code_bytes,
        "compile_seconds": float(f"{built.seconds:.3g}"),
    }


def source_identity(request: BuildRequest) -> str | None:
    """Return a hash of what the compiler gets: the source, its entries, its options.

    None where options name folders of headers: what these hold is not known.
    """
    if toolchain_of(request.options).folders:
        return None
    parts = [source_hash(request.source), *map(str, request.instances), *request.options]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
