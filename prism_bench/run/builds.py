"""Two builds measured in one run: their checkouts, and their processes in turn."""

import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from prism_bench.catalogue import Catalogue, Problem, discover
from prism_bench.errors import BackendUnavailable, SpecError, UsageError
from prism_bench.io import files, project
from prism_bench.io.files import family_folder, is_bundled, temporary_folder
from prism_bench.io.workers import WorkerEnvironment
from prism_bench.record.run_record import RunRecord
from prism_bench.run.job import Run
from prism_bench.run.measuring import TIMED, UNTIMED, lacks_memory
from prism_bench.run.pool import HERE, Progress, Standby, measuring, rounds, timing
from prism_bench.run.settings import RunClock, Settings, catalogue_name
from prism_bench.spec.case import Case

# Two builds measured in one run, their processes in turn (A B, B A, A B, ...), so that drift affects both alike.

AT_ONCE = 3  # workers a side that are started together: each holds CuPy and the catalogue
_STANDBY = "prism_bench/run/pool.py"  # of a checkout whose workers can be started before they have an order
MAIN_METRICS = ("cold_time", "wall_time")  # of which a case has one: on a device, or on a CPU
DEVICE_METRICS = (*MAIN_METRICS, "hot_time")


@dataclass(frozen=True)
class Build:
    """One side: its `name`, the `catalogue` of its `cases`, and the `place` where its workers run."""

    name: str
    catalogue: Catalogue
    cases: tuple[Case, ...]
    place: WorkerEnvironment = HERE


def pair_settings(settings: Settings, metrics: Sequence[str] = DEVICE_METRICS) -> Settings:
    """Return the settings for timing only kernels: no peers, no CPU, and only these metrics.

    Processes that measure are numbered from 1, so a metric of the first process only is not measured at all.
    """
    others = tuple(metric for metric in settings.criteria if metric not in metrics)
    watching = replace(settings.watching, energy_labels=()) if "energy" in metrics else settings.watching
    return replace(settings, peers=False, cpu_baseline=False, first_process_only=others, watching=watching)


@dataclass(frozen=True)
class Growth:
    """Plan for adding pairs of processes.

    After as many pairs as each of `looks`, `undecided` names the cases of either side that are measured until the next.
    """

    looks: tuple[int, ...]
    undecided: Callable[[tuple[RunRecord, RunRecord]], tuple[Collection[str], Collection[str]]]


class _PairSide:
    """A build with its run, and the cases that are still measured; those of the names `trusted` are not verified."""

    def __init__(
        self,
        build: Build,
        backend: str,
        settings: Settings,
        report: Callable[[Progress], object],
        *,
        trusted: Collection[str] = (),
    ) -> None:
        self.build, self._backend = build, backend
        self.left = list(build.cases)
        self.verified = [case for case in build.cases if case.name not in trusted]
        self.run = Run(build.catalogue, backend, settings, report, build.place)

    def turn(self, process: int) -> None:
        """Time the cases that are left in one process."""
        with self.run.stage(TIMED):
            self.run.go_through(self.run.right_tasks(self.left, process), process)

    def verifying(self) -> AbstractContextManager[None]:
        """Return a block in which the process that verifies works already."""
        return self.run.verifying(self.verified)

    def verify(self) -> None:
        """Send the cases that are verified through a process."""
        with self.run.stage(UNTIMED):
            self.run.go_through(self.run.right_tasks(self.verified, 0), 0, timed=False)

    def verify_lacking(self) -> None:
        """Verify the cases again that lacked memory next to the other side, now without it."""
        self.verified = [case for case in self.verified if self._lacked_memory(case.name)]
        for case in self.verified:
            self.run.results.pop(case.name)
        if self.verified:
            self.verify()

    def _lacked_memory(self, name: str) -> bool:
        results = self.run.results.get(name, ())
        return any(case.status == "skipped" and lacks_memory(case.reason or "") for case in results)

    def standby(self, processes: int) -> Standby:
        """Return that many workers, which import and read the catalogue; no worker for a checkout without standby."""
        place = self.build.place
        known = place.root is None or (place.root / _STANDBY).is_file()
        libraries = ["cupy"] if self._backend == "cuda" else []
        return Standby(
            [libraries] * processes if known and self.left else [], timing(place), self.build.catalogue.folder
        )

    def narrow(self, names: Collection[str]) -> None:
        """Keep only the cases of those names and the ceiling benchmarks; without names nothing is left."""
        self.left = [case for case in self.left if case.name in names or case.spec.ceiling] if names else []


_Sides = tuple[_PairSide, _PairSide]


def interleaved(
    builds: tuple[Build, Build],
    backend: str,
    settings: Settings,
    report: Callable[[Progress], object] = lambda _: None,
    *,
    verified: bool = True,
    limit: float | None = None,
    keep: Callable[[tuple[RunRecord, RunRecord]], object] = tuple,
    growth: Growth | None = None,
    trusted: Collection[str] = (),
) -> tuple[RunRecord, RunRecord]:
    """Measure two builds in turn; return their records.

    Both are verified (unless `verified` is False) at the same time, but for the cases `trusted`, then timed in
    `settings.processes` each, and with `growth` its undecided cases in more. No pair of processes starts that would not
    end within `limit` seconds if it took as long as the last one. Ctrl-C ends both and marks the records incomplete.
    `keep` gets such records after each pair, in case the machine itself is lost.
    """
    looks = growth.looks if growth else (settings.processes,)
    count = _PairCount(report, looks[0])
    sides = _sides(builds, backend, settings, count, trusted)
    count.total = sum(len(side.left) * count.pairs + len(side.verified) * verified for side in sides)
    clock, complete = RunClock(), True

    def records(complete: bool) -> tuple[RunRecord, RunRecord]:
        span = clock.span(complete)
        return sides[0].run.record(span), sides[1].run.record(span)

    end = None if limit is None else clock.counter + limit
    try:
        with files.allowed(), ExitStack() as stack:
            ready = _ready(sides, stack, count.pairs, partial(_verify, sides) if verified else None)
            for number in rounds(sides, range(1, looks[-1] + 1), _PairSide.turn, end):
                keep(records(complete=False))
                if growth and not _goes_on(sides, number, growth, lambda: records(complete=True), count=count):
                    break
                if number == ready < count.pairs:
                    ready += _ready(sides, stack, count.pairs - number)
    except KeyboardInterrupt:
        complete = False
    except BackendUnavailable:
        if not all(side.run.has_results for side in sides):
            raise
        complete = False
    return records(complete)


def _sides(
    builds: tuple[Build, Build], backend: str, settings: Settings, count: "_PairCount", trusted: Collection[str]
) -> _Sides:
    a, b = (_with_launch_benchmark(build, backend) for build in builds)
    for build in (a, b):
        if not build.cases:
            build.catalogue.refuse_nothing("compare")
    first, second = (
        _PairSide(build, backend, settings, partial(count.take, build.name), trusted=trusted) for build in (a, b)
    )
    return first, second


def parts_of(seconds: float, records: tuple[RunRecord, RunRecord]) -> dict[str, float]:
    """Return how the seconds of a measured pair divide: verifying, timing, and starts of processes with the rest."""
    verifying, timing = (sum(record.spent.get(stage, 0.0) for record in records) for stage in (UNTIMED, TIMED))
    return {"verifying": verifying, "timing": timing, "starting": max(0.0, seconds - verifying - timing)}


def _ready(sides: _Sides, stack: ExitStack, processes: int, meanwhile: Callable[[], object] | None = None) -> int:
    """Give each side that many workers, AT_ONCE at most, and return how many.

    All have started when this returns, so that nothing starts while another times. `meanwhile` runs while they start.
    """
    processes = min(processes, AT_ONCE)
    started = [stack.enter_context(side.standby(processes)) for side in sides]
    if meanwhile:
        meanwhile()
    for side, workers in zip(sides, started, strict=True):
        workers.settle()
        side.run.standby = workers
    return processes


def _verify(sides: _Sides) -> None:
    """Verify both sides at the same time, since nothing is timed."""
    with sides[1].verifying():
        for side in sides:
            side.verify()
    for side in sides:
        side.verify_lacking()


def _with_launch_benchmark(build: Build, backend: str) -> Build:
    """Return the build with the empty kernel on a device, since times below the launch overhead are rejected.

    On NumPy variants are left out: their reference is their kernel's.
    """
    if backend == "numpy_reference":
        return replace(build, cases=tuple(case for case in build.cases if not case.variant))
    if backend != "cuda" or not build.cases:
        return build
    empty = [case for case in build.catalogue.cases(labels=("S0",)) if case.spec.ceiling == "launch"]
    return replace(build, cases=tuple(dict.fromkeys([*empty[:1], *build.cases])))


def _goes_on(
    sides: _Sides,
    number: int,
    growth: Growth,
    records: Callable[[], tuple[RunRecord, RunRecord]],
    *,
    count: "_PairCount",
) -> bool:
    """Return whether anything is left to measure after that pair; at a look only the undecided cases are left."""
    if number not in growth.looks[:-1]:
        return True
    for side, names in zip(sides, growth.undecided(records()), strict=True):
        side.narrow(names)
    if not any(side.left for side in sides):
        return False
    count.add(sides, min(look for look in growth.looks if look > number) - number)
    return True


class _PairCount:
    """The progress of both sides together: tasks done of `total`, in `pairs` of processes so far."""

    def __init__(self, report: Callable[[Progress], object], pairs: int) -> None:
        self._report, self._done, self.total, self.pairs = report, 0, 0, pairs

    def add(self, sides: _Sides, pairs: int) -> None:
        """Count what is left of the sides in that many pairs more."""
        self.total += sum(len(side.left) for side in sides) * pairs
        self.pairs += pairs

    def take(self, side: str, event: Progress) -> None:
        """Report the event of that side with the count of both."""
        stage = f"pair {event.process} of {self.pairs}" if event.process else "verifying"
        done = min(self._done, self.total)
        self._report(Progress(event.process, done, self.total, f"{side}: {event.task}", stage))
        self._done += 1


# Commits of a repository: what a name means, the commit to compare with, and a worktree that is removed again.

_USUAL = ("main", "master", "trunk", "develop")  # default branches, where the repository does not name its own
_UNTRACKED = "?? "  # how git's list begins a file that it does not know
_KEPT = {".prism-bench", "__pycache__"}  # folders of files that programs make, wherever they are


def repository_of(folder: Path) -> Path:
    """Return the top folder of the repository that `folder` is in; a UsageError where it is in none."""
    _require_history(folder)
    done = _git(folder, "rev-parse", "--show-toplevel")
    if done.returncode:
        raise UsageError(f"{folder} is in no git repository; records and folders can be compared without one")
    return Path(done.stdout.strip()).resolve()


def in_repository(folder: Path) -> str:
    """Return the path of a folder from the top of its repository, where others have it, too; as it is without one."""
    try:
        return folder.resolve().relative_to(repository_of(folder.resolve())).as_posix()
    except UsageError:
        return str(folder)


def _require_history(catalogue: Path) -> None:
    """Raise a UsageError for the catalogue inside an installed package: the repository around it does not know it."""
    if is_bundled(catalogue):
        raise UsageError("the bundled catalogue has no history: run 'prism-bench init', or give --catalogue FOLDER")


def full_hash(commit: str, repository: Path) -> str:
    """Return the hash that `commit` (a hash, branch, tag, `HEAD~1`) names; a UsageError where it names none."""
    if full := _hash(commit, repository):
        return full
    shallow = f"; the clone is shallow, so it may lack the commit: {_DEEPEN}" if _is_shallow(repository) else ""
    raise UsageError(
        f"'{commit}' is no record, no folder, no kernel of the catalogue and no commit of {repository}{shallow}"
    )


def base_commit(repository: Path, results: Sequence[Path] = ()) -> str:
    """Return the merge base of `HEAD` and the default branch: what a branch is compared with.

    New files below the folders `results` are no change. Raise a UsageError where there is no default branch, no common
    commit, or no change to compare.
    """
    branch = default_branch(repository)
    base = _git(repository, "merge-base", "HEAD", branch)
    if base.returncode:
        cure = _DEEPEN if _is_shallow(repository) else "name the commit to compare with"
        raise UsageError(f"HEAD and {branch} have no common commit here: {cure}")
    commit = base.stdout.strip()
    if commit == full_hash("HEAD", repository) and not is_changed(repository, results):
        raise UsageError(f"HEAD is in {branch} and nothing is changed: name a commit to compare with, such as HEAD~1")
    return commit


def default_branch(repository: Path) -> str:
    """Return the branch that the remote names as its default, else one of the usual names that exists.

    A remote's branch comes before the local one, which may be older. A UsageError where none exists.
    """
    head = _git(repository, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if not head.returncode and _hash(head.stdout.strip(), repository):
        return head.stdout.strip()
    chosen = _git(repository, "config", "init.defaultBranch").stdout.strip()
    names = [chosen] if chosen else []
    names += [name for name in _USUAL if name != chosen]
    for name in [*(f"origin/{name}" for name in names), *names]:
        if _hash(name, repository):
            return name
    raise UsageError(f"{repository} has no default branch ({', '.join(names)}): name the commit to compare with")


def commits_between(good: str, bad: str, repository: Path) -> list[str]:
    """Return the hashes from `good` to `bad`, the oldest first, along the first parents of `bad`.

    Raise a UsageError where `good` is not an ancestor of `bad` on that line.
    """
    first, last = full_hash(good, repository), full_hash(bad, repository)
    listed = _git(repository, "rev-list", "--first-parent", last).stdout.split()
    if first not in listed:
        cure = _DEEPEN if _is_shallow(repository) else "give an older commit of the branch first"
        raise UsageError(f"{good} is not among the first parents of {bad}: {cure}")
    return listed[: listed.index(first) + 1][::-1]


def subjects_of(commits: Sequence[str], repository: Path) -> dict[str, str]:
    """Return the first line of each commit's message."""
    done = _git(repository, "log", "--no-walk=unsorted", "--format=%H %s", *commits) if commits else None
    lines = done.stdout.splitlines() if done else []
    return {line[:40]: line[41:] for line in lines}


def is_changed(repository: Path, results: Sequence[Path] = ()) -> bool:
    """Return whether the working tree differs from `HEAD`, files that git does not know included.

    Those below the folders `results`, and what we and Python keep next to sources, are no sources: a record that was
    just measured does not change what is measured.
    """
    listed = _git(repository, "status", "--porcelain", "-z", "--untracked-files=all").stdout.split("\0")
    for entry in filter(None, listed):
        path = repository / entry.removeprefix(_UNTRACKED)
        made = _KEPT & set(path.relative_to(repository).parts) or any(path.is_relative_to(folder) for folder in results)
        if not entry.startswith(_UNTRACKED) or not made:
            return True
    return False


@contextmanager
def checked_out(commit: str, repository: Path) -> Iterator[Path]:
    """Yield the folder of a worktree at `commit`, submodules included, and remove it at the end.

    Raise a UsageError where git does not make one.
    """
    with temporary_folder("prism-bench-") as folder:
        path = folder / "tree"
        done = _git(repository, "worktree", "add", "--detach", "--quiet", str(path), full_hash(commit, repository))
        if done.returncode:
            raise UsageError(f"git makes no worktree of {commit}: {done.stderr.strip()}")
        try:
            _add_submodules(path, repository, commit)
            yield path
        finally:
            _git(repository, "worktree", "remove", "--force", "--force", str(path))
            _git(repository, "worktree", "prune")


def _add_submodules(tree: Path, repository: Path, commit: str) -> None:
    """Check submodules out: from the clones that the working tree has, from their own addresses if it lacks them."""
    paths = _submodules(tree)
    if not paths:
        return
    cloned = {name: repository / path for name, path in paths.items() if (repository / path / ".git").exists()}
    settings = [word for name, path in cloned.items() for word in ("-c", f"submodule.{name}.url={path}")]
    done = _git(tree, "-c", "protocol.file.allow=always", *settings, "submodule", "update", "--init", "--quiet")
    if done.returncode:
        raise UsageError(f"{commit}: git does not check out its submodules: {_last_line(done.stderr)}")


def _submodules(tree: Path) -> Mapping[str, str]:
    """Return the paths of the submodules by name."""
    if not (tree / ".gitmodules").is_file():
        return {}
    listed = _git(tree, "config", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$").stdout
    rows = [line.partition(" ") for line in listed.splitlines()]
    return {key.removeprefix("submodule.").removesuffix(".path"): path for key, _, path in rows}


_DEEPEN = "run 'git fetch --unshallow', or check out with 'fetch-depth: 0'"


def _hash(commit: str, repository: Path) -> str:
    done = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    return "" if done.returncode else done.stdout.strip()


def _is_shallow(repository: Path) -> bool:
    return _git(repository, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"


def _last_line(text: str) -> str:
    return next(iter(reversed(text.strip().splitlines())), "git gave no reason")


def _git(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        cure = "install git; " if isinstance(error, FileNotFoundError) else ""
        raise UsageError(
            f"git does not answer here ({error}): {cure}records and folders can be compared without it"
        ) from None


# Sides of a comparison: two words of a command line (folders, commits, or a kernel and its variant) as builds.

WORKING_TREE = "working tree"  # the files of the repository as they are, committed or not


@dataclass(frozen=True)
class Sides:
    """Two builds with the same cases in the same order.

    `across` is what they differ in, `builds` or `variants` of one kernel; `notes` name what cannot be compared.
    `broken` are cases of A whose spec cannot be used in B, with the reason.
    """

    builds: tuple[Build, Build]
    across: str
    notes: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Choice:
    """The cases of a catalogue that are measured, and the environment variables of each side."""

    catalogue: Catalogue
    filters: Sequence[str] = ()
    labels: Sequence[str] = ("S0",)
    environments: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})


def words_of(a: str | None, b: str | None, catalogue: Catalogue) -> tuple[str, str]:
    """Return the two words of a comparison: the working tree for B, the merge base with the default branch for A."""
    return a or _base(catalogue.folder.resolve())[:12], b or WORKING_TREE


def _base(folder: Path) -> str:
    """Return the commit that the working tree is compared with; new records do not make a tree that differs."""
    configuration = project.current()
    storage = (configuration.storage if configuration else Path(project.STORAGE)).resolve()
    results = [] if folder.is_relative_to(storage) else [storage]
    return base_commit(repository_of(folder), results)


@contextmanager
def opened(words: tuple[str, str], choice: Choice) -> Iterator[Sides]:
    """Yield the sides that the words name; worktrees of commits exist until the end.

    A word is a folder (a catalogue, or a checkout whose own package measures its own kernels), a kernel or
    `kernel:variant`, `WORKING_TREE`, or a commit of the repository that the catalogue is in, with the catalogue of that
    commit. A UsageError where it is none of these.
    """
    kernels = [word for word in words if _names_kernel(word, choice.catalogue)]
    if len(kernels) == 1:
        raise UsageError(f"{kernels[0]} is a kernel and the other side is not: compare two kernels, or two builds")
    with ExitStack() as stack:
        yield _variants(words, choice) if kernels else _builds(words, choice, stack)


def _same_cases(
    a: Sequence[Case], b: Sequence[Case], key: Callable[[Case], str]
) -> tuple[list[Case], list[Case], list[str]]:
    """Return the cases of each side that the other one has too, in the order of A, and the keys of the rest."""
    mine, theirs = ({key(case): case for case in cases} for cases in (a, b))
    shared = [name for name in mine if name in theirs]
    alone = [name for name in [*mine, *theirs] if name not in shared]
    return [mine[name] for name in shared], [theirs[name] for name in shared], alone


def _alone(names: Sequence[str]) -> list[str]:
    few = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
    return [f"on one side only: {few} ({len(names)})"] if names else []


def _names_kernel(word: str, catalogue: Catalogue) -> bool:
    kernel = word.partition(":")[0]
    return not Path(word).exists() and (kernel in catalogue.kernels or kernel in catalogue.aliases)


def _variants(words: tuple[str, str], choice: Choice) -> Sides:
    """Return a kernel against its variant, workload by workload."""
    a, b = (
        [case for case in choice.catalogue.cases([word], choice.labels) if case.kernel == _full_name(word, choice)]
        for word in words
    )
    *shared, alone = _same_cases(a, b, lambda case: f"{case.spec.name}[{case.workload}]")
    sources = [_Source(choice.catalogue)] * 2
    return Sides(_named(words, sources, shared, choice), "variants", tuple(_alone(alone)))


def _full_name(word: str, choice: Choice) -> str:
    kernel, _, variant = word.partition(":")
    return choice.catalogue.aliases.get(kernel, kernel) + (f":{variant}" if variant else "")


def _named(
    words: Sequence[str], sources: Sequence["_Source"], shared: Sequence[Sequence[Case]], choice: Choice
) -> tuple[Build, Build]:
    a, b = (
        Build(word, source.catalogue, tuple(cases), measuring(source.checkout, environment))
        for word, source, cases, environment in zip(words, sources, shared, choice.environments, strict=True)
    )
    return a, b


@dataclass(frozen=True)
class _Source:
    """A catalogue, the `checkout` whose package measures it (None: this one), and the `tree` that its commit is in."""

    catalogue: Catalogue
    checkout: Path | None = None
    tree: Path | None = None

    def words(self, problem: object) -> str:
        """Return a problem with paths as the repository has them, not in a folder that is removed at the end."""
        return str(problem).replace(f"{self.tree}/", "") if self.tree else str(problem)

    def of(self, case: Case) -> Problem | None:
        """Return the problem by which the catalogue lacks a case of another one."""
        folder = family_folder(case.spec.file).parent if case.spec.file else Path()
        files = [
            one.relative_to(folder)
            for one in (case.spec.file, case.spec.source_path)
            if one and one.is_relative_to(folder)
        ]
        for problem in self.catalogue.problems:
            path = problem.path
            if path.is_relative_to(self.catalogue.folder) and path.relative_to(self.catalogue.folder) in files:
                return problem
        return None


def _source(word: str, choice: Choice, stack: ExitStack) -> _Source:
    path = Path(word)
    if path.is_dir():
        is_checkout = _is_checkout(path)
        return _Source(discover(path / "kernels"), path.resolve()) if is_checkout else _Source(discover(path))
    folder = choice.catalogue.folder.resolve()
    _require_history(folder)
    commit = "" if word == WORKING_TREE else full_hash(word, folder)
    repository = repository_of(folder)
    if not commit:
        return _Source(choice.catalogue, repository if _is_checkout(repository) else None)
    tree = stack.enter_context(checked_out(commit, repository))
    if _is_checkout(tree) and folder == repository / "kernels":
        return _Source(discover(tree / "kernels"), tree, tree)
    return _Source(discover(_catalogue_in(tree, folder.relative_to(repository), word)), tree=tree)


def _catalogue_in(tree: Path, path: Path, word: str) -> Path:
    """Return the catalogue of a worktree; a UsageError where that commit does not have the folder."""
    if not (tree / path).is_dir():
        raise UsageError(
            f"{word}: that commit has no folder {path}, where the catalogue is now; give both sides as folders"
        )
    return tree / path


def _is_checkout(path: Path) -> bool:
    return (path / "prism_bench" / "__init__.py").is_file() and (path / "kernels").is_dir()


def _builds(words: tuple[str, str], choice: Choice, stack: ExitStack) -> Sides:
    """Return two catalogues against each other, case by case."""
    sources = [_source(word, choice, stack) for word in words]
    a, b = (_cases(word, source, choice) for word, source in zip(words, sources, strict=True))
    *shared, alone = _same_cases(a, b, lambda case: case.name)
    broken = {
        case.name: sources[1].words(problem) for case in a if case.name in alone and (problem := sources[1].of(case))
    }
    notes = _alone([name for name in alone if name not in broken])
    for word, source, others in zip(words, sources, (b, a), strict=True):
        problems = [source.words(problem) for problem in source.catalogue.problems]
        if problems and not shared[0] and (others or not source.catalogue.kernels):
            raise UsageError(f"{word} does not build: {problems[0]}; {_cure(word)}")
        notes += [f"{word}: {problem}" for problem in problems]
    return Sides(_named(words, sources, shared, choice), "builds", tuple(notes), broken)


def _cases(word: str, source: _Source, choice: Choice) -> list[Case]:
    """Return the cases of a side; a UsageError where its specs cannot be used, since 1 means that B is slower."""
    try:
        return source.catalogue.cases(choice.filters, choice.labels)
    except SpecError as error:
        raise UsageError(f"{word} does not build: {source.words(error)}; {_cure(word)}") from None


def _cure(word: str) -> str:
    return "correct it" if word == WORKING_TREE or Path(word).is_dir() else "name another commit"


def of_itself(choice: Choice) -> Sides:
    """Return the catalogue against itself: A/A."""
    cases = tuple(choice.catalogue.cases(choice.filters, choice.labels))
    word = catalogue_name(choice.catalogue.folder)
    a, b = (Build(f"{word} ({side})", choice.catalogue, cases) for side in "AB")
    return Sides((a, b), "builds")
