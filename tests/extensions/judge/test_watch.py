"""Launches under compute-sanitizer: what a check finds is an objection, what it cannot see is named as not judged."""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.extensions.judge.referee.client import ContestantCode, case_plan
from prism_bench.extensions.judge.referee.sanitizer import LaunchWatch, SanitizedRunner, WatchedRunner, WatchRules
from prism_bench.extensions.judge.referee.session import Contestant, RefereeFindings
from prism_bench.profilers import tools
from prism_bench.profilers.tools import CHECKS
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Launch
from prism_bench.spec.workload import Workload
from tests.extensions.judge import near_runner, watched_device
from tests.extensions.judge.near_runner import session
from tests.extensions.judge.watched_device import NearWatchedRunner, near

case, any_parameters = near_runner.case, near_runner.any_parameters  # fixtures
HERE = Path(__file__).parent
SOON = WatchRules(start_seconds=60.0, launch_seconds=20.0)


def watched(case: Case, code: str, watch: LaunchWatch, sizes: Sequence[int] = (257, 3000)) -> RefereeFindings:
    """Return what a watch finds in a kernel at sizes of the case's task."""
    opened = session()
    cases = [Case(case.spec, Workload(n=size), "edge") for size in sizes]
    opened.watch(Contestant(code, "submission", cases, ContestantCode(code.encode(), {"add": "add"})), watch)
    return opened.findings


def test_an_honest_kernel_is_clean_in_every_check_and_case(case: Case) -> None:
    found = watched(case, "honest", LaunchWatch(near))
    assert ([], [], list(CHECKS)) == (found.objections, found.unjudged, found.watched)
    assert [(f"add[n={size}]", f"compute-sanitizer, {check}", True) for check in CHECKS for size in (257, 3000)] == [
        (one.case, one.where, one.right) for one in found.checked
    ]


@pytest.mark.parametrize(
    ("code", "check", "kind"),
    [
        ("reads_past_the_end", "memcheck", "out of bounds: Invalid __global__ read"),
        ("races_in_shared_memory", "racecheck", "race: Error: Race reported"),
        ("reads_the_output_first", "initcheck", "unwritten read: Uninitialized __global__ memory read"),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_finding_names_its_check_kernel_and_place(case: Case, code: str, check: str, kind: str, late: bool) -> None:
    found = watched(case, code, LaunchWatch(lambda check: NearWatchedRunner(check, late=late)), [257])
    (objection,) = found.objections
    assert "outputs" == objection.rule, "as findings of the emulator"
    assert f"under compute-sanitizer ({check}): {kind}" in objection.text
    assert "attack" in objection.text
    assert "attack.cu:" in objection.text
    assert ("" if late else "add[n=257]") == objection.case, "whose words came after all had ended is nobody's"
    assert set(CHECKS) - {check} == set(found.watched)


def test_a_finding_belongs_to_the_case_in_which_it_was_written(case: Case) -> None:
    found = watched(case, "reads_past_the_end_of_small_ones", LaunchWatch(near, checks=["memcheck"]), [257, 3000, 64])
    assert ["add[n=257]", "add[n=64]"] == [one.case for one in found.objections]
    assert [False, True, False] == [one.right for one in found.checked]


def test_a_name_of_a_kernel_hides_no_finding(case: Case) -> None:
    found = watched(case, "is_called_like_a_summary", LaunchWatch(near, checks=["memcheck"]))
    assert found.objections
    assert {one.case for one in found.objections} <= {"add[n=257]", "add[n=3000]", ""}
    assert all(one.text.isprintable() for one in found.objections)


@pytest.mark.parametrize(
    ("ending", "objects", "words"),
    [
        (b"========= ERROR SUMMARY: 3 errors\n", True, "3 findings of a kind that is not known here"),
        (b"========= Program was ended\n", False, "2 of 2 cases launched: it ended without a summary"),
        (b"========= Internal Sanitizer Error: no clusters\n========= ERROR SUMMARY: 0 errors\n", False,
         "it reports: Internal Sanitizer Error: no clusters"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_never_clean(case: Case, ending: bytes, objects: bool, words: str) -> None:
    found = watched(
        case, "honest", LaunchWatch(lambda check: NearWatchedRunner(check, ending=ending), checks=["memcheck"])
    )
    assert [] == found.watched
    assert words in (found.objections[0].text if objects else found.unjudged[0])
    assert objects == bool(found.objections)


@pytest.mark.parametrize(
    ("code", "barriers", "words"),
    [("warns_of_a_race", False, "a warning: race: Warning: Race reported"),
     ("races_in_shared_memory", True, "does not follow all barriers in shared memory: race: Error")],
)  # fmt: skip
def test_a_race_that_may_be_none_is_not_judged_and_no_objection(
    case: Case, code: str, barriers: bool, words: str
) -> None:
    opened, cases = session(), [Case(case.spec, Workload(n=257), "edge")]
    machine_code = ContestantCode(code.encode(), {"add": "add"}, has_memory_barriers=barriers)
    opened.watch(
        Contestant(code, "submission", cases, machine_code), LaunchWatch(near, checks=["racecheck", "memcheck"])
    )
    assert ([], ["memcheck"]) == (opened.findings.objections, opened.findings.watched)
    assert ["compute-sanitizer, memcheck"] == [one.where for one in opened.findings.checked]
    assert words in opened.findings.unjudged[0]


def test_waiting_for_a_turn_takes_no_time_of_a_check(case: Case) -> None:
    @contextmanager
    def turn() -> Iterator[None]:
        time.sleep(0.5)
        yield

    opened = session()
    code = ContestantCode(b"honest", {"add": "add"})
    cases = [Case(case.spec, Workload(n=size), "edge") for size in (257, 64, 600)]
    refereed = [one for each in cases if (one := opened._launchable(each, code))]
    found = LaunchWatch(near, WatchRules(check_seconds=0.7), ["memcheck"]).watched(refereed, 1, turn)
    assert (["memcheck"], []) == (found.complete, found.unjudged)


def test_a_check_whose_time_is_over_names_what_it_launched(case: Case) -> None:
    found = watched(case, "honest", LaunchWatch(near, WatchRules(check_seconds=-1.0), ["racecheck"]))
    assert [] == found.objections == found.watched == found.checked
    words = "races in shared memory (compute-sanitizer, racecheck): 0 of 2 cases launched: -1 s were over"
    assert [f"{words}; left out: add[n=257], add[n=3000]"] == found.unjudged


def test_sizes_beyond_s0_are_launched_from_the_smallest_on_and_what_is_left_is_named(case: Case) -> None:
    def found(larger: WatchRules, code: str = "honest") -> RefereeFindings:
        opened = session()
        cases = [Case(case.spec, Workload(n=size), label) for size, label in ((3000, "S1"), (600, "hidden"))]
        sent = Contestant(code, "submission", cases, ContestantCode(code.encode(), {"add": "add"}))
        opened.watch_larger(sent, LaunchWatch(near, WatchRules(check_seconds=-1.0), ["racecheck", "synccheck"], larger))
        return opened.findings

    seen = found(WatchRules())
    assert (["add[n=600]", "add[n=3000]"], []) == ([one.case for one in seen.checked], seen.unjudged)
    assert [] == seen.watched, "what smaller sizes need to have a time is shown by these alone"
    assert ["add[n=600]", "add[n=3000]"] == [
        one.case for one in found(WatchRules(), "races_in_shared_memory").objections
    ]
    (words,) = found(WatchRules(check_seconds=-1.0)).unjudged
    assert words.startswith("sizes beyond S0: races in shared memory (compute-sanitizer, racecheck): 0 of 2 cases")
    assert words.endswith("left out: add[n=600], add[n=3000]")


@pytest.mark.parametrize(("has_shared_memory", "needless"), [(True, []), (False, ["racecheck"])])
def test_a_check_without_anything_to_look_at_is_left_out_and_named(
    case: Case, has_shared_memory: bool, needless: list[str]
) -> None:
    started = list[str]()
    code = ContestantCode(b"honest", {"add": "add"}, has_shared_memory=has_shared_memory)
    opened = session()
    opened.watch(
        Contestant("sent", "submission", [case], code), LaunchWatch(lambda check: started.append(check) or near(check))
    )
    assert set(CHECKS) - set(needless) == set(started)
    assert set(CHECKS) == set(opened.findings.watched)
    assert bool(needless) == any(name in opened.findings.evidence.get("needless checks", "") for name in needless)
    shared = replace(case.spec, launch=lambda n: Launch(-(-n // 256), 256, shared=64))
    plan, _ = case_plan(Case(shared, case.workload, "S0"), Device(), code)
    assert "racecheck" not in code.needless_checks([plan]), "a launch may give a kernel shared memory"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tools.Tool:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{HERE / 'fakes'}{os.pathsep}{os.environ['PATH']}")
    return tools.find("compute-sanitizer")


def process(tool: tools.Tool, *checks: str, rules: WatchRules = SOON) -> LaunchWatch:
    device = f"{watched_device.__name__}:open_watched"
    return LaunchWatch(lambda check: SanitizedRunner(tool, check, device), rules, checks)


def test_a_process_under_the_tool_answers_and_its_log_is_read(case: Case, tool: tools.Tool, tmp_path: Path) -> None:
    found = watched(case, "reads_past_the_end", process(tool, "memcheck", "synccheck"))
    assert ["add[n=257]", "add[n=3000]"] == [one.case for one in found.objections]
    assert ["synccheck"] == found.watched
    assert [] == list(tmp_path.glob("prism-judge-*-sanitizer-*")), "the log is removed"


def test_what_a_kernel_prints_is_no_word_of_the_tool(
    case: Case, tool: tools.Tool, capfd: pytest.CaptureFixture[str]
) -> None:
    found = watched(case, "forges_words_of_the_tool", process(tool, "memcheck"))
    assert ([], [], ["memcheck"]) == (found.objections, found.unjudged, found.watched)
    assert "=========" not in capfd.readouterr().out


def test_a_launch_that_ends_its_process_is_explained_by_the_log(case: Case, tool: tools.Tool) -> None:
    found = watched(case, "faults_when_watched", process(tool, "memcheck", "initcheck"))
    (objection,) = found.objections
    assert ("add[n=257]", True) == (objection.case, "Invalid __global__ write" in objection.text)
    (words,) = found.unjudged
    assert words.startswith(
        "reads of memory that nothing wrote (compute-sanitizer, initcheck): 0 of 2 cases launched: "
    )
    assert "illegal memory access" in words


def test_a_launch_that_never_ends_is_ended_with_the_tool(case: Case, tool: tools.Tool, tmp_path: Path) -> None:
    found = watched(case, "hangs_when_watched", process(tool, "racecheck", rules=WatchRules(60.0, 1.0)))
    (words,) = found.unjudged
    assert "0 of 2 cases launched: it has not ended in 1 s, and was ended with its process" in words
    end, left = time.monotonic() + 10, True
    while left and time.monotonic() < end:  # what was killed may still be listed while it ends
        left = any(_has(path, f"TMPDIR={tmp_path}".encode()) for path in Path("/proc").glob("[0-9]*/environ"))
    assert not left


def _has(path: Path, content: bytes) -> bool:
    try:
        return content in path.read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize(
    ("fake", "words"),
    [
        ({"refuses": "========= Error: Device not supported. Please refer to ..."}, "it refuses this device"),
        ({"cut": True}, "it ended without a summary"),
    ],
)
def test_a_tool_that_does_not_work_here_is_named(
    case: Case, tool: tools.Tool, monkeypatch: pytest.MonkeyPatch, fake: dict[str, object], words: str
) -> None:
    monkeypatch.setenv("PRISM_BENCH_FAKE", json.dumps(fake))
    found = watched(case, "honest", process(tool, "memcheck"))
    assert ([], []) == (found.objections, found.watched)
    assert words in found.unjudged[0]


def test_a_tool_that_does_not_start_is_named(case: Case) -> None:
    def absent(check: str) -> WatchedRunner:
        raise FileNotFoundError("no such program")

    found = watched(case, "honest", LaunchWatch(absent, checks=["memcheck"]))
    assert [] == found.objections == found.watched
    assert "0 of 2 cases launched: it does not start: no such program" in found.unjudged[0]
