"""Examination of the GPU that CUDA uses here: read at rest, probe, judge."""

from collections.abc import Callable

from prism_bench.backends import Backend, open_backend
from prism_bench.doctor.fitness.board import read_gpu
from prism_bench.doctor.fitness.facts import FitnessFacts, GpuReading
from prism_bench.doctor.fitness.judge import Fitness, judged_fitness
from prism_bench.doctor.fitness.probe import SECONDS, ColdProbe, NoiseProbe, Progress, probed_cases
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.io.installation import pip_install
from prism_bench.monitor.devices import devices, visible
from prism_bench.monitor.nvml import opened
from prism_bench.monitor.watching import watched

Opener = Callable[[str], Backend]


def examine_gpu(
    seconds: float = SECONDS, progress: Progress = lambda share: None, open_with: Opener = open_backend
) -> Fitness:
    """Read the first GPU that CUDA sees here, probe it for `seconds`, and return whether it is fit to measure on.

    BackendUnavailable without a GPU. Where NVML or CUDA is missing, what the other one shows is judged alone.
    """
    reading = _read()
    try:
        backend = open_with("cuda")
    except PrismBenchError as error:
        if isinstance(reading, str):
            why = f"{reading.partition(';')[0]}, and {str(error).partition(';')[0]}"
            raise BackendUnavailable(f"no GPU to examine here: {why}; {_cure()}") from None
        return judged_fitness(FitnessFacts(reading, unprobed=str(error)))
    facts = backend.facts()
    uuid = str(facts.get("uuid") or "")
    if isinstance(reading, str):
        reading = GpuReading(str(facts["device"]), uuid or None, missing={"clock_reasons": reading})
    return judged_fitness(probed(reading, ColdProbe(backend, dict(probed_cases())), seconds, progress))


def probed(reading: GpuReading, probe: NoiseProbe, seconds: float, progress: Progress) -> FitnessFacts:
    """Return the reading with the launches of the probe, and the device's evidence of that time."""
    try:
        with watched(reading.uuid) as sampler, sampler.window() as watch:
            kernels = probe(seconds, progress)
    except (PrismBenchError, MemoryError) as error:
        return FitnessFacts(reading, unprobed=str(error))
    return FitnessFacts(reading, kernels, watch.evidence)


def _read() -> GpuReading | str:
    """Return the reading of the first visible GPU; why there is none where NVML shows none."""
    try:
        with opened() as pynvml:
            found = visible(devices(pynvml))
            return read_gpu(pynvml, found[0]) if found else "NVML lists no visible GPU"
    except BackendUnavailable as error:
        return str(error)


def _cure() -> str:
    return (
        f"install NVIDIA's driver (containers: --gpus all), then {pip_install('cuda13')}; what works without a GPU is "
        "listed by 'prism-bench doctor'"
    )
