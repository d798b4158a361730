"""Results of other tools as claims: what they lack is listed, and no replay reproduces them."""

import json

import pytest

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import encoded
from prism_bench.extensions.claims.making import of_record, of_records
from prism_bench.extensions.claims.replaying import ClaimReplay
from prism_bench.record.formats import read_foreign
from tests.extensions.claims.planted import resealed
from tests.record.formats.results import google_benchmark, nvbench, repetition


def kernelbench(folder):
    """KernelBench's times of a reference, and its evaluation of two problems of which one is wrong."""
    folder.mkdir(exist_ok=True)
    stats = {"mean": 3.0, "std": 0.1, "min": 2.9, "max": 3.2, "num_trials": 100, "hardware": "NVIDIA H100"}
    facts = {"compiled": True, "metadata": {"hardware": "NVIDIA H100"}}
    right = {**facts, "sample_id": 0, "correctness": True, "runtime": 1.5, "runtime_stats": {**stats, "mean": 1.5}}
    baseline, evaluated = folder / "baseline.json", folder / "eval_results.json"
    baseline.write_text(json.dumps({"level1": {"1_Softmax.py": stats, "2_Sum.py": stats}}))
    evaluated.write_text(json.dumps({"1": [right], "2": [{**right, "correctness": False, "runtime": -1.0}]}))
    return baseline, evaluated


def tritonbench(folder):
    """TritonBench's CSV of two backends and two inputs; the second backend has one latency."""
    folder.mkdir(exist_ok=True)
    path = folder / "softmax.csv"
    path.write_text(
        "x_val;torch-latency;triton-latency;triton-speedup\n(4096, 256);0.030 (±1.05%);0.020;1.5\n(4096, 512);0.06;;\n"
    )
    return path


def google(folder, seconds):
    folder.mkdir(exist_ok=True)
    return google_benchmark(folder, *(repetition("BM_sum/n:8", seconds + step, step) for step in range(3)))


def claims(folder, catalogue):
    """By tool, a claim that its results make."""
    benchmarks = google(folder / "c", 40), google(folder / "d", 20)
    row = "triton[x_val=(4096, 256)]"
    return {
        "nvbench": of_records(*(nvbench(folder / name) for name in "ab"), catalogue, case="copy[n=1024,T=F32]"),
        "google-benchmark": of_records(*benchmarks, catalogue, case="BM_sum[n=8]"),
        "kernelbench": of_records(*kernelbench(folder / "k"), catalogue, case="sample0[problem=1]"),
        "tritonbench": of_record(tritonbench(folder / "t"), catalogue, case=row, against="torch"),
    }


def test_results_of_other_tools_are_claims_that_lack_most(tmp_path, catalogue):
    made = claims(tmp_path, catalogue)
    ratios = {"nvbench": 1.0, "google-benchmark": 41 / 21, "kernelbench": 2.0, "tritonbench": 1.5}
    assert pytest.approx(ratios, rel=0.01) == {tool: one.ratio.value for tool, one in made.items()}
    assert "of copy at a/" in made["nvbench"].sentence, "both sides have one name"
    for tool, one in made.items():
        assert (tool, None) == (one.origin, one.ratio.low), "one process knows no interval"
        assert {"machine code, launches, the reference and inputs", "ceilings of the machine"} <= set(one.missing)
        replay = ClaimReplay(*checked(encoded(one), tool), catalogue).replay()
        assert ("cannot be decided here", 3, None) == (replay.answer.word, replay.exit_code, replay.here)
        assert "the claim lacks the sources of" in replay.answer.because


def test_what_a_table_does_not_say_is_missing(tmp_path, catalogue):
    made = claims(tmp_path, catalogue)
    assert {"the name of the device", "versions of what tritonbench ran with"} <= set(made["tritonbench"].missing)
    assert "the name of the device" not in made["nvbench"].missing


@pytest.mark.parametrize(
    ("against", "words"), [(None, "--against names the baseline: torch"), ("tortch", "did you mean torch")]
)
def test_a_row_without_a_baseline_names_the_others(tmp_path, catalogue, against, words):
    with pytest.raises(UsageError, match=words):
        of_record(tritonbench(tmp_path), catalogue, case="triton[x_val=(4096, 256)]", against=against)


def test_an_imported_claim_cannot_pass_for_an_own_one(tmp_path, catalogue):
    plain = json.loads(encoded(claims(tmp_path, catalogue)["kernelbench"]))
    with pytest.raises(ResultsError, match="not verified"):
        checked(resealed({**plain, "origin": "prism-bench"}), "x")


def test_what_kernelbench_found_wrong_makes_no_claim(tmp_path, catalogue):
    with pytest.raises(ResultsError, match="KernelBench did not find it correct|no case"):
        of_records(*kernelbench(tmp_path), catalogue, case="sample0[problem=2]")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("a.csv", "", "first column names the inputs"), ("a.csv", "x_val;a-speedup\n1;2\n", "others end in -latency"),
     ("a.csv", "x_val;a-latency\n1;CUDA out of memory\n", "no latency"),
     ("a.csv", "x_val;a-latency\n1;1.2.3\n", "a-latency"), ("a.csv", "x_val;a-latency\n1;\n", "no latency"),
     ("a.json", '{"level1": {"softmax.py": {"mean": 1}}}', "no problem with a number"),
     ("a.json", '{"meta": {}}', "none of"),
     ("a.json", '{"level1": {"1_a.py": {"mean": "x"}}}', "mean"),
     ("a.json", '{"1": [{"compiled": true, "correctness": true, "runtime": "x"}]}', "mean")],
)  # fmt: skip
def test_damaged_results_are_named(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ResultsError, match=words):
        read_foreign(path)


def test_what_kernelbench_could_not_time_is_left_out_with_its_place(tmp_path):
    """As in its `results/timing`: two devices in one file, null or an error where a module could not be timed."""
    path = tmp_path / "baseline_time_torch.json"
    stats = {"mean": 2.66, "std": 0.00178, "min": 2.66, "max": 2.67, "num_trials": 100, "device": "cuda:0"}
    found = {
        "1_Square_matrix_multiplication_.py": {**stats, "hardware": "NVIDIA H100 80GB HBM3"},
        "22_Tanh.py": {**stats, "hardware": "NVIDIA H200"}, "49_Mamba2.py": None, "problem_9_error": {"error": "OOM"},
    }  # fmt: skip
    path.write_text(json.dumps({"level1": found, "meta": {"precision": "fp32"}}))
    read = read_foreign(path)
    assert {"NVIDIA H100 80GB HBM3": "1", "NVIDIA H200": "22"} == {
        one.machine["device"]: one.cases[0].workload["problem"] for one in read.records
    }
    assert ["49_Mamba2.py", "problem_9_error"] == [words.split(": ")[2] for words in read.left_out]


def test_a_sample_that_was_not_timed_is_verified_without_a_time(tmp_path):
    """As `eval_from_generations.py` writes it without measuring: a runtime of -1 and no statistics."""
    path = tmp_path / "eval_results.json"
    facts = {"sample_id": 0, "compiled": True, "metadata": {"hardware": "NVIDIA L40S"}, "runtime_stats": {}}
    path.write_text(json.dumps({"1": [{**facts, "correctness": True, "runtime": -1.0}]}))
    (record,) = read_foreign(path).records
    (case,) = record.cases
    assert ("ok", ({"passed": True},), ()) == (case.status, case.verification, case.measurements)


def test_a_table_of_tritonbench_has_names_of_inputs_errors_and_rows_without_inputs(tmp_path):
    """As `BenchmarkOperatorResult` writes it: any name of the inputs, metrics of inputs, an error, an average."""
    path = tmp_path / "op_gemm_x.csv"
    path.write_text(
        "(M, N, K);hw_roofline;aten_matmul-tflops;aten_matmul-latency;stream-k-tflops;stream-k-latency\n"
        "(256, 256, 256);100.0;1.0;0.0061;2.0;0.0052\n"
        "(512, 512, 512);100.0;1.0;0.0071;CUDA out of memory;\n"
        "average;;1.0;;2.0;\nhashes;0a;1b;2c;3d;4e\n"
    )
    (record,) = read_foreign(path).records
    assert {
        "aten_matmul[x_val=(256, 256, 256)]": ("ok", 6.1e-6), "stream-k[x_val=(256, 256, 256)]": ("ok", 5.2e-6),
        "aten_matmul[x_val=(512, 512, 512)]": ("ok", 7.1e-6), "stream-k[x_val=(512, 512, 512)]": ("failed", None),
    } == {one.name: (one.status, round(one.measurements[0].samples[0], 12) if one.measurements else None)
          for one in record.cases}  # fmt: skip
    assert "CUDA out of memory" in next(one.reason or "" for one in record.cases if one.status == "failed")
