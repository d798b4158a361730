"""Fitness of a GPU to measure on: readings at rest and a noise probe, rules, and one answer from all of them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter
from types import ModuleType
from typing import Literal, Protocol, get_args

from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue.catalogue import timed_cases
from prism_bench.catalogue.importer import catalogue_package, module_name
from prism_bench.catalogue.loading import load_spec
from prism_bench.errors import BackendUnavailable, MeasurementInvalid, PrismBenchError
from prism_bench.io.files import default_folder
from prism_bench.measure.plausibility import peaks_of
from prism_bench.monitor.nvml import DeviceLost, NvmlDevice, devices, opened, visible, why_missing
from prism_bench.monitor.probe import HARMFUL, Probe, Process, family, reasons_in
from prism_bench.monitor.sampler import watched
from prism_bench.record.measurement import CLOCK_SHARE, Evidence, Sample
from prism_bench.spec.case import Case
from prism_bench.units import bytes_text, count_text, rate_text, share_text, time_text

# What the rules of fitness judge: readings of the device at rest, the evidence of the probe, and its samples.

Kind = Literal["small", "bandwidth"]  # a kernel of a few microseconds; one that is bound by memory


@dataclass(frozen=True)
class GpuReading:
    """One GPU before anything is launched on it.

    `values` are in SI units by the names of `monitor.quantities`, and by those of `board.LIMITS`; `missing` has the
    reason why one is absent. `processes` is None where they are not known. `lost` is why the device does not answer.
    """

    name: str
    uuid: str | None = None
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    processes: tuple[Process, ...] | None = None
    is_slice: bool = False
    lost: str | None = None


@dataclass(frozen=True)
class ProbedKernel:
    """Cold launches of one case, all of them in the order in which they were taken.

    `bytes` are what a launch reads and writes at least; `peak` is what the memory bus carries in bytes per second.
    """

    case: str
    kind: Kind
    samples: tuple[Sample, ...]
    bytes: int = 0
    peak: float | None = None

    @property
    def seconds(self) -> tuple[float, ...]:
        """The times of the launches in seconds."""
        return tuple(sample.seconds for sample in self.samples)


@dataclass(frozen=True)
class FitnessFacts:
    """Everything that is judged. `unprobed` is why there was no probe; then `kernels` are empty."""

    reading: GpuReading
    kernels: Sequence[ProbedKernel] = ()
    evidence: Evidence | None = None
    unprobed: str | None = None

    def value(self, name: str) -> float | None:
        """Return a value of the reading; None where it was not read."""
        return self.reading.values.get(name)

    @property
    def seen(self) -> Evidence:
        """The evidence of the probe; without a probe that of no time."""
        return self.evidence or Evidence(0.0, 0)

    @property
    def clocks(self) -> tuple[float, ...]:
        """The SM clocks of the probe's launches in hertz, of those that carry one."""
        return tuple(sample.clock for kernel in self.kernels for sample in kernel.samples if sample.clock)


# Readings of one GPU at rest: what monitoring reads of it, and the limits that it was set to.

# Whether a neighbour works, and for what share of the time, shows between two looks this many seconds apart.
APART = 1.2
_BOARD_LIMITS: Mapping[str, Callable[[ModuleType, object], float]] = {
    "default_power_limit": lambda nvml, board: nvml.nvmlDeviceGetPowerManagementDefaultLimit(board) * 1e-3,
    "slowdown_temperature": lambda nvml, board: float(
        nvml.nvmlDeviceGetTemperatureThreshold(board, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
    ),
    "max_memory_clock": lambda nvml, board: nvml.nvmlDeviceGetMaxClockInfo(board, nvml.NVML_CLOCK_MEM) * 1e6,
    "application_sm_clock": lambda nvml, board: nvml.nvmlDeviceGetApplicationsClock(board, nvml.NVML_CLOCK_SM) * 1e6,
    "ecc": lambda nvml, board: float(nvml.nvmlDeviceGetEccMode(board)[0]),
    "persistence": lambda nvml, board: float(nvml.nvmlDeviceGetPersistenceMode(board)),
}


def _read_gpu(pynvml: ModuleType, device: NvmlDevice, pause: Callable[[float], object] = time.sleep) -> GpuReading:
    """Return the device as it is before anything is launched on it; the reading is `lost` where it does not answer."""
    try:
        probe, now = Probe(pynvml, device, ours=family()), time.perf_counter()
        first = probe.read(now)
        pause(APART)
        last = probe.read(now + APART)
        limits, missing = _limits(pynvml, device.board)
    except DeviceLost as error:
        return GpuReading(device.name, device.uuid, is_slice=device.is_slice, lost=str(error))
    values = {**last.values, **limits}
    if "utilization" in first.values and "utilization" in values:  # work that ended before is no neighbour's
        values["utilization"] = min(first.values["utilization"], values["utilization"])
    return GpuReading(device.name, device.uuid, values, {**last.missing, **missing}, last.processes, device.is_slice)


def _limits(pynvml: ModuleType, board: object) -> tuple[dict[str, float], dict[str, str]]:
    """Return the limits that the device reports, and why the others are missing."""
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name, read in _BOARD_LIMITS.items():
        try:
            values[name] = read(pynvml, board)
        except pynvml.NVMLError as error:
            missing[name] = why_missing(pynvml, error)
    return values, missing


# Problems of the device: clocks, power, heat, memory errors, neighbours and how it is set up. Facts in, problems out.

Rule = Literal[
    "lost", "unread", "mig", "events", "held_down", "throttled", "memory_errors", "neighbours", "busy", "clock_too_low",
    "hot", "clock_set_lower", "clock_unsteady", "power_limit", "power_capped", "unseen_neighbours", "little_memory",
    "persistence", "unprobed", "spread", "drift", "odd_launches", "bandwidth",
]  # fmt: skip
RULES: tuple[Rule, ...] = get_args(Rule)
Severity = Literal["no", "unknown", "care"]  # the gravest first


@dataclass(frozen=True)
class FitnessProblem:
    """What speaks against measuring by a `rule`: what was `found`, its `cause`, and what to change (`cure`).

    `severity` is `no` (times would be wrong), `care` (times are right, and not comparable or noisier than need be) or
    `unknown` (the facts that decide are missing).
    """

    rule: Rule
    severity: Severity
    found: str
    cause: str
    cure: str


_HOT = 80.0  # degrees Celsius, for devices that do not report where heat slows them down
_MARGIN, _LAST_MARGIN = 10.0, 3.0  # degrees below that point
_BUSY_AT_REST = 0.05  # share of the driver's window in which another process's kernel ran
_FULL_CLOCK = 0.98  # share of the highest clock below which a device is set or held lower
_STEADY_CLOCK = 0.97  # share of the best clock that a launch at a steady clock reaches
_STEADY_SHARE = 0.95  # share of the launches that reach it
_CAPPED = 0.02  # share of the readings in which the power limit may hold the clock down


def _state_problems(facts: FitnessFacts) -> Iterator[FitnessProblem]:
    """Yield the problems of the device's state: whether it answers, its memory, and how it is set up."""
    reading, value = facts.reading, facts.value
    if reason := reading.lost or facts.seen.lost:
        cause = "the device fell off the bus, or its driver stopped"
        cure = "look at 'dmesg' for the Xid; reset the GPU or restart the machine"
        yield FitnessProblem("lost", "no", reason, cause, cure)
    if not reading.lost and value("clock_reasons") is None:
        reason = reading.missing.get("clock_reasons", "nothing was read")
        cause = "without NVML nobody knows what holds the clock down"
        cure = "install nvidia-ml-py, and make libnvidia-ml.so.1 visible here (containers: --gpus all)"
        yield FitnessProblem("unread", "unknown", reason, cause, cure)
    if reading.is_slice:  # slices share clocks and power
        cure = "compare slices only with equal slices, while the others rest"
        cause = "clocks, power and heat are the whole GPU's"
        yield FitnessProblem("mig", "care", f"a slice: {reading.name}", cause, cure)
    elif value("mig"):
        cure = "choose a slice with CUDA_VISIBLE_DEVICES=MIG-..., or 'nvidia-smi --multi-instance-gpu=0'"
        cause = "CUDA runs kernels on slices alone then"
        yield FitnessProblem("mig", "no", "MIG is on and this is no slice", cause, cure)
    if facts.seen.events:
        cause = "the driver reported errors during the probe"
        cure = "look them up in NVIDIA's list of Xids; reset the GPU"
        yield FitnessProblem("events", "no", ", ".join(facts.seen.events), cause, cure)
    errors, failed = value("ecc_uncorrected"), value("remap_failed")
    if errors or failed:
        text = f"{errors or 0:.0f} uncorrected" + (", a row could not be replaced" if failed else "")
        cure = "reset the GPU; if they come again, have it replaced"
        yield FitnessProblem("memory_errors", "no", text, "the memory is faulty", cure)
    free, total = value("memory_free"), value("memory_total")
    if free is not None and total and free < total / 2:
        text = f"{bytes_text(free)} of {bytes_text(total)} free"
        cure = "large workloads are skipped for want of memory; free it"
        yield FitnessProblem("little_memory", "care", text, "others hold most of the memory", cure)
    if value("persistence") == 0:
        cause = "the driver unloads between processes, first calls wait"
        cure = "'nvidia-smi --persistence-mode=1' as root, or nvidia-persistenced"
        yield FitnessProblem("persistence", "care", "persistence mode is off", cause, cure)


def _neighbour_problems(facts: FitnessFacts) -> Iterator[FitnessProblem]:
    """Yield the problems of other processes: a busy one makes times wrong, one that only holds memory may begin to."""
    reading, seen = facts.reading, facts.seen
    others = [process for process in reading.processes or () if not process.ours]
    texts = [f"{process} {bytes_text(process.memory)}" for process in others]
    texts += [process for process in seen.neighbours if not any(text.startswith(process) for text in texts)]
    cure = "end them, or choose another GPU with CUDA_VISIBLE_DEVICES"
    if seen.busy_neighbours or any(process.busy for process in others):
        yield FitnessProblem("neighbours", "no", ", ".join(texts), "another process works on this GPU", cure)
    elif texts:
        cause = "another process holds memory and may begin to work"
        yield FitnessProblem("neighbours", "care", ", ".join(texts), cause, cure)
    share = facts.value("utilization")
    if share is not None and share > _BUSY_AT_REST and not others:
        text = f"busy {share_text(share)} of the time before anything was launched"
        cause = "somebody works on it who is not visible here, as in another container"
        yield FitnessProblem("busy", "no", text, cause, "find out who shares the GPU, or choose another one")
    if reading.processes is None and not reading.lost and facts.value("clock_reasons") is not None:
        text = f"unknown: {reading.missing.get('processes', 'not read')}"
        cause = "other processes on the GPU cannot be seen"
        yield FitnessProblem("unseen_neighbours", "care", text, cause, "make sure that nothing else runs there")


def _heat_problems(facts: FitnessFacts) -> Iterator[FitnessProblem]:
    """Yield the problems of heat and power, at rest and during the probe."""
    seen, value = facts.seen, facts.value
    at_rest = reasons_in(value("clock_reasons"))
    harm = [word for word in HARMFUL if word in at_rest or word in seen.reasons]
    if harm:
        cause = "heat, power supply or the board holds the clock down"
        cure = "look at cooling and power supply; times taken now would be refused"
        yield FitnessProblem("held_down", "no", f"held down: {', '.join(harm)}", cause, cure)
    slowed = [f"{word} {seen.throttled[word]:.2g} s" for word in ("thermal", "board") if seen.throttled.get(word)]
    if slowed:
        cure = "let it cool, look at fans and power supply"
        yield FitnessProblem(
            "throttled", "no", f"slowed down for: {', '.join(slowed)}", "heat or the board's limits", cure
        )
    temperatures = [heat for heat in (value("temperature"), seen.highest("temperature")) if heat is not None]
    heat, limit = max(temperatures, default=None), value("slowdown_temperature") or _HOT + _MARGIN
    if heat is not None and heat >= limit - _MARGIN:
        severity = "no" if heat >= limit - _LAST_MARGIN else "care"
        text = f"{heat:.0f} C, heat slows it down at {limit:.0f} C"
        cause = "near the point where heat holds the clock down"
        cure = "let it cool, look at fans and at neighbours in the same chassis"
        yield FitnessProblem("hot", severity, text, cause, cure)
    power, usual = value("power_limit"), value("default_power_limit")
    if power is not None and usual is not None and power < usual - 0.5:
        cure = f"'nvidia-smi --power-limit={usual:.0f}' as root, or compare only with runs under this limit"
        text = f"{power:.0f} W of {usual:.0f} W"
        yield FitnessProblem("power_limit", "care", text, "an administrator lowered the power limit", cure)
    share = seen.reasons.get("sw power cap", 0.0)
    if share > _CAPPED:
        text = f"at the power limit in {share_text(share)} of the probe"
        cause = "the power limit holds the clock down even at a light load"
        cure = "raise it with 'nvidia-smi --power-limit=WATTS' as root, or lock a lower clock"
        yield FitnessProblem("power_capped", "care", text, cause, cure)


def _clock_problems(facts: FitnessFacts) -> Iterator[FitnessProblem]:
    """Yield the problems of a clock that is set or held low, or changes; a clock locked at the highest is fine."""
    clocks, highest = facts.clocks, facts.value("max_sm_clock")
    reasons = (*reasons_in(facts.value("clock_reasons")), *facts.seen.reasons)
    is_set = "application clocks" in reasons
    best = max(clocks, default=None) or facts.value("sm_clock")  # without a probe the clock at rest
    if highest and clocks and not is_set and max(clocks) < CLOCK_SHARE * highest:
        text = f"{rate_text(max(clocks), 'Hz')} of {rate_text(highest, 'Hz')} at most under load"
        cause = "something that the driver does not name holds the clock down"
        cure = "look at 'nvidia-smi -q -d CLOCK,PERFORMANCE'; restart the machine if it stays"
        yield FitnessProblem("clock_too_low", "no", text, cause, cure)
    if highest and best and is_set and best < _FULL_CLOCK * highest:
        text = f"{rate_text(best, 'Hz')} of {rate_text(highest, 'Hz')}, set by an administrator"
        cause = "times are right for this clock, and not comparable with those at another"
        cure = "unless meant so, 'nvidia-smi --reset-gpu-clocks' and '--reset-applications-clocks' as root"
        yield FitnessProblem("clock_set_lower", "care", text, cause, cure)
    steady = sum(clock >= _STEADY_CLOCK * max(clocks) for clock in clocks) / len(clocks) if clocks else 1.0
    if steady < _STEADY_SHARE:
        below = share_text(1 - _STEADY_CLOCK)
        text = f"{share_text(1 - steady)} of the launches ran more than {below} below the best clock"
        cause = f"the clock wanders, {rate_text(median(clocks), 'Hz')} in the median"
        cure = "lock it: 'nvidia-smi --lock-gpu-clocks=MHZ' as root, at one that holds under load"
        yield FitnessProblem("clock_unsteady", "care", text, cause, cure)


# Problems of the probe: spread, drift and odd launches of a short and of a memory-bound kernel, and its bandwidth.
#
# The limits follow from the stored records of an H200 (reports/runs): the quartiles of a 4 us copy are within 5 % of
# its median and its slowest launch within 1.4 times; those of a 512 MB copy within 1.2 %, its slowest within 2 %.
# Processes that something disturbed are beyond: quartiles 10 % apart, in two levels.

LEAST_SAMPLES = 50  # of a kernel: with fewer, its noise is unknown
_LEAST_BANDWIDTH = 0.6  # of what the memory bus carries; GPUs with ECC on GDDR reach three quarters
_PARTS = 5  # of the probe: the first is compared with the last


@dataclass(frozen=True)
class _NoiseLimit:
    """Limits of a share: from `care` on it is worth a warning, from `no` on times are of no use."""

    care: float
    no: float

    def severity(self, share: float) -> str | None:
        """Return how grave the share is; None below both limits."""
        return "no" if share >= self.no else "care" if share >= self.care else None


@dataclass(frozen=True)
class _NoiseLimits:
    """Limits of one kind of kernel: quartiles over median, change from begin to end, share of odd launches.

    A launch is odd if it takes more than `odd_from` times the median.
    """

    spread: _NoiseLimit
    drift: _NoiseLimit
    odd: _NoiseLimit
    odd_from: float


_LIMITS: dict[Kind, _NoiseLimits] = {
    "small": _NoiseLimits(_NoiseLimit(0.08, 0.3), _NoiseLimit(0.04, 0.2), _NoiseLimit(0.02, 0.2), 1.5),
    "bandwidth": _NoiseLimits(_NoiseLimit(0.03, 0.15), _NoiseLimit(0.02, 0.1), _NoiseLimit(0.02, 0.2), 1.1),
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
        kernel.case,
        kernel.kind,
        len(seconds),
        middle,
        (quarter[2] - quarter[0]) / middle,
        median(seconds[-part:]) / median(seconds[:part]) - 1,
        sum(time > _LIMITS[kernel.kind].odd_from * middle for time in seconds) / len(seconds),
        kernel.bytes / middle if kernel.kind == "bandwidth" and kernel.bytes else None,
        median(clocks) if clocks else None,
    )


def _noise_problems(facts: FitnessFacts) -> Iterator[FitnessProblem]:
    """Yield the problems of the probe: too few launches to judge, noise, and memory that is slower than its bus."""
    few = [kernel for kernel in facts.kernels if len(kernel.samples) < LEAST_SAMPLES]
    if facts.unprobed:
        cause = "no kernel was launched: nobody knows how noisy it is"
        cure = "'prism-bench doctor' shows what is missing to measure"
        yield FitnessProblem("unprobed", "unknown", facts.unprobed, cause, cure)
    elif few or not facts.kernels:
        counts = [f"{count_text(len(kernel.samples), 'launch', 'launches')} of {kernel.case}" for kernel in few]
        cause = f"at least {LEAST_SAMPLES} are needed to judge noise"
        text = ", ".join(counts) or "no launch"
        yield FitnessProblem("unprobed", "unknown", text, cause, "measure longer with --seconds")
    probed = [(kernel, figures(kernel)) for kernel in facts.kernels if len(kernel.samples) >= LEAST_SAMPLES]
    kernels = [kernel for _, kernel in probed]
    if noisiest := _noisiest(kernels, "spread"):
        severity, kernel = noisiest
        text = f"{kernel.case}: half of its launches are {share_text(kernel.spread)} apart"
        cure = "lock the clocks, end other work on the GPU and on the host, and look again"
        yield FitnessProblem("spread", severity, text, "something disturbs the launches", cure)
    if noisiest := _noisiest(kernels, "drift"):  # as times do while a device warms up
        severity, kernel = noisiest
        direction = "slower" if kernel.drift > 0 else "faster"
        text = f"{kernel.case}: {share_text(abs(kernel.drift))} {direction} at the end than at first"
        cause = "clock or temperature have not settled"
        yield FitnessProblem("drift", severity, text, cause, "warm the device up, lock the clocks, and look again")
    if noisiest := _noisiest(kernels, "odd"):
        severity, kernel = noisiest
        times = f"{_LIMITS[kernel.kind].odd_from:g} x the median"
        text = f"{kernel.case}: {share_text(kernel.odd)} of the launches take more than {times}"
        cause = "something else works on the device or on the memory from time to time"
        cure = "end other work on the GPU; look for a display, a monitor or another container"
        yield FitnessProblem("odd_launches", severity, text, cause, cure)
    for source, kernel in probed:
        rate, peak = kernel.bandwidth, source.peak
        if rate and peak and rate < _LEAST_BANDWIDTH * peak:
            text = f"{kernel.case}: {rate_text(rate, 'B/s')}, the bus carries {rate_text(peak, 'B/s')}"
            cause = "memory is slower than on other devices of its kind"
            cure = "look at the memory clock in 'nvidia-smi -q -d CLOCK', and at ECC errors"
            yield FitnessProblem("bandwidth", "care", text, cause, cure)
            return


def _noisiest(
    kernels: Sequence[ProbeFigures], figure: Literal["spread", "drift", "odd"]
) -> tuple[Literal["no", "care"], ProbeFigures] | None:
    """Return the gravest severity of one kind of noise, with its kernel; None where all are within their limits."""
    graded = [
        (getattr(_LIMITS[kernel.kind], figure).severity(abs(getattr(kernel, figure))), kernel) for kernel in kernels
    ]
    for severity in ("no", "care"):
        for grade, kernel in graded:
            if grade == severity:
                return severity, kernel
    return None


def summary(kernel: ProbedKernel) -> str:
    """Return one line about a kernel of the probe, with its median, spread, drift and odd launches."""
    if len(kernel.samples) < 2:
        return count_text(len(kernel.samples), "launch", "launches")
    probe = figures(kernel)
    rate = f" ({rate_text(probe.bandwidth, 'B/s')})" if probe.bandwidth else ""
    changes = f"spread {share_text(probe.spread)}, drift {probe.drift * 100:+.1f} %, {share_text(probe.odd)} odd"
    return f"{time_text(probe.median)}{rate}, {changes}, n={probe.samples}"


# One answer from all rules, and its exit code.

FitnessAnswer = Literal["yes", "with care", "no", "unknown"]
_ANSWERS: dict[Severity, FitnessAnswer] = {"no": "no", "unknown": "unknown", "care": "with care"}
_EXIT_CODES: dict[FitnessAnswer, int] = {"yes": 0, "with care": 0, "no": 1, "unknown": 3}


@dataclass(frozen=True)
class Fitness:
    """The facts and what speaks against measuring, the gravest problem first."""

    facts: FitnessFacts
    problems: tuple[FitnessProblem, ...]

    @property
    def answer(self) -> FitnessAnswer:
        """The gravest problem's answer; `yes` without problems."""
        return _ANSWERS[self.problems[0].severity] if self.problems else "yes"

    @property
    def exit_code(self) -> int:
        """0 where it is fit, 1 where it is not, 3 where that is unknown."""
        return _EXIT_CODES[self.answer]


def judged_fitness(facts: FitnessFacts) -> Fitness:
    """Return the answer of every rule to the facts."""
    groups = (_state_problems, _neighbour_problems, _heat_problems, _clock_problems, _noise_problems)
    problems = [problem for group in groups for problem in group(facts)]
    grave = list(_ANSWERS)
    problems.sort(key=lambda problem: (grave.index(problem.severity), RULES.index(problem.rule)))
    return Fitness(facts, tuple(problems))


# Noise probe: cold launches of a short and of a memory-bound kernel in turn, every one of them kept.

PROBED: Mapping[str, Kind] = {"copy[n=100000]": "small", "copy[n=67108864]": "bandwidth"}
SECONDS = 10.0
BLOCK = 10  # launches of one kernel before the other's turn
MOST_BLOCKS = 2000
_WARM_UP = 5

Progress = Callable[[float], object]  # is called with the share of the probe that is done


class NoiseProbe(Protocol):
    """Launcher of kernels for a number of seconds that returns all of their times."""

    def __call__(self, seconds: float, progress: Progress) -> Sequence[ProbedKernel]:
        """Return the launches of each kernel."""
        ...


class ColdProbe:
    """The probe on a backend: cold launches of `cases`, each of its kind, block by block in turn.

    MeasurementInvalid where the backend has no cold times.
    """

    def __init__(self, backend: Backend, cases: Mapping[Case, Kind], clock: Callable[[], float] = perf_counter) -> None:
        self._backend, self._cases, self._clock = backend, cases, clock

    def __call__(self, seconds: float, progress: Progress) -> Sequence[ProbedKernel]:
        """Return the launches of each kernel, at least one block of each."""
        with ExitStack() as stack:
            timers = [self._timer(stack, case) for case in self._cases]
            taken = self._rounds(timers, seconds, progress)
        peak = peaks_of(self._backend.facts()).get("bandwidth")
        return [
            ProbedKernel(case.name, kind, tuple(samples), case.sizes.bytes_moved, peak)
            for (case, kind), samples in zip(self._cases.items(), taken, strict=True)
        ]

    def _timer(self, stack: ExitStack, case: Case) -> Callable[[], Sample]:
        """Return what takes one cold sample of the case, warmed up."""
        runnable = stack.enter_context(self._backend.prepare(case, case.inputs()))
        factory = runnable.timers().get("cold_time")
        if factory is None:
            raise MeasurementInvalid(f"backend {self._backend.name} takes no cold times")
        once = factory()
        for _ in range(_WARM_UP):
            once()
        return once

    def _rounds(self, timers: Sequence[Callable[[], Sample]], seconds: float, progress: Progress) -> list[list[Sample]]:
        taken: list[list[Sample]] = [[] for _ in timers]
        began = self._clock()
        for done in range(MOST_BLOCKS):
            for once, samples in zip(timers, taken, strict=True):
                samples += [once() for _ in range(BLOCK)]
            share = max((self._clock() - began) / seconds, (done + 1) / MOST_BLOCKS)
            progress(min(1.0, share))
            if share >= 1.0:
                break
        return taken


def probed_cases() -> Iterator[tuple[Case, Kind]]:
    """Yield the bundled cases that the probe launches, with their kinds; no other spec is loaded."""
    root = default_folder()
    path = root / "machine" / "copy.py"
    spec = load_spec(path, module_name(catalogue_package(root), root, path))
    cases = {case.name: case for case in timed_cases(spec, None)}
    for name, kind in PROBED.items():
        yield cases[name], kind


# Examination of the GPU that CUDA uses here: read at rest, probe, judge.

Opener = Callable[[str], Backend]


def examine_gpu(
    seconds: float = SECONDS, progress: Progress = lambda share: None, open_with: Opener = open_backend
) -> Fitness:
    """Read the first GPU that CUDA sees here, probe it for `seconds`, and return whether it is fit to measure on.

    BackendUnavailable without a GPU. Where NVML or CUDA is missing, only what the other one shows is judged.
    """
    reading = _read()
    try:
        backend = open_with("cuda")
    except PrismBenchError as error:
        if isinstance(reading, str):  # CUDA's error names the cause and its cure
            raise BackendUnavailable(f"no GPU to examine here: {error}") from None
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
    """Return the reading of the first visible GPU; the reason where NVML shows no GPU."""
    try:
        with opened() as pynvml:
            gpus = visible(devices(pynvml))
            return _read_gpu(pynvml, gpus[0]) if gpus else "NVML lists no visible GPU"
    except BackendUnavailable as error:
        return str(error)
