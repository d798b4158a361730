"""Cost of the device sampler on a GPU, its effect on kernels' times, and what the monitor reads, as one JSON file.

ab        cold and hot medians of a few kernels with and without the sampler, in turn, and whether they differ by more
          than the kernel's own noise: the range of the medians without it
cost      what the sampler of a measuring process takes of a core while kernels run, and each of its calls
calls     what single calls into the driver take, one after the other: which of them a beat can afford
session   a recorded session: readings at 20 Hz while kernels run, every quantity, for tests that replay it
energy    the energy counter's own steps, and the energy of one launch of each kernel: `power` is that over its hot
          time, more than a board's limit only where the launches paused, which `busy` shows
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from types import ModuleType
from typing import Any

from msgspec import structs

from lab import REPOSITORY
from prism_bench.backends import Runnable, open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import MeasurementInvalid, PrismBenchError
from prism_bench.io.documents import json_text
from prism_bench.io.files import write_atomically
from prism_bench.measure import ClockGate, Criterion
from prism_bench.monitor import Sampler, sampling, watched
from prism_bench.monitor.nvml import by_uuid, devices, opened
from prism_bench.monitor.probe import Probe
from prism_bench.record.measurement import Energy, Sample
from prism_bench.run import Settings
from prism_bench.run.measuring import DeviceWatcher, measure_metric

KERNELS = ("vector_add", "softmax", "conv2d", "matmul", "relu")
METRICS = ("cold_time", "hot_time")
LABEL = "S1"
OUTPUT = REPOSITORY / "tests" / "monitor" / "recorded.json"
BEATS = ("cpu_share", "processes", "processes_ours", "missing", "xids_missing")

Prepared = Mapping[str, Runnable]


@contextmanager
def sampler_of(uuid: str) -> Iterator[Sampler]:
    """Yield the sampler of a measuring process; exit where the driver's library does not answer."""
    with watched(uuid) as sampler:
        if not isinstance(sampler, Sampler):
            sys.exit("monitor_proof: NVML does not answer for this device")
        yield sampler


def calls(uuid: str, prepared: Prepared, times: int = 25) -> dict[str, dict[str, Any]]:
    """Return CPU and wall seconds of single calls into the driver: medians, each call right after a kernel."""
    once, found = next(iter(prepared.values())).timers()["hot_time"](), {}
    with opened() as nvml:
        device = by_uuid(devices(nvml), uuid)
        if device is None:
            sys.exit(f"monitor_proof: NVML does not know the device {uuid}")
        for name, call in candidates(nvml, device.board).items():
            took = []
            for _ in range(times):
                once()
                cpu, wall = thread_time(), perf_counter()
                try:
                    call()
                except nvml.NVMLError as error:
                    found[name] = {"reason": str(error)}
                    break
                took.append((thread_time() - cpu, perf_counter() - wall))
            else:
                each, clock = zip(*took, strict=True)
                found[name] = {"cpu": median(each), "wall": median(clock), "longest": max(clock)}
    return found


def candidates(nvml: ModuleType, handle: object) -> dict[str, Callable[[], object]]:
    """Return calls by a word for each: alone, and as fields, one and many at a time."""
    power, average = nvml.NVML_FI_DEV_POWER_INSTANT, nvml.NVML_FI_DEV_POWER_AVERAGE
    joules, policy = nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, nvml.NVML_FI_DEV_PERF_POLICY_POWER
    heat, thermal = nvml.NVML_FI_DEV_MEMORY_TEMP, nvml.NVML_FI_DEV_PERF_POLICY_THERMAL
    fields = {
        "power": [power],
        "average": [average],
        "energy": [joules],
        "policy": [policy],
        "heat": [heat],
        "power energy": [power, joules],
        "policies": [policy, thermal],
        "all": [power, average, joules, policy, thermal, heat],
    }
    return {
        "sm clock": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "memory clock": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        "reasons": lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        "power usage": lambda: nvml.nvmlDeviceGetPowerUsage(handle),
        "energy": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle),
        "temperature": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "utilization": lambda: nvml.nvmlDeviceGetUtilizationRates(handle),
        "memory": lambda: nvml.nvmlDeviceGetMemoryInfo(handle),
        "ecc": lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, 0),
        "processes": lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle),
        "performance state": lambda: nvml.nvmlDeviceGetPerformanceState(handle),
        "nothing": lambda: nvml.nvmlDeviceGetIndex(handle),
        **{f"fields: {name}": partial(nvml.nvmlDeviceGetFieldValues, handle, ids) for name, ids in fields.items()},
    }


def energy(uuid: str, prepared: Prepared) -> dict[str, Any]:
    """Return how the energy counter moves, and the energy of the kernels' launches."""
    found = {}
    with sampler_of(uuid) as sampler:
        watcher = DeviceWatcher(sampler)
        for name, runnable in prepared.items():
            once = runnable.timers()["hot_time"]()
            hot = median(once().seconds for _ in range(9))
            began, measured = perf_counter(), watcher.energy(once, Settings().criteria["energy"])
            launch = next((one.energy for one in measured if one.energy), Energy())
            took, power = perf_counter() - began, launch.joules / hot if launch.joules else None
            busy = launch.launches * hot / launch.window if launch.launches and launch.window else None
            found[name] = structs.asdict(launch) | {"hot": hot, "power": power, "busy": busy, "took": took}
        steps = counter_steps(sampler.probes[0], next(iter(prepared.values())).timers()["hot_time"]())
    return {"launches": found, "counter": steps}


def counter_steps(probe: Probe, once: Any, seconds: float = 0.7) -> dict[str, Any]:
    """Return when the energy counter moved and by how much, while the hot timer repeats a kernel without a pause."""
    began, last, steps = perf_counter(), _joules(probe), []
    looks = 0
    with suppress(MeasurementInvalid), closing(once.repeated()) as replays:
        for _ in replays:
            now, joules = perf_counter(), _joules(probe)
            looks += 1
            if joules != last:
                steps.append((round(now - began, 5), round(joules - last, 4)))
            last = joules
            if now - began > seconds:
                break
    gaps = [later[0] - earlier[0] for earlier, later in zip(steps, steps[1:], strict=False)]
    return {"steps": steps, "period": median(gaps) if gaps else None, "looks": looks}


def _joules(probe: Probe) -> float:
    joules = probe.energy()
    return 0.0 if isinstance(joules, str) else joules


def medians(timers: Mapping[str, Callable[[], Sample]], seconds: float) -> dict[str, float]:
    """Return the median of each metric, by the run's own loop."""
    criterion = Criterion(precision=0.0, max_samples=10_000, seconds=seconds)
    found = {}
    for metric, once in timers.items():
        middle = measure_metric(metric, "kernel", once, criterion, ClockGate())[0].median
        if middle is None:
            sys.exit(f"monitor_proof: no sample of {metric}")
        found[metric] = middle
    return found


def compared(without: Sequence[float], with_sampler: Sequence[float]) -> dict[str, Any]:
    """Return one row: the medians of both, their difference, and the noise floor."""
    base, other = median(without), median(with_sampler)
    floor = (max(without) - min(without)) / base
    return {
        "without": base,
        "watched": other,
        "rounds": len(without),
        "difference": other / base - 1,
        "floor": floor,
        "within": abs(other / base - 1) <= max(floor, 0.002),
    }


def ab(uuid: str, prepared: Prepared, rounds: int, seconds: float) -> dict[str, dict[str, Any]]:
    """Compare kernels with and without the sampler, in turn."""
    found = {}
    for name, runnable in prepared.items():
        factories = runnable.timers()
        timers = {metric: factories[metric]() for metric in METRICS}
        medians(timers, 0.1)
        times: dict[tuple[str, bool], list[float]] = {(one, side): [] for one in METRICS for side in (False, True)}
        for number in range(rounds):
            for side in (False, True) if number % 2 else (True, False):
                with watched(uuid if side else None):
                    measured = medians(timers, seconds)
                for metric, value in measured.items():
                    times[metric, side].append(value)
        found |= {f"{name} {metric}": compared(times[metric, False], times[metric, True]) for metric in METRICS}
    return found


def cost(uuid: str, prepared: Prepared, seconds: float = 8.0) -> dict[str, Any]:
    """Return what the sampler of a measuring process takes while kernels run, by call, and the end of a window."""
    replays, ends = [runnable.timers()["hot_time"]() for runnable in prepared.values()], []
    with sampler_of(uuid) as sampler:
        began = perf_counter()
        while perf_counter() - began < seconds:
            for once in replays:
                once()
        reported = sampler.summary()
        beats = asdict(sampler.cost()) | {"cpu_share": sampler.cost().share, "hertz": reported["hertz"]}
        by_call = {name: asdict(one) for name, one in sampler.probes[0].costs().items()}
        for once in replays:
            with sampler.window():
                once()
                closing_began = perf_counter()
            ends.append(perf_counter() - closing_began)
    return beats | {"calls": by_call, "window_end": median(ends)}


def session(prepared: Prepared, seconds: float) -> dict[str, Any]:
    """Return readings of a whole sampler while the kernels replay one after the other, and while nothing runs.

    Of each reading the time and the values are kept; the reasons of missing values are there once.
    """
    marks: list[dict[str, Any]] = []
    with sampling(lambda found: found[:1], hertz=20.0, full=True) as sampler:
        for name in (None, *prepared):
            began = perf_counter()
            once = prepared[name].timers()["hot_time"]() if name else lambda: None
            while perf_counter() - began < seconds:
                once()
            marks.append({"kernel": name, "begin": began, "end": perf_counter()})
        readings = sampler.readings(0.0, float("inf"))
        device, share = sampler.probes[0].device, sampler.cost().share
    zero = readings[0].at
    for mark in marks:
        mark |= {"begin": round(mark["begin"] - zero, 4), "end": round(mark["end"] - zero, 4)}
    processes = readings[-1].processes or ()
    plain = [{"at": round(one.at - zero, 4), "values": asdict(one)["values"]} for one in readings]
    return {
        "device": device.name,
        "xids_missing": sampler.xids_missing,
        "cpu_share": share,
        "marks": marks,
        "processes": len(processes),
        "processes_ours": [one.ours for one in processes],
        "missing": dict(readings[-1].missing),
        "readings": plain,
    }


def proof(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return everything that is measured, as it is written to the file."""
    try:
        backend = open_backend("cuda")
    except PrismBenchError as error:
        sys.exit(f"monitor_proof: {error}")
    facts, catalogue = backend.facts(), discover()
    cases = [case for case in catalogue.cases(KERNELS, [LABEL]) if not case.variant and case.kernel in KERNELS]
    prepared = {case.name: backend.prepare(case, case.inputs(0)) for case in cases}
    return {
        "device": facts["device"],
        "driver": facts["software"]["driver"],
        "label": LABEL,
        "ab": ab(facts["uuid"], prepared, chosen.rounds, chosen.seconds),
        "cost": cost(facts["uuid"], prepared),
        "calls": calls(facts["uuid"], prepared),
        "energy": energy(facts["uuid"], prepared),
        "session": session(prepared, 0.6),
    }


def main() -> None:
    """Measure, write the file, and exit with 1 where the sampler moved a time, took above 1 % or was too slow."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="of each kernel with and without the sampler")
    parser.add_argument("--seconds", type=float, default=0.25, help="of one metric in one round")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    chosen = parser.parse_args()
    found = proof(chosen)
    write_atomically(chosen.output, (json_text(found) + "\n").encode())
    print(json_text({key: found[key] for key in ("device", "driver", "ab", "cost", "calls", "energy")}, indent=1))
    print({key: found["session"][key] for key in BEATS})
    moved = [name for name, row in found["ab"].items() if not row["within"]]
    share, hertz = found["cost"]["cpu_share"], found["cost"]["hertz"]
    print(f"sampler: {share:.2%} of a core at {hertz:g} Hz; moved: {', '.join(moved) or 'nothing'}")
    print(f"written: {chosen.output}")
    sys.exit(1 if moved or share > 0.01 or hertz < 19 else 0)
