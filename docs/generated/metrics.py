"""Metrics, counters, what is watched, and the rules of alerts: every quantity of the program with its unit."""

from collections.abc import Mapping

from docs.generated.markdown import code, joined, plain, table
from prism_bench.monitor.alerts import RULES
from prism_bench.monitor.probe import QUANTITIES
from prism_bench.profilers.metrics import LOGICAL
from prism_bench.spec.metric import DERIVED, ELSEWHERE, MEASURED, Metric

LEAD = """\
Units are SI; a share has the unit 1. Only what is measured is stored; what is derived is computed when a record is
read."""


def page() -> str:
    """Return the whole page."""
    return joined(
        [
            *("# Metrics", LEAD),
            *("## Measured", _metrics(MEASURED)),
            *("## Derived", _metrics(DERIVED)),
            *("## Energy, pipelines and allocators", _metrics(ELSEWHERE)),
            *("## Counters", "What a profiler counts, under one name whichever tool and chip it was.", _counters()),
            *("## What is watched", "Read of the device while it works.", _quantities()),
            *("## Alerts", "`seconds` is how long a value must have been above the limit.", _rules()),
        ]
    )


def _metrics(metrics: Mapping[str, Metric]) -> str:
    rows = [(code(one.name), one.unit, one.clock, plain(one.meaning), one.better) for one in metrics.values()]
    return table(("metric", "unit", "by", "meaning", "better"), rows)


def _counters() -> str:
    rows = [(code(one.name), one.unit, plain(one.meaning), ", ".join(one.sets)) for one in LOGICAL.values()]
    return table(("counter", "unit", "meaning", "in the sets"), rows)


def _quantities() -> str:
    rows = [(code(one.name), one.unit, plain(one.meaning), code(one.dcgm or "")) for one in QUANTITIES.values()]
    return table(("quantity", "unit", "meaning", "in Prometheus"), rows)


def _rules() -> str:
    rows = [
        (code(one.name), code(one.metric), f"{one.above:g}", f"{one.clear:g}", f"{one.seconds:g}", one.severity)
        for one in RULES.values()
    ]
    return table(("rule", "of", "above", "over below", "seconds", "severity"), rows)
