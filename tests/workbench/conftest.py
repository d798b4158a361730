"""The toys, run for real in measuring processes whose times and faults are scripted."""

import json
from pathlib import Path

import pytest

from prism_bench import workbench
from prism_bench.backends.null import SCRIPT
from prism_bench.catalogue import discover
from prism_bench.measure import Criterion

TOYS = Path(__file__).parent.parent / "toys"
QUICK = {metric: Criterion(min_samples=3, max_samples=3) for metric in ("cold_time", "hot_time", "wall_time")}


@pytest.fixture
def play(tmp_path, monkeypatch):
    """A function that runs the toys on the null backend by a script, and gives the record."""

    def run(script=None, filters=(), labels=("S0",), report=lambda _: None, catalogue=TOYS, **settings):
        path = tmp_path / "script.json"
        path.write_text(json.dumps(script or {}))
        monkeypatch.setenv(SCRIPT, str(path))
        found = discover(catalogue)
        chosen = workbench.Settings(**{"processes": 1, "criteria": QUICK, "timeout": 20.0, **settings})
        return workbench.run(found, "null", found.cases(filters, labels), chosen, report)

    return run
