"""`prism-bench tune --policy`: measured here, kept, shown with what a rule would cost; and what is asked wrongly."""

import shutil
from pathlib import Path

import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.pipelines.policies.measuring import PolicyMeasurement
from prism_bench.io.files import default_folder

NEEDED = ("basic/matmul", "tensor_core/tensor_core_matmul", "tensor_core/tensor_core_matmul_wmma",
          "tensor_core/fp16_to_fp32", "pixel/pixel_entropy", "time_series/lstm_cell")  # fmt: skip


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """The part of the catalogue that the policies choose from, which is read more quickly than all of it."""
    folder = tmp_path_factory.mktemp("kernels")
    shutil.copytree(default_folder() / "include", folder / "include")
    for name in NEEDED:
        (folder / name).parent.mkdir(exist_ok=True)
        for suffix in (".cu", ".py"):
            shutil.copy(default_folder() / f"{name}{suffix}", folder / f"{name}{suffix}")
    return folder


@pytest.fixture
def measure(shell, kernels):
    """A function that measures policies on the null backend, in one process."""
    words = ("tune", "--policy", "-b", "null", "--processes", "1", "--catalogue", kernels)
    return lambda *more: shell(*words, *more)


@pytest.fixture
def shown(shell):
    """A function that shows the policies that are kept."""

    def run(*words):
        (path,) = Path("reports/tuning").glob("*-policies.json")
        return shell("tune", path, *words)

    return run


FORMS = {
    "matmul[*": {"seconds": 4e-6}, "matmul:tf32[*": {"seconds": 3e-6}, "tensor_core_matmul[*": {"seconds": 1e-6},
    "tensor_core_matmul:casts[*": {"seconds": 1.5e-6}, "tensor_core_matmul_wmma[*": {"seconds": 2e-6},
    "fp16_to_fp32[*": {"seconds": 1e-6},
}  # fmt: skip


def test_products_are_measured_and_each_rule_s_cost_is_shown(measure, shown, script):
    script({pattern: {**one, "noise": 0.0} for pattern, one in FORMS.items()})
    done = measure("matmul")
    assert 0 == done.code
    words = "always fp32: 2.67x of the measured policy's time (geometric mean), at worst 2.67x at 64 x 64 x 64"
    assert words in done.out
    assert "products of float32 operands" in done.out and "products of float16 operands" in done.out
    assert "policies: reports/tuning/" in done.out
    floats = shown("--json").json
    assert ["f16", "f16"] == [choice["form"] for choice in floats["halves"]["picked"]]
    totals = [rows["totals"][0]["f16"] for rows in (floats, floats["halves"])]
    assert (1.5e-6, 1e-6) == pytest.approx(totals), "narrowing counts"
    assert 6.0 == pytest.approx(
        next(cost["mean"] for cost in floats["halves"]["policies"] if cost["policy"] == "always fp32")
    )
    assert "windows: not measured here yet" in shown().out


def test_a_tolerance_that_no_form_keeps_is_refused(measure, shown):
    measure("matmul")
    exact = shown("--tolerance", "1e-9")
    assert (2, True) == (exact.code, "no form keeps a tolerance of 1e-09" in exact.err)
    twice = shown("--policy")
    assert (2, True) == (twice.code, "--policy: leave it out with reports/tuning/" in twice.err)


def test_windows_and_batches_show_what_they_do_to_time_and_result(measure, shown):
    assert 0 == measure("windows").code
    rows = shown("--json").json["windows"]
    assert [8, 16, 32] == [row["window"] for row in rows]
    assert 0 == rows[1]["difference"] < min(rows[0]["difference"], rows[2]["difference"])
    done = measure("batches")
    assert "under 5.00 ms: 64 is the largest that keeps it" in done.out
    assert rows == shown("--json").json["windows"], "one part leaves the others alone"


def test_a_shape_that_lacks_a_time_is_left_out_and_the_rest_is_kept(measure, script):
    script({"tensor_core_matmul_wmma[m=64,*": {"crash": True}, **FORMS})
    found = measure("matmul", "--json")
    assert [128] == [row["shape"]["m"] for row in found.json["matmul"]]
    assert (2, True) == (found.code, "left out: tensor_core_matmul_wmma[m=64,n=64,k=64]: " in found.err)


def test_a_batch_that_lacks_a_time_is_left_out(measure, script):
    script({"lstm_cell:sequence[batch=32,*": {"raises": "too many resources requested for launch"}})
    found = measure("batches", "--json")
    assert [8, 16, 64] == [row["batch"] for row in found.json["batches"]]
    assert [(0.005, 64), (0.01, 64)] == [(row["seconds"], row["measured"]) for row in found.json["targets"]]
    assert (2, True) == (found.code, "too many resources requested for launch" in found.err)


def test_what_is_measured_is_kept_part_by_part(measure, shown, monkeypatch):
    def lost(measuring):
        raise BackendUnavailable("the device is gone")

    monkeypatch.setattr(PolicyMeasurement, "batches", lost)
    found = measure()
    assert (2, True) == (found.code, "the device is gone" in found.err)
    assert shown("--json").json["matmul"]
    assert shown("--json").json["windows"]


@pytest.mark.parametrize(
    "words, complaint",
    [
        (("matmull",), "unknown policy 'matmull'; did you mean matmul"),
        (("--precision",), "--policy: leave it out with --precision"),
        (("-l", "S0"), "--label: leave it out with --policy"),
        (("--budget", "3"), "--budget: leave it out with --policy"),
        (("--tolerance", "-1"), "--tolerance is -1: an error greater than 0"),
    ],
)
def test_a_wrong_word_ends_with_2_and_says_so(measure, words, complaint):
    done = measure(*words)
    assert (2, True) == (done.code, complaint in done.err)
