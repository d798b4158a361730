"""Machine code as a listing, by nvdisasm: of NVIDIA's wheel, a toolkit, or Triton's wheel."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from prism_bench.compilation.code import data_hash, sass_hash
from prism_bench.compilation.code_difference import CodeFacts, EntryDifference, differences
from prism_bench.compilation.compiled import Compiled
from prism_bench.compilation.listing import FunctionListing, read_listing
from prism_bench.errors import BackendUnavailable

PROGRAM = "nvdisasm"
MISSING = (
    "no nvdisasm is installed, so that instructions are not listed: install prism-bench[compile], or set CUDA_HOME to "
    "a toolkit"
)
_SECONDS = 60
_WHEELS = (("nvidia", "cu13/bin"), ("nvidia", "cuda_nvdisasm/bin"), ("triton", "backends/nvidia/bin"))


def disassemblers() -> list[str]:
    """Return the programs in the order in which they are tried: those of wheels, of PATH, of a toolkit."""
    found = [*_in_wheels(), shutil.which(PROGRAM), *_in_toolkits()]
    return list(dict.fromkeys(one for one in found if one))


def _in_wheels() -> Iterator[str]:
    for package, folder in _WHEELS:
        spec = find_spec(package)
        for root in (spec.submodule_search_locations or ()) if spec else ():
            yield from _program_in(Path(root) / folder)


def _in_toolkits() -> Iterator[str]:
    for root in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if root:
            yield from _program_in(Path(root) / "bin")


def _program_in(folder: Path) -> Iterator[str]:
    program = shutil.which(PROGRAM, path=str(folder))
    if program:
        yield program


def listing_of(cubin: Path) -> dict[str, FunctionListing]:
    """Return the functions of a cubin by mangled name.

    Raise BackendUnavailable where no nvdisasm is installed, or none of them can read the file: an older one does not
    know a newer architecture.
    """
    complaint = MISSING
    for program in disassemblers():
        try:
            done = subprocess.run([program, "-c", str(cubin)], capture_output=True, text=True, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
            complaint = f"{program} does not list {cubin.name}: {error}"
            continue
        if done.returncode == 0 and (found := read_listing(done.stdout)):
            return found
        complaint = f"{program} does not list {cubin.name}: {done.stderr.strip() or 'it printed no function'}"
    raise BackendUnavailable(complaint)


def facts_of(compiled: Compiled | None) -> tuple[dict[str, CodeFacts], str | None]:
    """Return by entry what is known of compiled code, and why instructions are not listed (None: they are)."""
    if compiled is None:
        return {}, None
    try:
        listings, reason = listing_of(compiled.path), None
    except BackendUnavailable as error:
        listings, reason = {}, str(error)
    names = compiled.lowered.items()
    return {entry: CodeFacts(compiled.resources[name], listings.get(name)) for entry, name in names}, reason


def code_differences(before: Compiled | None, after: Compiled | None) -> tuple[tuple[EntryDifference, ...], str | None]:
    """Return the entries that differ between two compiled sources.

    The second value is why instructions are not listed, or in what code differs whose instructions are the same.
    """
    was, reason = facts_of(before)
    now, other = facts_of(after)
    found = differences(was, now)
    if found or before is None or after is None:
        return found, reason or other
    return found, _unlisted(before.cubin, after.cubin)


def _unlisted(before: bytes, after: bytes) -> str | None:
    """Return in what two cubins of the same instructions differ; None where they do not."""
    if sass_hash(before) != sass_hash(after):
        return "the instructions are the same; their scheduling differs"
    return "the instructions are the same; their constants differ" if data_hash(before) != data_hash(after) else None
