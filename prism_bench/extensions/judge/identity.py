"""Identity of what a verdict is on: the headers that a submission may include, and the task."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from prism_bench.compilation.program import content_hash
from prism_bench.files import shared_with
from prism_bench.kernel import KernelSpec


def headers_folder(catalogue: Path) -> Path | None:
    """Return the folder of headers that submissions to a catalogue's tasks may include; None where there is none."""
    return next(iter(shared_with(catalogue / "family" / "kernel.cu")), None)


def headers_hash(catalogue: Path) -> str:
    """Return a SHA-256 of all headers that a submission may include, by name and content; of none it is empty.

    All of them count: what a stranger's source includes is followed in the jail alone, where it may name any file.
    """
    folder = headers_folder(catalogue)
    return _hash_of(folder, (path for path in folder.rglob("*") if path.suffix != ".py")) if folder else ""


def task_hash(spec: KernelSpec, catalogue: Path) -> str:
    """Return a SHA-256 of a task: its spec, its source with headers, and the Python that specs share."""
    digest = hashlib.sha256(spec.name.encode())
    for file in filter(None, (spec.file, spec.source_file)):
        digest.update((file.read_bytes() if file.suffix == ".py" else content_hash(file).encode()) + b"\0")
    folder = headers_folder(catalogue)
    if folder:
        digest.update(_hash_of(folder, folder.rglob("*.py")).encode())
    return digest.hexdigest()


def _hash_of(folder: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder).as_posix()} {len(content)} ".encode() + content)
    return digest.hexdigest()
