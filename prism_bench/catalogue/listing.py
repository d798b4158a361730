"""Cases of a catalogue's kernels: the timed ones, and edges and golden data, by name and by filter."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from prism_bench.catalogue.edge_inputs import regime_edges
from prism_bench.errors import SpecError, unknown
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import LABELS, Edge, Workload


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
