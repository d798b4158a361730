"""What the profiling guide published, compared with our times."""

import random

import pytest
from lab.published.figures import figure_verdicts, figures_of, published, quoted

from prism_bench.analysis.run_analysis import read
from prism_bench.analysis.summary import summary_rows
from prism_bench.record.measurement import Measurement
from tests.report.synthetic import case_result, cpu_record, record_of


def test_the_published_table_holds_the_guides_nine_kernels():
    table = published()
    assert len(table) == 9
    assert table["lstm_cell"].budget == pytest.approx(3e-3)
    assert table["vector_add"].budget is None
    assert (table["pixel_entropy"].low, table["pixel_entropy"].high) == pytest.approx((3e-3, 8e-3))
    assert table["dot_product"].rate == (6667, 20000)
    assert all(entry.source and entry.low < entry.high for entry in table.values())


@pytest.mark.parametrize(("end_to_end", "verdict"), [(4e-4, "met"), (6e-4, "missed")])
def test_the_published_budget_is_held_against_the_end_to_end_time(end_to_end, verdict):
    times = {"cold_time": 4e-6, "end_to_end_time": end_to_end}
    (one,) = figure_verdicts(summary_rows(record_of(case_result("ar_forecast", times=times))))
    assert one.verdict == verdict
    assert (one.cold, one.end_to_end) == pytest.approx((4e-6, end_to_end))


def test_only_the_published_workload_of_the_plain_kernel_is_compared():
    times = {"end_to_end_time": 1e-6}
    others = (
        case_result("ar_forecast", label="S1", times=times),
        case_result("ar_forecast", variant="naive", times=times),
        case_result("softmax", times=times),
    )
    assert figure_verdicts(summary_rows(record_of(*others))) == []


def test_without_an_end_to_end_time_the_published_budget_is_unmeasured():
    found = {one.published.kernel: one.verdict for one in figure_verdicts(summary_rows(cpu_record()))}
    assert found["matmul"] == "unmeasured"
    assert found["vector_add"] is None


def test_the_guides_rules_are_quoted_too():
    assert quoted()["rules"]["degraded_over_baseline"] == 1.5


def timed(*medians):
    """Whole calls of so many processes; the samples scatter by a thousandth."""
    rng = random.Random(str(medians))
    processes = tuple(tuple(m * (1 + rng.gauss(0, 0.001)) for _ in range(15)) for m in medians)
    return Measurement("end_to_end_time", "kernel", processes)


def test_a_published_budget_has_an_error_too():
    for seconds, expected in (((2.0e-4, 2.01e-4, 2.02e-4), "met"), ((1e-2, 1e-2, 1.01e-2), "missed")):
        one = case_result("matmul", measurements=(timed(*seconds),))
        (published,) = figures_of(read(record_of(one)))
        assert expected == published.verdict
    limit = published.published.budget
    one = case_result("matmul", measurements=(timed(0.99 * limit, 1.01 * limit, limit),))
    (published,) = figures_of(read(record_of(one)))
    assert "undecided" == published.verdict
