"""A limit, a duration, a way back; and a file that changes them."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.monitor.alerts import RULES, AlertWatch, configured


class Watched:
    """Alerts of one device on a clock that is set by hand."""

    def __init__(self, rules=RULES):
        self.now = 0.0
        self.watch = AlertWatch(rules, clock=lambda: self.now)

    def feed(self, at, **values):
        self.now = at
        raised, over = self.watch.update("GPU-1", values)
        return [one.rule.name for one in raised], [one.rule.name for one in over]


def test_utilisation_must_be_high_for_half_a_minute():
    watched = Watched()
    assert [([], [])] * 3 == [watched.feed(at, utilization=0.95) for at in (0, 15, 29)]
    assert (["utilization"], []) == watched.feed(30, utilization=0.96)
    assert ([], []) == watched.feed(31, utilization=0.99)


def test_a_dip_starts_the_duration_anew():
    watched = Watched()
    watched.feed(0, utilization=0.95)
    watched.feed(20, utilization=0.85)
    watched.feed(21, utilization=0.95)
    assert ([], []) == watched.feed(40, utilization=0.95)
    assert (["utilization"], []) == watched.feed(51, utilization=0.95)


def test_an_alert_flickers_not_and_keeps_its_worst_value():
    watched = Watched()
    assert (["memory"], []) == watched.feed(0, memory_share=0.86)
    assert [([], [])] * 3 == [watched.feed(at, memory_share=share) for at, share in ((1, 0.84), (2, 0.9), (3, 0.81))]
    assert [0.9] == [one.value for one in watched.watch.active]
    assert ([], ["memory"]) == watched.feed(4, memory_share=0.79)
    assert [] == watched.watch.active


@pytest.mark.parametrize(
    ("values", "names", "severity", "message"),
    [
        ({"memory_share": 0.96}, ["memory", "memory_critical"], "critical", "96 % of the memory in use"),
        ({"failures": 11.0}, ["failures"], "critical", "11 of the last 100 executions failed"),
        ({"new_xids": 2.0}, ["xid"], "critical", "the driver reported 2 Xid errors"),
        ({"new_uncorrected": 1.0}, ["ecc"], "critical", "1 uncorrected memory errors"),
        ({"lost": 1.0}, ["lost"], "critical", "the device does not answer any more"),
    ],
)
def test_what_is_raised_at_once(values, names, severity, message):
    watched = Watched()
    assert (names, []) == watched.feed(0, **values)
    worst = watched.watch.active[0]
    assert (severity, message) == (worst.rule.severity, worst.message)


@pytest.mark.parametrize(
    ("name", "values", "seconds"), [("temperature", {"temperature": 84}, 5), ("throttling", {"throttled": 1.0}, 2)]
)
def test_what_must_last(name, values, seconds):
    watched = Watched()
    assert ([], []) == watched.feed(0, **values)
    assert ([name], []) == watched.feed(seconds, **values)


@pytest.mark.parametrize(
    "values",
    [{"utilization": 0.9}, {"memory_share": 0.85}, {"temperature": 83}, {"failures": 10.0}, {"throttled": 0.0}],
)
def test_a_value_at_its_limit_is_well(values):
    watched = Watched()
    assert [([], [])] * 2 == [watched.feed(at, **values) for at in (0, 100)]


def test_what_can_only_be_0_or_more_is_over_at_0():
    watched = Watched()
    watched.feed(0, throttled=1.0)
    assert (["throttling"], []) == watched.feed(2, throttled=1.0)
    assert ([], ["throttling"]) == watched.feed(3, throttled=0.0)


def test_an_unknown_value_changes_nothing():
    watched = Watched()
    watched.feed(0, memory_share=0.9)
    assert ([], []) == watched.feed(1, memory_share=None)
    assert ["memory"] == [one.rule.name for one in watched.watch.active]


def test_devices_are_watched_apart_and_a_day_is_counted():
    watched = Watched()
    watched.feed(0, lost=1.0)
    watched.watch.update("GPU-2", {"lost": 1.0})
    assert (2, ["GPU-1", "GPU-2"]) == (watched.watch.raised_today(), [one.device for one in watched.watch.active])
    watched.now = 90_000.0
    assert 0 == watched.watch.raised_today()


def written(tmp_path, text):
    path = tmp_path / "alerts.toml"
    path.write_text(text)
    return path


def test_a_file_changes_rules_and_switches_them_off(tmp_path):
    rules = configured(written(tmp_path, "[temperature]\nabove = 70\nclear = 60\n[xid]\nenabled = false\n"))
    assert set(RULES) - {"xid"} == set(rules)
    assert (70, 60, RULES["temperature"].seconds) == (
        rules["temperature"].above, rules["temperature"].clear, rules["temperature"].seconds,
    )  # fmt: skip
    watched = Watched(rules)
    watched.feed(0, temperature=71)
    assert (["temperature"], []) == watched.feed(5, temperature=71)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[temprature]\nabove = 70\n", "unknown alert rule 'temprature'; did you mean temperature"),
        ("[temperature]\nabov = 70\n", "unknown setting of alert rule temperature 'abov'; did you mean above"),
        ("[temperature]\nmetric = 'x'\n", "unknown setting of alert rule temperature 'metric'"),
        ("[temperature]\nabove = 'hot'\n", "above is 'hot'; it is a number"),
        ("[temperature]\nabove = 60\n", "clear is 78, above the limit 60"),
        ("[temperature]\nseverity = 'bad'\n", "unknown severity of alert rule temperature 'bad'"),
        ("temperature = 5\n", "'temperature' is a table"),
        ("[temperature\n", "not a readable TOML file"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path, text, words):
    with pytest.raises(UsageError, match=words.replace("[", r"\[")):
        configured(written(tmp_path, text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match="not a readable TOML file"):
        configured(tmp_path / "none.toml")
