"""Sides of a comparison: two words of a command line (folders, commits, or a kernel and its variant) as builds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.catalogue import Catalogue, Problem, discover
from prism_bench.errors import SpecError, UsageError
from prism_bench.io import project
from prism_bench.io.files import family_folder
from prism_bench.run.interleave import Build
from prism_bench.run.places import measuring
from prism_bench.run.record_builder import catalogue_name
from prism_bench.run.worktree import base_commit, checked_out, full_hash, repository_of, require_history
from prism_bench.spec.case import Case

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


def same_cases(
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
    a, b = ([case for case in choice.catalogue.cases([word], choice.labels) if case.kernel == _full_name(word, choice)]
            for word in words)  # fmt: skip
    *shared, alone = same_cases(a, b, lambda case: f"{case.spec.name}[{case.workload}]")
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
        files = [one.relative_to(folder) for one in (case.spec.file, case.spec.source_path)
                 if one and one.is_relative_to(folder)]  # fmt: skip
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
    require_history(folder)
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
    *shared, alone = same_cases(a, b, lambda case: case.name)
    broken = {case.name: sources[1].words(problem) for case in a
              if case.name in alone and (problem := sources[1].of(case))}  # fmt: skip
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
