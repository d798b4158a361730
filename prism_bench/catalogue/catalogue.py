"""Catalogue: the kernels of a folder by name, with their cases."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from prism_bench.catalogue.listing import CaseListing
from prism_bench.errors import PrismBenchError, SpecError, unknown
from prism_bench.spec.case import Case, Device, chosen, read_case
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import LABELS
from prism_bench.units import count_text


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
