"""The programs of a catalogue, and the generated files that are kept on disk."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, cast

from prism_bench.catalogue import Catalogue, load_module
from prism_bench.compilation import compile_to_ptx, nvrtc_version, source_hash
from prism_bench.errors import PrismBenchError, SpecError, unknown
from prism_bench.extensions.fusion.program import FusionProgram
from prism_bench.extensions.fusion.specification import SourceOutdated, fused_program, generated_source
from prism_bench.io.documents import json_text
from prism_bench.io.files import GENERATED, SHARED, spec_file, write_atomically
from prism_bench.spec.case import Device

# The programs of a catalogue: spec files `kernels/<family>/<name>.py` that make their spec with `fuse`.

_IMPORT = re.compile(r"^\s*(from|import) prism_bench\.(extensions\.)?fusion\b", re.MULTILINE)
_FORMER = "fusions"  # the folder of a family that programs were in before they made their own spec


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
    """Return the programs of a catalogue, or those named in `wanted`; SpecError or UsageError names the fault."""
    former = next(iter(sorted(folder.glob(f"*/{_FORMER}/*.py"))), None)
    if former:
        raise SpecError(
            f"{former}: a program is declared in {former.parents[1] / former.name}, a spec file that ends "
            "with 'spec = fuse(program, __name__)'; move it there"
        )
    paths = {path.stem: path for path in sorted(folder.glob("*/*.py")) if declares(path)}
    for name in wanted:
        if name not in paths:
            raise unknown("program", name, paths)
    return [_declaration(folder, paths[name]) for name in wanted or paths]


def declares(path: Path) -> bool:
    """Return whether a spec file declares a program: it imports this package, and is not in a shared folder."""
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


# Generated files on disk: what would change, and the PTX kept next to each source with what it was made from.

ARCHITECTURE = "90"
_HOPPER = Device(sm_count=132, max_shared_bytes=227 * 1024, compute_capability=90)
_ATTEMPTS = 6
State = Literal["same", "new", "changed", "stale"]


class PtxFacts(TypedDict):
    """Origin of a kept PTX: the hash of the source, the compiler, the architecture and the entries."""

    source: str
    compiler: str
    architecture: str
    entries: list[str]


@dataclass(frozen=True)
class GeneratedFile:
    """One generated file; `stale` is PTX of an older source."""

    program: str
    path: Path
    state: State

    @property
    def is_same(self) -> bool:
        """Whether the file is what the program generates."""
        return self.state == "same"


def keep_source(declaration: Declaration, write: bool) -> GeneratedFile:
    """Compare the source of a program with the file; if it differs and `write` is set, write it."""
    return _kept(declaration, declaration.source, declaration.text(), write)


def keep_ptx(declaration: Declaration, catalogue: Catalogue, write: bool) -> list[GeneratedFile]:
    """Compare or write the PTX of an instance of each of the program's kernels for a Hopper device, with its facts.

    Without `write`, PTX of another compiler's version is compared by its source's hash alone. BackendUnavailable if
    there is no NVRTC.
    """
    source = declaration.source
    ptx, facts = source.with_suffix(".ptx"), source.with_suffix(".json")
    made: PtxFacts = {
        "source": source_hash(source),
        "compiler": f"NVRTC {nvrtc_version()}",
        "architecture": f"compute_{ARCHITECTURE}a",
        "entries": entries(declaration, catalogue),
    }
    stored = read_facts(facts) if facts.is_file() else None
    state = _without_compiling(stored if ptx.is_file() else None, made, write)
    if state:
        return [GeneratedFile(declaration.name, ptx, state)]
    texts = {ptx: _ptx(source, made["entries"], ptx, write), facts: json_text(made, indent=1) + "\n"}
    return [_kept(declaration, path, text, write) for path, text in texts.items()]


def _without_compiling(stored: PtxFacts | None, made: PtxFacts, write: bool) -> State | None:
    """Return the state that follows from the facts; None if only the compiler can decide it."""
    if write:
        return "same" if stored == made else None
    if stored and stored.get("source") != made["source"]:
        return "stale"
    return "same" if stored and stored.get("compiler") != made["compiler"] else None


def _ptx(source: Path, entries: list[str], kept: Path, write: bool) -> str:
    """Return the PTX: to write, the most frequent of a few compilations; to compare, the kept text if any gives it.

    NVRTC gives some compilations of one source another text, so a kept text has to be the usual one.
    """
    if write or not kept.is_file():
        return Counter(compile_to_ptx(source, entries, ARCHITECTURE) for _ in range(_ATTEMPTS)).most_common(1)[0][0]
    before = kept.read_text()
    text = compile_to_ptx(source, entries, ARCHITECTURE)
    for _ in range(_ATTEMPTS - 1):
        if text == before:
            break
        text = compile_to_ptx(source, entries, ARCHITECTURE)
    return text


def read_facts(path: Path) -> PtxFacts:
    """Return the facts next to a kept PTX; SpecError if they cannot be read."""
    try:
        return cast(PtxFacts, dict(json.loads(path.read_text())))
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise SpecError(
            f"{path}: not what `prism-bench fuse --write` wrote ({error}); remove it and run that again"
        ) from error


def entries(declaration: Declaration, catalogue: Catalogue) -> list[str]:
    """Return one instance of each kernel of the generated source, that of its first case at S0 on Hopper, sorted.

    Other instances differ only in constants; instances of large tiles are long and take the compiler many seconds.
    """
    cases = [case for case in catalogue.cases([declaration.name], ("S0",)) if case.spec.source == declaration.source]
    first: dict[str, str] = {}
    for entry in (entry for case in cases for entry in case.plan.entries(_HOPPER)):
        first.setdefault(entry.partition("<")[0], entry)
    return sorted(first.values())


def _kept(declaration: Declaration, path: Path, text: str, write: bool) -> GeneratedFile:
    before = path.read_bytes() if path.is_file() else None
    state: State = "new" if before is None else "same" if before == text.encode() else "changed"
    if write and state != "same":
        write_atomically(path, text.encode())
    return GeneratedFile(declaration.name, path, state)


def left_over(folder: Path) -> list[Path]:
    """Return the generated files that no program declares any more."""
    paths = sorted(path for path in folder.glob(f"*/{GENERATED}/*") if path.suffix in (".cu", ".py", ".ptx", ".json"))
    specs = [spec_file(path) for path in paths]
    return [
        path
        for path, spec in zip(paths, specs, strict=True)
        if path.suffix == ".py" or not (spec.is_file() and declares(spec))
    ]
