"""Spec files for kernels that were found in a user's sources."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from prism_bench.errors import UsageError
from prism_bench.extensions.init.sources.found import FoundKernel, FoundOperator, Skeleton
from prism_bench.extensions.init.sources.operator_skeleton import operator_skeleton
from prism_bench.extensions.init.sources.scan import scan
from prism_bench.extensions.init.sources.skeleton import skeleton
from prism_bench.extensions.init.writing import DRAFT, PlannedFile
from prism_bench.io.files import SHARED


@dataclass(frozen=True)
class SkeletonFile:
    """A spec for a person to complete: its file, what it is of, and what is to be written or confirmed."""

    file: PlannedFile
    kernel: FoundKernel | FoundOperator
    skeleton: Skeleton


@dataclass(frozen=True)
class FoundFiles:
    """Specs for what was found below a folder, and in words what there is no spec for."""

    specs: tuple[SkeletonFile, ...]
    without: tuple[str, ...]


def skeleton_files(place: Path, root: Path, catalogue: str) -> FoundFiles:
    """Return a spec for each kernel and PyTorch operator below `place`, in a family named after its source's folder.

    Raise a UsageError where there is no such folder, or nothing in it.
    """
    found = scan(place)
    specs = list(_specs([*found.kernels, *found.operators], root, catalogue))
    known = {id(one.kernel) for one in specs}
    without = [f"{one.path}:{one.line}: {one.name}: neither a schema nor annotations give its arguments"
               for one in found.operators if id(one) not in known]  # fmt: skip
    without += map(str, found.unread)
    if not specs:
        nothing = f"no CUDA kernel, Triton kernel or PyTorch operator below {place} that a spec can be written for"
        raise UsageError("; ".join([nothing, *without[:3]]))
    return FoundFiles(tuple(specs), tuple(without))


def _specs(kernels: Iterable[FoundKernel | FoundOperator], root: Path, catalogue: str) -> Iterable[SkeletonFile]:
    """Yield the specs; a kernel whose name another one has gets a number, because a catalogue names each once."""
    paths = sorted(path for ending in (".py", f".py{DRAFT}") for path in (root / catalogue).glob(f"*/*{ending}"))
    taken = {path.name.partition(".")[0]: path for path in paths}
    own: set[str] = set()
    for kernel in kernels:
        folder = root / catalogue / _family(kernel.path)
        made = _made(kernel, root, folder)
        if made is None:
            continue
        stem = made.file_name.removesuffix(".py")
        names = (f"{stem}_{number}" if number > 1 else stem for number in count(1))
        name = next(one for one in names if one not in own and taken.get(one, folder / one).parent == folder)
        own.add(name)
        ending = ".py" if made.loads else f".py{DRAFT}"
        yield SkeletonFile(PlannedFile((folder / f"{name}{ending}").relative_to(root), made.text), kernel, made)


def _made(kernel: FoundKernel | FoundOperator, root: Path, folder: Path) -> Skeleton | None:
    """Return the skeleton; None of an operator whose arguments are unknown."""
    below = root if isinstance(kernel, FoundOperator) else folder
    source = Path(os.path.relpath(kernel.path.resolve(), below.resolve())).as_posix()
    return operator_skeleton(kernel, source) if isinstance(kernel, FoundOperator) else skeleton(kernel, source)


def _family(source: Path) -> str:
    """Return the name of the folder of the source, as a Python package may be called."""
    name = "".join(letter if letter.isalnum() else "_" for letter in source.resolve().parent.name.lower())
    return name if name.isidentifier() and name not in SHARED else f"family_{name}"
