"""A bad peer costs its own cell, with the reason, whatever it does to its process; the others keep their times."""

import json

import numpy as np
import pytest

from prism_bench.backends.null import NullBackend
from prism_bench.run.peers import LONGEST_REASON, PeerPlan, PeerSpoiled, measure_peers, named
from prism_bench.run.watcher import DeviceWatcher
from prism_bench.workers.process import WorkerDied
from tests.run.test_measuring import CASE, SETTINGS

GOOD = {"seconds": 2e-6}
SCENE = "double[n=1000]"


@pytest.fixture
def cells(play):
    """A function that runs one case with planted peers in real processes; returns its cells and its whole result."""

    def run(peers, **more):
        peers = {"before": GOOD, **peers, "later": GOOD}
        record = play({SCENE: {"peers": peers}}, filters=[SCENE], **{"processes": 2, **more})
        result = record.case(SCENE)
        return {one.subject: one for one in result.measurements if one.metric == "cold_time"}, result

    return run


def well(cell, processes=2):
    return cell.valid and processes == len(cell.processes)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ({"raises": "no luck"}, "peer bad: RuntimeError: no luck"),
        ({"changes": True}, "peer bad: it changed numpy.seterr['divide'] and left it so"),
        ({"wrong": True}, "peer bad: its y differs from the reference by "),
        ({"crash": True}, "peer bad: it crashed: the process ended (killed by signal 6)"),
        ({"hang": True}, "peer bad: no answer within 2 s, so its process was ended"),
        ({"leaks": 2 << 20}, "peer bad: it leaks: "),
        ({"memory": True}, "peer bad: "),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("lanes", [1, 3])
def test_a_bad_peer_costs_its_cell_and_nothing_else(cells, monkeypatch, lanes, behaviour, reason):
    monkeypatch.setattr("prism_bench.run.lanes.WORTH_A_START", 1)
    found, result = cells({"bad": behaviour}, peer_timeout=2.0, lanes=lanes)
    assert "ok" == result.status
    assert well(found["kernel"]) and well(found["peer:before"]) and well(found["peer:later"])
    assert (False, ()) == (found["peer:bad"].valid, found["peer:bad"].processes)
    assert found["peer:bad"].reason.startswith(reason)
    assert 1 == len([one for one in result.measurements if one.subject == "peer:bad"])
    assert 2 == len(result.verification)
