"""Records of allocators and of pipelines as a run on a device would leave them, with planted times."""

from random import Random

from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord

MACHINE = {"id": "toy", "device": "Toy GPU"}


def times(metric, seconds, subject="kernel", seed=1, processes=5):
    random = Random(f"{metric}{seconds}{seed}")
    groups = tuple(tuple(seconds * (1 + 0.002 * random.gauss(0, 1)) for _ in range(20)) for _ in range(processes))
    return Measurement(metric, subject, groups)


def trace(name="pipelines", allocation=1e-6, **values):
    entries = {key: {"value": value, "unit": "B", "source": "replay"} for key, value in values.items()}
    return CaseResult(
        f"trace:{name}", f"trace:{name}", "allocators", "trace", {"allocations": 10}, 1000, None, "ok",
        measurements=(times("allocation_time", allocation), times("release_time", allocation / 2)),
        profile={"tool": "replay", "values": entries},
    )  # fmt: skip


def program(name="image", form="allocating", steady=1e-4, latency=2e-4, status="ok", **more):
    measurements = [times("steady_time", steady), times("end_to_end_time", latency), times("launch_time", steady / 2)]
    measurements += [times("wall_time", more.pop("cpu"), "cpu")] if "cpu" in more else []
    overlap = more.pop("overlap", None)
    values = {
        "overlap_share": {"value": overlap, "unit": "1"} | ({} if overlap is not None else {"reason": "no CUPTI"})
    }
    moved = {"up": 2, "up_bytes": 2000, "down": 1, "down_bytes": 500}
    return CaseResult(
        f"{name}:{form}[n=8]", name, "pipelines", "S0", {"n": 8}, 100, 10, status, variant=form,
        reason=None if status == "ok" else "scripted",
        code={"launches": 4, "lanes": 2, "transfers": moved}, profile={"tool": "cupti", "values": values},
        measurements=tuple(measurements) if status == "ok" else (),
    )  # fmt: skip


def record(*cases):
    return RunRecord("2026-01-01T00:00:00", "cuda", MACHINE, {}, {"version": 1, "processes": 5}, cases)
