"""Where the workers that measure a catalogue run: in this process's installation, or in another checkout."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from prism_bench.emulator.last_words import crash_in
from prism_bench.io.workers.handle import WorkerEnvironment
from prism_bench.run.settings import BLAS_THREADS

MEASURING = "prism_bench.run.worker"
_BEFORE = "prism_bench.workbench.worker"  # the same program in checkouts of version 0.1
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def measuring(root: Path | None = None, variables: Mapping[str, str] | None = None) -> WorkerEnvironment:
    """Return the environment of a measuring worker, of the checkout at `root` where one is given."""
    is_older = root is not None and (root / f"{_BEFORE.replace('.', '/')}.py").is_file()
    return WorkerEnvironment(_BEFORE if is_older else MEASURING, root, variables or {}, crash_in)


def timing(place: WorkerEnvironment) -> WorkerEnvironment:
    """Return the environment of a worker that times: BLAS has one thread there, or as many as the place names.

    The libraries read these variables when NumPy is imported. With a thread for each core, wall times depend on what
    else the host does.
    """
    return replace(place, variables={**dict.fromkeys(BLAS_VARIABLES, str(BLAS_THREADS)), **place.variables})


def worker_of(program: str) -> WorkerEnvironment:
    """Return the environment of the worker of an extension: the module `program` of this installation."""
    return WorkerEnvironment(program, explain=crash_in)


HERE = measuring()
