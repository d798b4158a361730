"""Synthetic run records, as a run on an H200 or on a CPU would leave them: planted times, realistic noise."""

import random
from dataclasses import dataclass, replace

from prism_bench.measure.plausibility import judged, measured_limits
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord

BANDWIDTH, FP32, COLD_FLOOR, HOT_FLOOR = 4.28e12, 60e12, 4.1e-6, 0.55e-6
COUNTS = {
    "cold_time": 60,
    "hot_time": 20,
    "launch_time": 20,
    "end_to_end_time": 3,
    "first_call_time": 1,
    "wall_time": 5,
}
MI = 1 << 20


@dataclass(frozen=True)
class Plan:
    """How one kernel behaves: `work` gives bytes and operations per label; efficiencies are shares of the ceilings."""

    kernel: str
    family: str
    work: dict
    efficiency: float = 0.9
    peer: float | None = None
    variant: str | None = None
    ceiling: str | None = None
    cpu_rate: float = 8e9
    arithmetic: str = "fp32"


def _streaming(axis, per_element, ops, small, s1=64 * MI, s2=256 * MI):
    sizes = {"S0": small, "S1": s1, "S2": s2}
    return {label: ({axis: n}, per_element * n, ops * n) for label, n in sizes.items()}


def _square(side_of, bytes_of, ops_of, axis="n"):
    return {label: ({axis: n}, bytes_of(n), ops_of(n)) for label, n in side_of.items()}


def _image(ops, *sides):
    """Images read and written once, with `ops` operations per pixel."""
    sizes = dict(zip(("S0", "S1", "S2"), sides, strict=True))
    return _square(sizes, lambda n: 8 * n * n, lambda n: ops * n * n, "side")


_SERIES = _square({"S0": 1, "S1": MI, "S2": 4 * MI}, lambda n: 320 * n, lambda n: 2048 * n, "series")
_NEURONS = _square({"S0": 10, "S1": 16384, "S2": 65536}, lambda n: 16384 * n, lambda n: 4100 * n, "neurons")
_MATMUL = _square({"S0": 256, "S1": 4096, "S2": 8192}, lambda n: 12 * n * n, lambda n: 2 * n**3)
_LSTM = {
    label: ({"batch": b, "inputs": i, "hidden": h}, 16 * h * (i + h) + 4 * b * (i + 4 * h), 8 * b * h * (i + h))
    for label, (b, i, h) in {"S0": (32, 64, 128), "S1": (1024, 1024, 1024), "S2": (4096, 2048, 2048)}.items()
}
_ROWS = {
    label: ({"rows": r, "cols": c}, 8 * r * c, 5 * r * c)
    for label, (r, c) in {"S0": (32, 1000), "S1": (32768, 4096), "S2": (65536, 8192)}.items()
}

PLANS = (
    Plan("null", "machine", {"S0": ({}, 0, None)}, ceiling="launch"),
    Plan("copy", "machine", {"S2": ({"n": 512 * MI}, 8 * 512 * MI, None)}, 1.0, ceiling="bandwidth"),
    Plan("read", "machine", {"S2": ({"n": 1024 * MI}, 4 * 1024 * MI, 1024 * MI)}, 1.04, ceiling="read_bandwidth"),
    Plan("fma", "machine", {"S1": ({"n": 4 * MI, "steps": 4096}, 8 * 4 * MI, 2 * 4 * MI * 4096)}, 1.0, ceiling="fp32"),
    Plan("vector_add", "basic", _streaming("n", 12, 1, 100_000), 0.985, 1.0),
    Plan("matmul", "basic", _MATMUL, 0.78, 0.86, cpu_rate=9e10),
    Plan("matmul", "basic", _MATMUL, 3.1, variant="tf32", cpu_rate=9e10, arithmetic="tensor"),
    Plan("softmax", "basic", _ROWS, 0.91, 0.6),
    Plan("dot_product", "tensor", _streaming("n", 8, 2, 100_000), 0.95, 0.92),
    Plan("reduce_sum", "tensor", _streaming("n", 4, 1, 256), 0.93, 0.82),
    Plan("gelu_activation", "transformer", _streaming("n", 8, 14, 1000), 0.96, 0.965),
    Plan("ar_forecast", "time_series", _SERIES, 0.87),
    Plan("lstm_cell", "time_series", _LSTM, 0.71, 0.77),
    Plan("conv2d", "pixel", _image(18, 256, 8192, 16384), 0.9, 0.03),
    Plan("pixel_entropy", "pixel", _image(512, 512, 4096, 8192), 0.34),
    Plan("pixel_entropy", "pixel", _image(512, 512, 4096, 8192), 0.021, variant="naive"),
    Plan("image_segmentation", "pixel", _image(30, 256, 8192, 16384), 0.88, 0.21),
    Plan("dendritic_integration", "dendritic", _NEURONS, 0.94, 0.5),
)  # fmt: skip

MACHINE = {
    "id": "nvidia-h200", "host": {"system": "Linux", "release": "6.8.0", "processor": "x86_64", "cores": 16},
    "device": "NVIDIA H200", "uuid": "GPU-5ab1c0de", "sm_count": 132, "l2_bytes": 62_914_560,
    "memory_bytes": 150_754_820_096, "compute_capability": 90,
}  # fmt: skip
SOFTWARE = {
    "python": "3.11.7",
    "numpy": "2.4.6",
    "cupy": "14.2.0",
    "torch": "2.11.0",
    "cuda": "13.0",
    "nvrtc": "13.0.48",
}
PROTOCOL = {"version": 1, "processes": 3, "precision": 0.01, "l2_cleared": True, "seeds": [0, 1]}


def measurement(metric, seconds, subject="kernel", *, processes=3, samples=None, noise=0.006, seed=0, **facts):
    """A measurement whose processes' medians lie around `seconds`; `noise=0` plants it exactly."""
    rng = random.Random(f"{metric}{subject}{seconds}{seed}")
    count = samples or (30 if subject.startswith("peer:") else COUNTS[metric])
    groups = []
    for _ in range(processes):
        centre = seconds * (1 + rng.gauss(0, noise / 2))
        groups.append(tuple(centre * (1 + abs(rng.gauss(0, noise))) for _ in range(count)))
    clocked = metric in ("cold_time", "hot_time")
    clocks = tuple(tuple(1.98e9 - 15e6 * rng.randrange(2) for _ in group) for group in groups) if clocked else ()
    return Measurement(metric, subject, tuple(groups), clocks, **facts)


def case_result(kernel, label="S0", *, times=None, workload=None, bytes=1200, flops=None, **changes):
    """A case with planted times: keys are a metric, or `metric@subject`; values are seconds without noise."""
    workload = workload if workload is not None else {"n": 100}
    measured = [measurement(*_split(key, seconds), noise=0, samples=3) for key, seconds in (times or {}).items()]
    fields = {
        "name": f"{kernel}[{','.join(f'{a}={v}' for a, v in workload.items())}]", "kernel": kernel, "family": "basic",
        "label": label, "workload": workload, "bytes": bytes, "flops": flops, "status": "ok",
        "measurements": tuple(measured),
    }  # fmt: skip
    return CaseResult(**{**fields, **changes})


def _split(key, seconds):
    metric, _, subject = key.partition("@")
    return metric, seconds, subject or "kernel"


def record_of(*cases, **changes):
    """A record of these cases on the synthetic H200."""
    fields = {
        "created": "2026-11-20T22:14:05", "backend": "cuda", "machine": MACHINE, "software": SOFTWARE,
        "protocol": PROTOCOL, "cases": tuple(cases), "commit": "7471611d0c9b5f3a8e2247aa51c06d83b9e4f012",
        "duration": 142.7,
    }  # fmt: skip
    return RunRecord(**{**fields, **changes})


def gpu_record(**changes):
    """A full run on the GPU: every plan at every label, with a wrong, an impossible, a skipped and a crashed case."""
    cases = [_gpu_case(plan, label) for plan in PLANS for label in plan.work]
    cases = list(judged([_mishap(case) for case in cases], measured_limits(cases, MACHINE["l2_bytes"])))
    return record_of(*[_edge(plan) for plan in PLANS if not plan.variant], *cases, **changes)


def _edge(plan):
    """An edge of the plan's kernel: verified and not timed."""
    return case_result(plan.kernel, "edge", workload={"n": 1}, family=plan.family, verification=(_check(0),))


def cpu_record(**changes):
    """A run on a laptop without a GPU: wall time of the float64 reference only, S0."""
    machine = {"id": "laptop", "host": {**MACHINE["host"], "cores": 8}, "device": "AMD Ryzen 7 7840U"}
    cases = [_cpu_case(plan) for plan in PLANS if "S0" in plan.work and not plan.ceiling and not plan.variant]
    fields = {"backend": "numpy_reference", "machine": machine, "software": {"python": "3.11.7", "numpy": "2.4.6"}}
    return record_of(*cases, **{**fields, "duration": 11.2, **changes})


def large_record(count=300, **changes):
    """`count` full cases with two peers each, in three processes."""
    plans = [plan for plan in PLANS if not plan.ceiling and not plan.variant]
    cases = []
    for index in range(count):
        plan = plans[index % len(plans)]
        case = _gpu_case(plan, ("S0", "S1", "S2")[index % 3], scale=1 + index / count)
        extra = measurement("cold_time", case.measurements[0].median * 1.3, "peer:cupy", seed=index)
        named = {"kernel": f"{plan.kernel}_{index}", "name": f"{plan.kernel}_{index}[n={index}]"}
        cases.append(replace(case, measurements=(*case.measurements, extra), **named))
    return record_of(*cases, **changes)


def _gpu_case(plan, label, scale=1.0):
    workload, moved, ops = plan.work[label]
    kernel = f"{plan.kernel}:{plan.variant}" if plan.variant else plan.kernel
    ideal = max(moved / BANDWIDTH, (ops or 0) / FP32) * scale
    busy = ideal / plan.efficiency
    times = [
        measurement("cold_time", max(busy + 0.02 * COLD_FLOOR, COLD_FLOOR * 1.08 if moved else COLD_FLOOR)),
        measurement("hot_time", max(busy * (0.98 if busy > 2e-5 else 0.5), HOT_FLOOR * (1.9 if moved else 1))),
        measurement("launch_time", 2.6e-6, noise=0.05),
        measurement("first_call_time", 0.31, noise=0.03),
    ]
    if not plan.ceiling:
        times.append(measurement("end_to_end_time", 42e-6 + busy + moved / 2.2e10, noise=0.03))
    if plan.peer:
        times.append(measurement("cold_time", max(ideal / plan.peer, COLD_FLOOR * 1.2), "peer:torch"))
        times.append(measurement("cold_time", max(ideal / plan.peer * 1.07, COLD_FLOOR * 1.5), "peer:cupy"))
    if label == "S0" and not plan.ceiling:
        times.append(_cpu_time(plan, moved, ops))
    return CaseResult(
        name=f"{kernel}[{','.join(f'{a}={v}' for a, v in workload.items())}]", kernel=plan.kernel, family=plan.family,
        label=label, workload=workload, bytes=moved, flops=ops, status="ok",
        variant=plan.variant, arithmetic=plan.arithmetic, ceiling=plan.ceiling,
        code={"sass": "9f3c0a61", "registers": 32, "spill_bytes": 0, "shared_bytes": 0, "launches": 1},
        verification=() if plan.ceiling else tuple(_check(seed) for seed in (0, 1)), measurements=tuple(times),
    )  # fmt: skip


def _cpu_time(plan, moved, ops, subject="cpu", processes=1):
    return measurement(
        "wall_time", 4e-6 + max(moved / 9e9, (ops or 0) / plan.cpu_rate), subject, processes=processes, noise=0.04
    )


def _cpu_case(plan):
    workload, moved, ops = plan.work["S0"]
    return case_result(
        plan.kernel, workload=workload, bytes=moved, flops=ops, family=plan.family, verification=(_check(0),),
        measurements=(_cpu_time(plan, moved, ops, "kernel", 3),),
    )  # fmt: skip


def _check(seed, **changes):
    fields = {
        "seed": seed, "output": "y", "passed": True, "compared": 100_000, "of": 100_000, "where": "all",
        "max_error": 4.77e-7, "max_relative": 1.1e-6, "norm_error": 6.2e-8, "place": [31, 907], "actual": 0.43127841,
        "expected": 0.43127889, "tolerance": "elementwise", "error": None,
    }  # fmt: skip
    return {**fields, **changes}


def _mishap(case):
    """What went wrong in the synthetic run, by case; all other cases stay as they are."""
    key = (case.kernel, case.label)
    if key == ("conv2d", "S2"):
        reason = "conv2d[side=16384] on cuda: y[3, 16383] is 0, reference -1.27; 16384 of 268435456 elements differ."
        check = _check(
            0, passed=False, place=[3, 16383], actual=0.0, expected=-1.2713, max_error=1.2713, norm_error=0.0078
        )
        return replace(case, status="wrong", reason=reason, verification=(check,), measurements=())
    if key == ("gelu_activation", "S2"):
        fast = measurement("cold_time", case.bytes / 6.1e12)
        return replace(case, measurements=(fast, *case.measurements[1:]))
    if key == ("softmax", "S2"):
        reason = "out of memory: it wanted 4.29 GB, and 1.02 GB were free"
        return replace(case, status="skipped", reason=reason, measurements=(), verification=())
    if key == ("lstm_cell", "S2"):
        reason = "its process ended with CUDA_ERROR_ILLEGAL_ADDRESS; the device answers again"
        return replace(case, status="crashed", reason=reason, measurements=(), verification=())
    if key == ("matmul", "S2") and not case.variant:
        return replace(case, measurements=(replace(case.measurements[0], throttled=7), *case.measurements[1:]))
    if key == ("ar_forecast", "S0"):
        reason = "graph capture refused: the host plan synchronises"
        return replace(case, measurements=tuple(_emptied(one, "hot_time", reason) for one in case.measurements))
    return case


def _emptied(one, metric, reason):
    return Measurement(metric, one.subject, (), reason=reason) if one.metric == metric else one
