"""Verdicts on what no emulator watches: a finding leaves no time, and so does what nobody has looked at."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import ProfilerError
from prism_bench.extensions.judge import on_gpu
from prism_bench.extensions.judge.defences import in_force
from prism_bench.extensions.judge.jail_client import JailCell
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.referee.client import ContestantCode
from prism_bench.extensions.judge.referee.sanitizer import LaunchWatch
from prism_bench.extensions.judge.referee.session import RefereeFindings
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.profilers import tools
from prism_bench.profilers.tools import CHECKS
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import Workload
from tests.extensions.judge import fake_device, near_runner
from tests.extensions.judge.near_runner import session
from tests.extensions.judge.watched_device import NearWatchedRunner, near

case, any_parameters = near_runner.case, near_runner.any_parameters  # fixtures
HERE = Path(__file__).parent


def judged_on_gpu(case: Case, code: str, watch: object) -> RefereeFindings:
    gpu = OnGpu(session(), rivals=False, watch=watch)  # pyright: ignore[reportArgumentType]
    return gpu.judge(case.spec, case.spec, [case], ContestantCode(code.encode(), {"add": "add"}))


def test_what_is_found_leaves_no_time(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fake_device.KERNELS, "reads_past_the_end", fake_device.honest)
    found = judged_on_gpu(case, "reads_past_the_end", lambda: LaunchWatch(near))
    assert (["outputs"], []) == ([one.rule for one in found.objections], found.times)
    clean = judged_on_gpu(case, "honest", lambda: LaunchWatch(near))
    assert ([], 1, list(CHECKS)) == (clean.objections, len(clean.times), clean.watched)


def test_only_what_is_right_is_launched_again(case: Case) -> None:
    def never() -> LaunchWatch:
        raise AssertionError("nothing is to be watched")

    assert judged_on_gpu(case, "changes_an_input", never).objections


def test_sizes_beyond_s0_are_watched_whatever_the_emulator_saw_of_smaller_ones(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card may launch another kernel there."""
    for name in ("races_in_shared_memory", "warns_of_a_race"):
        monkeypatch.setitem(fake_device.KERNELS, name, fake_device.honest)
    larger = Case(case.spec, case.workload, "S1")
    racing = judged_on_gpu(larger, "races_in_shared_memory", lambda: LaunchWatch(near))
    assert ([("outputs", larger.name)], []) == ([(one.rule, one.case) for one in racing.objections], racing.times)
    in_doubt = judged_on_gpu(larger, "warns_of_a_race", lambda: LaunchWatch(near))
    assert ([], 1) == (in_doubt.objections, len(in_doubt.times)), "times need what shows smaller sizes alone"
    assert ["sizes beyond S0: races in shared memory"] == [words.partition(" (")[0] for words in in_doubt.unjudged]


def test_without_the_tool_larger_sizes_are_among_what_was_not_judged(case: Case) -> None:
    def missing() -> LaunchWatch:
        raise ProfilerError("compute-sanitizer: the tool is not on this machine.")

    found = judged_on_gpu(Case(case.spec, case.workload, "S1"), "honest", missing)
    assert 1 == len(found.times)
    assert [words for words in found.unjudged if words.startswith(f"sizes beyond S0: {on_gpu.UNWATCHED}")]


def test_what_no_check_saw_has_no_time(case: Case) -> None:
    """One that saw every case is enough: what the others could not is named."""

    def partly(seen: Sequence[str]) -> LaunchWatch:
        return LaunchWatch(lambda check: NearWatchedRunner(check, ending=b"" if check in seen else b"=========\n"))

    for seen in ([], ["memcheck"]):
        found = judged_on_gpu(case, "honest", lambda seen=seen: partly(seen))
        assert (seen, len(seen), []) == (found.watched, len(found.times), found.objections)
        assert bool(seen) != any("times of the submission: none" in words for words in found.unjudged)


def test_without_the_tool_the_verdict_names_what_nobody_looked_for(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> tools.Tool:
        raise ProfilerError("compute-sanitizer: the tool is not on this machine.")

    monkeypatch.setattr("prism_bench.extensions.judge.referee.sanitizer.tools.find", missing)
    found = judged_on_gpu(case, "honest", on_gpu.installed_watch)
    assert [] == found.times == found.objections
    assert [words for words in found.unjudged if words.startswith(on_gpu.UNWATCHED)]
    assert [words for words in found.unjudged if words.startswith("times of the submission: none")]
    absent = {"races", "memory that nothing wrote"}
    for is_emulated in (False, True):
        assert not absent & set(in_force(found.watched, is_emulated=is_emulated))
    assert absent <= set(in_force(list(CHECKS), is_emulated=False)) & set(in_force(None, is_emulated=True))


def test_a_source_is_watched_on_a_gpu_whatever_the_emulator_saw(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be another there by what no reader of its text sees, `sizeof(long double)` for example."""
    monkeypatch.setitem(fake_device.KERNELS, "reads_past_the_end_of_small_ones", fake_device.honest)
    code = ContestantCode(b"reads_past_the_end_of_small_ones", {"attack": "attack"})
    monkeypatch.setattr(SubmissionTrial, "_compile", lambda trial, spec, cell: trial.built.update({"90": code}))
    monkeypatch.setattr(SubmissionTrial, "hidden", lambda trial, known: [])
    found = discover(HERE / "tasks")
    task, submission = JudgeTask(found.kernel("add"), found), read_submission(HERE / "museum" / "honest.toml")
    without = SubmissionTrial(submission, task, ("90",), False).verdict()
    assert "right" == without.ruling
    assert any("its code for a GPU, which may be another" in words for words in without.unjudged)
    gpu = OnGpu(session(), rivals=False, watch=lambda: LaunchWatch(near))
    verdict = SubmissionTrial(submission, task, ("90",), False, gpu=gpu).verdict()
    assert ("wrong", ()) == (verdict.ruling, verdict.times)
    assert any("[n=257]" in one.case and "out of bounds" in one.text for one in verdict.objections)


@pytest.mark.parametrize(
    ("code", "ruling", "words"), [("reads_past_the_end", "wrong", "out of bounds"), ("honest", "right", "")]
)
def test_machine_code_has_a_verdict_and_no_time_where_a_check_objects(
    case: Case, monkeypatch: pytest.MonkeyPatch, code: str, ruling: str, words: str
) -> None:
    def compiled(trial: SubmissionTrial, spec: KernelSpec, cell: JailCell) -> None:
        trial.built["90"] = ContestantCode(code.encode(), {"attack": "attack"})

    monkeypatch.setitem(fake_device.KERNELS, "reads_past_the_end", fake_device.honest)
    monkeypatch.setattr(SubmissionTrial, "_compile", compiled)
    drawn = Workload(n=2000)
    monkeypatch.setattr(SubmissionTrial, "hidden", lambda trial, known: [Case(known[0].spec, drawn, "hidden")])
    found = discover(HERE / "tasks")
    submission = read_submission(HERE / "museum" / "reads_past_the_end_in_machine_code.toml")
    gpu = OnGpu(session(), rivals=False, watch=lambda: LaunchWatch(near))
    verdict = SubmissionTrial(submission, JudgeTask(found.kernel("add"), found), ("90",), False, gpu=gpu).verdict()
    assert ruling == verdict.ruling
    assert words in "".join(map(str, verdict.objections))
    assert bool(verdict.times) == ("right" == ruling)
    assert "races" in verdict.defences
    assert {f"compute-sanitizer, {check}" for check in CHECKS} <= {one.where for one in verdict.checked}
    watched = {one.case for one in verdict.checked if one.where.startswith("compute-sanitizer")}
    assert any("[n=257]" in name for name in watched)
    hidden = "reads_past_the_end_in_machine_code[n=2000]"
    assert ((hidden,), "right" == ruling) == (verdict.hidden, hidden in watched), "which comes after the small ones"
