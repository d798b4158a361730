"""Comparison of two builds: selection of the cases, and measuring in turn."""

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import prism_bench
from prism_bench.analysis.compare.comparison import by_name, by_workload, compare, undecided
from prism_bench.analysis.compare.noise import stored_noise
from prism_bench.analysis.compare.selection import (
    RUN_BY_REFERENCE,
    CaseWork,
    ChangeReason,
    CodeIdentity,
    SelectedCase,
    Selection,
    control_sample,
)
from prism_bench.analysis.compare.verdict import VerdictRules
from prism_bench.compilation.listing import CodeDifference, Entries, code_differences
from prism_bench.compilation.program import toolchain_of
from prism_bench.io.files import Saver
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.run import Progress, Settings
from prism_bench.run.builds import DEVICE_METRICS, Build, Growth, interleaved, pair_settings
from prism_bench.run.precompile import on_all_cores
from prism_bench.spec.case import Case, Device
from prism_bench.workflows.case_code import CaseCode, CodeJob, CodeReader, Outcome, compiled_jobs, python_of
from prism_bench.workflows.tuning.choice import Applied

# Two builds are measured in turn, so that drift of the machine affects both alike.

Records = tuple[RunRecord, RunRecord]


@dataclass(frozen=True)
class PairEffort:
    """Effort of measuring two builds: the backend, processes per side, a limit in seconds, a folder for the records.

    With `tuned`, launches follow this machine's choices. The cases `trusted` are not verified: their machine code,
    launches and inputs are those of the other side. Only these `metrics` are measured.
    """

    backend: str
    processes: int
    limit: float | None = None
    keep: Path | None = None
    tuned: bool = False
    trusted: tuple[str, ...] = ()
    metrics: tuple[str, ...] = DEVICE_METRICS


def measure_pair(
    builds: tuple[Build, Build],
    chosen: tuple[Applied, Applied],
    effort: PairEffort,
    report: Callable[[Progress], None],
    growth: Growth | None = None,
) -> tuple[Records, Saver[Records, object]]:
    """Measure both builds as `chosen` launches them; return the records and the saver that kept them after every pair.

    With `growth`, undecided cases are measured in more processes.
    """
    first, second = (replace(build, cases=applied.cases) for build, applied in zip(builds, chosen, strict=True))
    settings, keep = pair_settings(Settings(processes=effort.processes), effort.metrics), record_saver(effort)

    def named(records: Records) -> Records:
        a, b = (replace(record, tuning=dict(applied.facts)) for record, applied in zip(records, chosen, strict=True))
        return a, b

    records = interleaved(
        (first, second),
        effort.backend,
        settings,
        report,
        limit=effort.limit,
        keep=lambda records: keep(named(records)),
        growth=growth,
        trusted=effort.trusted,
    )
    keep.finish(named(records))
    return named(records), keep


def record_saver(effort: PairEffort) -> Saver[Records, object]:
    """Return a saver of both sides' records in the folder of the effort; it saves nothing without a folder."""
    places = [store.RecordPlace(effort.keep, effort.keep / f"{side}.json.gz") for side in "ab"] if effort.keep else []
    return Saver(lambda records: [place.save(record) for place, record in zip(places, records, strict=False)])


@dataclass(frozen=True)
class PairJudge:
    """Rules by which a board of a fleet decides whether a case needs more processes.

    `noise` is the folder of noise floors, `across` what the sides differ in, `changed` the cases whose code differs.
    """

    noise: str
    rules: VerdictRules
    across: str
    metric: str | None = None
    changed: tuple[str, ...] = ()

    def undecided(self, records: Records) -> tuple[Collection[str], Collection[str]]:
        """Return the names of the cases of either side that more processes may decide."""
        a, b = records
        key = by_workload if self.across == "variants" else by_name
        floors = stored_noise(b.machine["id"], Path(self.noise))
        comparison = compare(a, b, floors, self.rules, metric=self.metric, key=key, changed=self.changed)
        return undecided(comparison, records, key)


# Selection of the cases to measure: both builds are compiled first, which needs no GPU.

Builds = tuple[Build, Build]
_Files = tuple[tuple[tuple[Path, str], ...], tuple[tuple[Path, str], ...]]
# Files that decide how a package compiles and launches: if they differ, the same kernel may run differently.
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
        a, b = (tuple((entry.path, entry.symbol) for entry in code.entries.values()) for code in self.codes)
        return a, b

    @property
    def problem(self) -> str | None:
        """Why a side has no code; None if both have code."""
        return self.codes[1].problem or self.codes[0].problem

    @property
    def broken(self) -> Literal["a", "b"] | None:
        """The side without code; A if both lack it."""
        return "a" if self.codes[0].problem else "b" if self.codes[1].problem else None

    @property
    def reasons(self) -> tuple[ChangeReason, ...]:
        """What differs between the sides."""
        a, b = self.codes
        # Compilers name themselves; the specs name them where a side was not compiled.
        compilers = [code.compiled.compiler for code in self.codes if code.compiled]
        if len(compilers) < 2:
            compilers = [toolchain_of(case.spec.options).compiler for case in self.cases]
        differs: dict[ChangeReason, bool] = {
            "code": a.code != b.code,
            "launch": a.launch != b.launch,
            "inputs": a.inputs != b.inputs,
            "compiler": a.code != b.code and compilers[0] != compilers[1],
            "reference": a.reference != b.reference,
        }
        return tuple(reason for reason, changed in differs.items() if changed)


def selected(
    builds: Builds, device: Device, by: CodeIdentity, everything: str | None = None, *, launched: bool = False
) -> Selection:
    """Return the role of every case that both builds have, which are in the same order.

    Only sources whose text or headers differ are compiled. If the code will be `launched`, that of the control sample
    is compiled too: the timing processes would compile it one after the other. `everything` is why all cases are
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
    chosen = tuple(_selected(pairs, everything))
    seconds = {"reading": read - started, "compiling": time.perf_counter() - read}
    return Selection(by, chosen, everything, seconds)


def split_by_backend(selection: Selection) -> tuple[Selection, tuple[str, ...]]:
    """Return the selection without the cases whose change the backend does not run, and the names of those cases.

    On a backend that runs references, a case is left out if only its source or launch changed. No case is left out on
    other backends or when all cases are measured.
    """
    if selection.by != "reference" or selection.everything:
        return selection, ()
    idle = [case for case in selection.cases if case.reasons and not set(case.reasons) & set(RUN_BY_REFERENCE)]
    kept = tuple(case for case in selection.cases if case not in idle)
    return replace(selection, cases=kept), tuple(case.case for case in idle)


def with_broken(selection: Selection, broken: Mapping[str, str]) -> Selection:
    """Return the selection with the cases of A whose spec cannot be used in B added; `broken` has the reasons."""
    more = (SelectedCase(name, "does not build", problem=reason, broken="b") for name, reason in broken.items())
    return replace(selection, cases=(*selection.cases, *more))


def restricted(builds: Builds, selection: Selection) -> Builds:
    """Return the builds with only the cases to measure; without cases if nothing changed, unless all are measured."""
    kept = set(selection.names("measured", "control") if selection.changed or selection.everything else ())
    a, b = (replace(build, cases=tuple(case for case in build.cases if case.name in kept)) for build in builds)
    return a, b


def other_package(builds: Builds, by: CodeIdentity = "machine code") -> str | None:
    """Return why identical code may run differently: their packages differ in what runs it; None if not."""
    here = Path(prism_bench.__file__).parent
    roots = [build.place.root / "prism_bench" if build.place.root else here for build in builds]
    names = _DECIDING_REFERENCE if by == "reference" else _DECIDING
    if _deciding(roots[0], names) == _deciding(roots[1], names):
        return None
    return "the package differs between the sides in how it compiles, launches or fills"


def other_environment(builds: Builds) -> str | None:
    """Return why identical machine code may run differently: the sides' variables differ; None if they do not."""
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
    """Return the jobs of the two sides of a case; None if nothing is compiled or their sources are the same."""
    try:
        a, b = (reader.job(case) if reader.is_compiled(case) else None for case in pair)
    except Exception:  # what a spec raises, `CodeReader.code` reports
        return None
    return (a, b) if a and b and a != b else None


def _control_jobs(
    both: Sequence[tuple[Case, Case]], jobs: Sequence[tuple[CodeJob, CodeJob] | None], reader: CodeReader
) -> list[CodeJob]:
    """Return the jobs of the control sample, as far as the sources show which cases belong to it."""
    same = [pair[1] for pair, job in zip(both, jobs, strict=True) if not job and not pair[1].spec.ceiling]
    sample = set(control_sample({case.name: _work(case) for case in same}))
    ahead: list[CodeJob] = []
    for case in same:
        with suppress(Exception):  # what a spec raises, `CodeReader.code` reports
            if case.name in sample and reader.is_compiled(case) and (job := reader.job(case)):
                ahead.append(job)
    return ahead


def _pair(
    cases: tuple[Case, Case],
    jobs: tuple[CodeJob, CodeJob] | None,
    compiled: Mapping[CodeJob, Outcome],
    reader: CodeReader,
) -> _CodePair:
    python = [_python_hash(tuple(folder.resolve() for folder in python_of(case))) for case in cases]
    outcomes = [compiled[job] for job in jobs] if jobs else [None, None]
    known = python[0] == python[1]
    a, b = (reader.code(case, outcome, known_fills=known) for case, outcome in zip(cases, outcomes, strict=True))
    return _CodePair(cases[0].name, cases, (a, b))


@cache
def _python_hash(folders: tuple[Path, ...]) -> str:
    """Return a hash of all Python files of the folders; cached, since the files of a worktree do not change."""
    files = (file for folder in folders for file in folder.rglob("*.py"))
    # A set: the built-in shared folder is one of the two folders of a checkout's catalogue, and both of this one's.
    hashes = {hashlib.sha256(file.name.encode() + file.read_bytes()).hexdigest() for file in files}
    return hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest()


def _selected(pairs: Sequence[_CodePair], everything: str | None) -> Iterator[SelectedCase]:
    """Yield the cases: differing ones (with `everything` all) are measured; a sample of the others is the control."""
    whole = [pair for pair in pairs if pair.problem is None]
    same = {pair.name: _work(pair.cases[1]) for pair in whole if not pair.reasons and not pair.cases[1].spec.ceiling}
    control = set(control_sample(same))
    changed = {pair.files: pair for pair in whole if "code" in pair.reasons and all(pair.files)}
    entries_of = [(pair.codes[0].entries, pair.codes[1].entries) for pair in changed.values()]
    differences = dict(zip(changed, on_all_cores(_difference, entries_of), strict=True))
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


def _difference(pair: tuple[Entries, Entries]) -> CodeDifference:
    return code_differences(*pair)
