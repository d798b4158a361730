"""The examination of a GPU: what is read of a scripted NVML, the probe on the null backend, and the command."""

import json

import pytest
from typer.testing import CliRunner

from prism_bench.backends.null import NullBackend
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.cli import app
from prism_bench.doctor import fitness
from prism_bench.doctor.fitness import (
    BLOCK,
    PROBED,
    ColdProbe,
    GpuReading,
    figures,
    judged_fitness,
    probed,
    probed_cases,
)
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.case import Case
from prism_bench.spec.workload import Workload

QUIET = {"utilization": 0}


def small_cases():
    """The probe's kernel at two sizes that the host holds easily."""
    spec = next(probed_cases())[0].spec
    return {Case(spec, Workload(n=64), "S0"): "small", Case(spec, Workload(n=4096), "S1"): "bandwidth"}


def clock(step=1.0):
    """A clock that advances with every look."""
    now = [0.0]

    def look():
        now[0] += step
        return now[0]

    return look


def probe_of(script, seconds=10.0):
    return ColdProbe(NullBackend(script), small_cases(), clock())(seconds, lambda share: None)


@pytest.fixture
def answering(gpu, monkeypatch):
    """A quiet scripted GPU, and the null backend as CUDA on it."""
    gpu.set(0, **QUIET)
    monkeypatch.setattr(fitness, "APART", 0.01)
    monkeypatch.setattr(fitness, "MOST_BLOCKS", 10)
    monkeypatch.setenv("PRISM_BENCH_NULL_GPU", "GPU-11111111-2222-3333-4444-555555555555")
    monkeypatch.setattr(fitness, "probed_cases", lambda: small_cases().items())
    monkeypatch.setattr(fitness.examine_gpu, "__defaults__", (1.0, lambda share: None, lambda name: NullBackend()))
    return gpu


def run(*words):
    """Return the exit code and the output of the command."""
    result = CliRunner().invoke(app, ["doctor", "--gpu", "--seconds", "1", *words])
    return result.exit_code, result.stdout


def test_the_probe_launches_its_kernels_in_turn_and_keeps_every_launch():
    shares = []
    found = ColdProbe(NullBackend(), small_cases(), clock())(10.0, shares.append)
    assert [("copy[n=64]", "small"), ("copy[n=4096]", "bandwidth")] == [(one.case, one.kind) for one in found]
    assert [10 * BLOCK] * 2 == [len(one.samples) for one in found]
    assert (sorted(shares), 1.0) == (shares, shares[-1])


def test_a_probe_of_no_time_still_takes_a_block():
    assert [BLOCK, BLOCK] == [len(one.samples) for one in probe_of({}, seconds=1e-9)]


def test_scripted_noise_is_found():
    quiet, noisy = (figures(probe_of({"copy[n=64]": {"noise": noise}})[0]).spread for noise in (0.001, 0.5))
    assert quiet < 0.01 < 0.3 < noisy


def test_the_probed_cases_are_in_the_catalogue():
    assert list(PROBED.items()) == [(case.name, kind) for case, kind in probed_cases()]


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        (NullBackend({"*": {"memory": True}}), "wants 1 PB, scripted"),
        (NumpyBackend(), "backend numpy_reference takes no cold times"),
    ],
)
def test_a_probe_that_cannot_run_leaves_its_reason(backend, words):
    facts = probed(GpuReading("a GPU"), ColdProbe(backend, small_cases()), 1.0, lambda share: None)
    assert words == facts.unprobed
    assert "unknown" == judged_fitness(facts).answer


def test_a_sound_gpu_is_fit(answering):
    code, out = run()
    assert (0, True) == (code, out.startswith("NVIDIA H200 is fit to measure: yes\n"))
    assert "limit 700 W of -" in out  # the scripted NVML has no default limit


@pytest.mark.parametrize(
    ("planted", "answer", "rule", "code"),
    [
        ({"persistence": 0}, "with care", "persistence", 0),
        ({"reasons": 0x40}, "no", "held_down", 1),
        ({"ecc_uncorrected": 2}, "no", "memory_errors", 1),
        ({"processes": "77:2000000000", "busy": "77"}, "no", "neighbours", 1),
        ({"utilization": 40}, "no", "busy", 1),
        ({"mig": 1}, "no", "mig", 1),
        ({"reasons": None}, "unknown", "unread", 3),
        ({"sm_clock": "!15"}, "no", "lost", 1),
    ],
)
def test_a_planted_fault_of_the_device_is_the_answer(answering, planted, answer, rule, code):
    answering.set(0, **planted)
    exit_code, out = run("--json")
    found = json.loads(out)
    assert (code, answer) == (exit_code, found["answer"])
    assert rule in [problem["rule"] for problem in found["problems"]]


def test_json_has_readings_figures_and_evidence(answering):
    found = json.loads(run("--json")[1])
    assert ("NVIDIA H200", [], 1.98e9) == (found["gpu"], found["problems"], found["readings"]["max_sm_clock"])
    assert ["copy[n=64]", "copy[n=4096]"] == [one["case"] for one in found["probe"]]
    assert found["evidence"]["readings"] > 0


def unavailable(name):
    raise BackendUnavailable("no NVIDIA driver answers; references work without it")


def test_cuda_that_does_not_open_leaves_the_answer_open(answering, monkeypatch):
    monkeypatch.setattr(fitness.examine_gpu, "__defaults__", (1.0, lambda share: None, unavailable))
    code, out = run()
    assert 3 == code
    assert "no NVIDIA driver answers" in out


def test_without_nvml_the_probe_is_all_that_is_known(answering):
    answering.library(init="!12")
    code, out = run()
    assert 3 == code
    assert "install nvidia-ml-py" in out and "copy[n=4096]" in out


def test_without_a_gpu_there_is_one_sentence(answering, monkeypatch):
    answering.library(init="!12")
    monkeypatch.setattr(fitness.examine_gpu, "__defaults__", (1.0, lambda share: None, unavailable))
    with pytest.raises(BackendUnavailable) as error:
        fitness.examine_gpu()
    assert "no GPU to examine here: no NVIDIA driver answers; references work without it" == str(error.value)
    assert 2 == error.value.exit_code


def test_seconds_belong_to_the_probe():
    result = CliRunner().invoke(app, ["doctor", "--seconds", "3"])
    assert (2, True) == (result.exit_code, "--gpu" in result.output)
