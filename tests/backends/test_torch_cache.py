"""Cache of compiled peers: ours, that of one version of torch, and one benchmark at a time on this machine."""

import fcntl
import os
import sys
from pathlib import Path

import pytest

from prism_bench.backends.cuda.peers.torch_forms import cache_variables, forget_choices, shared_cache
from prism_bench.monitor.nvml import VISIBLE
from prism_bench.spec.peer import Form
from tests.backends.torch_stand_in import Benchmarker, install


@pytest.fixture
def torch(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    monkeypatch.delenv(VISIBLE, raising=False)
    install(monkeypatch)
    return sys.modules["torch"]


def test_the_cache_is_ours_and_that_of_one_version(torch, tmp_path):
    folder = str(tmp_path / "inductor" / "2.11.0")
    forms: tuple[Form, ...] = ("compiled", "autotuned")
    for form in forms:
        found = cache_variables(torch, form)
        assert {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/{form}", "TRITON_CACHE_DIR": f"{folder}/triton"} == found


def test_the_environment_is_left_as_found(torch, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", "mine")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    with pytest.raises(RuntimeError), shared_cache(torch, "compiled"):
        assert cache_variables(torch, "compiled").items() <= os.environ.items()
        raise RuntimeError
    assert ("mine", None) == (os.environ["TRITON_CACHE_DIR"], os.environ.get("TORCHINDUCTOR_CACHE_DIR"))


def test_a_benchmark_has_the_device_of_all_processes_to_itself(torch):
    original, free = Benchmarker.benchmark_gpu, []
    lock = Path(cache_variables(torch, "compiled")["TORCHINDUCTOR_CACHE_DIR"]).parent / "benchmark.lock"

    def call():
        with lock.open("w") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return 3

    with shared_cache(torch, "compiled"):
        assert [3, 3] == Benchmarker().benchmark_gpu(call, repeats=2)
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free.append(True)
    assert [True] == free
    assert original is Benchmarker.benchmark_gpu


def test_choices_are_forgotten_and_compiled_code_stays(torch):
    folder = Path(cache_variables(torch, "compiled")["TORCHINDUCTOR_CACHE_DIR"]) / "ab"
    folder.mkdir(parents=True)
    for name in ("kernel.py", "kernel.best_config", "other.best_config"):
        (folder / name).write_text('{"num_warps": 4, "found_by_coordesc": false}')
    (folder / "tuned.best_config").write_text('{"num_warps": 8, "found_by_coordesc": true}')
    assert (2, 0) == (forget_choices(), forget_choices())
    assert ["kernel.py", "tuned.best_config"] == sorted(file.name for file in folder.iterdir())


def test_boards_of_one_host_keep_their_own_choices_and_wait_for_their_own_benchmarks(torch, monkeypatch):
    original, folders, triton = Benchmarker.benchmark_gpu, {}, set()
    for gpu in ("GPU-1", "GPU-2"):
        monkeypatch.setenv(VISIBLE, gpu)
        found = cache_variables(torch, "compiled")
        folders[gpu] = Path(found["TORCHINDUCTOR_CACHE_DIR"])
        triton.add(found["TRITON_CACHE_DIR"])
        folders[gpu].mkdir(parents=True)
        (folders[gpu] / "kernel.best_config").write_text("{}")
    assert (2, 1) == (len(set(folders.values())), len(triton)), "machine code depends on its source alone"

    def call():
        with (folders["GPU-1"].parent / "benchmark.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return 3

    with shared_cache(torch, "compiled"):
        assert Benchmarker().benchmark_gpu(call) == [3], "the other board's lock is free"
    assert 1 == forget_choices()
    assert [True, False] == [(folder / "kernel.best_config").exists() for folder in folders.values()]
    assert original is Benchmarker.benchmark_gpu
