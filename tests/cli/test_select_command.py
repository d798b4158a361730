"""`prism-bench select`: measured here, kept, shown with what a rule would cost; and what is asked wrongly."""

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
def select(shell, kernels):
    """A function that runs the command on the null backend."""
    return lambda *words: shell("select", "-b", "null", "--catalogue", kernels, *words)


FORMS = {
    "matmul[*": {"seconds": 4e-6}, "matmul:tf32[*": {"seconds": 3e-6}, "tensor_core_matmul[*": {"seconds": 1e-6},
    "tensor_core_matmul:casts[*": {"seconds": 1.5e-6}, "tensor_core_matmul_wmma[*": {"seconds": 2e-6},
    "fp16_to_fp32[*": {"seconds": 1e-6},
}  # fmt: skip


def test_products_are_measured_and_each_rule_s_cost_is_shown(select, script):
    script({pattern: {**one, "noise": 0.0} for pattern, one in FORMS.items()})
    found = select("matmul", "--measure", "--processes", "1", "--shape", "100x100x100")
    assert 0 == found.code
    assert "100 x 100 x 100 of float32: f16, about 1.50 us (measured at 128 x 128 x 128)" in found.out
    words = "always fp32: 2.67x of the measured policy's time (geometric mean), at worst 2.67x at 64 x 64 x 64"
    assert words in found.out
    exact = select("matmul", "--tolerance", "1e-9", "--json")
    assert (2, True) == (exact.code, "no form keeps a tolerance of 1e-09" in exact.err)
    halves = select("matmul", "--operands", "float16", "--json").json
    assert ["f16", "f16"] == [one["form"] for one in halves["picked"]]
    floats = select("matmul", "--json").json
    assert (1.5e-6, 1e-6) == pytest.approx([one["totals"][0]["f16"] for one in (floats, halves)]), "narrowing counts"
    assert 6.0 == pytest.approx(next(one["mean"] for one in halves["policies"] if one["policy"] == "always fp32"))
    assert "windows: not measured here yet" in select("windows").out


def test_windows_and_batches_show_what_they_do_to_time_and_result(select):
    assert 0 == select("windows", "--measure", "--processes", "1").code
    rows = select("windows", "--json").json["windows"]
    assert [8, 16, 32] == [row["window"] for row in rows]
    assert 0 == rows[1]["difference"] < min(rows[0]["difference"], rows[2]["difference"])
    found = select("batches", "--measure", "--processes", "1")
    assert "under 5.00 ms: 64 is the largest that keeps it" in found.out
    assert rows == select("windows", "--json").json["windows"], "one part leaves the others alone"


def test_a_shape_that_lacks_a_time_is_left_out_and_the_rest_is_kept(select, script):
    script({"tensor_core_matmul_wmma[m=64,*": {"crash": True}, **FORMS})
    found = select("matmul", "--measure", "--processes", "1", "--json")
    assert [128] == [row["shape"]["m"] for row in found.json["matmul"]]
    assert (2, True) == (found.code, "left out: tensor_core_matmul_wmma[m=64,n=64,k=64]: " in found.err)


def test_a_batch_that_lacks_a_time_is_left_out(select, script):
    script({"lstm_cell:sequence[batch=32,*": {"raises": "too many resources requested for launch"}})
    found = select("batches", "--measure", "--processes", "1", "--json")
    assert [8, 16, 64] == [row["batch"] for row in found.json["batches"]]
    assert [(0.005, 64), (0.01, 64)] == [(row["seconds"], row["measured"]) for row in found.json["targets"]]
    assert (2, True) == (found.code, "too many resources requested for launch" in found.err)


def test_what_is_measured_is_kept_part_by_part(select, monkeypatch):
    def lost(measuring):
        raise BackendUnavailable("the device is gone")

    monkeypatch.setattr(PolicyMeasurement, "batches", lost)
    found = select("--measure", "--processes", "1")
    assert (2, True) == (found.code, "the device is gone" in found.err)
    assert select("matmul", "--json").json["matmul"]
    assert select("windows", "--json").json["windows"]


@pytest.mark.parametrize(
    "words, complaint",
    [
        (("matmull",), "unknown policy 'matmull'; did you mean matmul"),
        (("matmul", "--shape", "64x64"), "--shape 64x64: write m x k x n"),
        (("matmul", "--shape", "64x0x64"), "--shape 64x0x64: write m x k x n"),
        ((), "nothing was measured here yet; prism-bench select --measure does"),
    ],
)
def test_a_wrong_word_ends_with_2_and_says_so(select, words, complaint):
    found = select(*words)
    assert (2, True) == (found.code, complaint in found.err)


def test_what_another_device_measured_is_refused(select):
    select("batches", "--measure", "--processes", "1")
    (path,) = Path("reports/tuning").glob("*-policies.json")
    path.write_text(path.read_text().replace("no device (scripted times)", "NVIDIA A100"))
    found = select("batches")
    assert (2, True) == (found.code, "measured on NVIDIA A100 (null), not on no device" in found.err)
