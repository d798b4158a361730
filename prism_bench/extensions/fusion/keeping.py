"""Generated files on disk: what would change, and the PTX kept beside each source with what it was made from."""

import json
from dataclasses import dataclass
from pathlib import Path

from prism_bench.case import Device
from prism_bench.catalogue import Catalogue
from prism_bench.compilation import compile_to_ptx, nvrtc_version, source_hash
from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.generate import Declaration, generated
from prism_bench.files import write_atomically
from prism_bench.strict_json import json_text

ARCHITECTURE = "90"
HOPPER = Device(sm_count=132, max_shared_bytes=227 * 1024, compute_capability=90)
ATTEMPTS = 6
SAME, NEW, CHANGED, STALE = "same", "new", "changed", "stale"


@dataclass(frozen=True)
class Kept:
    """One generated file: `state` is same, new, changed or stale (PTX of an older source)."""

    program: str
    path: Path
    state: str

    @property
    def is_same(self) -> bool:
        return self.state == SAME


def keep(declaration: Declaration, write: bool) -> list[Kept]:
    """Source and spec of a program against what is on disk; written where they differ and `write` says so."""
    return [_kept(declaration, path, text, write) for path, text in generated(declaration).items()]


def keep_ptx(declaration: Declaration, catalogue: Catalogue, write: bool) -> list[Kept]:
    """PTX of an instance of each of the program's kernels for a Hopper device, and a JSON file of what made it.

    Without `write`, PTX of another compiler's version is compared by its source's hash alone. BackendUnavailable where
    there is no NVRTC.
    """
    source = declaration.folder / f"{declaration.name}.cu"
    ptx, facts = source.with_suffix(".ptx"), source.with_suffix(".json")
    made = {
        "source": source_hash(source),
        "compiler": f"NVRTC {nvrtc_version()}",
        "architecture": f"compute_{ARCHITECTURE}a",
        "entries": entries(declaration, catalogue),
    }
    stored = read_facts(facts) if facts.is_file() else {}
    told = _without_compiling(stored if ptx.is_file() else {}, made, write)
    if told:
        return [Kept(declaration.name, ptx, told)]
    texts = {ptx: _ptx(source, made["entries"], ptx, write), facts: json_text(made, indent=1) + "\n"}
    return [_kept(declaration, path, text, write) for path, text in texts.items()]


def _without_compiling(stored, made, write):
    """The state that the facts alone tell, or None where it takes the compiler."""
    if write:
        return SAME if stored == made else None
    if stored and stored.get("source") != made["source"]:
        return STALE
    return SAME if stored and stored.get("compiler") != made["compiler"] else None


def _ptx(source, entries, kept, write):
    """The PTX; to compare with what is kept, again a few times where it differs.

    NVRTC 13.5 gave 47 of 48 compilations of the product the same text, and one another.
    """
    before = None if write or not kept.is_file() else kept.read_text()
    for _ in range(1 if before is None else ATTEMPTS):
        text = compile_to_ptx(source, entries, ARCHITECTURE)
        if text == before:
            break
    return text


def read_facts(path: Path) -> dict:
    """What stands beside a kept PTX; a SpecError where it cannot be read."""
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"{path}: not what `prism-bench fuse` wrote ({error}); remove it and run that again") from error


def entries(declaration: Declaration, catalogue: Catalogue) -> list[str]:
    """One instance of each kernel of the generated source, that of its first case at S0 on a Hopper device, sorted.

    Other instances differ in constants alone; those of large tiles are long and take the compiler many seconds.
    """
    source = declaration.folder / f"{declaration.name}.cu"
    cases = [case for case in catalogue.cases([declaration.name], ("S0",)) if case.spec.source == source]
    first: dict[str, str] = {}
    for entry in (entry for case in cases for entry in case.plan.entries(HOPPER)):
        first.setdefault(entry.partition("<")[0], entry)
    return sorted(first.values())


def _kept(declaration, path, text, write):
    before = path.read_bytes() if path.is_file() else None
    state = NEW if before is None else SAME if before == text.encode() else CHANGED
    if write and state != SAME:
        write_atomically(path, text.encode())
    return Kept(declaration.name, path, state)


def left_over(folder: Path) -> list[Path]:
    """Generated files that no program declares any more."""
    found = sorted(path for path in folder.glob("*/generated/*") if path.suffix in (".cu", ".py", ".ptx", ".json"))
    return [path for path in found if not (path.parents[1] / "fusions" / f"{path.stem}.py").is_file()]
