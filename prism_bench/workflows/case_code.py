"""Hashes of what a case runs: its machine code, launches and inputs. No device is needed.

Without NVRTC, and on backends that run no GPU machine code, the text of the source with its headers and compiler
options replaces the machine code: the same text gives the same code.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from prism_bench.analysis.compare.selection import CodeIdentity
from prism_bench.compilation import nvrtc_version
from prism_bench.compilation.cubin import data_hash, resources, sass_hash
from prism_bench.compilation.languages import BuildRequest, BuiltCode, build, build_request, source_hash
from prism_bench.compilation.listing import CompiledEntry
from prism_bench.compilation.program import content_hash
from prism_bench.compilation.sources import distribution_word, imported_words, python_texts
from prism_bench.errors import BackendUnavailable, PrismBenchError, described
from prism_bench.io.files import family_folder, python_shared_with
from prism_bench.run.precompile import on_all_cores
from prism_bench.spec.arguments import Array
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.launch import Instance
from prism_bench.spec.peer import as_call
from prism_bench.workflows.tuning.code_of import CodeWords

_COMPILED_ON = ("cuda", "null")  # backends whose code is known from the compiler; `null` plays the device


@dataclass(frozen=True)
class CaseCode:
    """Hashes of a case's `code`, `launch` and `inputs`; `compiled` is the code if it was compiled.

    `reference` is a hash of its reference on a backend that runs only references, empty elsewhere. `problem` is why
    there is no code: the compiler's message, or what the spec raised.
    """

    code: str
    launch: str = ""
    inputs: str = ""
    compiled: BuiltCode | None = field(default=None, compare=False, repr=False)
    problem: str | None = None
    reference: str = ""

    @property
    def identity(self) -> str:
        """A hash of all of them together."""
        return digest([self.code, self.launch, self.inputs, *filter(None, [self.reference])])

    @property
    def as_reference(self) -> "CaseCode":
        """The part of it that matters on a backend that runs only references."""
        return replace(self, code="", launch="", compiled=None)

    @property
    def entries(self) -> dict[str, CompiledEntry]:
        """The entries of the compiled code by their texts; empty if it was not compiled."""
        kernels = self.compiled.kernels.items() if self.compiled else ()
        return {
            str(instance): CompiledEntry(kernel.path, kernel.symbol, kernel.resources) for instance, kernel in kernels
        }


def digest(parts: Iterable[str]) -> str:
    """Return a hash of the parts in their order."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def identity_on(backend: str) -> CodeIdentity:
    """Return what identifies code on that backend.

    It is `machine code`, `source text` without a compiler, or `reference` where only references run.
    """
    if backend == "numpy_reference":
        return "reference"
    try:
        nvrtc_version()
    except BackendUnavailable:
        return "source text"
    return "machine code" if backend in _COMPILED_ON else "source text"


@dataclass(frozen=True)
class CodeJob:
    """Compilation of a case: `content` is a hash of all texts, so that two folders may share a job."""

    content: str
    instances: tuple[Instance, ...]
    architecture: str
    options: tuple[str, ...]
    request: BuildRequest = field(compare=False)


Outcome = BuiltCode | str | None  # the code, or why it does not compile, or None: its compiler is not installed


def compiled_jobs(jobs: Iterable[CodeJob]) -> dict[CodeJob, Outcome]:
    """Return the outcome of compiling each job; several processes compile what the cache lacks."""
    unique = list(dict.fromkeys(jobs))
    return dict(zip(unique, on_all_cores(_compiled, unique), strict=True))


def _compiled(job: CodeJob) -> Outcome:
    try:
        return build(job.request)
    except BackendUnavailable:
        return None
    except PrismBenchError as error:
        return str(error)


def python_of(case: Case) -> tuple[Path, ...]:
    """Return the folders whose Python may affect a case: those of its family and those that the catalogue shares."""
    source = case.spec.source_path
    return (family_folder(source), *python_shared_with(source)) if source else ()


class CodeReader:
    """Reader of the code of cases on `device`; each file and each spec is read once."""

    def __init__(self, device: Device, by: CodeIdentity) -> None:
        self._device, self.by = device, by
        self._contents: dict[Path, str] = {}
        self._texts: dict[Path, str] = {}
        self._inputs: dict[int, tuple[KernelSpec, str]] = {}

    def job(self, case: Case) -> CodeJob | None:
        """Return the job of the case; None if it launches nothing. Raises what its spec raises."""
        request = build_request(case, self._device) if case.spec.source else None
        if request is None:
            return None
        if request.source not in self._contents:
            self._contents[request.source] = _content(request)
        return job_of(request, self._contents[request.source])

    def is_compiled(self, case: Case) -> bool:
        """Return whether machine code identifies the case: it is wanted, and the device can run the case."""
        return self.by == "machine code" and not case.plan.refusal(self._device)

    def code(self, case: Case, compiled: Outcome = None, *, known_fills: bool = False) -> CaseCode:
        """Return the code of the case, with the machine code that was `compiled` for it, or the problem.

        With `known_fills` the Python of the inputs and of the reference is not read: it is the same on the other side
        of the comparison.
        """
        if isinstance(compiled, str):
            return CaseCode("", problem=compiled)
        try:
            launch, inputs = self._launch(case), self._inputs_of(case, known_fills)
            reference = ""
            if self.by == "reference" and not known_fills:
                reference = digest(
                    CodeWords(_python_folders(case.spec.source_path or case.spec.file)).of(case.spec.reference)
                )
            job = self.job(case)
        except Exception as error:  # a spec may raise anything
            return CaseCode("", problem=described(error))
        if compiled:
            return CaseCode(machine_code(compiled), launch, inputs, compiled, reference=reference)
        return CaseCode(self._text(job) if job else "", launch, inputs, reference=reference)

    def _text(self, job: CodeJob) -> str:
        """Return a hash of the source, its headers and options; comments count only by machine code."""
        source = job.request.source
        if self.by != "machine code" and source not in self._texts:
            self._texts[source] = source_hash(source)
        return digest([self._texts.get(source, job.content), *map(str, job.instances), *job.options])

    def _launch(self, case: Case) -> str:
        """Return a hash of the steps and of the numbers that are passed by value."""
        values = [
            repr(argument.value(case.axes)) for argument in case.spec.arguments if not isinstance(argument, Array)
        ]
        return digest([*map(str, case.plan.steps(self._device)), *values, *_callable_text(case.spec)])

    def _inputs_of(self, case: Case, known_fills: bool) -> str:
        """Return a hash of how the arguments are filled, and of their shapes at this workload."""
        spec = case.spec
        if not known_fills and id(spec) not in self._inputs:
            texts = CodeWords(_python_folders(spec.source_path)).of((spec.arguments, spec.parameters))
            self._inputs[id(spec)] = spec, digest(texts)
        shapes = [str(case.sizes.shape(argument.name)) for argument in spec.arguments if isinstance(argument, Array)]
        fills = "" if known_fills else self._inputs[id(spec)][1]
        return digest([fills, str(case.workload), *shapes])


def _python_folders(source: Path | None) -> tuple[Path, ...]:
    return (family_folder(source).parent, *python_shared_with(source)) if source else ()


def _callable_text(spec: KernelSpec) -> list[str]:
    """Return what identifies a callable: its files, their imports, its library; an empty list without a callable."""
    if spec.callable is None:
        return []
    files = list(dict.fromkeys(file for file in (spec.file, spec.source_path) if file))
    library = as_call(spec.callable).library
    python = [file for file in files if file.suffix == ".py"]
    return [*map(source_hash, files), *imported_words(python), distribution_word(library.module.partition(".")[0])]


def job_of(request: BuildRequest, content: str | None = None) -> CodeJob:
    """Return the job of a request; `content` if it is known already."""
    content = content or _content(request)
    return CodeJob(content, request.instances, request.architecture, request.options, request)


def _content(request: BuildRequest) -> str:
    """Return a hash of every character that is compiled, and of the spec's cubins."""
    cubins = [hashlib.sha256(card.cubin.read_bytes()).hexdigest() for card in request.cards if card.cubin]
    if request.source.suffix == ".py":
        return digest([*python_texts(request.source), *cubins])
    return digest([content_hash(request.source), *cubins])


def machine_code(built: BuiltCode) -> str:
    """Return a hash of the machine code of the instances of the request, with its constants.

    Other entries of the same source do not count; functions that are not entries do, since the instances may call them.
    """
    parts: list[str] = []
    for path in dict.fromkeys(kernel.path for kernel in built.kernels.values()):
        kernels = [kernel for kernel in built.kernels.values() if kernel.path == path]
        others = set(resources(kernels[0].log)) - {kernel.symbol for kernel in kernels}
        cubin = path.read_bytes()
        parts.append(sass_hash(cubin, others) + data_hash(cubin))
    return digest(sorted(parts))
