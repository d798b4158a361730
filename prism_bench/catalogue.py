"""Finds every pair of source and spec, and lists every case. The folder is the registry."""

import importlib.util
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType

from prism_bench import byname
from prism_bench.arguments import Array
from prism_bench.case import Case, Device
from prism_bench.errors import PrismBenchError, SpecError, UsageError, unknown
from prism_bench.files import GENERATED, default_folder, family_of, shared_folders
from prism_bench.kernel import KernelSpec
from prism_bench.naming import chosen, read_case
from prism_bench.regimes import regime_edges
from prism_bench.workload import LABELS, Edge

_SPECS = "prism_bench_catalogue"  # the package that specs are loaded into: `from prism_bench_catalogue.include...`


@dataclass(frozen=True)
class Problem:
    """What is wrong with one file of the catalogue; the rest of it still works."""

    path: Path
    message: str

    def __str__(self):
        return f"{self.path}: {self.message}"


@dataclass(frozen=True)
class Catalogue:
    """Every kernel of a folder by name, and the problems met on the way.

    `choices` are configurations by case name, for who makes cases of its own: `launched` applies them.
    """

    folder: Path
    kernels: dict[str, KernelSpec]
    problems: tuple[Problem, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    choices: dict[str, dict] = field(default_factory=dict)

    def kernel(self, name: str) -> KernelSpec:
        """The kernel called `name`, or known by that alias; a UsageError with the nearest names otherwise."""
        canonical = self.aliases.get(name, name)
        if canonical not in self.kernels:
            raise unknown("kernel", name, [*self.kernels, *self.aliases])
        return self.kernels[canonical]

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(sorted({spec.family for spec in self.kernels.values()}))

    def cases(self, filters=(), labels=LABELS) -> list[Case]:
        """Every timed case that the filters (kernel, alias, `kernel:variant`, family, or part of a name) leave."""
        for label in labels:
            if label not in LABELS:
                raise unknown("label", label, LABELS)
        chosen = [case for case in self._timed if case.label in labels]
        return self._filtered(chosen, filters)

    def edges(self, filters=()) -> list[Case]:
        """Every edge and golden case, verified but never timed."""
        return self._filtered(self._edges, filters)

    def edges_by_task(self, filters=()) -> list[str]:
        """Names for `edges_of` that give the edges of the filters: kernels, or edges that a filter names."""
        named = {word for word in filters if word in self._edge_by_name}
        return list(dict.fromkeys(case.name if case.name in named else case.kernel for case in self.edges(filters)))

    def edges_of(self, kernel: str) -> list[Case]:
        """The edge and golden cases of the kernel, or of the variant in `kernel:variant`, and of no other; of an edge's
        name that edge alone.

        With `@block=128` behind the name they are launched so; regimes, those that this breaks a rule at, or that pin
        what it chooses, are left out.
        """
        if kernel in self._edge_by_name:
            return [self._edge_by_name[kernel]]
        kernel, _, choice = kernel.partition("@")
        cases = self._edges_by_kernel.get(self._canonical(kernel), [])
        if not cases:
            self._refuse_unknown(self._canonical(kernel))
        if not choice:
            return list(cases)
        names = {word.partition("=")[0] for word in choice.split(",")}
        launched = [chosen(case, choice) for case in cases if names <= set(case.tunable) and not case.is_regime]
        return [case for case in launched if case.plan.broken(Device()) is None]

    def case(self, name: str) -> Case:
        """The case of that full name, such as `softmax[rows=32,cols=1000]`, or of a task: `name@block=128`."""
        return self._configured(name, self._by_name.get)

    def anywhere(self, name: str) -> Case:
        """The same with any other values of the kernel's axes. Such a case has no label: nothing is promised for it."""
        return self._configured(name, lambda bare: self._by_name.get(bare) or read_case(bare, self.kernels))

    def launched(self, case: Case) -> Case:
        """The case as the choices have it."""
        return case.configured(self.choices[case.name]) if case.name in self.choices else case

    def _configured(self, name, find):
        name, _, choice = name.partition("@")
        case = find(name)
        if case is None:
            raise unknown("case", name, self._by_name)
        return chosen(case, choice) if choice else case

    def _specs(self):
        for spec in self.kernels.values():
            yield spec, None
            for variant in spec.variants:
                yield spec.with_variant(variant), variant

    @cached_property
    def _timed(self):
        return [case for spec in self._specs() for case in _timed_cases(*spec)]

    @cached_property
    def _edges(self):
        return [case for spec in self._specs() for case in (*_edge_cases(*spec), *_regime_cases(*spec))]

    @cached_property
    def _edges_by_kernel(self):
        found: dict[str, list[Case]] = {}
        for case in self._edges:
            found.setdefault(case.kernel, []).append(case)
        return found

    @cached_property
    def _edge_by_name(self):
        return {case.name: case for case in self._edges}

    @cached_property
    def _by_name(self):
        return {case.name: case for case in self._timed}

    def _filtered(self, cases, filters):
        if not filters:
            return list(cases)
        kept: set[Case] = set()
        for word in filters:
            canonical = self._canonical(word)
            matching = [case for case in cases if _matches(case, canonical)]
            if not matching:
                self._refuse_unknown(canonical)
            kept |= set(matching)
        return [case for case in cases if case in kept]

    def _canonical(self, word):
        """The word with an alias of a kernel, alone or before a variant, replaced by the kernel's name."""
        kernel, colon, variant = word.partition(":")
        return self.aliases.get(kernel, kernel) + colon + variant

    def _refuse_unknown(self, word):
        """A UsageError unless the word names something that only this choice of labels, or of edges, leaves out."""
        kernel, _, variant = word.partition(":")
        if word in self._edge_by_name:
            return
        if kernel in self.kernels and variant:
            self.kernels[kernel].with_variant(variant)
        elif kernel not in self.kernels and word not in self.families:
            cases = list(self._by_name) if "[" in word else []
            raise unknown("kernel, family or case", word, [*self.kernels, *self.aliases, *self.families, *cases])


def _matches(case, word):
    return word in (case.spec.name, case.kernel, case.spec.family, case.name)


def _timed_cases(spec, variant):
    labels = spec.only_labels or tuple(spec.workloads)
    return [Case(spec, spec.workloads[label], label, variant) for label in LABELS if label in labels]


def _edge_cases(spec, variant):
    edges = [_edge_case(spec, edge, variant) for edge in spec.edges]
    return edges + [Case(spec, golden.workload, "golden", variant, golden) for golden in spec.golden]


def _edge_case(spec, edge, variant):
    own = edge if isinstance(edge, Edge) else None
    return Case(spec, own.workload if own else edge, "edge", variant, edge=own)


def _regime_cases(spec, variant):
    """At workloads that edges have too, so that nothing of them needs a check beforehand."""
    return [_edge_case(spec, edge, variant) for edge in regime_edges(spec)]


def discover(folder: Path | str | None = None) -> Catalogue:
    """Read a catalogue folder. A broken pair becomes a problem, never an exception; a missing folder is an error."""
    root = Path(folder) if folder else default_folder()
    if not root.is_dir():
        raise UsageError(f"no catalogue at {root}: a catalogue is a folder of <family>/<name>.cu and <name>.py")
    _share_include(root)
    kernels, problems = {}, []
    for path in _pairs(root, "py"):
        try:
            spec = _load(path)
            if spec.name in kernels:
                raise SpecError(f"kernel '{spec.name}' stands in family '{kernels[spec.name].family}' too")
            _check(spec)
            kernels[spec.name] = spec
        except PrismBenchError as error:
            problems.append(Problem(path, str(error)))
        except (Exception, SystemExit) as error:  # whatever a spec's author wrote must not stop the other kernels
            problems.append(Problem(path, f"line {_line_in(path, error)}: {type(error).__name__}: {error}"))
    problems += _sources_without_spec(root)
    kernels, aliases, doubled = _resolve_aliases(kernels)
    return Catalogue(root, kernels, tuple(problems + doubled), aliases)


def _pairs(root, suffix):
    """Files of that suffix in the family folders, then the generated ones; hidden folders are editors' own, and
    `include` is what families share."""
    paths = [*sorted(root.glob(f"*/*.{suffix}")), *sorted(root.glob(f"*/{GENERATED}/*.{suffix}"))]
    families = [path for path in paths if family_of(path) != "include"]
    return [path for path in families if not family_of(path).startswith(".")]


def _share_include(root):
    """What specs import as `prism_bench_catalogue.include.<name>` comes from this catalogue, not from the last one;
    what it has not, from the built-in one.
    """
    for name in [name for name in sys.modules if name.startswith(f"{_SPECS}.")]:
        del sys.modules[name]
    for name, folders in ((_SPECS, []), (f"{_SPECS}.include", list(map(str, shared_folders(root))))):
        package = ModuleType(name)
        package.__path__ = folders
        sys.modules[name] = package


def _load(path):
    module_name = f"{_SPECS}.{family_of(path)}.{path.stem}"
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module_name] = module
    with redirect_stdout(sys.stderr):
        module_spec.loader.exec_module(module)
    spec = getattr(module, "spec", None)
    if not isinstance(spec, KernelSpec):
        raise SpecError("defines no 'spec = KernelSpec(...)'")
    source = path.with_suffix(".cu")
    if not source.is_file():
        raise SpecError(f"has no source {source.name} beside it")
    return replace(spec, name=path.stem, family=family_of(path), source=source)


def _line_in(path, error):
    line = byname.line_in(error, str(path))
    return line or (error.lineno if isinstance(error, SyntaxError) else None) or "?"


def _check(spec):
    """Build every case once, so that a contradiction shows here and not in the middle of a run."""
    unasked = sorted(set(spec.tune.values) - set(spec.tunable)) if spec.tune else ()
    if unasked:
        raise SpecError(f"tune: neither the launch nor a derived size asks for '{unasked[0]}'")
    for one, variant in [(spec, None), *((spec.with_variant(v), v) for v in spec.variants)]:
        for case in [*_timed_cases(one, variant), *_edge_cases(one, variant)]:
            _build(case)


def _build(case):
    """Compute all that follows from spec and workload alone."""
    for argument in case.spec.arguments:
        _ = case.sizes.shape(argument.name) if isinstance(argument, Array) else argument.value(case.axes)
    _ = case.sizes.bytes_moved, case.sizes.allocated_bytes, case.sizes.flops
    if case.golden:
        case.correctness.check_golden()
    case.plan.require_default()


def _sources_without_spec(root):
    lonely = [
        path for path in _pairs(root, "cu") if not path.with_suffix(".py").is_file() and not _generated_twin(path)
    ]
    return [Problem(path, f"has no spec {path.stem}.py beside it") for path in lonely]


def _generated_twin(path):
    """Whether the source is the form by hand of a generated kernel, whose spec has it for a variant."""
    return (path.parent / GENERATED / f"{path.stem}.py").is_file()


def _resolve_aliases(kernels):
    aliases, problems = {}, []
    for spec in kernels.values():
        for alias in spec.aliases:
            if alias in kernels or alias in aliases:
                problems.append(Problem(spec.source, f"alias '{alias}' is taken"))
            else:
                aliases[alias] = spec.name
    return kernels, aliases, problems
