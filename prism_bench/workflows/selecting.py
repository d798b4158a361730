"""Selection of what a comparison of two builds measures: both are compiled first, which needs no GPU."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import prism_bench
from prism_bench.analysis.compare.selection import (
    RUN_BY_REFERENCE,
    CaseWork,
    ChangeReason,
    CodeIdentity,
    SelectedCase,
    Selection,
    control_sample,
)
from prism_bench.compilation.disassembly import CodeDifference, Entries, code_differences
from prism_bench.compilation.toolchain import toolchain_of
from prism_bench.run.ahead import on_all_cores
from prism_bench.run.interleave import Build
from prism_bench.spec.case import Case, Device
from prism_bench.workflows.case_code import CaseCode, CodeJob, CodeReader, Outcome, compiled_jobs, python_of

Builds = tuple[Build, Build]
_Files = tuple[tuple[tuple[Path, str], ...], tuple[tuple[Path, str], ...]]
# What decides how a package compiles and launches; where two packages differ in it, the same kernel may run otherwise.
_DECIDING = ("compilation", "backends", "spec/launch.py", "spec/case.py", "spec/inputs.py")
_DECIDING_REFERENCE = ("backends/numpy_reference.py", "backends/host.py", "spec/correctness.py", "spec/inputs.py")


@dataclass(frozen=True)
class _CodePair:
    """One case on both sides, with the code of each."""

    name: str
    cases: tuple[Case, Case]
    codes: tuple[CaseCode, CaseCode]

    @property
    def files(self) -> _Files:
        """The files and symbols of the machine code on both sides."""
        a, b = (tuple((one.path, one.symbol) for one in code.entries.values()) for code in self.codes)
        return a, b

    @property
    def problem(self) -> str | None:
        """Why a side has no code; None where both have."""
        return self.codes[1].problem or self.codes[0].problem

    @property
    def broken(self) -> Literal["a", "b"] | None:
        """The side without code; A where neither has any."""
        return "a" if self.codes[0].problem else "b" if self.codes[1].problem else None

    @property
    def reasons(self) -> tuple[ChangeReason, ...]:
        """What differs between the sides."""
        a, b = self.codes
        differs: dict[ChangeReason, bool] = {
            "code": a.code != b.code, "launch": a.launch != b.launch, "inputs": a.inputs != b.inputs,
            "compiler": a.code != b.code and self._compilers[0] != self._compilers[1],
            "reference": a.reference != b.reference,
        }  # fmt: skip
        return tuple(reason for reason, changed in differs.items() if changed)

    @property
    def _compilers(self) -> tuple[str, str]:
        """The compilers of both sides: as they call themselves where both compiled, else as the specs name them."""
        made = [code.compiled.compiler for code in self.codes if code.compiled]
        named = [toolchain_of(case.spec.options).compiler for case in self.cases]
        a, b = made if len(made) == 2 else named
        return a, b


def selected(
    builds: Builds, device: Device, by: CodeIdentity, everything: str | None = None, *, launched: bool = False
) -> Selection:
    """Return the role of every case that both builds have, which are in the same order.

    Only sources whose text or headers differ are compiled; where the code will be `launched`, that of the control as
    well, which the processes that time it would compile one after the other. `everything` is why all cases are
    measured nevertheless.
    """
    started = time.perf_counter()
    reader = CodeReader(device, by)
    both = list(zip(builds[0].cases, builds[1].cases, strict=True))
    jobs = [_jobs(pair, reader) for pair in both]
    read = time.perf_counter()
    ahead = _control_jobs(both, jobs, reader) if launched and any(jobs) else []
    compiled = compiled_jobs([*(job for pair in jobs if pair for job in pair), *ahead])
    pairs = [_pair(cases, job, compiled, reader) for cases, job in zip(both, jobs, strict=True)]
    found = tuple(_selected(pairs, everything))
    seconds = {"reading": read - started, "compiling": time.perf_counter() - read}
    return Selection(by, found, everything, seconds)


def split_by_backend(selection: Selection) -> tuple[Selection, tuple[str, ...]]:
    """Return the selection without the cases that changed in nothing that the backend runs, and the names of those.

    Of a backend that runs references these are the cases whose source or launch alone changed; where all cases are to
    be measured, and on any other backend, there are none.
    """
    if selection.by != "reference" or selection.everything:
        return selection, ()
    idle = [one for one in selection.cases if one.reasons and not set(one.reasons) & set(RUN_BY_REFERENCE)]
    kept = tuple(one for one in selection.cases if one not in idle)
    return replace(selection, cases=kept), tuple(one.case for one in idle)


def with_broken(selection: Selection, broken: Mapping[str, str]) -> Selection:
    """Return the selection with cases of A, too, whose spec cannot be used in B; `broken` has the reasons."""
    more = (SelectedCase(name, "does not build", problem=reason, broken="b") for name, reason in broken.items())
    return replace(selection, cases=(*selection.cases, *more))


def restricted(builds: Builds, selection: Selection) -> Builds:
    """Return the builds with the cases that are measured; with none where nothing changed, unless all are measured."""
    wanted = selection.names("measured", "control") if selection.changed or selection.everything else ()
    kept = set(wanted)
    a, b = (replace(build, cases=tuple(case for case in build.cases if case.name in kept)) for build in builds)
    return a, b


def other_package(builds: Builds, by: CodeIdentity = "machine code") -> str | None:
    """Return why identical code may not run alike: the sides' own packages differ in what runs it; None where not."""
    here = Path(prism_bench.__file__).parent
    roots = [build.place.root / "prism_bench" if build.place.root else here for build in builds]
    names = _DECIDING_REFERENCE if by == "reference" else _DECIDING
    if _deciding(roots[0], names) == _deciding(roots[1], names):
        return None
    return "the package differs between the sides in how it compiles, launches or fills"


def other_environment(builds: Builds) -> str | None:
    """Return why identical machine code may not run alike: the variables of the sides differ; None where not."""
    a, b = (build.place.variables for build in builds)
    names = sorted(name for name in {*a, *b} if a.get(name) != b.get(name))
    return f"{', '.join(names)} differs between the sides" if names else None


def _deciding(package: Path, names: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        path = package / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(str(file.relative_to(package)).encode() + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()


def _jobs(pair: tuple[Case, Case], reader: CodeReader) -> tuple[CodeJob, CodeJob] | None:
    """Return what is compiled for the two sides of a case; None where nothing is, or their sources are the same."""
    try:
        a, b = (reader.job(case) if reader.is_compiled(case) else None for case in pair)
    except Exception:  # what a spec raises, `CodeReader.code` reports
        return None
    return (a, b) if a and b and a != b else None


def _control_jobs(
    both: Sequence[tuple[Case, Case]], jobs: Sequence[tuple[CodeJob, CodeJob] | None], reader: CodeReader
) -> list[CodeJob]:
    """Return what is compiled for the control, as far as the sources show what belongs to it."""
    same = [pair[1] for pair, job in zip(both, jobs, strict=True) if not job and not pair[1].spec.ceiling]
    chosen = set(control_sample({case.name: _work(case) for case in same}))
    found: list[CodeJob] = []
    for case in same:
        with suppress(Exception):  # what a spec raises, `CodeReader.code` reports
            job = reader.job(case) if case.name in chosen and reader.is_compiled(case) else None
            found += [job] if job else []
    return found


def _pair(
    cases: tuple[Case, Case], jobs: tuple[CodeJob, CodeJob] | None, compiled: Mapping[CodeJob, Outcome],
    reader: CodeReader,
) -> _CodePair:  # fmt: skip
    python = [_python_hash(tuple(folder.resolve() for folder in python_of(case))) for case in cases]
    found = [compiled[job] for job in jobs] if jobs else [None, None]
    known = python[0] == python[1]
    a, b = (reader.code(case, one, known_fills=known) for case, one in zip(cases, found, strict=True))
    return _CodePair(cases[0].name, cases, (a, b))


@cache
def _python_hash(folders: tuple[Path, ...]) -> str:
    """Return a hash of all Python files of the folders; of a worktree it is made once, since none is changed."""
    files = (file for folder in folders for file in folder.rglob("*.py"))
    # A set: the built-in shared folder is one of the two folders of a checkout's catalogue, and both of this one's.
    known = {hashlib.sha256(file.name.encode() + file.read_bytes()).hexdigest() for file in files}
    return hashlib.sha256("".join(sorted(known)).encode()).hexdigest()


def _selected(pairs: Sequence[_CodePair], everything: str | None) -> Iterator[SelectedCase]:
    """Yield the cases: those that differ are measured, and all with `everything`; of the others a sample is control."""
    whole = [pair for pair in pairs if pair.problem is None]
    same = {pair.name: _work(pair.cases[1]) for pair in whole if not pair.reasons and not pair.cases[1].spec.ceiling}
    control = set(control_sample(same))
    differences = _differences(whole)
    for pair in pairs:
        if pair.problem is not None:
            yield SelectedCase(pair.name, "does not build", problem=pair.problem, broken=pair.broken)
        elif pair.reasons:
            entries, note = differences.get(pair.files, ((), None))
            yield SelectedCase(pair.name, "measured", pair.reasons, differences=entries, note=note)
        elif pair.name in control:
            yield SelectedCase(pair.name, "control")
        else:
            yield SelectedCase(pair.name, "measured" if everything else "same machine code")


def _work(case: Case) -> CaseWork:
    return CaseWork(case.spec.name, case.sizes.bytes_moved, case.sizes.flops or 0)


def _differences(pairs: Sequence[_CodePair]) -> dict[_Files, CodeDifference]:
    """Return the differences of machine code by the files of both sides; several processes list them."""
    unique = {pair.files: pair for pair in pairs if "code" in pair.reasons and all(pair.files)}
    sides = [(pair.codes[0].entries, pair.codes[1].entries) for pair in unique.values()]
    return dict(zip(unique, on_all_cores(_difference, sides), strict=True))


def _difference(pair: tuple[Entries, Entries]) -> CodeDifference:
    return code_differences(*pair)
