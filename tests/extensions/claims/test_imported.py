"""Results of other tools as claims: what they lack is listed, and no replay reproduces them."""

import json

import pytest

from prism_bench.errors import ResultsError
from prism_bench.exchange import read_foreign
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import encoded
from prism_bench.extensions.claims.replaying import ClaimReplay, ReplayRequest
from prism_bench.extensions.claims.sources import ClaimRequest, of_record, of_records
from tests.exchange.results import google_benchmark, nvbench, repetition
from tests.extensions.claims.planted import resealed


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

    def request(case, against=None):
        return ClaimRequest(catalogue, case, against)

    return {
        "nvbench": of_records(*(nvbench(folder / name) for name in "ab"), request("copy[n=1024,T=F32]")),
        "google-benchmark": of_records(google(folder / "c", 40), google(folder / "d", 20), request("BM_sum[n=8]")),
        "kernelbench": of_records(*kernelbench(folder / "k"), request("sample0[problem=1]")),
        "tritonbench": of_record(tritonbench(folder / "t"), request("triton[x_val=(4096, 256)]", "torch")),
    }


def test_results_of_other_tools_are_claims_that_lack_most(tmp_path, catalogue):
    made = claims(tmp_path, catalogue)
    ratios = {"nvbench": 1.0, "google-benchmark": 41 / 21, "kernelbench": 2.0, "tritonbench": 1.5}
    assert pytest.approx(ratios, rel=0.01) == {tool: one.ratio.value for tool, one in made.items()}
    for tool, one in made.items():
        assert (tool, None) == (one.origin, one.ratio.low), "one process knows no interval"
        assert {"machine code, launches, the reference and inputs", "ceilings of the machine"} <= set(one.missing)
        replay = ClaimReplay(*checked(encoded(one), tool), ReplayRequest(catalogue)).replay()
        assert ("cannot be decided here", 3, None) == (replay.answer.word, replay.exit_code, replay.here)
        assert "the claim lacks the sources of" in replay.answer.because


def test_an_imported_claim_cannot_pass_for_an_own_one(tmp_path, catalogue):
    plain = json.loads(encoded(claims(tmp_path, catalogue)["kernelbench"]))
    with pytest.raises(ResultsError, match="not verified"):
        checked(resealed({**plain, "origin": "prism-bench"}), "x")


def test_what_kernelbench_found_wrong_makes_no_claim(tmp_path, catalogue):
    with pytest.raises(ResultsError, match="KernelBench did not find it correct|no case"):
        of_records(*kernelbench(tmp_path), ClaimRequest(catalogue, "sample0[problem=2]"))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("a.csv", "", "first column is x_val"), ("a.csv", "x_val;a-speedup\n1;2\n", "others end in -latency"),
     ("a.csv", "x_val;a-latency\n1;fast\n", "a-latency"), ("a.csv", "x_val;a-latency\n1;\n", "no latency"),
     ("a.json", '{"level1": {"softmax.py": {"mean": 1}}}', "no problem with a number"),
     ("a.json", '{"level1": {"1_a.py": {"mean": "x"}}}', "mean"),
     ("a.json", '{"1": [{"compiled": true, "correctness": true}]}', "mean")],
)  # fmt: skip
def test_damaged_results_are_named(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ResultsError, match=words):
        read_foreign(path)
