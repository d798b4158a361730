"""All that is published about a record, compared with it and shown on a page of the documentation."""

from pathlib import Path

from lab.published.comparison import comparison_of, summaries

from docs.generated.published import page, page_of
from docs.readme import ROOT, newest
from prism_bench.analysis.run_analysis import read
from prism_bench.extensions.fusion.benefit.saving import published_rows
from prism_bench.record import store
from prism_bench.report.plain import view
from prism_bench.workflows.tuning.crossover import Batch, CrossoverRow, Measured, Window, path_for, write_measured
from tests.report.synthetic import MACHINE, case_result, gpu_record, record_of

NAME = Path("reports/runs/nvidia-h200/record.json.gz")


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


def test_published_budgets_are_named_as_published(tmp_path):
    case = case_result("matmul", times={"end_to_end_time": 1e-3})
    (figure,) = comparison_of(read(record_of(case)), tmp_path).figures
    assert "guide" in figure.published.source and figure.verdict == "met"


def test_the_guides_rules_stand_beside_the_budgets(tmp_path):
    case = case_result("k", times={"cold_time": 2e-6, "end_to_end_time": 6e-3})
    kept = {verdict.rule: verdict.kept for verdict in comparison_of(read(record_of(case)), tmp_path).verdicts}
    assert (False, True, None) == (kept["slow"], kept["outlier"], kept["degraded"])


def test_the_core_shows_no_claim():
    case = case_result("matmul", times={"cold_time": 2e-6, "end_to_end_time": 6e-3})
    shown = view(read(record_of(case)))
    assert [] == shown["findings"]
    assert ([], False) == (shown["cases"][0]["derived"]["budgets"], "guide" in shown["cases"][0]["derived"])


def test_choices_are_compared_with_measured_policies(tmp_path):
    measured(tmp_path)
    compared = comparison_of(read(gpu_record()), tmp_path)
    assert {"volume", "smallest dimension", "low volume", "benchmark"} == {cost.policy for cost in compared.costs}
    assert [8] == [row.window for row in compared.windows]
    assert [(0.005, 8, 32), (0.01, 32, 64)] == [(row.seconds, row.guide, row.measured) for row in compared.batches]


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


def test_the_page_shows_all_parts(tmp_path):
    measured(tmp_path / "tuning")
    record = record_of(
        case_result("matmul", times={"cold_time": 4e-6, "end_to_end_time": 1e-3}),
        case_result("k", times={"end_to_end_time": 6e-3}),
    )
    text = page_of(record, NAME, tmp_path)
    assert f"record `{NAME}`" in text and f"commit `{record.commit}`" in text
    assert "quoted from the performance profiling guide" in text and "Published budgets met: 1 of 1." in text
    assert "| `matmul` | 256x256x256 | 1.00 ms to 3.00 ms | 3.00 ms | 1.00 ms | 4.00 us | met |" in text
    assert "| slow | end to end time | 5.00 ms | 1 | 1 | 0 |" in text
    assert "    | `k[n=100]` | slow | end to end time: mean in seconds 6.00 ms, the rule is at most 5.00 ms |" in text
    assert "| 512 x 512 x 512 | f16 | f16 | wmma | wmma | wmma |" in text
    assert "| volume | 1.00x | 1.00x | 512 x 512 x 512 |" in text
    assert "| 512 x 512 | 8 | 100 us | 0.100 bits | 20 % |" in text
    assert "| under 5.00 ms | 8 | 800 us | 32 |" in text


def test_what_is_missing_is_named(tmp_path):
    text = page_of(record_of(), NAME, tmp_path)
    assert "This record timed none of the published kernels at their size." in text
    assert "No rule applies to a case of this record." in text
    assert "prism-bench tune --policy" in text
    assert "the record does not hold this case" in text


def test_the_documentation_shows_the_newest_record_with_its_commit():
    text, record = page(), store.read(newest())
    assert f"`{newest().relative_to(ROOT)}`" in text and f"`{record.commit}`" in text
    figures = comparison_of(read(record, must_be_held=False), ROOT / "reports" / "tuning").figures
    assert len(figures) == 9 and all(f"| `{figure.published.kernel}` |" in text for figure in figures)
    assert all(f"| **{row.name}**, published |" in text for row in published_rows())
