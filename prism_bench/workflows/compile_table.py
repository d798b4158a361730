"""Every kernel through the compiler for several architectures, without a device; what each entry takes, as a table."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

from prism_bench.catalogue import Catalogue
from prism_bench.compilation import nvrtc_architectures, nvrtc_version
from prism_bench.compilation.code import Resources, code_bytes
from prism_bench.compilation.languages import BuildRequest, BuiltKernel, build, language, request_of
from prism_bench.errors import BackendUnavailable, PrismBenchError, ResultsError, UsageError
from prism_bench.run.ahead import on_all_cores
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA
from prism_bench.spec.launch import Instance
from prism_bench.units import count_text
from prism_bench.workflows.csv_table import write_table as write_csv

ARCHITECTURES = ("80", "90", "100", "120")
_NAMED = 3  # kernels in one line
_OLDER = 8  # columns of tables without the size of code
REGISTER_GROWTH = 1.15  # a newer compiler moves a few registers; more than this is the source's doing


@dataclass(frozen=True)
class CompileRow:
    """What one entry takes on one architecture; bytes per thread for stack and spills, per block for shared memory.

    `compiler` is that of another language than CUDA C++, with its version. Older tables have neither it nor the size of
    the code.
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
    """Why a kernel does not pass: `kernel` and a message with the figures, or the compiler's words."""

    kernel: str
    message: str


def compile_check(
    catalogue: Catalogue, filters: Sequence[str] = (), architectures: Sequence[str] = ARCHITECTURES,
    report: Callable[[str], object] = lambda _: None, *, edges: bool = True,
) -> tuple[list[CompileRow], list[Complaint]]:  # fmt: skip
    """Compile every entry that the chosen kernels' cases launch, and with `edges` those that only edges launch.

    Return the rows and the complaints of the compiler.

    Raises BackendUnavailable where there is no NVRTC.
    """
    jobs = [
        job for architecture in architectures for job in launched(catalogue, filters, architecture, edges)
        if not missing_compiler(job.language)
    ]  # fmt: skip
    jobs.sort(
        key=lambda job: (-len(job.instances), job.source)
    )  # the longest first, so that no core waits for the last
    rows: list[CompileRow] = []
    complaints: list[Complaint] = []
    for job, (found, complaint) in zip(jobs, on_all_cores(_compile, jobs), strict=True):
        report(kernel_of(job))
        rows += found
        complaints += [Complaint(kernel_of(job), complaint)] if complaint else []
    return sorted(rows, key=lambda row: row.key), sorted(complaints, key=lambda one: one.kernel)


def missing_compiler(language_name: str) -> str | None:
    """Return why a language's kernels are left out, in one sentence; None where its compiler is installed.

    Raises BackendUnavailable where there is no NVRTC: CUDA C++ is never left out.
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
    catalogue: Catalogue, filters: Sequence[str] = (), architecture: str = "90", edges: bool = True
) -> list[BuildRequest]:
    """Return what all cases (and `edges`) launch on that architecture, in one request for source and options."""
    sources: dict[BuildRequest, dict[Instance, None]] = {}
    device = device_of(architecture)
    for case in [*catalogue.cases(filters), *(catalogue.edges(filters) if edges else ())]:
        instances = () if case.plan.refusal(device) else case.plan.instances(device)
        if instances:
            sources.setdefault(request_of(case.spec, (), architecture), {}).update(dict.fromkeys(instances))
    found = [replace(one, instances=tuple(sorted(sources[one], key=str))) for one in sources]
    return sorted(found, key=lambda one: (one.source, one.options))


def whole_kernels(catalogue: Catalogue, filters: Sequence[str]) -> list[str]:
    """Return the kernels and forms that the filters choose anything of: the table has the entries of each together."""
    chosen = [*catalogue.cases(filters), *catalogue.edges(filters)]
    return list(dict.fromkeys(case.spec.name if case.spec.language == CUDA else case.kernel for case in chosen))


def left_out(
    catalogue: Catalogue, filters: Sequence[str] = (), architectures: Sequence[str] = ARCHITECTURES
) -> list[Complaint]:
    """Return the variants that some of the architectures cannot run, or that lack their compiler here, and why.

    Neither is a defect of the variants.
    """
    chosen: dict[str, list[Case]] = {}
    for case in [*catalogue.cases(filters), *catalogue.edges(filters)]:
        chosen.setdefault(case.kernel, []).append(case)
    reasons = ((name, one, [case.plan.refusal(device_of(one)) for case in cases]) for name, cases in chosen.items()
               for one in architectures)  # fmt: skip
    return without_compiler(catalogue, filters) + [
        Complaint(name, f"not for sm_{one}: {found[0]}") for name, one, found in reasons if all(found)
    ]


def without_compiler(catalogue: Catalogue, filters: Sequence[str] = ()) -> list[Complaint]:
    """Return the variants whose compiler is not installed here, and why."""
    languages = {case.kernel: case.spec.language for case in [*catalogue.cases(filters), *catalogue.edges(filters)]}
    return [Complaint(name, why) for name, one in languages.items() if one != CUDA and (why := missing_compiler(one))]


def together(complaints: Iterable[Complaint]) -> Iterator[str]:
    """Yield each message once, with the kernels that it is about."""
    kernels: dict[str, list[str]] = {}
    for one in complaints:
        kernels.setdefault(one.message, []).append(one.kernel)
    for message, own in kernels.items():
        named = ", ".join(own[:_NAMED]) + (f" and {len(own) - _NAMED} more" if len(own) > _NAMED else "")
        yield f"{named}: {message}"


def device_of(architecture: str) -> Device:
    """Return a device of that architecture with the sizes of a Hopper one, for which launches are planned."""
    return Device(sm_count=132, max_shared_bytes=227 * 1024, compute_capability=int(architecture.rstrip("af")))


def _compile(job: BuildRequest) -> tuple[list[CompileRow], str | None]:
    """Return the rows of the request's entries, or none with the compiler's message."""
    try:
        built = build(job)
    except PrismBenchError as error:
        return [], str(error)
    compiler = "" if job.language == CUDA else built.compiler
    return [
        CompileRow(kernel_of(job), str(entry), job.architecture, *_numbers(kernel.resources), _size(kernel), compiler)
        for entry, kernel in built.kernels.items()
    ], None


def _numbers(used: Resources) -> tuple[int, int, int, int, int]:
    spilled = used.spill_stores + used.spill_loads
    return used.registers, used.stack_bytes, spilled, used.shared_bytes, used.barriers


def _size(kernel: BuiltKernel) -> int:
    return code_bytes(kernel.path.read_bytes(), [kernel.symbol])


def worsened(rows: Iterable[CompileRow], stored: Iterable[CompileRow]) -> list[Complaint]:
    """Report new spills, and registers that grew by more than the allowance; an entry not stored must not spill.

    What another version of a language's compiler makes is not compared with the stored row.
    """
    before = {row.key: row for row in stored}
    complaints = []
    for row in rows:
        old = before.get(row.key)
        if old and old.compiler and old.compiler != row.compiler:
            continue
        name = f"{row.entry} on sm_{row.architecture}"
        if row.spill_bytes > (old.spill_bytes if old else 0):
            known = f"{old.spill_bytes} before" if old else "and is not in the table yet"
            complaints.append(Complaint(row.kernel, f"{name} spills {row.spill_bytes} bytes, {known}"))
        if old and row.registers > REGISTER_GROWTH * old.registers + 2:
            complaints.append(
                Complaint(row.kernel, f"{name} takes {count_text(row.registers, 'register')}, {old.registers} before")
            )
    return complaints


def read_table(path: Path) -> list[CompileRow]:
    """Return the stored rows; none where there is no table yet, a ResultsError where it cannot be read."""
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
    registers, stack, spills, shared, barriers = (int(line[name]) for name in names[3:_OLDER])
    size = int(line["code_bytes"]) if line.get("code_bytes") else None
    return CompileRow(
        line["kernel"], line["entry"], line["architecture"], registers, stack, spills, shared, barriers, size,
        line.get("compiler", ""),
    )  # fmt: skip


def write_table(path: Path, rows: Iterable[CompileRow]) -> None:
    """Write the rows as CSV, sorted, so that a change is a readable difference."""
    columns = [field.name for field in fields(CompileRow)]
    write_csv(sorted(rows, key=lambda row: row.key), path, columns)


def merged_table(stored: Iterable[CompileRow], rows: Iterable[CompileRow], known: Iterable[str]) -> list[CompileRow]:
    """Replace the stored rows of each kernel and architecture that was compiled anew; drop kernels not known."""
    rows, known = list(rows), set(known)
    fresh = {(row.kernel, row.architecture) for row in rows}
    kept = [row for row in stored if row.kernel.partition(":")[0] in known]
    return [row for row in kept if (row.kernel, row.architecture) not in fresh] + rows


def require_known(architectures: Iterable[str]) -> None:
    """Raise a UsageError for an architecture that is not a number such as 90, or unknown to the compiler, if any."""
    known = _known_architectures()
    for architecture in architectures:
        number = architecture.rstrip("af")
        if not number.isdigit():
            raise UsageError(f"architecture '{architecture}' is not a number such as 90")
        if known and int(number) not in known:
            listed = ", ".join(map(str, known))
            raise UsageError(f"architecture '{architecture}' is none that NVRTC {nvrtc_version()} knows: {listed}")


def _known_architectures() -> tuple[int, ...]:
    try:
        return nvrtc_architectures()
    except BackendUnavailable:
        return ()
