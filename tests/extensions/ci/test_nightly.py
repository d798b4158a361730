"""A nightly run from lock to pages: its exit codes, its alerts, and what a failed step leaves."""

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from prism_bench.analysis.gate.checks import GateCheck, GatePart
from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.ci.nightly import NightlyMeasurement, NightlyPlan, locked
from prism_bench.extensions.ci.nightly import run as module
from prism_bench.extensions.ci.nightly.run import NightlyOutput, nightly
from prism_bench.record import store
from prism_bench.report import gate as delivery
from tests.report.synthetic import case_result, record_of


@dataclass
class Told:
    """What a nightly run printed."""

    lines: list = field(default_factory=list)
    gates: list = field(default_factory=list)

    def output(self):
        @contextmanager
        def progress():
            yield lambda states: None

        return NightlyOutput(self.lines.append, progress, self.gates.append)


@dataclass(frozen=True)
class FakeGate:
    exit_code: int
    parts = ()


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """A function that makes a nightly run whose steps end as they are told; it returns its result and its output."""
    record = store.save(record_of(case_result("k", times={"cold_time": 1e-5})), tmp_path / "runs/box/one.json.gz")
    sent = []

    def run(code=0, check=0, *, kept=record, pages=None, interrupted=False, history=None):
        plan = NightlyPlan(
            tmp_path, (), 1, None, tmp_path / "runs", tmp_path / "site", tmp_path / "noise", history=history
        )
        found = NightlyMeasurement(code, kept, interrupted)
        monkeypatch.setattr(module, "measured", lambda *_: found)
        monkeypatch.setattr(module, "judged", lambda *_: _or_raise(check, FakeGate))
        monkeypatch.setattr(module, "write_files", lambda gate, markdown, junit: _touch(markdown))
        monkeypatch.setattr(module, "build_site", lambda *_: _or_raise(pages, lambda _: Site(tmp_path / "index.html")))
        monkeypatch.setattr(delivery, "send", lambda gate, state, report: sent.append(gate.exit_code))
        told = Told()
        return nightly(plan, None, told.output()), told

    run.sent, run.record = sent, record
    return run


@dataclass(frozen=True)
class Site:
    page: Path


def _touch(path):
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")


def _or_raise(value, make):
    if isinstance(value, Exception):
        raise value
    return make(value)


@pytest.mark.parametrize(
    ("code", "check", "expected"),
    [(0, 0, 0), (2, 0, 2), (1, 0, 1), (2, 1, 1), (1, 3, 3), (0, 1, 1), (0, 2, 2),
     (0, ResultsError("no such baseline"), 2)],
    ids=str,
)  # fmt: skip
def test_how_the_run_ended_counts_where_the_check_finds_nothing(scene, code, check, expected):
    result, told = scene(code, check)
    assert expected == result.exit_code
    assert (f"nightly: the run ended with {code}" in told.lines) == (check == 0 and code != 0)
    assert (0 if isinstance(check, ResultsError) else 1) == len(told.gates)
    assert result.page


def test_only_cases_that_the_last_record_leaves_open_are_measured_again(scene, monkeypatch):
    last = GatePart("last", (GateCheck("open", "cold_time", "inconclusive", "note"), GateCheck("k", None, "same"),
                             GateCheck(None, None, "undersampled", "note")))  # fmt: skip
    others = GatePart("baseline", (GateCheck("other", "cold_time", "inconclusive", "note"),))
    asked = []

    def again(plan, found, logs, undecided, *_):
        asked.append(undecided(found.record))
        return replace(found, problems=("again-1-1 was not measured",), code=2)

    monkeypatch.setattr(module, "measured_again", again)
    monkeypatch.setattr(FakeGate, "parts", (last, others), raising=False)
    result, told = scene(0, 0)
    assert [{"open"}] == asked
    assert 2 == result.exit_code and "nightly: again-1-1 was not measured" in told.lines


def test_alerts_are_sent_for_what_the_check_found(scene):
    scene(0, 1)
    assert [1] == scene.sent


def test_a_run_without_a_record_is_an_alert_and_ends_with_2(scene, monkeypatch, tmp_path):
    sent = []
    monkeypatch.setattr(delivery, "_fail", lambda reason, folder, report: sent.append((reason, folder)))
    with pytest.raises(ResultsError, match="no record was written"):
        scene(2, kept=None)
    assert [("nightly: no record was written", tmp_path / "alerts")] == sent


@pytest.mark.parametrize(("check", "expected"), [(0, 2), (1, 1), (3, 3)])
def test_pages_that_were_not_made(scene, check, expected):
    result, told = scene(0, check, pages=OSError(28, "No space left on device"))
    assert (expected, None) == (result.exit_code, result.page)
    assert any("the pages were not made: " in line and "No space left" in line for line in told.lines)


def test_the_verdict_of_the_run_before_goes(scene, tmp_path):
    _touch(tmp_path / "site/check.xml")
    _touch(tmp_path / "site/check.md")
    scene(0, ResultsError("nothing can be judged"))
    assert [] == list((tmp_path / "site").glob("check.*"))


def test_an_interrupted_run_names_its_record_and_does_nothing_else(scene):
    result, told = scene(2, interrupted=True)
    assert (2, scene.record, True, None) == (result.exit_code, result.record, result.interrupted, result.page)
    assert [] == scene.sent == told.gates


def test_one_that_is_locked_out_alerts_nobody(scene, tmp_path, monkeypatch):
    monkeypatch.setattr(delivery, "_fail", lambda *_: pytest.fail("alerted"))
    with locked(tmp_path), pytest.raises(UsageError, match="another nightly run"):
        scene()


def test_the_history_is_fetched_before_and_kept_afterwards(scene, tmp_path):
    result, told = scene(history=str(tmp_path / "kept"))
    assert 0 == result.exit_code
    assert [line for line in told.lines if " fetched from " in line or " kept at " in line] == [
        f"nightly: 0 of 0 files fetched from {tmp_path / 'kept'}", f"nightly: 1 file kept at {tmp_path / 'kept'}",
    ]  # fmt: skip
    (manifest,) = (tmp_path / "kept/keeps").iterdir()
    assert ["runs/box/one.json.gz"] == list(json.loads(manifest.read_text())["files"])


def test_a_history_that_cannot_be_kept_counts(scene, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "keep", lambda *_: (_ for _ in ()).throw(ResultsError("no route")))
    for check, expected in ((0, 2), (1, 1)):
        result, told = scene(0, check, history=str(tmp_path / "kept"))
        assert expected == result.exit_code
        assert "nightly: the history was not kept: no route" in told.lines


def test_a_result_says_what_is_worst():
    result = module.NightlyResult(0, Path("logs"))
    assert 2 == result.with_problem().exit_code
    assert 3 == replace(result, exit_code=3).with_problem().exit_code
