"""`prism-bench tune --fleet`: one session on two workers, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.cli.test_tune_command import HALF, TUNABLE


def test_choices_of_two_workers_are_kept_as_those_of_one_gpu(shell, script):
    script(HALF)
    words = ("tune", "-b", "null", "--processes", "2", "--catalogue", TUNABLE, "-l", "S0", "-l", "S1", "--json")
    found = shell(*words, "--fleet", "local", "--workers", "2")
    assert 0 == found.code, found.err
    assert [True, True] == [case["adopted"] for case in found.json["cases"]]
    (shared,) = Path("reports/tuning").glob("*.json")
    by_fleet = shared.rename("fleet.json")
    assert 0 == shell(*words).code
    (alone,) = Path("reports/tuning").glob("*.json")
    assert shared.name == alone.name

    def choices(path):
        plain = json.loads(path.read_text())
        return [(choice["kernel"], choice["workload"], choice["configuration"]) for choice in plain["choices"]]

    assert choices(alone) == choices(by_fleet)
    assert 2 == len(choices(alone))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--workers", "2"), "--workers 2: it is for --fleet"),
        (("--fleet", "banana"), "--fleet banana: it is local, an address"),
        (("--fleet", "local", "--time-limit", "5"), "--time-limit: leave it out with --fleet"),
        (("--fleet", "local", "--policy"), "--fleet: leave it out with --policy"),
    ],
)
def test_what_has_no_meaning_is_refused(shell, words, message):
    found = shell("tune", "-b", "null", "--catalogue", TUNABLE, *words)
    assert 2 == found.code
    assert message in found.err
