"""The board for Grafana asks for nothing that the exporter does not serve."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client")
from prism_bench.monitor import exporter  # noqa: E402
from prism_bench.monitor.executions import Executions  # noqa: E402
from prism_bench.monitor.sampler import sampling  # noqa: E402

BOARD = json.loads((Path(__file__).parent.parent.parent / "reports" / "grafana.json").read_text())


def test_every_panel_asks_for_metrics_that_are_served(gpu):
    with sampling(lambda found: found, hertz=1, full=True, threaded=False) as sampler:
        collector = exporter.MetricsCollector(sampler, Executions())
        served = {family.name for family in collector.collect()} | {"prism_bench_kernel_executions_total"}
    asked = {
        name
        for panel in BOARD["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:DCGM_FI|prism_bench)_\w+", target["expr"])
    }
    assert len(asked) > 15
    assert set() == asked - served


def test_panels_stand_beside_each_other_and_have_numbers_of_their_own():
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in BOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
