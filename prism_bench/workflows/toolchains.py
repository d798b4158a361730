"""The kernels of a catalogue compiled by several toolchains: what changes from one to the next. No GPU is needed.

A toolchain is a release of CUDA or of another language's compiler, in a folder below the cache, which pip fills once.
Separate processes compile with it: none holds two releases.
"""

import hashlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from prism_bench.analysis.compare.comparison import RecordComparison
from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.compilation import nvrtc_architectures, nvrtc_version
from prism_bench.compilation.compilers import (
    NVRTC_OPTIONS,
    TOOLCHAIN,
    added_options,
    architecture_refusal,
    nvrtc_libraries,
    options_refusal,
)
from prism_bench.compilation.languages import BuildRequest, BuiltCode, build_request
from prism_bench.compilation.languages.language import language, names
from prism_bench.compilation.listing import CompiledEntry, EntryDifference, code_differences
from prism_bench.compilation.program import is_prebuilt
from prism_bench.errors import BackendUnavailable, SpecError, UsageError, described
from prism_bench.io.files import (
    cache_errors,
    cache_folder,
    lock,
    opened_folder,
    temporary_folder,
    writable_cache,
    write_atomically,
)
from prism_bench.io.installation import DISTRIBUTION
from prism_bench.io.workers import environment, run_program
from prism_bench.run.precompile import on_all_cores
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import CUDA
from prism_bench.units import count_text
from prism_bench.workflows.case_code import machine_code
from prism_bench.workflows.compile_table import (
    CompileRow,
    Complaint,
    built_parts,
    compile_row,
    device_of,
    kernel_of,
    launched,
    launched_blocks,
    register_step,
)

# Names of toolchains, and their folders.

INSTALLED = "installed"
_RELEASE = re.compile(r"\d+(?:\.\d+)+(?:\.post\d+)?")
_REQUIREMENT = re.compile(r"\s*([\w.-]+)(\[[^]]*\])?[^;]*(?:;(.*))?")
_KEPT = "toolchain.json"  # in a folder that pip has filled: its requirements
_PIP_SECONDS = 1800.0
_WRITTEN = f"write releases of CUDA such as 12.9, NAME-VERSION such as triton-3.6.0, {INSTALLED}, or a folder"


@dataclass(frozen=True)
class NamedToolchain:
    """A toolchain as it was named: its language, and its release (empty: the installed one) or its own `folder`.

    `options` are added to those of NVRTC.
    """

    name: str
    language: str
    release: str = ""
    folder: Path | None = None
    options: tuple[str, ...] = ()

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables of processes that compile with it."""
        options = {NVRTC_OPTIONS: shlex.join(self.options)} if self.options else {}
        if self.folder is None:
            return options
        if self.language == CUDA:
            return {TOOLCHAIN: str(self.folder), **options}
        return {"PYTHONPATH": os.pathsep.join([str(self.folder), environment()["PYTHONPATH"]])}

    @property
    def requirements(self) -> list[str]:
        """Return what pip installs: the release of the compiler, and the other packages of the language's extra."""
        if self.language == CUDA:
            return [f"cuda-toolkit[cccl,cudart,nvcc,nvdisasm,nvrtc]=={self.release}.*"]
        compiler = language(self.language).library
        chosen = [f"{compiler.distribution}=={self.release}"]
        with suppress(PackageNotFoundError):
            for requirement in requires(DISTRIBUTION) or ():
                match = _REQUIREMENT.fullmatch(requirement)
                if match and re.search(rf"extra == .{re.escape(compiler.extra)}\W", f"{match[3] or ''} "):
                    if match[1] == compiler.distribution:
                        chosen[0] = f"{match[1]}{match[2] or ''}=={self.release}"
                    else:
                        chosen.append(requirement.partition(";")[0].strip())
        return chosen


def named_toolchains(text: str) -> list[NamedToolchain]:
    """Return the toolchains of a list such as `12.9,13.0,triton-3.6.0`; raise UsageError for a name that is none."""
    chosen: list[NamedToolchain] = []
    for entry in text.split(","):
        name, *flags = _split(entry) or [""]
        toolchain = _named(name, tuple(flags)) if name else None
        if toolchain is None:
            raise UsageError(f"--toolchains {text}: '{entry.strip()}' names no toolchain; {_WRITTEN}")
        if toolchain.options and toolchain.language != CUDA:
            raise UsageError(f"--toolchains {text}: '{entry.strip()}': only NVRTC takes options here")
        if refusal := architecture_refusal(toolchain.options):
            raise UsageError(f"--toolchains {text}: {refusal}")
        if toolchain in chosen:
            raise UsageError(f"--toolchains {text}: '{toolchain.name}' is named twice")
        chosen.append(toolchain)
    return chosen


def _split(entry: str) -> list[str]:
    try:
        return shlex.split(entry)
    except ValueError:
        return []


def _named(name: str, options: tuple[str, ...]) -> NamedToolchain | None:
    whole = shlex.join([name, *options])
    if name == INSTALLED or _RELEASE.fullmatch(name):
        return NamedToolchain(whole, CUDA, "" if name == INSTALLED else name, None, options)
    suffix, dash, release = name.partition("-")
    if dash and suffix in names() and (release == INSTALLED or _RELEASE.fullmatch(release)):
        return NamedToolchain(whole, suffix, "" if release == INSTALLED else release, None, options)
    folder = Path(name)
    if folder.is_dir():
        if not nvrtc_libraries(folder):
            raise UsageError(
                f"--toolchains: {folder} has no libnvrtc.so: name a CUDA toolkit, or a folder of its wheels"
            )
        return NamedToolchain(whole, CUDA, "", folder.resolve(), options)
    return None


Pair = tuple[NamedToolchain, NamedToolchain]


def paired(toolchains: Sequence[NamedToolchain]) -> list[Pair]:
    """Return each toolchain with the one before it of the same language; a single one follows the installed one."""
    pairs: list[Pair] = []
    for suffix in dict.fromkeys(toolchain.language for toolchain in toolchains):
        alike = [toolchain for toolchain in toolchains if toolchain.language == suffix]
        if len(alike) == 1:
            name = INSTALLED if suffix == CUDA else f"{suffix}-{INSTALLED}"
            alike.insert(0, NamedToolchain(name, suffix))
            if alike[0] == alike[1]:
                raise UsageError(f"--toolchains {name}: name another one to compare it with")
        pairs += zip(alike, alike[1:], strict=False)
    return pairs


def opened_pairs(text: str, report: Callable[[str], object] = lambda _: None) -> list[Pair]:
    """Return the pairs of a list of toolchains, `opened`; raise UsageError for two names of the same compiler."""
    pairs: list[Pair] = []
    for old, new in paired(named_toolchains(text)):
        pair = opened(old, report), opened(new, report)
        if pair[0].variables == pair[1].variables:
            raise UsageError(f"--toolchains {text}: {old.name} and {new.name} are the same compiler")
        pairs.append(pair)
    return pairs


def opened(toolchain: NamedToolchain, report: Callable[[str], object] = lambda _: None) -> NamedToolchain:
    """Return the toolchain with its folder, which pip fills once; the installed one of that release needs no folder.

    Raise BackendUnavailable where it is neither there nor can be fetched; nothing of it stays then.
    """
    if toolchain.folder:
        return toolchain
    known = _installed_release(toolchain.language)
    if not toolchain.release:
        if known is None:
            raise BackendUnavailable(
                f"--toolchains: {toolchain.name} is not there to compare with: name two releases of its compiler"
            )
        return toolchain
    if toolchain.release == known:
        return toolchain
    base = writable_cache("toolchains")
    opened_base = opened_folder(base)
    folder = base / f"{toolchain.language.replace(CUDA, 'cuda')}-{toolchain.release}-{sys.implementation.cache_tag}"
    try:
        lock(opened_base)  # another process may be fetching it
        if not (folder / _KEPT).is_file():
            report(f"fetching {toolchain.name}")
            with cache_errors(base):
                _fetch(toolchain, folder)
    finally:
        os.close(opened_base)
    return replace(toolchain, folder=folder)


def _installed_release(suffix: str) -> str | None:
    """Return the release of the installed compiler, `13.5` for NVRTC; None if it is not installed."""
    if suffix == CUDA:
        try:
            return nvrtc_version()
        except BackendUnavailable:
            return None
    library = language(suffix).library
    return library.installed_version() if library.is_installed() else None


def _fetch(toolchain: NamedToolchain, folder: Path) -> None:
    where = f"--toolchains {toolchain.name}"
    if find_spec("pip") is None:
        raise BackendUnavailable(f"{where}: it is not in the cache, and this Python has no pip to fetch it with")
    with temporary_folder(".toolchain-", folder.parent) as made:
        wheels = made / "wheels"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        try:
            done = run_program([*command, "--target", str(wheels), *toolchain.requirements], timeout=_PIP_SECONDS)
        except subprocess.TimeoutExpired:
            raise BackendUnavailable(f"{where}: pip took more than {_PIP_SECONDS:.0f} s and was stopped") from None
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
            reason = (errors or done.stderr.splitlines() or ["it gave no reason"])[-1].removeprefix("ERROR: ")
            raise BackendUnavailable(f"{where}: it is not in the cache, and pip does not fetch it: {reason}")
        if toolchain.language == CUDA and not nvrtc_libraries(wheels):
            raise BackendUnavailable(f"{where}: the packages of this release hold no NVRTC for this system")
        write_atomically(wheels / _KEPT, msgspec.json.encode(toolchain.requirements))
        wheels.rename(folder)


# Entries of the catalogue's kernels as one toolchain compiles them.


@dataclass(frozen=True)
class ToolchainEntry:
    """A compiled entry: its row, a hash of its machine code, its file, and the compiler with its seconds.

    Entries of one file share the seconds: they were compiled together.
    """

    row: CompileRow
    code: str
    compiled: CompiledEntry
    compiler: str
    seconds: float


@dataclass(frozen=True)
class _Outcome:
    """Entries of a request, why others do not compile, and why nothing was tried."""

    entries: tuple[ToolchainEntry, ...] = ()
    causes: tuple[str, ...] = ()
    left_out: str = ""


def _compiled(job: BuildRequest) -> _Outcome:
    """Compile a request in a process of its toolchain."""
    if job.language == CUDA and int(job.architecture.rstrip("af")) not in nvrtc_architectures():
        return _Outcome(left_out=f"NVRTC {nvrtc_version()} does not know sm_{job.architecture}")
    try:
        if job.language != CUDA:
            language(job.language).require_installed()
        built, causes = built_parts(job)
    except BackendUnavailable as error:
        return _Outcome(left_out=str(error))
    return _Outcome(tuple(entry for code in built for entry in _entries(job, code)), tuple(causes))


def _entries(job: BuildRequest, code: BuiltCode) -> Iterator[ToolchainEntry]:
    for instance, kernel in code.kernels.items():
        alone = replace(code, kernels={instance: kernel})
        yield ToolchainEntry(
            row=compile_row(job, str(instance), kernel, code.compiler),
            code=machine_code(alone),
            compiled=CompiledEntry(kernel.path, kernel.symbol, kernel.resources),
            compiler=code.compiler,
            seconds=kernel.seconds,
        )


# Differences between two toolchains.


@dataclass(frozen=True)
class KernelChange:
    """A kernel whose machine code changed on an architecture: the rows and differences of its entries that changed.

    `seconds` are those of compiling them, before and after. Entries of the same instructions in another order have rows
    and no difference. `steps` names entries that spill more, or
    whose registers let fewer blocks fit a multiprocessor. `note` is why instructions are not listed, or in what else
    the code differs.
    """

    kernel: str
    architecture: str
    rows: tuple[tuple[CompileRow, CompileRow], ...]
    entries: tuple[EntryDifference, ...]
    seconds: tuple[float, float]
    note: str | None = None
    steps: tuple[str, ...] = ()

    def totals(self) -> dict[str, tuple[int, int]]:
        """Return the most registers and shared memory of an entry, and the spills and code bytes of all, per side."""
        sides = [[pair[side] for pair in self.rows] for side in (0, 1)]
        numbers = {
            name: tuple(combine(getattr(row, name) or 0 for row in side) for side in sides)
            for name, combine in (("registers", max), ("spill_bytes", sum), ("shared_bytes", max), ("code_bytes", sum))
        }
        return {name: (before, after) for name, (before, after) in numbers.items()}


@dataclass(frozen=True)
class ToolchainComparison:
    """What changed between two toolchains, with the names of their compilers.

    `same` counts the kernels whose code is the same on all architectures. `complaints` are of kernels that the new
    toolchain does not compile and the old one does, `left_out` of those that neither or only the old one was tried on.
    """

    toolchains: Pair
    compilers: tuple[str, str]
    changes: list[KernelChange] = field(default_factory=list[KernelChange])
    same: tuple[str, ...] = ()
    complaints: list[Complaint] = field(default_factory=list[Complaint])
    left_out: list[Complaint] = field(default_factory=list[Complaint])

    @property
    def changed(self) -> list[str]:
        """The kernels with other machine code on any architecture."""
        return list(dict.fromkeys(change.kernel for change in self.changes))

    @property
    def is_of_any(self) -> bool:
        """Whether any kernel was compiled by both, or stopped compiling."""
        return bool(self.changes or self.same or self.complaints)

    @property
    def is_worse(self) -> bool:
        """Whether a kernel stopped compiling, spills more, or fits a multiprocessor fewer times."""
        return bool(self.complaints) or any(change.steps for change in self.changes)


def compare_toolchains(
    pairs: Sequence[Pair],
    catalogue: Catalogue,
    filters: Sequence[str],
    architectures: Sequence[str],
    report: Callable[[str], object] = lambda _: None,
) -> list[ToolchainComparison]:
    """Return what changes from the first to the second toolchain of each pair, which are `opened`.

    Raise UsageError if the chosen kernels have none in a toolchain's language, or its options are refused, and
    SpecError if all their launches raise.
    """
    outcomes: dict[NamedToolchain, dict[BuildRequest, _Outcome]] = {}
    for toolchain in dict.fromkeys(toolchain for pair in pairs for toolchain in pair):
        report(f"compiling with {toolchain.name}")
        refused: list[Complaint] = []  # other kernels' launches that raise are reported by `compile` without toolchains
        requests = _requests(catalogue, filters, architectures, refused)
        jobs = [job for job in requests if job.language == toolchain.language]
        if not requests and refused:
            raise SpecError(f"no kernel is left to compile: {refused[0].message}")
        if not jobs:
            raise UsageError(f"--toolchains {toolchain.name}: none of the chosen kernels is compiled by it")
        _require_options(toolchain, architectures)
        outcomes[toolchain] = dict(zip(jobs, on_all_cores(_compiled, jobs, toolchain.variables or None), strict=True))
    comparisons: list[ToolchainComparison] = []
    for pair in pairs:
        report(f"comparing {pair[0].name} with {pair[1].name}")
        comparisons.append(_compared(pair, (outcomes[pair[0]], outcomes[pair[1]]), catalogue, filters))
    return comparisons


def _require_options(toolchain: NamedToolchain, architectures: Sequence[str]) -> None:
    """Raise UsageError for options with which the toolchain compiles nothing, its own or those of the environment."""
    if toolchain.language == CUDA and (toolchain.options or added_options()):
        (refusal,) = on_all_cores(options_refusal, [tuple(architectures)], toolchain.variables or None)
        if refusal:
            raise UsageError(f"{f'--toolchains {toolchain.name}' if toolchain.options else NVRTC_OPTIONS}: {refusal}")


def _requests(
    catalogue: Catalogue, filters: Sequence[str], architectures: Sequence[str], refused: list[Complaint]
) -> list[BuildRequest]:
    """Return the requests of all sources that are compiled, the longest first: no core waits for the last.

    What launches raise is added to `refused`.
    """
    requests = [job for name in architectures for job in launched(catalogue, filters, name, refused=refused)]
    compiled = [job for job in requests if not job.cards and not is_prebuilt(job.source)]
    return sorted(compiled, key=lambda job: (-len(job.instances), job.source))


def _compared(
    pair: Pair,
    sides: tuple[Mapping[BuildRequest, _Outcome], Mapping[BuildRequest, _Outcome]],
    catalogue: Catalogue,
    filters: Sequence[str],
) -> ToolchainComparison:
    before, after = ({entry.row.key: entry for outcome in side.values() for entry in outcome.entries} for side in sides)
    shared = [(before[key], after[key]) for key in before if key in after]
    other = [(old, new) for old, new in shared if old.code != new.code]
    blocks = launched_blocks(catalogue, filters, ((old.row, new.row) for old, new in other))
    groups: dict[tuple[str, str], list[tuple[ToolchainEntry, ToolchainEntry]]] = {}
    for old, new in other:
        groups.setdefault((new.row.kernel, new.row.architecture), []).append((old, new))
    steps = {key: _steps(group, blocks) for key, group in groups.items()}
    names = [next((entry.compiler for entry in side.values()), "") for side in (before, after)]
    # The later release has the nvdisasm that reads the code of both.
    newest = max(zip(names, pair, strict=True), key=lambda side: [int(part) for part in re.findall(r"\d+", side[0])])[1]
    differences = on_all_cores(_difference, list(groups.values()), newest.variables or None) if groups else ()
    changes = [
        KernelChange(
            kernel,
            architecture,
            tuple((old.row, new.row) for old, new in group),
            entries,
            (_seconds(old for old, _ in group), _seconds(new for _, new in group)),
            note,
            steps[kernel, architecture],
        )
        for ((kernel, architecture), group), (entries, note) in zip(groups.items(), differences, strict=True)
    ]
    changes.sort(key=lambda change: (not change.steps, change.kernel, int(change.architecture.rstrip("af"))))
    compared = dict.fromkeys(new.row.kernel for _, new in shared)
    changed = {change.kernel for change in changes}
    complaints, left_out = _uncompared(pair, sides)
    return ToolchainComparison(
        pair,
        (names[0], names[1]),
        changes,
        tuple(kernel for kernel in compared if kernel not in changed),
        complaints,
        left_out,
    )


def _steps(
    group: Sequence[tuple[ToolchainEntry, ToolchainEntry]],
    blocks: Mapping[tuple[str, str, str], Iterable[tuple[int, int]]],
) -> tuple[str, ...]:
    """Return the entries that spill more or whose registers lower the occupancy, in words."""
    steps: list[str] = []
    for old, new in group:
        was, now = old.row, new.row
        if now.spill_bytes > was.spill_bytes:
            steps.append(f"{now.entry} spills {now.spill_bytes} bytes, {was.spill_bytes} before")
        if step := register_step(was, now, list(blocks.get(now.key, ()))):
            steps.append(f"{now.entry} takes {count_text(now.registers, 'register')}, {was.registers} before: {step}")
    return tuple(steps)


def _seconds(entries: Iterable[ToolchainEntry]) -> float:
    return sum({entry.compiled.path: entry.seconds for entry in entries}.values())


def _difference(group: list[tuple[ToolchainEntry, ToolchainEntry]]) -> tuple[tuple[EntryDifference, ...], str | None]:
    """Return how the entries of a kernel differ; the cache keeps it, since listing takes most of the time."""
    names = [f"{side.compiled.path.name} {side.compiled.symbol}" for pair in group for side in pair]
    path = cache_folder("differences") / f"{hashlib.sha256(' '.join(names).encode()).hexdigest()[:24]}.json"
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=tuple[tuple[EntryDifference, ...], str | None])
    before, after = ({pair[side].row.entry: pair[side].compiled for pair in group} for side in (0, 1))
    different, note = code_differences(before, after)
    if all(entry.is_listed for entry in different):
        with cache_errors(path.parent):
            write_atomically(path, msgspec.json.encode((different, note)))
    return different, note


def _uncompared(
    pair: Pair, sides: tuple[Mapping[BuildRequest, _Outcome], Mapping[BuildRequest, _Outcome]]
) -> tuple[list[Complaint], list[Complaint]]:
    """Return what only the new toolchain does not compile, and what was left out or compiles with neither."""
    complaints: dict[Complaint, None] = {}
    left_out: dict[Complaint, None] = {}
    for job, old in sides[0].items():
        new, kernel = sides[1][job], kernel_of(job)
        for toolchain, outcome in zip(pair, (old, new), strict=True):
            if outcome.left_out:
                left_out[Complaint(kernel, f"{toolchain.name}: {outcome.left_out}")] = None
        if new.causes and not old.causes and not old.left_out:
            complaints |= {
                Complaint(kernel, f"does not compile with {pair[1].name}: {cause}"): None for cause in new.causes
            }
        elif old.causes:
            left_out |= {
                Complaint(kernel, f"does not compile with {pair[0].name}: {cause}"): None for cause in old.causes
            }
    return list(complaints), list(left_out)


# Outputs of the changed kernels on a device, one toolchain after the other.

Outputs = tuple[Mapping[str, int], Mapping[str, int]] | str  # digests by name of two launches, or why there are none
BitsWord = Literal["equal", "within tolerance", "varies", "not run"]
_CASES = 16  # in one process: a launch that fails spoils the ones after it


@dataclass(frozen=True)
class CaseBits:
    """Whether the outputs of a case are the same bits by both toolchains; `reason` is why not, or what differs.

    They vary where launches of the same code differ: then the bits show nothing about the toolchains.
    """

    case: str
    bits: BitsWord
    reason: str = ""


@dataclass(frozen=True)
class ChangedOnDevice:
    """Cases whose machine code changed, launched on a device: bits of their outputs, and the comparison of times."""

    device: str
    bits: tuple[CaseBits, ...]
    times: RecordComparison


def changed_cases(
    comparison: ToolchainComparison, catalogue: Catalogue, filters: Sequence[str], capability: int
) -> tuple[Case, ...]:
    """Return the cases of S0 that launch an entry whose machine code changed for the device."""
    changed = {
        (change.kernel, row.entry)
        for change in comparison.changes
        for _, row in change.rows
        if int(change.architecture.rstrip("af")) == capability
    }
    device = device_of(str(capability))
    cases: list[Case] = []
    for case in catalogue.cases(filters, ("S0",)):
        with suppress(Exception):  # what a spec raises, `compile` reports
            request = None if case.plan.refusal(device) else build_request(case, device)
            if request and any((kernel_of(request), str(instance)) in changed for instance in request.instances):
                cases.append(case)
    return tuple(cases)


def compared_bits(
    pair: Pair, catalogue: Catalogue, backend: str, cases: Sequence[Case], times: RecordComparison
) -> list[CaseBits]:
    """Launch the cases with the code of each toolchain and return whether their outputs are the same bits.

    Only cases that were verified and timed on both sides are launched: other bits are within the tolerance, then.
    """
    reasons = {case.case: case.reason for case in times.cases if not case.judgement}
    timed = {case.case for case in times.cases if case.judgement}
    right = [case for case in cases if case.name in timed]
    before, after = (_outputs(toolchain, catalogue, backend, right) for toolchain in pair)
    return [
        _case_bits(case.name, before[case.task], after[case.task])
        if case.name in timed
        else CaseBits(case.name, "not run", reasons.get(case.name) or "it was not timed on both sides")
        for case in cases
    ]


def _outputs(
    toolchain: NamedToolchain, catalogue: Catalogue, backend: str, cases: Sequence[Case]
) -> dict[str, Outputs]:
    tasks = [case.task for case in cases]
    outputs: dict[str, Outputs] = {}
    for first in range(0, len(tasks), _CASES):  # one process after the other: each may take the device's memory
        part = tuple(tasks[first : first + _CASES])
        try:
            for launched in on_all_cores(_launched, [(catalogue.folder, backend, part)], toolchain.variables):
                outputs |= launched
        except BrokenProcessPool:
            outputs |= dict.fromkeys(part, "the process that launched it died")
    return outputs


def _launched(launches: tuple[Path, str, tuple[str, ...]]) -> dict[str, Outputs]:
    """Return the outputs of each task of a catalogue on a backend, in a process of its toolchain."""
    folder, name, tasks = launches
    catalogue, backend = discover(folder), open_backend(name)
    outputs: dict[str, Outputs] = {}
    for task in tasks:
        try:
            outputs[task] = _twice(backend, catalogue.case(task))
        except Exception as error:  # of a stranger's spec, or of the device
            outputs[task] = described(error)
    return outputs


def _twice(backend: Backend, case: Case) -> Outputs:
    inputs = case.inputs(0)
    with backend.prepare(case, inputs) as runnable:
        digests: list[Mapping[str, int]] = []
        for _ in range(2):
            runnable.reset(inputs)
            runnable()
            if (guard := runnable.guard(0)) is None:
                return "its outputs are not kept where they could be compared"
            digests.append(dict(guard.digests()))
        return digests[0], digests[1]


def _case_bits(case: str, before: Outputs, after: Outputs) -> CaseBits:
    if isinstance(before, str):
        return CaseBits(case, "not run", before)
    if isinstance(after, str):
        return CaseBits(case, "not run", after)
    if before[0] != before[1] or after[0] != after[1]:
        return CaseBits(case, "varies", "two launches of the same code differ")
    names = [name for name in before[0] if before[0][name] != after[0].get(name)]
    return CaseBits(case, "within tolerance" if names else "equal", ", ".join(names))
