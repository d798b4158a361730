"""Rules about the probe: spread, drift and odd launches of a short and of a memory-bound kernel, and its bandwidth.

The limits follow from the stored records of an H200 (reports/runs): the quartiles of a 4 us copy are within 5 % of its
median and its slowest launch within 1.4 times; those of a 512 MB copy within 1.2 %, its slowest within 2 %. Processes
that something disturbed are beyond: quartiles 10 % apart, in two levels.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median, quantiles

from prism_bench.doctor.fitness.facts import FitnessFacts, FitnessProblem, Kind, ProbedKernel
from prism_bench.units import count_text, rate_text, share_text, time_text

LEAST_SAMPLES = 50  # of a kernel: with fewer, its noise is unknown
LEAST_BANDWIDTH = 0.6  # of what the memory bus carries; GPUs with ECC on GDDR reach three quarters
_PARTS = 5  # of the probe: the first is compared with the last


@dataclass(frozen=True)
class NoiseLimit:
    """From `care` on a share is worth a word, from `no` on times are of no use."""

    care: float
    no: float

    def severity(self, share: float) -> str | None:
        """Return how grave the share is; None below both limits."""
        return "no" if share >= self.no else "care" if share >= self.care else None


@dataclass(frozen=True)
class NoiseLimits:
    """Limits of one kind of kernel: quartiles over median, change from begin to end, launches slower than `odd` x."""

    spread: NoiseLimit
    drift: NoiseLimit
    odd: float
    odd_share: NoiseLimit


LIMITS: dict[Kind, NoiseLimits] = {
    "small": NoiseLimits(NoiseLimit(0.08, 0.3), NoiseLimit(0.04, 0.2), 1.5, NoiseLimit(0.02, 0.2)),
    "bandwidth": NoiseLimits(NoiseLimit(0.03, 0.15), NoiseLimit(0.02, 0.1), 1.1, NoiseLimit(0.02, 0.2)),
}


@dataclass(frozen=True)
class ProbeFigures:
    """Figures of one probed kernel: `spread`, `drift` and `odd` are shares, `bandwidth` is in bytes per second.

    `spread` is the distance of the quartiles over the median, `drift` the change of the median from the first fifth of
    the probe to the last, `odd` the share of the launches that are far slower than the median.
    """

    case: str
    kind: Kind
    samples: int
    median: float
    spread: float
    drift: float
    odd: float
    bandwidth: float | None = None
    clock: float | None = None


def figures(kernel: ProbedKernel) -> ProbeFigures:
    """Return the figures of a kernel with at least two samples."""
    seconds, part = kernel.seconds, max(1, len(kernel.seconds) // _PARTS)
    middle, quarter = median(seconds), quantiles(seconds, n=4)
    clocks = [sample.clock for sample in kernel.samples if sample.clock]
    return ProbeFigures(
        kernel.case, kernel.kind, len(seconds), middle, (quarter[2] - quarter[0]) / middle,
        median(seconds[-part:]) / median(seconds[:part]) - 1,
        sum(one > LIMITS[kernel.kind].odd * middle for one in seconds) / len(seconds),
        kernel.bytes / middle if kernel.kind == "bandwidth" and kernel.bytes else None,
        median(clocks) if clocks else None,
    )  # fmt: skip


def unprobed(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge whether there was a probe, with enough launches to say something."""
    if facts.unprobed:
        return FitnessProblem("unknown", facts.unprobed, "no kernel was launched: nobody knows how noisy it is",
                              "'prism-bench doctor' shows what is missing to measure")  # fmt: skip
    few = [kernel for kernel in facts.kernels if len(kernel.samples) < LEAST_SAMPLES]
    if facts.kernels and not few:
        return None
    found = (
        ", ".join(f"{count_text(len(kernel.samples), 'launch', 'launches')} of {kernel.case}" for kernel in few)
        or "no launch"
    )
    return FitnessProblem("unknown", found, f"at least {LEAST_SAMPLES} are needed to judge noise",
                          "measure longer with --seconds")  # fmt: skip


def spread(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge how far launches of one kernel are apart."""
    return _worst(facts, "spread", lambda one: one.spread, lambda one: (
        f"{one.case}: half of its launches are {share_text(one.spread)} apart", "something disturbs the launches",
        "lock the clocks, end other work on the GPU and on the host, and look again"))  # fmt: skip


def drift(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge whether times change from begin to end, as they do while a device warms up."""
    return _worst(facts, "drift", lambda one: abs(one.drift), lambda one: (
        f"{one.case}: {share_text(abs(one.drift))} {'slower' if one.drift > 0 else 'faster'} at the end than at first",
        "clock or temperature have not settled", "warm the device up, lock the clocks, and look again"))  # fmt: skip


def odd_launches(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge the launches that are far slower than the others."""
    return _worst(facts, "odd_share", lambda one: one.odd, lambda one: (
        f"{one.case}: {share_text(one.odd)} of the launches take more than {LIMITS[one.kind].odd:g} x the median",
        "something else works on the device or on the memory from time to time",
        "end other work on the GPU; look for a display, a monitor or another container"))  # fmt: skip


def bandwidth(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge whether memory is as quick as its bus allows."""
    for kernel in _judged(facts):
        rate = figures(kernel).bandwidth
        if rate and kernel.peak and rate < LEAST_BANDWIDTH * kernel.peak:
            found = f"{kernel.case}: {rate_text(rate, 'B/s')}, the bus carries {rate_text(kernel.peak, 'B/s')}"
            return FitnessProblem("care", found, "memory is slower than on other devices of its kind",
                                  "look at the memory clock in 'nvidia-smi -q -d CLOCK', and at ECC errors"
                                  )  # fmt: skip
    return None


RULES = (unprobed, spread, drift, odd_launches, bandwidth)


def summary(kernel: ProbedKernel) -> str:
    """Return one line about a kernel of the probe, with its median, spread, drift and odd launches."""
    if len(kernel.samples) < 2:
        return count_text(len(kernel.samples), "launch", "launches")
    one = figures(kernel)
    rate = f" ({rate_text(one.bandwidth, 'B/s')})" if one.bandwidth else ""
    changes = f"spread {share_text(one.spread)}, drift {one.drift * 100:+.1f} %, {share_text(one.odd)} odd"
    return f"{time_text(one.median)}{rate}, {changes}, n={one.samples}"


def _judged(facts: FitnessFacts) -> Iterable[ProbedKernel]:
    return (kernel for kernel in facts.kernels if len(kernel.samples) >= LEAST_SAMPLES)


def _worst(
    facts: FitnessFacts, limit: str, share: Callable[[ProbeFigures], float],
    words: Callable[[ProbeFigures], tuple[str, str, str]],
) -> FitnessProblem | None:  # fmt: skip
    """Return the gravest problem that one kind of noise makes; None where every kernel is within its limits."""
    found = [(getattr(LIMITS[one.kind], limit).severity(share(one)), one) for one in map(figures, _judged(facts))]
    for severity in ("no", "care"):
        for grave, one in found:
            if grave == severity:
                return FitnessProblem(severity, *words(one))
    return None
