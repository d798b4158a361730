"""Task of a judgement, and the folder that a submission to it is moved to."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from prism_bench.catalogue import Catalogue
from prism_bench.errors import unknown
from prism_bench.extensions.judge.host_state import folder_prefix
from prism_bench.extensions.judge.identity import headers_folder, task_hash
from prism_bench.extensions.judge.submission import Submission
from prism_bench.io.files import temporary_folder
from prism_bench.spec.kernel import CUDA, KernelSpec


@dataclass(frozen=True)
class JudgeTask:
    """What a submission is judged by: the kernel's spec, and the catalogue that it is of."""

    spec: KernelSpec
    catalogue: Catalogue

    @property
    def hash(self) -> str:
        """A SHA-256 of all that the task is."""
        return task_hash(self.spec, self.catalogue.folder)


def task_named(name: str, catalogue: Catalogue) -> JudgeTask:
    """Return the task of a kernel, or of `kernel:variant`; a UsageError where there is none of the name."""
    kernel, _, variant = name.partition(":")
    spec = catalogue.kernel(kernel)
    if variant and variant not in spec.variants:
        raise unknown(f"variant of {spec.name}", variant, spec.variants)
    return JudgeTask(variant_task(spec, variant) if variant else spec, catalogue)


def variant_task(spec: KernelSpec, variant: str) -> KernelSpec:
    """Return the spec of a variant as a task by itself, named `kernel:variant`."""
    return replace(spec.with_variant(variant), name=f"{spec.name}:{variant}")


@contextmanager
def workplace(submission: Submission, task: JudgeTask, yard: Path | None = None) -> Iterator[tuple[Submission, Path]]:
    """Give a submission an own catalogue: a copy of its file, and of the headers of the task's kernels.

    One in Python gets the catalogue's shared Python, too.

    Return the submission with that file, and the catalogue's folder, which is in `yard`.
    """
    with temporary_folder(folder_prefix(), yard) as place:
        folder = place / "judged"
        folder.mkdir()
        file = folder / submission.file.name
        file.write_bytes(submission.content)
        shared = headers_folder(task.catalogue.folder)
        hidden = ("*.py", "__pycache__") if submission.language == CUDA else ("__pycache__",)
        if shared:
            shutil.copytree(shared, place / "include", ignore=shutil.ignore_patterns(*hidden))
        place.chmod(0o755)  # the jail's user is another one
        yield msgspec.structs.replace(submission, file=file), place
