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


@dataclass(frozen=True)
class CaseListing:
    """Every case of `kernels` and their variants, by name and by filter; `aliases` are other names of kernels.

    `broken` has the problems of specs that cannot be used, by the name that the kernel would have.
    """

    kernels: Mapping[str, KernelSpec]
    aliases: Mapping[str, str]
    broken: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def families(self) -> tuple[str, ...]:
        return tuple(sorted({spec.family for spec in self.kernels.values()}))

    @cached_property
    def timed(self) -> list[Case]:
        """Return the cases of the workloads."""
        return [case for spec in self._specs() for case in timed_cases(*spec)]

    @cached_property
    def edges(self) -> list[Case]:
        """Return edges, golden data and input regimes, which are verified but never timed."""
        cases: list[Case] = []
        for spec, variant in self._specs():
            cases += edge_cases(spec, variant)
            # Workloads of regimes are those of edges, which are checked already.
            cases += [_edge_case(spec, edge, variant) for edge in regime_edges(spec)]
        return cases

    @cached_property
    def timed_by_name(self) -> dict[str, Case]:
        return {case.name: case for case in self.timed}

    @cached_property
    def edge_by_name(self) -> dict[str, Case]:
        return {case.name: case for case in self.edges}

    @cached_property
    def edges_by_kernel(self) -> dict[str, list[Case]]:
        groups: dict[str, list[Case]] = {}
        for case in self.edges:
            groups.setdefault(case.kernel, []).append(case)
        return groups

    def filtered(self, cases: Iterable[Case], filters: Iterable[str]) -> list[Case]:
        """Return the cases that any of the filters names; raise UsageError for a filter that names nothing."""
        cases, filters = list(cases), list(filters)
        if not filters:
            return cases
        names, matched, kept = dict.fromkeys(map(self.canonical, filters)), set[str](), list[Case]()
        for case in cases:
            matches = names.keys() & {case.spec.name, case.kernel, case.spec.family, case.name}
            matched |= matches
            if matches:
                kept.append(case)
        for name in names:
            if name not in matched:
                self.refuse_unknown(name)
        return kept

    def canonical(self, name: str) -> str:
        """Return the name with an alias of a kernel, before a variant or without one, replaced by the kernel's name."""
        kernel, colon, variant = name.partition(":")
        return self.aliases.get(kernel, kernel) + colon + variant

    def refuse_unknown(self, name: str) -> None:
        """Raise UsageError unless the name is known, so that only the choice of labels or edges excludes its cases."""
        kernel, _, variant = name.partition(":")
        if name in self.edge_by_name:
            return
        if kernel in self.kernels and variant:
            self.kernels[kernel].with_variant(variant)
        elif (bare := kernel.partition("[")[0]) in self.broken:
            raise SpecError(f"'{bare}' cannot be used: {self.broken[bare]}")
        elif kernel not in self.kernels and name not in self.families:
            cases = list(self.timed_by_name) if "[" in name else []
            raise unknown("kernel, family or case", name, [*self.kernels, *self.aliases, *self.families, *cases])

    def _specs(self) -> Iterator[tuple[KernelSpec, str | None]]:
        for spec in self.kernels.values():
            yield spec, None
            for variant in spec.variants:
                yield spec.with_variant(variant), variant


def timed_cases(spec: KernelSpec, variant: str | None) -> list[Case]:
    """Return a case for each timed workload."""
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


@dataclass(frozen=True)
class Problem:
    """A file of the catalogue that cannot be used, with the reason; the other files still work."""

    path: Path
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, repr=False)
class Catalogue:
    """Every kernel of a folder by name, and the problems of its files.

    `choices` are configurations by case name, for callers that make cases themselves: `launched` applies them.
    `budgets` is the folder of budgets and baselines if a project configures it.
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
        """Return all cases of the kernels."""
        broken = {problem.path.stem: str(problem) for problem in self.problems if problem.path.stem not in self.kernels}
        return CaseListing(self.kernels, self.aliases, broken)

    def refuse_nothing(self, task: str) -> NoReturn:
        """Raise the error for an empty choice of cases; it names the first problem if no kernel is usable."""
        if self.problems and not self.kernels:
            more = f" (and {len(self.problems) - 1} more, above)" if self.problems[1:] else ""
            raise SpecError(f"no kernel is left to {task}: {self.problems[0]}{more}")
        if not self.kernels:
            is_family = any(source.with_suffix(".py").is_file() for source in self.folder.glob("*.cu"))
            cure = (
                f"name the folder above it: {self.folder.resolve().parent}"
                if is_family
                else "write <family>/<name>.cu and .py"
            )
            raise PrismBenchError(f"no kernel is left to {task}: the catalogue {self.folder} has no family; {cure}")
        raise PrismBenchError(f"no case is left to {task}: every filter and label together exclude all of them")

    @property
    def families(self) -> tuple[str, ...]:
        """Return the names of the families, sorted."""
        return self.listing.families

    def kernel(self, name: str) -> KernelSpec:
        """Return the kernel with this name or alias; raise UsageError with the nearest names for an unknown name."""
        canonical = self.aliases.get(name, name)
        if canonical not in self.kernels:
            raise unknown("kernel", name, [*self.kernels, *self.aliases])
        return self.kernels[canonical]

    def cases(self, filters: Iterable[str] = (), labels: Iterable[str] = LABELS) -> list[Case]:
        """Return every timed case of these labels that a filter names.

        A filter is a kernel, an alias, `kernel:variant`, a family or the full name of a case, which selects that case
        whatever its label.
        """
        labels = list(labels)
        for label in labels:
            if label not in LABELS:
                raise unknown("label", label, LABELS)
        filters = list(filters)
        named = {name for name in filters if name in self.listing.timed_by_name}
        candidates = [case for case in self.listing.timed if case.label in labels or case.name in named]
        return self.listing.filtered(candidates, filters)

    def edges(self, filters: Iterable[str] = ()) -> list[Case]:
        """Return every edge and golden case that a filter names; they are verified but never timed."""
        return self.listing.filtered(self.listing.edges, filters)

    def edges_by_task(self, filters: Iterable[str] = ()) -> list[str]:
        """Return names for `edges_of` that cover the edges of the filters: kernels, or edges that a filter names."""
        filters = list(filters)
        named = {name for name in filters if name in self.listing.edge_by_name}
        return list(dict.fromkeys(case.name if case.name in named else case.kernel for case in self.edges(filters)))

    def edges_of(self, kernel: str) -> list[Case]:
        """Return the edge and golden cases of `kernel` or `kernel:variant`, or the edge that has this name.

        `@block=128` after the name sets the configuration of their launches. Input regimes, edges at which it breaks a
        rule and edges that pin one of its values are then left out.
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
        names = {setting.partition("=")[0] for setting in choice.split(",")}
        launched = [chosen(case, choice) for case in cases if names <= set(case.tunable) and not case.is_regime]
        return [case for case in launched if case.plan.broken(Device()) is None]

    def case(self, name: str) -> Case:
        """Return the case with this full name, such as `softmax[rows=32,cols=1000]`, or of a task: `name@block=128`."""
        return self._configured(name, self.listing.timed_by_name.get)

    def anywhere(self, name: str) -> Case:
        """Return the case with this full name, as `case` does, with any values of the kernel's axes.

        A case that is not in the catalogue has no label and no budgets.
        """
        known = self.listing.timed_by_name
        return self._configured(name, lambda bare: known.get(bare) or read_case(bare, self.kernels))

    def launched(self, case: Case) -> Case:
        """Return the case in its configuration of `choices`."""
        return case.configured(self.choices[case.name]) if case.name in self.choices else case

    def _configured(self, name: str, find: Callable[[str], Case | None]) -> Case:
        name, _, choice = name.partition("@")
        case = find(name)
        if case is None:
            raise unknown("case", name, self.listing.timed_by_name)
        return chosen(case, choice) if choice else case


# Cache of passed checks: building every case of the built-in catalogue takes longer than loading it.

_MOST = 16  # states of the catalogue that are kept
_passed: set[str] = set()  # of this process, whose cache may be unwritable


class KeptChecks:
    """Memory whether the catalogue at `root` has passed its checks unchanged, with this package, Python and NumPy.

    Only for the built-in catalogue: specs of others may import files outside of their folder.
    """

    def __init__(self, root: Path) -> None:
        self._key = _state_of(root) if root.resolve() == default_folder().resolve() else None

    def has_passed(self) -> bool:
        """Return whether the catalogue has passed; False if unknown."""
        return self._key is not None and (self._key in _passed or (_folder() / self._key).is_file())

    def keep(self) -> None:
        """Remember that the catalogue has passed."""
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
    """Return a digest of the catalogue's Python files, and of size and time of this package's Python files."""
    digest = hashlib.sha256(f"{sys.version} {version('numpy')} {hash_of_files(root, root.rglob('*.py'))}".encode())
    package = Path(prism_bench.__file__).parent
    for path in sorted(package.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path.relative_to(package)} {status.st_size} {status.st_mtime_ns} ".encode())
    return digest.hexdigest()[:32]
