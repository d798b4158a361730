"""Machine code as a listing, by nvdisasm."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prism_bench.compilation.code import Resources, data_hash, sass_hash
from prism_bench.compilation.code_difference import CodeFacts, EntryDifference, differences
from prism_bench.compilation.listing import FunctionListing, read_listing
from prism_bench.compilation.tools import tool
from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import pip_install

PROGRAM = "nvdisasm"
_SECONDS = 60


def missing() -> str:
    """Return why no instructions are listed where nvdisasm is missing, and what installs it."""
    return (
        f"no nvdisasm is installed: no listing of instructions; {pip_install('compile')}, or set CUDA_HOME to a toolkit"
    )


def listing_of(cubin: Path) -> dict[str, FunctionListing]:
    """Return the functions of a cubin by mangled name.

    Raise BackendUnavailable where no nvdisasm is installed, or it cannot read the file: an older one does not know a
    newer architecture.
    """
    program = tool(PROGRAM)
    if program is None:
        raise BackendUnavailable(missing())
    try:
        done = subprocess.run([program, "-c", str(cubin)], capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise BackendUnavailable(f"{program} does not list {cubin.name}: {error}") from error
    found = read_listing(done.stdout) if done.returncode == 0 else {}
    if not found:
        reason = done.stderr.strip() or "it printed no function"
        raise BackendUnavailable(f"{program} does not list {cubin.name}: {reason}")
    return found


@dataclass(frozen=True)
class CompiledEntry:
    """One entry of machine code: its file, the symbol in it, and what it takes."""

    path: Path
    symbol: str
    resources: Resources


Entries = Mapping[str, CompiledEntry]
# Entries, and why instructions are not listed, or in what code differs whose instructions are the same.
CodeDifference = tuple[tuple[EntryDifference, ...], str | None]


def code_differences(before: Entries, after: Entries) -> CodeDifference:
    """Return the entries that differ between two builds.

    The second value is why instructions are not listed, or in what code differs whose instructions are the same.
    """
    was, reason = _facts(before)
    now, other = _facts(after)
    found = differences(was, now)
    return found, (reason or other) if found else _unlisted(before, after)


def _facts(entries: Entries) -> tuple[dict[str, CodeFacts], str | None]:
    """Return what is known of each entry, and why instructions are not listed (None: they are)."""
    reason, listings = None, dict[Path, dict[str, FunctionListing]]()
    for path in dict.fromkeys(one.path for one in entries.values()):
        try:
            listings[path] = listing_of(path)
        except BackendUnavailable as error:
            reason = str(error)
    facts = {
        name: CodeFacts(one.resources, listings.get(one.path, {}).get(one.symbol)) for name, one in entries.items()
    }
    return facts, reason


def _unlisted(before: Entries, after: Entries) -> str | None:
    """Return in what two builds of the same instructions differ; None where they do not."""
    sides = [
        [path.read_bytes() for path in dict.fromkeys(one.path for one in side.values())] for side in (before, after)
    ]
    was, now = ([sass_hash(cubin) for cubin in side] for side in sides)
    if was != now:
        return "the instructions are the same; their scheduling differs"
    was, now = ([data_hash(cubin) for cubin in side] for side in sides)
    return "the instructions are the same; their constants differ" if was != now else None
