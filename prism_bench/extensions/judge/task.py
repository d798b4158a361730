"""Task of a judgement: its identity and folder, hidden sizes, kernels without work, times, and the host's state."""

import hashlib
import math
import os
import random
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from operator import le
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import msgspec
import numpy as np

from prism_bench.backends import Backend
from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.catalogue import Catalogue
from prism_bench.compilation.program import content_hash
from prism_bench.emulator.isolation import own_children
from prism_bench.errors import BackendUnavailable, PrismBenchError, unknown
from prism_bench.extensions.judge.submission import Submission
from prism_bench.extensions.judge.verdict import JudgedTime, TimeKind
from prism_bench.io.files import SHARED, hash_of_files, shared_folders, shared_with, temporary_folder
from prism_bench.io.installation import host_special
from prism_bench.io.workers import children_of
from prism_bench.measure.sampling import median_interval
from prism_bench.run.verification import KnownReference, compare_outputs, passed, verify
from prism_bench.spec.case import Case, Device
from prism_bench.spec.dtypes import stored
from prism_bench.spec.inputs import ONE_BY_ONE, InputArray
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.workload import Workload

# State of the judging process before and after a judgement: processes, environment, files and descriptors

EVIDENCE = "judging process afterwards"


def folder_prefix() -> str:
    """Return the prefix of this process's folders in the temporary folder; other processes judge at the same time."""
    return f"prism-judge-{os.getpid()}-"


@dataclass(frozen=True)
class HostState:
    """State that a judgement must leave unchanged; a part that the system does not show is empty.

    `folders` are those of this process's judgements in the temporary folder.
    """

    processes: frozenset[int]
    descriptors: frozenset[str]
    environment: frozenset[tuple[str, str]]
    working_folder: str
    folders: frozenset[str]

    @classmethod
    def now(cls) -> "HostState":
        """Return the state of this process."""
        temporary = Path(tempfile.gettempdir())
        return cls(
            frozenset(children_of(os.getpid())),
            _descriptors(),
            frozenset(os.environ.items()),
            str(Path.cwd()),
            frozenset(path.name for path in temporary.glob(f"{folder_prefix()}*")),
        )

    def evidence(self, before: "HostState", leaving_out: Collection[str] = ()) -> str:
        """Return a text that names the changed parts, without those that are left out."""
        names = [part.name for part in fields(self) if part.name not in leaving_out]
        parts = {name: getattr(self, name) == getattr(before, name) for name in names}
        changed = [name for name, is_same in parts.items() if not is_same]
        text = ", ".join(changed or parts).replace("_", " ")
        return f"not as before: {text}" if changed else f"as before: {text}"


def _descriptors() -> frozenset[str]:
    """Return the open files, pipes and sockets by number."""
    folder = Path("/proc/self/fd")
    descriptors: set[str] = set()
    for number in os.listdir(folder) if folder.is_dir() else ():
        try:
            descriptors.add(f"{number} {os.readlink(folder / number)}")
        except OSError:  # the descriptor of this listing
            continue
    return frozenset(descriptors)


# Identity of the headers that a submission may include, and of the task


def _headers_folder(catalogue: Path) -> Path | None:
    """Return the folder of headers that submissions to a catalogue's tasks may include; None without such a folder."""
    return next(iter(shared_with(catalogue / "family" / "kernel.cu")), None)


def headers_hash(catalogue: Path) -> str:
    """Return a SHA-256 of all headers that a submission may include, by name and content; empty without headers.

    All headers count: includes of a stranger's source are followed only in the jail, where they may name any file.
    """
    folder = _headers_folder(catalogue)
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


# The task, and the folder that a submission to it is copied to


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
    """Return the task of a kernel, or of `kernel:variant`; raise a UsageError for an unknown name."""
    kernel, _, variant = name.partition(":")
    spec = catalogue.kernel(kernel)
    if variant and variant not in spec.variants:
        raise unknown(f"variant of {spec.name}", variant, spec.variants)
    return JudgeTask(variant_task(spec, variant) if variant else spec, catalogue)


def variant_task(spec: KernelSpec, variant: str) -> KernelSpec:
    """Return the spec of a variant as a task, named `kernel:variant`."""
    return replace(spec.with_variant(variant), name=f"{spec.name}:{variant}")


@contextmanager
def workplace(submission: Submission, task: JudgeTask, yard: Path | None = None) -> Iterator[tuple[Submission, Path]]:
    """Give a submission its own catalogue in `yard`: a copy of its file, and of the headers of the task's kernels.

    A submission in Python also gets the catalogue's shared Python. Yield the submission with the copied file, and the
    catalogue's folder.
    """
    with temporary_folder(folder_prefix(), yard) as place:
        folder = place / "judged"
        folder.mkdir()
        file = folder / submission.file.name
        file.write_bytes(submission.content)
        shared = _headers_folder(task.catalogue.folder)
        hidden = ("*.py", "__pycache__") if submission.language == CUDA else ("__pycache__",)
        if shared:
            shutil.copytree(shared, place / "include", ignore=shutil.ignore_patterns(*hidden))
        place.chmod(0o755)  # the jail runs as another user
        yield msgspec.structs.replace(submission, file=file), place


# Hidden sizes: drawn for each judgement between the sizes of the task's workloads

HIDDEN = "hidden"  # label of a case whose size was drawn
# A kernel could try all secrets of 32 bits within a launch; every reader of JSON keeps 53 bits.
_SECRET_BITS = 53
_TRIES = 60  # draws; a task's rules refuse some
_MORE, _AT_ONCE, _MORE_SECONDS = 20, 8, 10.0  # further inputs for a size at which a submission was wrong


def drawn_secret() -> int:
    """Return a random secret, from which a judgement draws seeds and sizes."""
    return random.SystemRandom().getrandbits(_SECRET_BITS)


def hidden_cases(spec: KernelSpec, known: Sequence[Case], secret: int, count: int = 2) -> list[Case]:
    """Return up to `count` cases with sizes outside `known`, which take no more memory or work than the known cases.

    An axis gets a whole number between its smallest and its largest known value, 0 aside: a power of two if all are
    powers of two, else a multiple of their greatest common divisor. Rules of the spec hold; constant axes stay.
    """
    public = {case.workload for case in known}
    bases = [case for case in known if case.golden is None and case.edge is None and case.sizes.allocated_bytes]
    drawn: dict[Workload, Case] = {}
    rng = random.Random(secret)
    most = [max(costs) for costs in zip(*map(_cost, known), strict=True)]
    for _ in range(_TRIES if bases else 0):
        workload = Workload(**dict(_drawn_axes(rng.choice(bases).workload, bases, rng)))
        if workload in public or workload in drawn:
            continue
        try:
            case = Case(spec, workload, HIDDEN)
            _ = case.plan.steps(Device()), case.inputs(), case.plan.require_default(Device())
            if case.plan.requirement is None and all(map(le, _cost(case), most)):
                drawn[workload] = case
        except (PrismBenchError, ValueError, ArithmeticError):  # no size of this task
            continue
        if len(drawn) == count:
            break
    return list(drawn.values())


def is_no_size(task: KernelSpec, case: Case, seeds: Sequence[int]) -> bool:
    """Return whether the task's own kernel fails at a drawn size: then the size does not belong to the task.

    The kernel is also tried with further inputs for some seconds. If it exceeds the tolerance with any of them, another
    right kernel may exceed it with inputs that this kernel passes.
    """
    rng, end = random.Random(f"more than {list(seeds)}"), monotonic() + _MORE_SECONDS
    try:
        reference, backend = Case(task, case.workload, case.label), EmulatorBackend(isolate=True)
        with own_children():
            for tried in (seeds, *([rng.getrandbits(31) for _ in range(_AT_ONCE)] for _ in range(_MORE))):
                if not passed(verify(backend, reference, tried)):
                    return True
                if monotonic() > end:
                    break
    except BackendUnavailable:
        return False
    except PrismBenchError:
        return True
    return False


def changed_inputs(case: Case, inputs: dict[str, InputArray], secret: int) -> dict[str, InputArray] | None:
    """Return inputs with one element, at a random place, replaced by the value of another element of its array.

    None if no input may change: only values that are drawn independently of each other may.
    """
    rng = random.Random(secret)
    free = [
        array.name
        for array in case.spec.inputs
        if case.golden is None and not case.edge and array.fill.runs == ONE_BY_ONE and inputs[array.name].block.size > 1
    ]
    rng.shuffle(free)
    for name in free:
        block = inputs[name].block.copy()
        place = rng.randrange(block.size)
        others = np.flatnonzero(block != block[place])
        if others.size:
            block[place] = block[others[rng.randrange(others.size)]]
            return {**inputs, name: replace(inputs[name], block=block)}
    return None


def _drawn_axes(base: Workload, known: Sequence[Case], rng: random.Random) -> Iterator[tuple[str, object]]:
    for axis, value in base.items():
        values = {case.workload.get(axis) for case in known} - {0}
        whole = sorted(number for number in values if type(number) is int and number > 0)
        if type(value) is not int or len(whole) < 2 or len(whole) < len(values):
            yield axis, value
        else:
            yield axis, _drawn_number(whole, rng)


def _drawn_number(known: Sequence[int], rng: random.Random) -> int:
    """Return a number between the first and the last of `known`: a power of two, or a multiple, as they are."""
    if all(number & (number - 1) == 0 for number in known):
        return 1 << rng.randint(known[0].bit_length() - 1, known[-1].bit_length() - 1)
    step = math.gcd(*known)
    return step * rng.randint(known[0] // step, known[-1] // step)


def _cost(case: Case) -> tuple[int, int]:
    return case.sizes.allocated_bytes, case.sizes.flops or 0


# Kernels without work: a case that accepts one does not count; a task with such a timed case is refused

_CONSTANTS = (0, 1)


def passing_idlers(backend: Backend, case: Case, seed: int = 0) -> tuple[str, ...]:
    """Return the kernels without work that the case would accept, by the content that they leave in every output.

    They write nothing, a constant, a copy of an input of the same size, or at S0 the right outputs of other inputs:
    edges often have the same inputs for each seed.
    """
    inputs, known = case.inputs(seed), KnownReference()
    arrays = {name: np.asarray(array.on(np)) for name, array in inputs.items()}

    def passes(outputs: Mapping[str, Any]) -> bool:
        return passed(compare_outputs(backend, case, inputs, outputs, seed, known=known))

    passing = [content for content, outputs in _idlers(case, arrays) if passes(outputs)]
    if case.label == "S0" and all(
        passes(_right_for(case, seed + number)) for number in (1, 2)
    ):  # a single match may be chance
        passing.append("what other inputs give")
    return tuple(passing)


def _idlers(case: Case, arrays: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    shapes = {output.name: (case.sizes.shape(output.name), output.storage) for output in case.spec.outputs}
    yield "nothing", {output.name: _untouched(case, output.name, arrays) for output in case.spec.outputs}
    for constant in _CONSTANTS:
        yield (
            f"{constant} everywhere",
            {name: np.full(shape, constant, dtype) for name, (shape, dtype) in shapes.items()},
        )
    for name_of_input, values in arrays.items():
        if all(values.size == np.prod(shape, dtype=np.int64) for shape, _ in shapes.values()):
            with np.errstate(invalid="ignore"):  # NaN and infinity are no whole numbers
                copies = {name: values.reshape(shape).astype(dtype) for name, (shape, dtype) in shapes.items()}
            yield f"a copy of {name_of_input}", copies


def _right_for(case: Case, seed: int) -> dict[str, Any]:
    """Return the right outputs for the inputs of a seed."""
    arrays = {name: np.asarray(array.on(np)) for name, array in case.inputs(seed).items()}
    dtypes = {output.name: output.dtype for output in case.spec.outputs}
    with np.errstate(over="ignore", invalid="ignore"):
        expected = case.correctness.expected(arrays, np, host_special)
        return {name: stored(output, dtypes[name]) for name, output in expected.items()}


def _untouched(case: Case, name: str, arrays: Mapping[str, Any]) -> Any:
    """Return the content of an output before a launch: the input of an argument in place, else poison."""
    array, shape = case.spec.array(name), case.sizes.shape(name)
    if array.reads:
        return np.array(arrays[name]).reshape(shape)
    content = np.empty(shape, array.storage)
    content.reshape(-1).view(np.uint8)[:] = array.first_byte
    return content


# Times of a verdict


def judged_time(
    case: Case, subject: str, kind: TimeKind, seconds: Sequence[float], seeds: Sequence[int] = ()
) -> JudgedTime:
    """Return the median of samples in seconds and its 95 % interval, or the span of few; `seeds` drew inputs."""
    middle = median(seconds)
    low, high = median_interval(seconds) or (min(seconds), max(seconds))
    workload = case.name.removeprefix(case.kernel)  # not split: the sender's name may have brackets
    return JudgedTime(workload, subject, kind, middle, low, high, len(seconds), case.label == HIDDEN, tuple(seeds))


def least_time(case: Case, subject: str, seconds: float) -> JudgedTime:
    """Return a lower bound of times, which was not measured and has no samples."""
    return msgspec.structs.replace(judged_time(case, subject, "ceiling", [seconds]), samples=0)
