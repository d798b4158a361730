"""A kernel that takes a chosen share longer, and histories of commits in which one commit slows it.

The kernel is a chain of dependent multiply-adds by a = 1 and b = 0, which the compiler does not know: its time grows
with the number of iterations, its result is its input. Few warps run on each scheduler, so that latency limits it,
which is the same in every process. How many iterations a share costs is measured first, since a launch takes time, too.
"""

from dataclasses import dataclass

import numpy as np

from lab.own_repository.trial import TrialRepository
from prism_bench.errors import ResultsError
from prism_bench.units import count_text

CASE = "chain[n=32768]"
ITERATIONS, UNROLLED = 8000, 8
_SEED = 20261127
_SOURCE = """// Dependent multiply-adds by one and zero: the time grows with ITERATIONS, the result is the input.
#define ITERATIONS {iterations}
#define VERSION {version}

extern "C" __global__ void chain(const float* x, float* y, float a, float b, int n) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
#pragma unroll {unrolled}
    for (int step = 0; step < ITERATIONS; ++step) value = fmaf(value, a, b);
    if (n < -VERSION) value = b;  // never true: other machine code that takes the same time
    y[i] = value;
}}
"""
_SPEC = """from prism_bench import In, KernelSpec, Launch, Out, Scalar, Size, Workload, elementwise

spec = KernelSpec(
    entry="chain",
    arguments=(In("x", "n"), Out("y", "n"), Scalar("a"), Scalar("b"), Size("n")),
    launch=lambda n: Launch(grid=-(-n // 256), block=256),
    reference=lambda x: x,
    tolerance=elementwise(),
    parameters={"a": 1.0, "b": 0.0},
    workloads={"S0": Workload(n=32768)},
)
"""


@dataclass(frozen=True)
class PlantedHistory:
    """History number `number` of so many `commits`, `codes` of them with other machine code than the one before.

    `slowdown` is the share that one of these adds; 0 plants nothing.
    """

    slowdown: float
    number: int
    commits: int = 16
    codes: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.codes < self.commits:
            raise ResultsError(f"{count_text(self.codes, 'change')} of machine code: give 1 to {self.commits - 1}")

    @property
    def changing(self) -> tuple[int, ...]:
        """The commits that change the machine code, in order; the first commit of a history is 0."""
        return self._drawn[0]

    @property
    def planted(self) -> int | None:
        """The commit that slows the kernel; None where nothing is planted."""
        return self._drawn[1] if self.slowdown else None

    @property
    def _drawn(self) -> tuple[tuple[int, ...], int]:
        rng = np.random.default_rng([_SEED, self.commits, self.codes, round(1e4 * self.slowdown), self.number])
        places = sorted(int(one) for one in rng.choice(np.arange(1, self.commits), self.codes, replace=False))
        return tuple(places), int(rng.choice(places))


def begin(repository: TrialRepository, iterations: int = ITERATIONS) -> None:
    """Commit the kernel with its spec and a configuration."""
    repository.write("prism-bench.toml", 'catalogue = "kernels"\n')
    repository.write("kernels/chains/chain.py", _SPEC)
    _write_source(repository, iterations, 1000)
    repository.commit("Commit 0")


def plant(repository: TrialRepository, history: PlantedHistory, added: int) -> list[str]:
    """Commit the history, whose planted commit adds so many iterations; return the hashes, the oldest first."""
    begin(repository)
    version, iterations = 1000, ITERATIONS
    for number in range(1, history.commits):
        if number == history.planted:
            iterations += added
        if number in history.changing:
            version += 1
            _write_source(repository, iterations, version)
        else:
            repository.write("README.md", f"Note {number}\n")
        repository.commit(f"Commit {number}")
    return repository.git("rev-list", "--reverse", "HEAD").output.split()


def iterations_of_all(repository: TrialRepository, backend: str) -> float:
    """Return how many iterations take as long as the whole kernel, launch included, in a new repository.

    A kernel with twice the iterations is compared with it. Raise a ResultsError where that takes hardly longer.
    """
    begin(repository)
    _write_source(repository, 2 * ITERATIONS, 1000)
    repository.commit("Twice the iterations")
    words = ("compare", "HEAD~1", "HEAD", "--json", "--backend", backend, "--processes", "2")
    done = repository.command(*words)
    found = [one["seconds"] for one in done.plain["cases"] if one["case"] == CASE and one.get("seconds")]
    if not found or found[0][1] < 1.2 * found[0][0]:
        raise ResultsError(f"{done.command}: twice the iterations take {found or 'no measured time'}: nothing to plant")
    one, two = found[0]
    return ITERATIONS * one / (two - one)


def added_iterations(slowdown: float, whole: float) -> int:
    """Return the iterations to add for a slowdown, as whole turns of the unrolled loop."""
    return round(slowdown * whole / UNROLLED) * UNROLLED


def _write_source(repository: TrialRepository, iterations: int, version: int) -> None:
    text = _SOURCE.format(iterations=iterations, version=version, unrolled=UNROLLED)
    repository.write("kernels/chains/chain.cu", text)
