"""The programs of a catalogue: spec files `kernels/<family>/<name>.py` that make their spec with `fuse`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prism_bench.catalogue import load_module
from prism_bench.errors import PrismBenchError, SpecError, unknown
from prism_bench.extensions.fusion.program import FusionProgram
from prism_bench.extensions.fusion.source import fused_program
from prism_bench.extensions.fusion.specification import SourceOutdated, generated_source
from prism_bench.io.files import SHARED

_IMPORT = re.compile(r"^\s*(from|import) prism_bench\.(extensions\.)?fusion\b", re.MULTILINE)
FORMER = "fusions"  # the folder of a family that programs were in before they made their own spec


@dataclass(frozen=True)
class Declaration:
    """A program and the spec file that declares it."""

    path: Path
    program: FusionProgram

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.path.stem

    @property
    def source(self) -> Path:
        """Where the generated source is."""
        return generated_source(self.path)

    def text(self) -> str:
        """Return the CUDA source; SpecError with the file where the program cannot be fused."""
        try:
            return fused_program(self.program, self.name).source()
        except SpecError as error:
            raise SpecError(f"{self.path}: {error}") from error


def declarations(folder: Path, wanted: Iterable[str] = ()) -> list[Declaration]:
    """Return the programs of a catalogue, or those called so; SpecError or UsageError names what is wrong."""
    former = next(iter(sorted(folder.glob(f"*/{FORMER}/*.py"))), None)
    if former:
        raise SpecError(f"{former}: a program is declared in {former.parents[1] / former.name}, a spec file that ends "
                        "with 'spec = fuse(program, __name__)'; move it there")  # fmt: skip
    paths = {path.stem: path for path in sorted(folder.glob("*/*.py")) if declares(path)}
    for name in wanted:
        if name not in paths:
            raise unknown("program", name, paths)
    return [_declaration(folder, paths[name]) for name in wanted or paths]


def declares(path: Path) -> bool:
    """Return whether a spec file declares a program: it imports this package, and is none that others share."""
    return path.parent.name not in SHARED and _IMPORT.search(path.read_text(errors="replace")) is not None


def _declaration(folder: Path, path: Path) -> Declaration:
    try:
        program = getattr(load_module(folder, path), "program", None)
    except SourceOutdated as error:
        program = error.program
    except PrismBenchError as error:
        raise type(error)(f"{path}: {error}") from error
    except Exception as error:
        raise SpecError(f"{path}: {type(error).__name__}: {error}") from error
    if not isinstance(program, FusionProgram):
        raise SpecError(f"{path}: defines no 'program = FusionProgram(...)'")
    return Declaration(path, program)
