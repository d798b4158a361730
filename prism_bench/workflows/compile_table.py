"""Compiled resources of every kernel on several architectures, and the changes since an earlier build."""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from prism_bench.analysis.build_identity import BuildIdentity, build_change
from prism_bench.analysis.compare.selection import ChangeReason, SelectedCase
from prism_bench.catalogue import Catalogue
from prism_bench.compilation import nvrtc_version
from prism_bench.compilation.compilers import NVRTC_OPTIONS, options_refusal
from prism_bench.compilation.cubin import ElfEntry, Resources, code_bytes, elf_entries
from prism_bench.compilation.host_source.device_side import Cut
from prism_bench.compilation.languages import BuildRequest, BuiltCode, build, build_request, language, request_of
from prism_bench.compilation.languages.building import BuiltKernel, source_identity
from prism_bench.compilation.launch_limits import EntryCode, case_refusal
from prism_bench.compilation.listing import EntryDifference, EntryFacts
from prism_bench.compilation.program import cut_source, is_prebuilt, toolchain_of
from prism_bench.errors import (
    BackendUnavailable,
    CompilationFailed,
    PrismBenchError,
    ResultsError,
    UsageError,
    described,
)
from prism_bench.io.files import write_atomically
from prism_bench.record.run_record import RunRecord
from prism_bench.run.builds import Build
from prism_bench.run.precompile import on_all_cores
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.launch import SHARED_KB, Instance, Launch, resident_blocks
from prism_bench.units import count_text
from prism_bench.workflows.case_code import CaseCode, CodeJob, compiled_jobs, job_of
from prism_bench.workflows.pairs import selected


def table_text(rows: Iterable[Any], columns: Sequence[str] = ()) -> str:
    """Return mappings or dataclass rows as CSV under a header: the columns, or those of the first row."""
    plain: list[Mapping[str, object]] = [row if isinstance(row, Mapping) else asdict(row) for row in rows]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns or list(plain[0] if plain else ()), lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain)
    return text.getvalue()


def write_csv(rows: Iterable[Any], path: Path, columns: Sequence[str] = ()) -> None:
    """Write the rows as CSV atomically, so that no reader sees half a table; create the folder if it is missing."""
    write_atomically(path, table_text(rows, columns).encode())


# The table: every kernel is compiled for several architectures; no device is needed.

ARCHITECTURES = ("80", "90", "100", "120")
_NAMED = 3  # kernels in one line
_OLDER = 8  # columns of tables without the size of code
REGISTER_GROWTH = 1.15  # a newer compiler changes a few registers; more than this comes from the source


@dataclass(frozen=True)
class CompileRow:
    """Resources of an entry on an architecture; bytes per thread for stack and spills, per block for shared memory.

    `compiler` is the compiler and version of a language other than CUDA C++. Older tables lack it and the size of the
    code.
    """

    kernel: str
    entry: str
    architecture: str
    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int
    barriers: int
    code_bytes: int | None = None
    compiler: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kernel, self.entry, self.architecture


@dataclass(frozen=True)
class Complaint:
    """Why a kernel does not pass: `kernel` and a message with the figures, or the compiler's message."""

    kernel: str
    message: str


def compile_check(
    catalogue: Catalogue,
    filters: Sequence[str] = (),
    architectures: Sequence[str] = ARCHITECTURES,
    report: Callable[[str], object] = lambda _: None,
    *,
    edges: bool = True,
    elsewhere: list[Complaint] | None = None,
) -> tuple[list[CompileRow], list[Complaint]]:
    """Compile every entry that the chosen kernels' cases launch, and with `edges` those that only edges launch.

    Return the rows, and a complaint for each launch that raises or that devices refuse, and for each source or entry
    that does not compile; the other entries have their rows. A launch that devices of only some of the architectures
    refuse is no defect: a note is added to `elsewhere`. Raises BackendUnavailable if NVRTC is missing, and UsageError
    if it refuses the options of the environment.
    """
    if refusal := options_refusal(architectures):
        raise UsageError(f"{NVRTC_OPTIONS}: {refusal}")
    failures: dict[Complaint, dict[str, None]] = {}  # with the architectures of each
    jobs: list[BuildRequest] = []
    for architecture in architectures:
        refused: list[Complaint] = []
        requests = launched(catalogue, filters, architecture, edges, refused)
        jobs += [job for job in requests if not missing_compiler(job.language)]
        for complaint in refused:
            failures.setdefault(complaint, {})[architecture] = None
    jobs.sort(key=lambda job: (-len(job.instances), job.source))  # the longest first: no core waits for the last
    rows: list[CompileRow] = []
    codes: dict[BuildRequest, dict[str, EntryCode]] = {}
    for job, (entries, causes) in zip(jobs, on_all_cores(_compile, jobs), strict=True):
        report(kernel_of(job))
        rows += [row for row, _ in entries]
        codes[replace(job, instances=())] = {row.entry: code for row, code in entries}
        for cause in causes:
            complaint = Complaint(kernel_of(job), cause.replace(f" for sm_{job.architecture}:", ":", 1))
            failures.setdefault(complaint, {})[job.architecture] = None
    launchable = {name: _launchable(catalogue, filters, name, codes, edges) for name in architectures}
    complaints, notes = _refused_launches(launchable)
    complaints += [_on_some(complaint, failed, architectures) for complaint, failed in failures.items()]
    if elsewhere is not None:
        elsewhere += notes
    return sorted(rows, key=lambda row: row.key), sorted(complaints, key=lambda complaint: complaint.kernel)


def _on_some(complaint: Complaint, failed: Collection[str], architectures: Sequence[str]) -> Complaint:
    """Return the complaint, with its architectures where it does not hold for all of them."""
    named = [f"sm_{architecture}" for architecture in architectures if architecture in failed]
    if len(named) == len(architectures):
        return complaint
    return replace(complaint, message=f"on {', '.join(named)}: {complaint.message}")


def missing_compiler(language_name: str) -> str | None:
    """Return why a language's kernels are left out, in one sentence; None if its compiler is installed.

    Raises BackendUnavailable if NVRTC is missing: CUDA C++ is never left out.
    """
    if language_name == CUDA:
        nvrtc_version()
        return None
    return _missing_language(language_name)


@cache
def _missing_language(language_name: str) -> str | None:
    try:
        language(language_name).require_installed()
    except BackendUnavailable as error:
        return str(error)
    return None


def kernel_of(request: BuildRequest) -> str:
    """Return the kernel as the table has it: the file's name, `softmax` or `softmax:triton`."""
    if request.kernel:
        return request.kernel
    name = request.source.name.partition(".")[0]
    return name if request.language == CUDA else f"{name}:{request.language}"


def launched(
    catalogue: Catalogue,
    filters: Sequence[str] = (),
    architecture: str = "90",
    edges: bool = True,
    refused: list[Complaint] | None = None,
) -> list[BuildRequest]:
    """Return a request per source and options, with all instances that the cases (and `edges`) launch.

    What a launch raises is added to `refused`, once for all cases of a kernel; without that list it is raised.
    """
    sources: dict[BuildRequest, dict[Instance, None]] = {}
    problems: dict[tuple[str, str], Complaint] = {}
    device = device_of(architecture)
    for case in [*catalogue.cases(filters), *(catalogue.edges(filters) if edges else ())]:
        try:
            instances = () if case.plan.refusal(device) else case.plan.instances(device)
            if instances:
                sources.setdefault(request_of(case.spec, (), architecture), {}).update(dict.fromkeys(instances))
        except Exception as error:  # a spec may raise anything
            if refused is None:
                raise
            cause = described(error)
            shown = cause if case.name in cause else f"{case.name}: {cause}"
            problems.setdefault((case.kernel, cause.replace(case.name, case.kernel)), Complaint(case.kernel, shown))
    if refused is not None:
        refused += problems.values()
    requests = [replace(source, instances=tuple(sorted(sources[source], key=str))) for source in sources]
    return sorted(requests, key=lambda request: (request.source, request.options))


@dataclass(frozen=True)
class _Launchable:
    """Whether devices of an architecture launch a case: of the first launch that they refuse the entry, and why."""

    kernel: str
    entry: str = ""
    reason: str = ""


def _launchable(
    catalogue: Catalogue,
    filters: Sequence[str],
    architecture: str,
    codes: Mapping[BuildRequest, Mapping[str, EntryCode]],
    edges: bool,
) -> dict[str, _Launchable]:
    """Return for each case whether the architecture launches it; `codes` are the entries of requests by their sources.

    Cases that need other instructions are left out, those that did not compile, and those whose spec raises.
    """
    device = device_of(architecture)
    capability = device.compute_capability
    # A launch that asks for the device's shared memory gets that of the architecture.
    device = replace(device, max_shared_bytes=SHARED_KB.get(capability, 227) * 1024)
    launchable: dict[str, _Launchable] = {}
    for case in [*catalogue.cases(filters), *(catalogue.edges(filters) if edges else ())]:
        if case.is_regime or _refusal(case, device):
            continue
        with suppress(Exception):  # a spec may raise anything
            compiled = codes.get(request_of(case.spec, (), architecture), {})
            launches = [step for step in case.plan.steps(device) if isinstance(step, Launch)]
            entries = [str(case.plan.instance(step)) for step in launches]
            reasons = [
                case_refusal(case, step, compiled.get(entry), capability)
                for step, entry in zip(launches, entries, strict=True)
            ]
            refused = [pair for pair in zip(entries, reasons, strict=True) if pair[1]]
            entry, reason = refused[0] if refused else ("", "")
            if reason or set(entries) <= set(compiled):
                launchable[case.name] = _Launchable(case.kernel, entry, reason or "")
    return launchable


def _refused_launches(sides: Mapping[str, Mapping[str, _Launchable]]) -> tuple[list[Complaint], list[Complaint]]:
    """Return a complaint for each entry that no architecture launches, and notes on launches that some do not take.

    `sides` has the cases of each architecture.
    """
    complaints: dict[tuple[str, str], Complaint] = {}
    notes: dict[Complaint, None] = {}
    for name in dict.fromkeys(name for side in sides.values() for name in side):
        of_case = {architecture: side[name] for architecture, side in sides.items() if name in side}
        for architecture, launch in of_case.items():
            if launch.reason and all(other.reason for other in of_case.values()):
                text = f"{name}: {launch.entry} does not launch: {launch.reason}"
                complaints.setdefault((launch.kernel, launch.entry), Complaint(launch.kernel, text))
            elif launch.reason:
                limit = launch.reason.rpartition("; ")[2]
                notes[Complaint(launch.kernel, f"some workloads do not launch on sm_{architecture}: {limit}")] = None
    return list(complaints.values()), list(notes)


def whole_kernels(catalogue: Catalogue, filters: Sequence[str]) -> list[str]:
    """Return the kernels and forms of which the filters choose any case: the table keeps each of them whole."""
    chosen = [*catalogue.cases(filters), *catalogue.edges(filters)]
    return list(dict.fromkeys(case.spec.name if case.spec.language == CUDA else case.kernel for case in chosen))


def left_out(
    catalogue: Catalogue, filters: Sequence[str] = (), architectures: Sequence[str] = ARCHITECTURES
) -> list[Complaint]:
    """Return the variants that cannot run on some of the architectures or whose compiler is missing here, and why.

    Neither is a defect of the variants.
    """
    chosen: dict[str, list[Case]] = {}
    for case in [*catalogue.cases(filters), *catalogue.edges(filters)]:
        chosen.setdefault(case.kernel, []).append(case)
    reasons = (
        (name, architecture, [_refusal(case, device_of(architecture)) for case in cases])
        for name, cases in chosen.items()
        for architecture in architectures
    )
    return without_compiler(catalogue, filters) + [
        Complaint(name, f"not for sm_{architecture}: {refusals[0]}")
        for name, architecture, refusals in reasons
        if all(refusals)
    ]


def _refusal(case: Case, device: Device) -> str | None:
    """Return why the device cannot run the case; None also where the spec raises, which its launch reports."""
    try:
        return case.plan.refusal(device)
    except Exception:  # a spec may raise anything
        return None


def without_compiler(catalogue: Catalogue, filters: Sequence[str] = ()) -> list[Complaint]:
    """Return the variants whose compiler is not installed here, and why."""
    languages = {case.kernel: case.spec.language for case in _cases(catalogue, filters)}
    return [
        Complaint(name, why)
        for name, language_name in languages.items()
        if language_name != CUDA and (why := missing_compiler(language_name))
    ]


def together(complaints: Iterable[Complaint]) -> Iterator[str]:
    """Yield each message once, with the kernels that it is about."""
    kernels: dict[str, list[str]] = {}
    for complaint in complaints:
        kernels.setdefault(complaint.message, []).append(complaint.kernel)
    for message, names in kernels.items():
        named = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        yield f"{named}: {message}"


def device_of(architecture: str) -> Device:
    """Return a device of that architecture with the sizes of a Hopper GPU, for which launches are planned."""
    return Device(sm_count=132, max_shared_bytes=227 * 1024, compute_capability=int(architecture.rstrip("af")))


_EntryRow = tuple[CompileRow, EntryCode]


def _compile(job: BuildRequest) -> tuple[list[_EntryRow], list[str]]:
    """Return the rows of the request's entries, and why others have none."""
    built, causes = built_parts(job)
    rows = [
        _entry_row(job, str(name), kernel, code.compiler) for code in built for name, kernel in code.kernels.items()
    ]
    return rows, causes


def built_parts(job: BuildRequest) -> tuple[list[BuiltCode], list[str]]:
    """Return the code of a request, and why entries have none: each is compiled by itself, then."""
    built, cause = _built(job)
    if cause is None or len(job.instances) == 1:
        return built, [cause] if cause else []
    causes: dict[str, None] = {}
    for instance in job.instances:
        more, reason = _built(replace(job, instances=(instance,)))
        if reason in causes and not built:  # no entry is to blame: it is the source
            return [], [cause]
        built += more
        causes |= {reason: None} if reason else {}
    return built, list(causes) or [cause]


def _built(job: BuildRequest) -> tuple[list[BuiltCode], str | None]:
    """Return the code of the request, or none with the compiler's message."""
    try:
        return [build(job)], None
    except Exception as error:  # of a source that is no text, too
        return [], described(error)


def _entry_row(job: BuildRequest, entry: str, kernel: BuiltKernel, compiler: str) -> _EntryRow:
    cubin = kernel.path.read_bytes()
    elf = elf_entries(cubin).get(kernel.symbol)
    code = EntryCode(kernel.resources, elf or ElfEntry(()), is_described=elf is not None)
    return compile_row(job, entry, kernel, compiler), code


def compile_row(job: BuildRequest, entry: str, kernel: BuiltKernel, compiler: str) -> CompileRow:
    """Return the row of a compiled entry."""
    resources, cubin = kernel.resources, kernel.path.read_bytes()
    return CompileRow(
        kernel=kernel_of(job),
        entry=entry,
        architecture=job.architecture,
        registers=resources.registers,
        stack_bytes=resources.stack_bytes,
        spill_bytes=resources.spill_stores + resources.spill_loads,
        shared_bytes=resources.shared_bytes,
        barriers=resources.barriers,
        code_bytes=code_bytes(cubin, [kernel.symbol]),
        compiler="" if job.language == CUDA else compiler,
    )


# Blocks that an entry is launched with: their threads, and the bytes of dynamic shared memory; by kernel, entry, and
# architecture of the table.
LaunchedBlocks = Mapping[tuple[str, str, str], Collection[tuple[int, int]]]


def launched_blocks(
    catalogue: Catalogue, filters: Sequence[str], pairs: Iterable[tuple[CompileRow | None, CompileRow]]
) -> LaunchedBlocks:
    """Return the blocks of all launches of the entries whose registers grew; the pairs are rows before and after.

    Launches that leave their block to the compiler are left out.
    """
    grown = {new.key for old, new in pairs if old and new.registers > old.registers}
    kernels, architectures = {key[0] for key in grown}, sorted({key[2] for key in grown})
    blocks: dict[tuple[str, str, str], set[tuple[int, int]]] = {}
    for architecture in architectures:
        device = device_of(architecture)
        for case in _cases(catalogue, filters):
            with suppress(Exception):  # `compile_check` reports what a spec raises
                kernel = kernel_of(request_of(case.spec, (), architecture))
                for step in case.plan.steps(device) if kernel in kernels else ():
                    if isinstance(step, Launch) and (threads := prod(step.extents[1])):
                        key = kernel, str(case.plan.instance(step)), architecture
                        blocks.setdefault(key, set()).add((threads, step.shared))
    return blocks


def register_step(old: CompileRow, new: CompileRow, blocks: Collection[tuple[int, int]]) -> str | None:
    """Return how many fewer blocks fit a multiprocessor because of more registers, for the block that loses most."""
    steps: list[tuple[float, str]] = []
    capability = int(new.architecture.rstrip("af"))
    for threads, dynamic in blocks if new.registers > old.registers else ():
        was, now = (
            resident_blocks(threads, dynamic + new.shared_bytes, row.registers, capability) for row in (old, new)
        )
        if now < was:
            fit = f"{count_text(now, 'block')} of {count_text(threads, 'thread')} fit a multiprocessor, {was} before"
            steps.append((now / was, fit))
    return min(steps)[1] if steps else None


def worsened(
    rows: Iterable[CompileRow], stored: Iterable[CompileRow], blocks: LaunchedBlocks = MappingProxyType({})
) -> list[Complaint]:
    """Report new spills, and more registers than the allowance or with fewer resident blocks than before.

    An entry not stored must not spill. Code from another version of a language's compiler is not compared with the
    stored row.
    """
    before = {row.key: row for row in stored}
    complaints = []
    for row in rows:
        old = before.get(row.key)
        if old and _is_of_another_compiler(old, row):
            continue
        name = f"{row.entry} on sm_{row.architecture}"
        if row.spill_bytes > (old.spill_bytes if old else 0):
            known = f"{old.spill_bytes} before" if old else "and is not in the table yet"
            complaints.append(Complaint(row.kernel, f"{name} spills {row.spill_bytes} bytes, {known}"))
        step = register_step(old, row, blocks.get(row.key, ())) if old else None
        if old and (step or row.registers > REGISTER_GROWTH * old.registers + 2):
            taken = f"{name} takes {count_text(row.registers, 'register')}, {old.registers} before"
            complaints.append(Complaint(row.kernel, f"{taken}: {step}" if step else taken))
    return complaints


def compared_text(rows: Iterable[CompileRow], stored: Iterable[CompileRow], grown: Iterable[Complaint]) -> str:
    """Return how many of the compiled kernels were compared with stored rows, and how many of them got worse."""
    before = {row.key: row for row in stored}
    rows = list(rows)
    compiled = {row.kernel for row in rows}
    compared = {row.kernel for row in rows if row.key in before and not _is_of_another_compiler(before[row.key], row)}
    worse = len({growth.kernel for growth in grown})
    text = f"{count_text(len(compared), 'kernel')} compared, {worse or 'none'} worse"
    others = len(compiled - compared)
    return f"{text}; {count_text(others, 'kernel')} without a comparable row" if others else text


def _is_of_another_compiler(old: CompileRow, row: CompileRow) -> bool:
    """Return whether another version of a language's compiler made the stored row."""
    return bool(old.compiler) and old.compiler != row.compiler


def read_table(path: Path) -> list[CompileRow]:
    """Return the stored rows, without a table an empty list; ResultsError if the table cannot be read."""
    if not path.is_file():
        return []
    try:
        with path.open(newline="") as file:
            return [_read_row(line) for line in csv.DictReader(file)]
    except (OSError, TypeError, ValueError) as error:
        raise ResultsError(f"{path}: not a table of compiled resources ({error})") from error


def _read_row(line: Mapping[str, str]) -> CompileRow:
    names = [field.name for field in fields(CompileRow)]
    if set(line) not in (set(names), set(names[:_OLDER])):
        raise ValueError(f"its columns are {', '.join(map(str, line))}")
    numbers = {name: int(line[name]) for name in names[3:_OLDER]}
    size = int(line["code_bytes"]) if line.get("code_bytes") else None
    return CompileRow(
        line["kernel"],
        line["entry"],
        line["architecture"],
        **numbers,
        code_bytes=size,
        compiler=line.get("compiler", ""),
    )


def write_table(path: Path, rows: Iterable[CompileRow]) -> None:
    """Write the rows as CSV, sorted, so that a change is a readable difference."""
    columns = [field.name for field in fields(CompileRow)]
    write_csv(sorted(rows, key=lambda row: row.key), path, columns)


def whole(rows: Iterable[CompileRow], complaints: Iterable[Complaint]) -> list[CompileRow]:
    """Return the rows of the kernels without a complaint: a table keeps the former rows of the others."""
    failed = {complaint.kernel.partition(":")[0] for complaint in complaints}
    return [row for row in rows if row.kernel.partition(":")[0] not in failed]


def merged_table(stored: Iterable[CompileRow], rows: Iterable[CompileRow], known: Iterable[str]) -> list[CompileRow]:
    """Replace the stored rows of each kernel and architecture that was compiled anew; drop kernels not known."""
    rows, known = list(rows), set(known)
    fresh = {(row.kernel, row.architecture) for row in rows}
    kept = [row for row in stored if row.kernel.partition(":")[0] in known]
    return [row for row in kept if (row.kernel, row.architecture) not in fresh] + rows


# Changes since a commit, a run record or a stored table; no GPU is needed.

What = ChangeReason | Literal["new", "gone"]


@dataclass(frozen=True)
class CodeChange:
    """Cases of one kernel that changed on an architecture, what changed of them, and the entries that differ.

    `note` is why instructions are not listed, or in what else the code differs. `cases` is empty where the changes
    are known by entries alone.
    """

    kernel: str
    architecture: str
    entries: tuple[EntryDifference, ...]
    note: str | None = None
    reasons: tuple[What, ...] = ("code",)
    cases: tuple[str, ...] = ()

    @property
    def spills_grew(self) -> bool:
        """Whether an entry spills more than before."""
        return any(entry.spills_grew for entry in self.entries)


@dataclass(frozen=True)
class CodeComparison:
    """What changed, what does not compile, and what cannot be compared although it compiles, each with the cause.

    `compared` is the number of cases (of a table: entries) that are on both sides. `facts` names what was compared of
    them, `limit` what the old side does not have.
    """

    changes: list[CodeChange]
    complaints: list[Complaint]
    uncompared: list[Complaint]
    compared: int
    facts: str = "machine code, launches and inputs"
    limit: str = ""


def since_catalogue(
    old: Catalogue, new: Catalogue, filters: Sequence[str], architectures: Sequence[str], tree: Path | None = None
) -> CodeComparison:
    """Return the changes between two catalogues, case by case, as `compare` selects what it measures.

    Every source of the new catalogue is compiled, and of the old one those that differ. Messages name files of the old
    side relative to `tree`.
    """
    sides = [_known(catalogue, filters) for catalogue in (old, new)]
    for pattern in filters:
        if not any(pattern in patterns for patterns in sides):
            new.cases([pattern])  # raises what is wrong with it
    cases = [_cases(catalogue, filters) for catalogue in (old, new)]
    _, complaints = compile_check(new, sides[1], architectures) if cases[1] else ([], [])
    uncompared = [
        Complaint(problem.path.stem, _below(tree, f"cannot be used on the old side: {problem}"))
        for problem in old.problems
        if problem.path.stem in new.kernels
    ]
    changes: list[CodeChange] = []
    names: set[str] = set()
    for architecture in architectures:
        before, after = ({case.name: case for case in side if _is_compiled(case, architecture)} for side in cases)
        shared = [name for name in after if name in before]
        names.update(shared)
        a, b = (
            Build("", catalogue, tuple(side[name] for name in shared))
            for catalogue, side in ((old, before), (new, after))
        )
        selection = selected((a, b), device_of(architecture), "machine code")
        for case in selection.cases:
            problem = (case.problem or "").replace(f" for sm_{architecture}:", ":", 1)
            kernel = after[case.case].kernel
            if case.role != "does not build" or any(_is_of(complaint, kernel, problem) for complaint in complaints):
                continue  # where no side compiles, the new one is to be corrected
            if case.broken == "b":
                complaints.append(Complaint(kernel, problem))
            elif not any(complaint.kernel == kernel for complaint in uncompared):
                uncompared.append(Complaint(kernel, _below(tree, f"does not compile on the old side: {problem}")))
        changes += _changed(selection.cases, after, architecture)
        changes += _on_one_side(before, after, architecture)
    return CodeComparison(changes, complaints, uncompared, len(names))


def _known(catalogue: Catalogue, filters: Sequence[str]) -> list[str]:
    """Return the filters that the catalogue knows: the other side of a comparison may be the one that has a kernel."""
    known: list[str] = []
    for pattern in filters:
        with suppress(PrismBenchError):
            catalogue.cases([pattern])
            known.append(pattern)
    return known


def _cases(catalogue: Catalogue, filters: Sequence[str]) -> list[Case]:
    """Return the cases and edges of those filters that the catalogue knows, without input regimes of the edges."""
    known = _known(catalogue, filters)
    edges = [] if filters and not known else catalogue.edges(known)
    return [*(catalogue.cases(known) if known or not filters else ()), *(case for case in edges if not case.is_regime)]


def _is_compiled(case: Case, architecture: str) -> bool:
    return not _refusal(case, device_of(architecture)) and not missing_compiler(case.spec.language)


def _is_of(complaint: Complaint, kernel: str, problem: str) -> bool:
    """Return whether the complaint is of that kernel, or of a source whose problem it is."""
    return complaint.kernel == kernel or problem in complaint.message


def _below(tree: Path | None, text: str) -> str:
    return text.replace(f"{tree}/", "") if tree else text


def _changed(selection: Sequence[SelectedCase], cases: Mapping[str, Case], architecture: str) -> list[CodeChange]:
    """Return the changes of the selected cases, those of a kernel together that changed alike."""
    groups: dict[tuple[str, tuple[ChangeReason, ...], str | None], list[SelectedCase]] = {}
    for case in selection:
        if case.reasons:
            groups.setdefault((cases[case.case].kernel, case.reasons, case.note), []).append(case)
    changes: list[CodeChange] = []
    for (kernel, reasons, note), alike in groups.items():
        entries = {entry.entry: entry for case in alike for entry in case.differences}
        changed = tuple(case.case for case in alike)
        changes.append(CodeChange(kernel, architecture, tuple(entries.values()), note, reasons, changed))
    return changes


def _on_one_side(before: Mapping[str, Case], after: Mapping[str, Case], architecture: str) -> list[CodeChange]:
    """Return the cases that only one side has by kernel, with the entries of the new ones."""
    groups: dict[tuple[str, What], list[Case]] = {}
    sides: tuple[tuple[What, Mapping[str, Case], Mapping[str, Case]], ...]
    sides = ("new", after, before), ("gone", before, after)
    for reason, side, other in sides:
        for case in (case for name, case in side.items() if name not in other):
            groups.setdefault((case.kernel, reason), []).append(case)
    jobs: dict[str, CodeJob] = {}
    for (_, reason), cases in groups.items():
        for case in cases if reason == "new" else ():
            with suppress(Exception):  # `compile_check` reports what the spec or its source raises
                if case.spec.source and (request := build_request(case, device_of(architecture))):
                    jobs[case.name] = job_of(request)
    built = compiled_jobs(jobs.values())
    changes: list[CodeChange] = []
    for (kernel, reason), cases in groups.items():
        codes = [built[jobs[case.name]] for case in cases if case.name in jobs]
        entries = [CaseCode("", compiled=code).entries for code in codes if isinstance(code, BuiltCode)]
        facts = {entry: EntryFacts(compiled.resources) for side in entries for entry, compiled in side.items()}
        added = tuple(EntryDifference(entry, None, numbers, {}, None) for entry, numbers in facts.items())
        changes.append(CodeChange(kernel, architecture, added, None, (reason,), tuple(case.name for case in cases)))
    return changes


def since_record(record: RunRecord, catalogue: Catalogue, filters: Sequence[str]) -> CodeComparison:
    """Return the cases whose machine code is not that of the record, on the record's own architecture."""
    known = {case.name: case for case in record.cases if case.code.get("sass") and case.code.get("architecture")}
    if not known:
        raise UsageError("the record knows no machine code: one of a GPU does")
    jobs: dict[str, CodeJob] = {}
    complaints: list[Complaint] = []
    cases = catalogue.cases(filters)
    for case in cases:
        if case.name not in known:
            continue
        device = device_of(str(known[case.name].code["architecture"]).removeprefix("sm_"))
        try:
            request = None if case.plan.refusal(device) else build_request(case, device)
            if request and not missing_compiler(request.language):
                jobs[case.name] = job_of(request)
        except Exception as error:  # a spec may raise anything
            complaints.append(Complaint(case.name, described(error)))
    built = compiled_jobs(jobs.values())
    outcomes = {name: built[job] for name, job in jobs.items()}
    complaints += [Complaint(name, outcome) for name, outcome in outcomes.items() if isinstance(outcome, str)]
    sources = {name: source_identity(job.request) for name, job in jobs.items()}
    changes: list[CodeChange] = []
    for name, built in outcomes.items():
        code = known[name].code
        if isinstance(built, BuiltCode) and built.sass != code["sass"]:
            difference = EntryDifference(name, _recorded_facts(code), _largest(built), {}, None)
            change = build_change(BuildIdentity.of(code), BuildIdentity(built.language, built.compiler, sources[name]))
            note = "a record has the resources of a case, and no instructions" + (f"; {change.words}" if change else "")
            architecture = str(code["architecture"]).removeprefix("sm_")
            changes.append(CodeChange(name, architecture, (difference,), note, cases=(name,)))
    lacking = len([case for case in cases if case.name not in known])
    limit = "a record has neither launches nor inputs to compare"
    limit += f", and this one no machine code of {count_text(lacking, 'case')}" if lacking else ""
    return CodeComparison(changes, complaints, [], len(outcomes), "machine code", limit)


def _recorded_facts(code: Mapping[str, object]) -> EntryFacts:
    numbers = [int(str(code.get(name) or 0)) for name in ("registers", "spill_bytes", "shared_bytes")]
    return EntryFacts(Resources(registers=numbers[0], spill_stores=numbers[1], shared_bytes=numbers[2]))


def _largest(built: BuiltCode) -> EntryFacts:
    """Return the resources of all entries of a case in the form of a record: the most registers, all spills."""
    used = list(built.resources.values())
    spilled = sum(resources.spill_stores + resources.spill_loads for resources in used)
    shared = max((resources.shared_bytes for resources in used), default=0)
    return EntryFacts(Resources(max((resources.registers for resources in used), default=0), 0, spilled, 0, shared))


def since_table(
    stored: Iterable[CompileRow], rows: Iterable[CompileRow], complaints: list[Complaint]
) -> CodeComparison:
    """Return the entries whose resources differ from a stored table, which has no instructions to compare."""
    before, after = ({row.key: row for row in side} for side in (stored, rows))
    fresh = {(row.kernel, row.architecture) for row in after.values()}
    keys = [*after, *(key for key in before if key not in after and (key[0], key[2]) in fresh)]
    note = "a table has resources, and no instructions: other code of the same resources is not seen"
    changes: list[CodeChange] = []
    for key in keys:
        if before.get(key) != after.get(key):
            kernel, entry, architecture = key
            difference = EntryDifference(entry, _row_facts(before.get(key)), _row_facts(after.get(key)), {}, None)
            changes.append(CodeChange(kernel, architecture, (difference,), note))
    limit = "a table has neither instructions nor launches nor inputs to compare"
    shared = sum(key in before for key in after)
    return CodeComparison(changes, complaints, [], shared, "registers, spills and shared memory", limit)


def _row_facts(row: CompileRow | None) -> EntryFacts | None:
    if row is None:
        return None
    return EntryFacts(Resources(row.registers, row.stack_bytes, row.spill_bytes, 0, row.shared_bytes, row.barriers))


# Host code that is cut out of sources before NVRTC and the emulator get them.

How = Literal["cut", "whole", "nvcc", "prebuilt", "refused"]
_MEANING = {
    "whole": "holds no host code: compiled as it is",
    "nvcc": "goes to nvcc as it is; the emulator gets it without:",
    "prebuilt": "is machine code: nothing is compiled",
    "cut": "compiled without:",
    "refused": "",
}


@dataclass(frozen=True)
class SourceCuts:
    """A source of the catalogue: how it reaches the compiler, its kernels, and the parts that are cut out of it."""

    source: Path
    kernels: tuple[str, ...]
    how: How
    cuts: tuple[Cut, ...] = ()
    complaint: str = ""

    @property
    def meaning(self) -> str:
        """The sentence that describes what happens to the source."""
        return self.complaint or _MEANING[self.how]


def source_cuts(catalogue: Catalogue, filters: Sequence[str] = ()) -> list[SourceCuts]:
    """Return the parts cut out of each source of the chosen cases."""
    names: dict[tuple[Path, tuple[str, ...]], dict[str, KernelSpec]] = {}
    entries: dict[tuple[Path, tuple[str, ...]], set[str]] = {}
    for case in [*catalogue.cases(filters), *catalogue.edges(filters)]:
        if case.spec.language == CUDA:
            key = case.spec.source_file, case.spec.options
            names.setdefault(key, {})[case.kernel] = case.spec
            with suppress(Exception):  # a spec may raise anything
                entries.setdefault(key, set()).update(case.plan.entries(Device()))
    return [_cuts(*key, tuple(names[key]), entries.get(key, set())) for key in sorted(names)]


def _cuts(source: Path, options: tuple[str, ...], kernels: tuple[str, ...], entries: set[str]) -> SourceCuts:
    if is_prebuilt(source):
        return SourceCuts(source, kernels, "prebuilt")
    by_nvcc = toolchain_of(options).compiler == "nvcc"
    try:
        cut = cut_source(source, tuple(sorted(entries)), options)
    except CompilationFailed as error:
        return SourceCuts(source, kernels, "nvcc" if by_nvcc else "refused", (), str(error))
    if cut is None:
        return SourceCuts(source, kernels, "whole")
    return SourceCuts(source, kernels, "nvcc" if by_nvcc else "cut", cut.cuts)
