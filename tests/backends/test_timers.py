"""The hot timer on a harness that is played: a replay does the work of its calls, or there is no time."""

from types import SimpleNamespace

import pytest

from prism_bench.backends.cuda.timers import HotTimer
from prism_bench.errors import MeasurementInvalid
from prism_bench.record.measurement import Sample


def hot_timer(alone, in_graph):
    """A timer of a call that takes `alone` seconds, and `in_graph` seconds as one of many in a graph."""
    graphs = {}

    def capture(launches):
        graphs["replay"] = Sample(in_graph * launches)
        return "replay"

    return HotTimer(SimpleNamespace(timed=lambda call, cold: graphs.get(call, Sample(alone))), "call", capture)


@pytest.mark.parametrize(
    ("alone", "in_graph"), [(2.9e-6, 1.1e-6), (25e-6, 4e-6), (320e-6, 310e-6), (15e-3, 15e-3), (60e-3, 60e-3)]
)
def test_a_graph_may_save_the_gaps_between_launches(alone, in_graph):
    assert in_graph == pytest.approx(hot_timer(alone, in_graph)().seconds)


@pytest.mark.parametrize(
    ("alone", "in_graph", "words"),
    [
        (323e-6, 1.47e-6, r"a call takes 323\.00 us, and 1\.47 us in a CUDA graph: it does less there"),
        (15e-3, 3e-3, "it does less there"),
        (2.9e-6, 3e-9, r"a launch in a CUDA graph takes 3\.0 ns: nothing was launched"),
    ],
)
def test_a_replay_that_does_less_has_no_time(alone, in_graph, words):
    with pytest.raises(MeasurementInvalid, match=words):
        hot_timer(alone, in_graph)
