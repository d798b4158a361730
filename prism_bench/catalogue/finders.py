"""Functions that find the specs of a folder: spec files, and what extensions make.

An extension adds kernels with a module `prism_bench/extensions/<name>/specs.py` that defines
`specs_of(folder: Path) -> Iterable[KernelSpec | Problem]`. Its specs have their name, family and source filled in.
"""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path

from prism_bench.catalogue.catalogue import Problem
from prism_bench.kernel import KernelSpec

SpecFinder = Callable[[Path], Iterable[KernelSpec | Problem]]
_EXTENSIONS = Path(__file__).resolve().parents[1] / "extensions"


def extension_finders(folder: Path = _EXTENSIONS) -> Iterator[SpecFinder]:
    """Yield `specs_of` of each extension that has a module `specs`, by name."""
    for path in sorted(folder.glob("*/specs.py")):
        yield import_module(f"prism_bench.extensions.{path.parent.name}.specs").specs_of
