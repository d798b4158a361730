"""All that is published about a record: as JSON, in the terminal and on the site's page."""

import json

from lab.published.comparison import comparison_of, published_json, summaries
from lab.published.view import published_view

from prism_bench.analysis.reading import read
from prism_bench.cli.options import plain_console
from prism_bench.report.json_view import view
from prism_bench.workflows.tuning.crossover import CrossoverRow
from prism_bench.workflows.tuning.measured import Batch, Measured, Window, path_for, write_measured
from tests.report.synthetic import MACHINE, case_result, gpu_record, record_of


def measured(folder):
    """Keep policies of the machine of the synthetic records."""
    shape = {"m": 512, "k": 512, "n": 512}
    seconds = {"fp32": 20.0, "tf32": 12.0, "f16": 8.0, "wmma": 9.0}
    found = Measured(
        str(MACHINE["id"]), "NVIDIA H200", "cuda", {}, "2026-11-20T10:00:00",
        matmul=(CrossoverRow(shape, seconds, 2.0, 1.0, dict.fromkeys(seconds, 1e-4)),),
        windows=tuple(Window(512, 512, size, 1e-4, 3.0, 0.1, 0.2) for size in (8, 16, 32)),
        batches=tuple(Batch(size, 128, size * 1e-4, 1e-6) for size in (8, 16, 32, 64)),
    )  # fmt: skip
    write_measured(found, path_for(found.machine, folder))


def printed(compared):
    console = plain_console(width=200)
    with console.capture() as text:
        console.print(published_view(compared))
    return text.get()


def test_published_budgets_are_named_as_published(tmp_path):
    case = case_result("matmul", times={"end_to_end_time": 1e-3})
    (budget,) = published_json(comparison_of(read(record_of(case)), tmp_path))["cases"][0]["budgets"]
    assert "guide" in budget["from"] and budget["verdict"] == "met"


def test_the_guides_rules_stand_beside_the_budgets(tmp_path):
    case = case_result("k", times={"cold_time": 2e-6, "end_to_end_time": 6e-3})
    (plain,) = published_json(comparison_of(read(record_of(case)), tmp_path))["cases"]
    kept = {one["rule"]: one["kept"] for one in plain["guide"]}
    assert (False, True, None) == (kept["slow"], kept["outlier"], kept["degraded"])


def test_the_core_shows_no_claim():
    case = case_result("matmul", times={"cold_time": 2e-6, "end_to_end_time": 6e-3})
    shown = view(record_of(case))
    assert [] == shown["findings"]
    assert ([], False) == (shown["cases"][0]["derived"]["budgets"], "guide" in shown["cases"][0]["derived"])


def test_published_figures_are_plain_json_without_nan(tmp_path):
    measured(tmp_path)
    plain = json.loads(json.dumps(published_json(comparison_of(read(gpu_record()), tmp_path)), allow_nan=False))
    assert [case.name for case in gpu_record().cases] == [one["name"] for one in plain["cases"]]
    assert {"volume", "smallest dimension", "low volume", "benchmark"} == {
        one["policy"] for one in plain["choices"]["policies"]
    }
    assert [8] == [one["window"] for one in plain["choices"]["windows"]]
    assert [(0.005, 8, 32), (0.01, 32, 64)] == [
        (one["seconds"], one["guide"], one["measured"]) for one in plain["choices"]["targets"]
    ]


def test_a_batch_without_a_time_leaves_its_target_out(tmp_path):
    rows = tuple(Batch(size, 128, size * 1e-4, 1e-6) for size in (8, 16, 64))
    found = Measured(str(MACHINE["id"]), "NVIDIA H200", "cuda", {}, "", batches=rows)
    write_measured(found, path_for(found.machine, tmp_path))
    assert [0.005] == [one.seconds for one in comparison_of(read(gpu_record()), tmp_path).batches]


def test_rules_are_counted(tmp_path):
    record = record_of(
        case_result("a", times={"end_to_end_time": 6e-3}), case_result("b", times={"end_to_end_time": 1e-3}),
        case_result("c"),
    )  # fmt: skip
    slow = next(one for one in summaries(comparison_of(read(record), tmp_path).verdicts) if one["rule"] == "slow")
    assert (1, 1, 1) == (slow["kept"], slow["broken"], slow["unmeasured"])


def test_the_terminal_shows_all_parts(tmp_path):
    measured(tmp_path)
    text = printed(comparison_of(read(gpu_record()), tmp_path))
    assert "figures quoted from the performance profiling guide" in text
    assert "rules of thumb" in text
    assert "volume: 1.00x of the measured policy's time" in text
    assert "the guide takes window 8 for 512 x 512" in text
    assert "under 5.00 ms: the guide takes 8, 800 us; 32 is the largest that keeps it" in text


def test_what_is_missing_is_named(tmp_path):
    text = printed(comparison_of(read(record_of()), tmp_path))
    assert "This record timed none of the published kernels at their size." in text
    assert "prism-bench select --measure" in text
