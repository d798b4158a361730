"""Which times `prism-bench compare` measures of two builds."""

import pytest

from prism_bench.cli import measuring

QUICK = ("--backend", "null", "--processes", "2")


@pytest.mark.parametrize(
    ("options", "metrics"),
    [((), {"cold_time", "launch_time"}), (("--metric", "hot_time"), {"hot_time"}),
     (("--records", "kept"), {"cold_time", "launch_time", "hot_time"})],
)  # fmt: skip
def test_the_metric_that_is_judged_is_measured_alone_unless_records_are_kept(
    shell, toys, monkeypatch, options, metrics
):
    seen, really = [], measuring.measured

    def measured(*arguments):
        seen.append(really(*arguments))
        return seen[-1]

    monkeypatch.setattr(measuring, "measured", measured)
    shell("compare", "double", "double:by_adding", *QUICK, *toys, *options)
    ((records, _),) = seen
    assert [metrics] * 2 == [{one.metric for case in record.cases for one in case.measurements} for record in records]
