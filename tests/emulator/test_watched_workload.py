"""Kernels without edges are watched at their first workload, for a limited time."""

from pathlib import Path

import pytest

from prism_bench.backends import emulator
from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.catalogue import discover
from prism_bench.run.session import MeasuringSession
from prism_bench.run.settings import Settings

SPEC = """from prism_bench import In, KernelSpec, Launch, Out, Size, Workload

spec = KernelSpec(
    entry="firsts",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=n // 64, block=64),
    reference=lambda x: x.reshape(-1, 64)[:, :1].repeat(64, 1).reshape(-1),
    workloads={"S0": Workload(n=256), "S1": Workload(n=512)},
    MORE
)
"""
# Thread 0 of a block runs first, so that the usual order is right without a barrier, too.
KERNEL = """extern "C" __global__ void firsts(const float* x, float* y, int n) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    BETWEEN
    y[blockIdx.x * 64 + threadIdx.x] = tile[0];
    AFTER
}
"""
BARRIER = "__syncthreads();"
LONG = "for (volatile int i = 0; i < (blockIdx.x ? 0 : 2000000); ++i) y[blockIdx.x * 64 + threadIdx.x] += 0;"


def results(folder: Path, between: str, after: str = "", more: str = ""):
    (folder / "ops").mkdir()
    (folder / "ops" / "firsts.py").write_text(SPEC.replace("MORE", more))
    (folder / "ops" / "firsts.cu").write_text(KERNEL.replace("BETWEEN", between).replace("AFTER", after))
    catalogue = discover(folder)
    assert catalogue.problems == ()
    session = MeasuringSession(EmulatorBackend(), catalogue, Settings(), 0, timed=False)
    return {case.label: session.task(case.name)[0] for case in catalogue.cases()}


def test_kernel_without_edges_is_watched_at_its_first_workload(tmp_path):
    found = results(tmp_path, "")
    assert ("failed", "ok") == (found["S0"].status, found["S1"].status)
    assert "firsts[n=256] on emulator (race): race: " in found["S0"].reason
    assert "firsts.cu:5" in found["S0"].reason


def test_right_kernel_without_edges_passes(tmp_path):
    assert [("ok", None)] * 2 == [(result.status, result.reason) for result in results(tmp_path, BARRIER).values()]


def test_edges_have_the_strict_checks_instead(tmp_path):
    assert "ok" == results(tmp_path, "", more="edges=(Workload(n=64),),")["S0"].status


@pytest.mark.parametrize(("between", "status"), [(BARRIER, "ok"), ("", "failed")])
def test_launch_that_takes_long_is_watched_as_far_as_it_comes(tmp_path, monkeypatch, between, status):
    monkeypatch.setattr(emulator, "_BRIEF_PATIENCE", 0.05)
    brief = []
    is_out_of_time = EmulatorBackend.is_out_of_time
    monkeypatch.setattr(
        EmulatorBackend, "is_out_of_time", lambda self, f: is_out_of_time(self, f) and not brief.append(f.message)
    )
    result = results(tmp_path, between, LONG)["S0"]
    assert status == result.status
    if status == "ok":
        assert "accesses were watched in part only (" in result.reason
    assert "not ended after 0.6 s of CPU time" in brief[0] or "no progress for 0.05 s of CPU time" in brief[0]
