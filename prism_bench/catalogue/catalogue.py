"""Catalogue: the kernels of a folder by name, with their cases."""

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import prism_bench
from prism_bench.catalogue.edge_inputs import regime_edges
from prism_bench.errors import CacheUnavailable, PrismBenchError, SpecError, unknown
from prism_bench.io.files import cache_folder, default_folder, hash_of_files, write_atomically
from prism_bench.spec.case import Case, Device, chosen, read_case
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import LABELS, Edge, Workload
from prism_bench.units import count_text

# Cases of a catalogue's kernels: the timed ones, and edges and golden data, by name and by filter.


@dataclass(frozen=True)
class CaseListing:
    """Every case of `kernels` and their variants; `aliases` are other names of kernels.

    `broken` are the problems of specs that cannot be used, by the name that the kernel would have.
    """

    kernels: Mapping[str, KernelSpec]
    aliases: Mapping[str, str]
    broken: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def families(self) -> tuple[str, ...]:
        return tuple(sorted({spec.family for spec in self.kernels.values()}))

    @cached_property
    def timed(self) -> list[Case]:
        """Cases of the workloads."""
        return [case for spec in self._specs() for case in timed_cases(*spec)]

    @cached_property
    def edges(self) -> list[Case]:
        """Edges, golden data and input regimes, verified but never timed."""
        return [case for spec in self._specs() for case in (*edge_cases(*spec), *_regime_cases(*spec))]

    @cached_property
    def timed_by_name(self) -> dict[str, Case]:
        return {case.name: case for case in self.timed}

    @cached_property
    def edge_by_name(self) -> dict[str, Case]:
        return {case.name: case for case in self.edges}

    @cached_property
    def edges_by_kernel(self) -> dict[str, list[Case]]:
        found: dict[str, list[Case]] = {}
        for case in self.edges:
            found.setdefault(case.kernel, []).append(case)
        return found

    def filtered(self, cases: Iterable[Case], filters: Iterable[str]) -> list[Case]:
        """Return the cases that any of the filters names; raise a UsageError for one that names nothing."""
        cases, filters = list(cases), list(filters)
        if not filters:
            return cases
        words, met, kept = dict.fromkeys(map(self.canonical, filters)), set[str](), list[Case]()
        for case in cases:
            named = words.keys() & {case.spec.name, case.kernel, case.spec.family, case.name}
            met |= named
            if named:
                kept.append(case)
        for word in words:
            if word not in met:
                self.refuse_unknown(word)
        return kept

    def canonical(self, word: str) -> str:
        """Return the word with an alias of a kernel, alone or before a variant, replaced by the kernel's name."""
        kernel, colon, variant = word.partition(":")
        return self.aliases.get(kernel, kernel) + colon + variant

    def refuse_unknown(self, word: str) -> None:
        """Raise a UsageError unless the word names something that only this choice of labels, or of edges, excludes."""
        kernel, _, variant = word.partition(":")
        if word in self.edge_by_name:
            return
        if kernel in self.kernels and variant:
            self.kernels[kernel].with_variant(variant)
        elif (bare := kernel.partition("[")[0]) in self.broken:
            raise SpecError(f"'{bare}' cannot be used: {self.broken[bare]}")
        elif kernel not in self.kernels and word not in self.families:
            cases = list(self.timed_by_name) if "[" in word else []
            raise unknown("kernel, family or case", word, [*self.kernels, *self.aliases, *self.families, *cases])

    def _specs(self) -> Iterator[tuple[KernelSpec, str | None]]:
        for spec in self.kernels.values():
            yield spec, None
            for variant in spec.variants:
                yield spec.with_variant(variant), variant


def timed_cases(spec: KernelSpec, variant: str | None) -> list[Case]:
    """Return a case for each workload that is timed."""
    labels = spec.only_labels or tuple(spec.workloads)
    return [Case(spec, spec.workloads[label], label, variant) for label in LABELS if label in labels]


def edge_cases(spec: KernelSpec, variant: str | None) -> list[Case]:
    """Return a case for each edge and golden data of the spec."""
    edges = [_edge_case(spec, edge, variant) for edge in spec.edges]
    return edges + [Case(spec, golden.workload, "golden", variant, golden) for golden in spec.golden]


def _edge_case(spec: KernelSpec, edge: Workload | Edge, variant: str | None) -> Case:
    if isinstance(edge, Edge):
        return Case(spec, edge.workload, "edge", variant, edge=edge)
    return Case(spec, edge, "edge", variant)


def _regime_cases(spec: KernelSpec, variant: str | None) -> list[Case]:
    """Return the input regimes; their workloads are those of edges, which are checked already."""
    return [_edge_case(spec, edge, variant) for edge in regime_edges(spec)]


# Catalogue: the kernels of a folder by name, with their cases.


@dataclass(frozen=True)
class Problem:
    """A file of the catalogue that cannot be used, and why; the other files still work."""

    path: Path
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, repr=False)
class Catalogue:
    """Every kernel of a folder by name, and the problems found on the way.

    `choices` are configurations by case name, for callers that make cases themselves: `launched` applies them.
    `budgets` is the folder of budgets and baselines where a project configures one.
    """

    folder: Path
    kernels: dict[str, KernelSpec]
    problems: tuple[Problem, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    choices: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    budgets: Path | None = None

    def __repr__(self) -> str:
        bad = f", {count_text(len(self.problems), 'problem')}" if self.problems else ""
        return f"<Catalogue {count_text(len(self.kernels), 'kernel')}{bad}, {self.folder}>"

    @cached_property
    def listing(self) -> CaseListing:
        """All cases of the kernels."""
        broken = {one.path.stem: str(one) for one in self.problems if one.path.stem not in self.kernels}
        return CaseListing(self.kernels, self.aliases, broken)

    def refuse_nothing(self, task: str) -> NoReturn:
        """Raise the error for a choice of no case: the specs that cannot be used where no kernel is left at all."""
        if self.problems and not self.kernels:
            first, *others = self.problems
            more = f" (and {len(others)} more, above)" if others else ""
            raise SpecError(f"no kernel is left to {task}: {first}{more}")
        raise PrismBenchError(f"no case is left to {task}: every filter and label together exclude all of them")

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the families, sorted."""
        return self.listing.families

    def kernel(self, name: str) -> KernelSpec:
        """Return the kernel with this name or alias; raise a UsageError with the nearest names if there is none."""
        canonical = self.aliases.get(name, name)
        if canonical not in self.kernels:
            raise unknown("kernel", name, [*self.kernels, *self.aliases])
        return self.kernels[canonical]

    def cases(self, filters: Iterable[str] = (), labels: Iterable[str] = LABELS) -> list[Case]:
        """Return every timed case of these labels that a filter names.

        A filter is a kernel, an alias, `kernel:variant`, a family or the whole name of a case, which chooses that case
        whatever its label.
        """
        labels = list(labels)
        for label in labels:
            if label not in LABELS:
                raise unknown("label", label, LABELS)
        filters = list(filters)
        named = {word for word in filters if word in self.listing.timed_by_name}
        return self.listing.filtered(
            [case for case in self.listing.timed if case.label in labels or case.name in named], filters
        )

    def edges(self, filters: Iterable[str] = ()) -> list[Case]:
        """Return every edge and golden case that a filter names, verified but never timed."""
        return self.listing.filtered(self.listing.edges, filters)

    def edges_by_task(self, filters: Iterable[str] = ()) -> list[str]:
        """Return names for `edges_of` that give the edges of the filters: kernels, or edges that a filter names."""
        filters = list(filters)
        named = {word for word in filters if word in self.listing.edge_by_name}
        return list(dict.fromkeys(case.name if case.name in named else case.kernel for case in self.edges(filters)))

    def edges_of(self, kernel: str) -> list[Case]:
        """Return the edge and golden cases of `kernel` or `kernel:variant`, or the one edge that has this name.

        With `@block=128` behind the name they are launched so. Input regimes, edges at which this breaks a rule and
        edges that pin what it chooses are left out.
        """
        if kernel in self.listing.edge_by_name:
            return [self.listing.edge_by_name[kernel]]
        kernel, _, choice = kernel.partition("@")
        canonical = self.listing.canonical(kernel)
        cases = self.listing.edges_by_kernel.get(canonical, [])
        if not cases:
            self.listing.refuse_unknown(canonical)
        if not choice:
            return list(cases)
        names = {word.partition("=")[0] for word in choice.split(",")}
        launched = [chosen(case, choice) for case in cases if names <= set(case.tunable) and not case.is_regime]
        return [case for case in launched if case.plan.broken(Device()) is None]

    def case(self, name: str) -> Case:
        """Return the case with this full name, such as `softmax[rows=32,cols=1000]`, or of a task: `name@block=128`."""
        return self._configured(name, self.listing.timed_by_name.get)

    def anywhere(self, name: str) -> Case:
        """Return the same with any other values of the kernel's axes.

        A case that is not in the catalogue has no label and no budgets.
        """
        known = self.listing.timed_by_name
        return self._configured(name, lambda bare: known.get(bare) or read_case(bare, self.kernels))

    def launched(self, case: Case) -> Case:
        """Return the case in the configuration that the choices have for it."""
        return case.configured(self.choices[case.name]) if case.name in self.choices else case

    def _configured(self, name: str, find: Callable[[str], Case | None]) -> Case:
        name, _, choice = name.partition("@")
        case = find(name)
        if case is None:
            raise unknown("case", name, self.listing.timed_by_name)
        return chosen(case, choice) if choice else case


# Which built-in catalogue has passed its checks: building every case of it takes longer than loading it does.

_MOST = 16  # states of the catalogue that are remembered
_passed: set[str] = set()  # in this process, whose cache may take no file


class KeptChecks:
    """Whether the catalogue at `root` has passed its checks as it is, with this package, Python and NumPy.

    Of the built-in catalogue alone: specs of others may import what is not in their folder.
    """

    def __init__(self, root: Path) -> None:
        self._key = _state_of(root) if root.resolve() == default_folder().resolve() else None

    def has_passed(self) -> bool:
        """Return whether it has; False where that is not known."""
        return self._key is not None and (self._key in _passed or (_folder() / self._key).is_file())

    def keep(self) -> None:
        """Remember that it has."""
        if self._key is None or self.has_passed():
            return
        _passed.add(self._key)
        with suppress(OSError, CacheUnavailable):
            _folder().mkdir(parents=True, exist_ok=True)
            for old in sorted(_folder().iterdir(), key=lambda file: file.stat().st_mtime)[: 1 - _MOST]:
                old.unlink(missing_ok=True)
            write_atomically(_folder() / self._key, b"")


def _folder() -> Path:
    return cache_folder("catalogue")


def _state_of(root: Path) -> str:
    """Return a digest of all Python files of the catalogue, and of size and time of those of this package."""
    digest = hashlib.sha256(f"{sys.version} {version('numpy')} {hash_of_files(root, root.rglob('*.py'))}".encode())
    package = Path(prism_bench.__file__).parent
    for path in sorted(package.rglob("*.py")):
        found = path.stat()
        digest.update(f"{path.relative_to(package)} {found.st_size} {found.st_mtime_ns} ".encode())
    return digest.hexdigest()[:32]
