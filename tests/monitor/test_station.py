"""Devices, executions and alerts at one moment, and what is told to webhooks."""

from dataclasses import replace

import pytest

from prism_bench.errors import UsageError
from prism_bench.extensions.ci import alerts as delivery
from prism_bench.extensions.ci.alerts import Outcome
from prism_bench.monitor import station as stations
from prism_bench.monitor.alerts import RULES
from prism_bench.monitor.executions import Execution, ExecutionJournal
from prism_bench.monitor.station import deliver, station


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def test_one_look_has_gpms_means(gpu):
    with station(None, RULES, 1.0, once=True) as post:
        (device,) = post.look_once().snapshot["status"]["devices"]
    assert 0.825 == device["values"]["sm_active"]


def test_executions_of_runs_elsewhere_are_seen(gpu):
    with station(None, RULES, 1.0, once=True) as post:
        post.look()
        ExecutionJournal().append([Execution("relu", stations.time.time(), 1e-6)])
        assert ["relu"] == [row["name"] for row in post.look().snapshot["kernels"]]


def test_alerts_are_raised_and_end(gpu):
    rules = {"throttling": replace(RULES["throttling"], seconds=0.0)}
    with station(None, rules, 1.0, once=True) as post:
        found = []
        for reasons in (0x40, 0):
            gpu.set(0, reasons=reasons)
            post.sampler.beat()
            moment = post.look()
            found.append(([one.rule.name for one in moment.raised], [one.rule.name for one in moment.over]))
    assert [(["throttling"], []), ([], ["throttling"])] == found


class Clock:
    """Time that passes only while somebody sleeps."""

    now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    time = monotonic


def test_moments_come_at_once_and_end_after_their_time(gpu, monkeypatch):
    with station(None, RULES, 50.0, once=True) as post:
        post.sampler.beat()
        monkeypatch.setattr(stations, "time", Clock())
        moments = list(post.moments(1.0, 4.5))
    assert 5 == len(moments)
    assert all(one.snapshot["status"]["gpu_utilization"] == 35.0 for one in moments)


def test_a_device_that_is_not_there_and_none_at_all(gpu, monkeypatch):
    with pytest.raises(UsageError, match="unknown device '4'"), station(["4"], RULES, 1.0, once=True):
        pass
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with (
        pytest.raises(UsageError, match="no GPU is visible: CUDA_VISIBLE_DEVICES="),
        station(None, RULES, 1.0, once=True),
    ):
        pass


def test_what_was_raised_is_told_once(gpu, monkeypatch, tmp_path):
    sent = []
    monkeypatch.setenv("PRISM_BENCH_WEBHOOK", "https://hooks.example.org/secret")
    told = [Outcome("https://hooks.example.org", 1), Outcome("https://slack.example.org", reason="HTTP 500")]
    monkeypatch.setattr(delivery, "tell", lambda *words: sent.append(words) or told)
    with station(None, RULES, 1.0, once=True) as post:
        gpu.set(0, lost=1)
        post.sampler.beat()
        raised = post.look().raised
    assert ["alerts: https://slack.example.org: HTTP 500"] == deliver(raised)
    ((alert,), occasion, path, (destination,)) = sent[0]
    assert ("monitor", "lost", "critical", "the device does not answer any more") == (
        alert.source, alert.kind, alert.gravity, alert.message,
    )  # fmt: skip
    assert (tmp_path / "cache" / "monitor" / "alerts.json", "json") == (path, destination.form)
    assert {alert.subject: alert.state} == occasion.states


def test_without_a_webhook_or_an_alert_nothing_is_told(gpu, monkeypatch):
    monkeypatch.delenv("PRISM_BENCH_WEBHOOK", raising=False)
    monkeypatch.delenv("PRISM_BENCH_SLACK_WEBHOOK", raising=False)
    assert [] == deliver([object()])
    monkeypatch.setenv("PRISM_BENCH_WEBHOOK", "https://hooks.example.org/secret")
    assert [] == deliver([])
