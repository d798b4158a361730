"""BLAS has one thread in every process that times, which its record shows where the CPU's time is the result."""

from dataclasses import replace

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.io.workers import WorkerDied
from prism_bench.measure import Criterion
from prism_bench.run import pool, run
from prism_bench.run.pool import BLAS_VARIABLES, HERE, TaskDriver, timing
from prism_bench.run.settings import Settings
from tests.run.conftest import scripted

SPEC = '''"""y = x, where BLAS has one thread."""

import os

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact


def reference(x):
    threads = {os.environ.get(name) for name in %r}
    assert threads == {"1"}, threads
    return x


spec = KernelSpec(
    entry="same",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=-(-n // 128), block=128),
    reference=reference,
    tolerance=exact(),
    workloads={"S0": Workload(n=10)},
)
'''
SOURCE = """extern "C" __global__ void same(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
"""
SETTINGS = Settings(processes=1, criteria=dict.fromkeys(Settings().criteria, Criterion(min_samples=2, max_samples=2)))


def test_a_reference_is_timed_on_one_thread_and_the_record_shows_it(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    folder = tmp_path / "kernels" / "arith"
    folder.mkdir(parents=True)
    (folder / "same.py").write_text(SPEC % (BLAS_VARIABLES,))
    (folder / "same.cu").write_text(SOURCE)
    catalogue = discover(tmp_path / "kernels")
    record = run(catalogue, "numpy_reference", catalogue.cases(), SETTINGS)
    assert [(case.status, case.reason) for case in record.cases] == [("ok", None)]
    assert record.protocol["blas_threads"] == 1


def test_a_device_keeps_its_protocol():
    assert "blas_threads" not in SETTINGS.protocol("cuda")
    assert SETTINGS.protocol("emulator")["blas_threads"] == 1


def test_only_processes_that_time_have_one_thread(monkeypatch, tmp_path):
    places = []

    def work(order, place):
        places.append(place)
        raise WorkerDied(None, "crashed", "it does not start")
        yield

    monkeypatch.setattr(pool, "EventWorker", scripted(work))
    driven = TaskDriver(discover(tmp_path), "null", 1.0)
    for timed in (True, False):
        with pytest.raises(BackendUnavailable, match="it does not start"):
            driven.drive(lambda left, timed=timed: {"timed": timed}, ["a task"], 0)
    assert [place.variables for place in places] == [dict.fromkeys(BLAS_VARIABLES, "1"), {}]


def test_a_side_of_a_comparison_may_name_another_number():
    place = replace(HERE, variables={"OPENBLAS_NUM_THREADS": "4"})
    assert timing(place).variables["OPENBLAS_NUM_THREADS"] == "4"
    assert timing(place).variables["OMP_NUM_THREADS"] == "1"
