"""What two words on a command line stand for: folders, commits, or a kernel and its variant, as builds to measure."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from prism_bench.case import Case
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import UsageError
from prism_bench.run.interleave import Build
from prism_bench.run.places import measuring
from prism_bench.run.record_builder import catalogue_name
from prism_bench.run.worktree import checked_out, full_hash


@dataclass(frozen=True)
class Sides:
    """Two builds with the same cases in the same order, how they are told apart from each other (`across` is `builds`
    or `variants` of one kernel), and what cannot be compared (`notes`).
    """

    builds: tuple[Build, Build]
    across: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """What of a catalogue is measured, and the environment of either side."""

    catalogue: Catalogue
    filters: Sequence[str] = ()
    labels: Sequence[str] = ("S0",)
    environments: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})


@contextmanager
def opened(words: tuple[str, str], choice: Choice) -> Iterator[Sides]:
    """The sides that the words stand for; worktrees of commits stand until the end.

    A word is a folder (a catalogue, or a checkout whose own package measures its own kernels), a kernel or
    `kernel:variant`, or a commit of the repository that the catalogue is in. A UsageError where it is none of these.
    """
    kernels = [word for word in words if _names_kernel(word, choice.catalogue)]
    if len(kernels) == 1:
        raise UsageError(f"{kernels[0]} is a kernel and the other side is not: compare two kernels, or two builds")
    with ExitStack() as stack:
        if kernels:
            yield _variants(words, choice)
        else:
            yield _builds(words, [_source(word, choice, stack) for word in words], choice)


def same_cases(a: Sequence[Case], b: Sequence[Case], key) -> tuple[list[Case], list[Case], list[str]]:
    """The cases of either side that the other one has too, in the order of A; the keys of the rest."""
    mine, theirs = ({key(case): case for case in cases} for cases in (a, b))
    shared = [name for name in mine if name in theirs]
    alone = [name for name in [*mine, *theirs] if name not in shared]
    return [mine[name] for name in shared], [theirs[name] for name in shared], alone


def _alone(names):
    few = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
    return [f"on one side only: {few} ({len(names)})"] if names else []


def _names_kernel(word, catalogue):
    kernel = word.partition(":")[0]
    return not Path(word).exists() and (kernel in catalogue.kernels or kernel in catalogue.aliases)


def _variants(words, choice):
    """A kernel against its variant, workload by workload."""
    cases = [choice.catalogue.cases([word], choice.labels) for word in words]
    chosen = [_of_one(word, found, choice.catalogue) for word, found in zip(words, cases, strict=True)]
    *shared, alone = same_cases(*chosen, lambda case: f"{case.spec.name}[{case.workload}]")
    return Sides(_named(words, choice, shared), "variants", tuple(_alone(alone)))


def _of_one(word, cases, catalogue):
    kernel, _, variant = word.partition(":")
    name = catalogue.aliases.get(kernel, kernel) + (f":{variant}" if variant else "")
    return [case for case in cases if case.kernel == name]


def _named(words, choice, shared):
    return tuple(
        Build(word, choice.catalogue, tuple(cases), measuring(None, environment))
        for word, cases, environment in zip(words, shared, choice.environments, strict=True)
    )


def _source(word, choice, stack):
    """The catalogue of a side and the checkout whose package measures it (None: this one)."""
    path = Path(word)
    if path.is_dir():
        return (discover(path / "kernels"), path.resolve()) if _is_checkout(path) else (discover(path), None)
    repository = choice.catalogue.folder.resolve()
    tree = stack.enter_context(checked_out(full_hash(word, repository), repository))
    if not _is_checkout(tree):
        raise UsageError(f"{word}: that commit has no package prism_bench and no kernels to measure")
    return discover(tree / "kernels"), tree


def _is_checkout(path):
    return (path / "prism_bench" / "__init__.py").is_file() and (path / "kernels").is_dir()


def _builds(words, sources, choice):
    found = [catalogue.cases(choice.filters, choice.labels) for catalogue, _ in sources]
    *shared, alone = same_cases(*found, lambda case: case.name)
    notes = _alone(alone)
    notes += [f"{word}: {problem}" for word, (one, _) in zip(words, sources, strict=True) for problem in one.problems]
    builds = tuple(
        Build(word, catalogue, tuple(cases), measuring(root, environment))
        for word, (catalogue, root), cases, environment in zip(words, sources, shared, choice.environments, strict=True)
    )
    return Sides(builds, "builds", tuple(notes))


def of_itself(choice: Choice) -> Sides:
    """The catalogue against itself: A/A."""
    cases = tuple(choice.catalogue.cases(choice.filters, choice.labels))
    word = catalogue_name(choice.catalogue.folder)
    return Sides(tuple(Build(f"{word} ({side})", choice.catalogue, cases) for side in "AB"), "builds")
