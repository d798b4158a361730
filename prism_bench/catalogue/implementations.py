"""Forms of a kernel in other languages: the files `softmax.<language>.py` next to a spec, each a variant.

Such a file defines its kernel and `variant = Variant("meaning", entry=..., launch=...)` with what differs from the
spec, as variants within the spec do. It has the spec's edges, without what they pin of the spec's
tuning space, and its own `more_edges`. It is read without importing its compiler.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from prism_bench.catalogue.importer import execute
from prism_bench.compilation.languages.language import language, language_in
from prism_bench.compilation.languages.placeholders import Placeholder, reading_builtins
from prism_bench.errors import SpecError
from prism_bench.spec.kernel import KernelSpec, Variant, no_launch
from prism_bench.spec.workload import Edge, Workload

# What an implementation does not inherit from the spec, whose CUDA C++ it belongs to.
OWN: Mapping[str, Any] = {"tune": None, "options": (), "requires": None, "budgets": (), "cards": (), "callable": None}

MORE_EDGES = "more_edges"  # of a form, which no spec has as a field


def implementations(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield language and file of each implementation next to the spec file."""
    for file in sorted(path.parent.glob(f"{path.stem}.*.py")):
        name = language_in(file)
        if name is not None:
            yield name, file


def with_implementation(spec: KernelSpec, name: str, path: Path, module: str) -> KernelSpec:
    """Return the spec with a variant more, called as its language; raise a SpecError where the file declares none."""
    if name in spec.variants:
        raise SpecError(f"{spec.name} has a variant '{name}' already")
    declared = getattr(execute(path, module, reading_builtins(language(name), name)), "variant", None)
    if not isinstance(declared, Variant):
        raise SpecError("defines no 'variant = Variant(...)'")
    own = OWN if "callable" not in declared.changes else {**OWN, "launch": no_launch, "entry": ""}
    changes = {**own, **declared.changes, "source": path, "language": name}
    changes["edges"] = (*changes.get("edges", _unpinned(spec)), *changes.pop(MORE_EDGES, ()))
    _refuse_placeholders(changes)
    return replace(spec, variants={**spec.variants, name: Variant(declared.meaning, **changes)})


def _unpinned(spec: KernelSpec) -> tuple[Workload | Edge, ...]:
    """Return the spec's edges, each once, without what they pin of the spec's tuning space: a form has its own."""
    tuned = set(spec.tune.values) if spec.tune else set[str]()

    def free(workload: Workload) -> Workload:
        return Workload(**{axis: value for axis, value in workload.items() if axis not in tuned})

    edges = (replace(one, workload=free(one.workload)) if isinstance(one, Edge) else free(one) for one in spec.edges)
    return tuple(dict.fromkeys(edges))


def _refuse_placeholders(changes: Mapping[str, object]) -> None:
    """Raise a SpecError where a field of the variant is something of the language's modules."""
    for field, value in changes.items():
        if isinstance(value, Placeholder):
            raise SpecError(f"variant: {field} comes from a module that is not imported here; name it as text")
