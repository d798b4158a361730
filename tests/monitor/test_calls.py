"""One call into the driver: when it is made again, what is kept of it, and what it costs."""

from types import SimpleNamespace

import pytest

from prism_bench.monitor import nvml
from prism_bench.monitor.nvml import Call

NVML = SimpleNamespace(NVMLError=type("NVMLError", (Exception,), {}))


@pytest.fixture
def cpu(monkeypatch):
    """A thread's time that each call moves by `step` seconds."""
    played = SimpleNamespace(now=0.0, step=0.0)
    monkeypatch.setattr(nvml, "thread_time", lambda: played.now)
    return played


def made(cpu, times=1, **options):
    def read():
        cpu.now += cpu.step
        return {"power": 300.0}

    call = Call(("power",), read, **options)
    for now in range(times):
        call.make(NVML, float(now))
    return call


def due(call, after):
    """The first of ten-millisecond steps after the last call, made `after` seconds of the clock, in which it is due."""
    return next(step / 100 for step in range(1, 10_000) if call.is_due(after + step / 100))


@pytest.mark.parametrize(
    ("cost", "period", "pause"),
    [(0.0, 0.5, 0.5), (0.0004, 0.0, 0.4), (0.0004, 0.5, 0.5), (0.02, 0.5, 2.0), (0.02, 5.0, 5.0)],
)
def test_it_is_made_less_often_where_its_share_wants_that_but_not_too_rarely(cpu, cost, period, pause):
    cpu.step = cost
    assert pause == pytest.approx(due(made(cpu, period=period, share=0.001), 0.0), abs=0.011)


def test_without_a_share_it_keeps_its_period(cpu):
    cpu.step = 0.02
    assert 0.5 == due(made(cpu, period=0.5), 0.0)


def test_one_call_that_took_long_changes_nothing(cpu):
    call = made(cpu, times=5, period=0.5, share=0.001)
    cpu.step = 0.02
    call.make(NVML, 5.0)
    assert 0.5 == due(call, 5.0)


def test_its_cost_is_counted(cpu):
    cpu.step = 0.25
    cost = made(cpu, times=3).cost()
    assert (3, 0.25) == (cost.calls, cost.cpu)
    assert cost.wall > 0
    assert 0 == Call(("power",), dict).cost().calls


def test_what_is_older_is_told_by_when_it_was_made(cpu):
    call = made(cpu)
    assert (False, True) == (call.is_older(0.0), call.is_older(0.1))
    assert Call(("power",), dict).is_older(0.0)


def test_reasons_stand_beside_the_values():
    call = Call(("power", "energy"), lambda: {"power": 300.0, "energy": "no permission to read it"})
    call.make(NVML, 0.0)
    assert ({"power": 300.0}, {"energy": "no permission to read it"}) == (call.values, call.missing)
