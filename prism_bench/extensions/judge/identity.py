"""Identity of what a verdict is on: the headers that a submission may include, and the task."""

import hashlib
from pathlib import Path

from prism_bench.compilation.program import content_hash
from prism_bench.io.files import SHARED, hash_of_files, shared_folders, shared_with
from prism_bench.spec.kernel import KernelSpec


def headers_folder(catalogue: Path) -> Path | None:
    """Return the folder of headers that submissions to a catalogue's tasks may include; None where there is none."""
    return next(iter(shared_with(catalogue / "family" / "kernel.cu")), None)


def headers_hash(catalogue: Path) -> str:
    """Return a SHA-256 of all headers that a submission may include, by name and content; of none it is empty.

    All of them count: what a stranger's source includes is followed in the jail alone, where it may name any file.
    """
    folder = headers_folder(catalogue)
    return hash_of_files(folder, (path for path in folder.rglob("*") if path.suffix != ".py")) if folder else ""


def task_hash(spec: KernelSpec, catalogue: Path) -> str:
    """Return a SHA-256 of a task: its spec, its source with headers, and the Python that specs share."""
    digest = hashlib.sha256(spec.name.encode())
    for file in filter(None, (spec.file, spec.source_file)):
        digest.update((file.read_bytes() if file.suffix == ".py" else content_hash(file).encode()) + b"\0")
    for kind in SHARED:
        for folder in shared_folders(catalogue, kind)[:1]:
            digest.update(hash_of_files(folder, folder.rglob("*.py")).encode())
    return digest.hexdigest()
