"""The toys, run for real in measuring processes whose times and faults are scripted."""

import json
from pathlib import Path

import pytest

from prism_bench import run as runs
from prism_bench.backends.null import SCRIPT
from prism_bench.catalogue import discover
from prism_bench.measure import Criterion

TOYS = Path(__file__).parent.parent / "toys"
QUICK = dict.fromkeys(("cold_time", "hot_time", "wall_time"), Criterion(min_samples=3, max_samples=3))


def scripted(work):
    """A stand-in of EventWorker, whose events are those that `work(order, place)` yields; then it ends."""

    class ScriptedWorker:
        def __init__(self, place):
            self._place = place

        def send(self, line):
            self._events = work(json.loads(line), self._place)

        def receive(self, task, limit):
            return next(self._events, {"end": True})

        def end(self):
            self._events.close()

    return ScriptedWorker


def _run(catalogue, filters, labels, report, settings, **more):
    found = discover(catalogue)
    chosen = runs.Settings(**{"processes": 1, "criteria": QUICK, "timeout": 20.0, **settings})
    return runs.run(found, "null", found.cases(filters, labels), chosen, report, **more)


@pytest.fixture
def play(tmp_path, monkeypatch):
    """A function that runs the toys on the null backend by a script, and gives the record."""

    def run(
        script=None,
        *,
        filters=(),
        labels=("S0",),
        report=lambda _: None,
        catalogue=TOYS,
        keep=lambda _: None,
        **settings,
    ):
        path = tmp_path / "script.json"
        path.write_text(json.dumps(script or {}))
        monkeypatch.setenv(SCRIPT, str(path))
        return _run(catalogue, filters, labels, report, settings, keep=keep)

    return run


@pytest.fixture(scope="module")
def whole():
    """The record and the progress of one run over all toys in two processes."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(SCRIPT, raising=False)
        return _run(TOYS, (), ("S0",), seen.append, {"processes": 2, "seed": 4}), seen
