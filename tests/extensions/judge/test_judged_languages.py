"""Submissions in Python's kernel languages: imported and compiled in the jail, launched by their compiler's card."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism_bench.catalogue import discover
from prism_bench.catalogue.catalogue import edge_cases, timed_cases
from prism_bench.compilation.languages.language import language, names
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError
from prism_bench.extensions.judge.jail.jail import jail_maker
from prism_bench.extensions.judge.jail_client import JailCell, MachineCodeAnswer, compiled_parts
from prism_bench.extensions.judge.referee.buffers import Arena
from prism_bench.extensions.judge.referee.client import CardedCode, ContestantCode, case_plan, check_parameters
from prism_bench.extensions.judge.submission import judged_spec, read_submission, spec_card, write_submission
from prism_bench.extensions.judge.task import JudgeTask, workplace
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.spec.case import Case, Device
from prism_bench.spec.launch import CardParameter, LaunchCard
from tests.built_in import CATALOGUE
from tests.extensions.judge.fake_device import FakeDevice

TASKS = Path(__file__).parent / "tasks"
CARD = LaunchCard(
    entry="add", architecture="90", block=(64, 1, 1), shared=128, cluster=(2, 1, 1), scratch_bytes=100, linear=True,
    scratch_align=128,
    parameters=(
        CardParameter("pointer", "a"), CardParameter("int64", "a.shape.0", joined=True), CardParameter("pointer", "b"),
        CardParameter("pointer", "c"), CardParameter("int64", "n"), CardParameter("int32", "launch.blocks"),
        CardParameter("hidden"), CardParameter("hidden"),
    ),
)  # fmt: skip


def sent(folder: Path, text: str = "def add(a, b, c, n): ...\n", suffix: str = "triton") -> Path:
    """Write a submission in Python and return its card."""
    (folder / f"sent.{suffix}.py").write_text(text)
    card = folder / "sent.toml"
    card.write_text(
        f'source = "sent.{suffix}.py"\n[[launch]]\nentry = "add"\ngrid = ["ceil_div(n, 64)", 2]\n'
        'arguments = ["a", "b", "c", "n"]\nconstants = { BLOCK = 64 }\nwhen = "n > 0"\n'
    )
    return card


def case_of(card: Path) -> Case:
    spec = judged_spec(discover(TASKS).kernel("add"), read_submission(card))
    return timed_cases(spec, None)[0]


def code_of(case: Case, card: LaunchCard = CARD) -> ContestantCode:
    return ContestantCode(instances={one: CardedCode(b"cubin", card) for one in case.plan.instances(Device())})


def test_a_launch_has_what_the_compiler_s_card_asks_for(tmp_path: Path) -> None:
    case = case_of(sent(tmp_path))
    plan, cubins = case_plan(case, Device(), code_of(case))
    (step,) = plan.steps
    assert (b"cubin",) == cubins
    assert ("add", (94, 1, 1), (64, 1, 1), (2, 1, 1), 128) == (
        step.symbol, step.grid, step.block, step.cluster, step.shared
    )  # fmt: skip
    assert [16, 8, 8, 8, 4, 8, 8] == [one.size for one in step.parameters]
    hidden = plan.buffers[-1]
    assert ("scratch", (94 * 2 * 128,)) == (hidden.role, hidden.shape)
    arena = Arena(FakeDevice(), plan)
    structure, b, c, n, blocks, memory, null = arena.values(step.parameters)
    assert isinstance(structure, np.ndarray)
    assert (arena.address("a"), 3000) == structure[0].item()
    assert (arena.address("b"), arena.address("c"), 3000, 94) == (b, c, n, blocks)
    assert (arena.address(hidden.name), 0) == (memory, null)


@pytest.mark.parametrize(
    "odd", ["a.shape.9", "no_such", "a.colour"], ids=["axis that is not there", "no argument", "no fact"]
)
def test_a_card_that_names_what_there_is_not_is_refused(odd: str, tmp_path: Path) -> None:
    case = case_of(sent(tmp_path))
    wrong = replace(CARD, parameters=(CardParameter("int64", odd),))
    with pytest.raises(SpecError):
        case_plan(case, Device(), code_of(case, wrong))
    with pytest.raises(SpecError, match="no machine code was made"):
        case_plan(case, Device(), _other(case))


def _other(case: Case) -> ContestantCode:
    (instance,) = case.plan.instances(Device())
    return ContestantCode(instances={replace(instance, function="other"): CardedCode(b"cubin", CARD)})


class LyingCell(JailCell):
    """A cell whose process answers with a card of its own."""

    def __init__(self, card: LaunchCard | None) -> None:
        self._card = card

    def instance_code(self, *_: object) -> tuple[MachineCodeAnswer, bytes]:
        return MachineCodeAnswer({"add": "add"}, {}, None, None, card=self._card), b"no cubin"


def test_a_card_of_the_jail_is_checked_outside_of_it(tmp_path: Path) -> None:
    case = case_of(sent(tmp_path))
    with pytest.raises(CompilationFailed, match="no launch card"):
        list(compiled_parts(case.spec, [case], LyingCell(None), "90"))
    with pytest.raises(SpecError):
        list(compiled_parts(case.spec, [case], LyingCell(CARD), "90"))


def test_what_a_process_that_imported_the_source_answers_of_instructions_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may name any precision; a fresh process lists the machine code that it gave."""
    ended: list[bool] = []

    class ForgingCell(LyingCell):
        def instance_code(self, *_: object) -> tuple[MachineCodeAnswer, bytes]:
            return MachineCodeAnswer({"add": "add"}, {}, {}, {"fp32": 9}, card=CARD), b"a cubin"

        def end(self) -> None:
            ended.append(True)

        def machine_code(self, source: Path, entries: Sequence[str], *_: object) -> tuple[MachineCodeAnswer, bytes]:
            assert ended
            assert (b"a cubin", ("add",)) == (source.read_bytes(), tuple(entries))
            return MachineCodeAnswer({"add": "add"}, {}, {}, {"half": 9}), b""

    monkeypatch.setattr("prism_bench.extensions.judge.jail_client.check_card", lambda card, cubin: None)
    case = case_of(sent(tmp_path))
    (part,) = compiled_parts(case.spec, [case], ForgingCell(None), "90")
    assert ({"half": 9}, CARD, b"a cubin") == (part.made.precisions, part.made.card, part.cubin)


def test_a_file_of_another_name_is_a_host_program(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="host programs are not taken"):
        read_submission(sent(tmp_path, suffix="helion"))


def test_the_catalogue_s_python_is_shown_to_a_source_in_python_alone(tmp_path: Path) -> None:
    task = JudgeTask(CATALOGUE.kernel("vector_add"), CATALOGUE)
    with workplace(read_submission(sent(tmp_path)), task) as (_, root):
        assert list((root / "include").rglob("*.py"))
    honest = Path(__file__).parent / "museum" / "honest.toml"
    with workplace(read_submission(honest), task) as (_, root):
        assert not list((root / "include").rglob("*.py"))


def jailed_trial(card: Path) -> SubmissionTrial:
    try:
        jail_maker()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    tasks = discover(TASKS)
    return SubmissionTrial(read_submission(card), JudgeTask(tasks.kernel("add"), tasks))


def test_a_source_in_python_is_imported_in_the_jail_alone(tmp_path: Path) -> None:
    """Whatever language is missing here: nothing of the source runs in this process, and its file is not written."""
    attacked = Path("/tmp/attacked_by_import")
    verdict = jailed_trial(sent(tmp_path, f"open({str(attacked)!r}, 'w')\n", "numba")).verdict()
    assert "unchecked" == verdict.ruling or verdict.objections
    assert not attacked.exists()


@pytest.mark.parametrize("name", names())
def test_a_kernel_in_python_is_compiled_in_the_jail(name: str, tmp_path: Path) -> None:
    spec = CATALOGUE.kernel("vector_add").with_variant(name)
    try:
        language(name).require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    jailed_trial(Path(__file__).parent / "museum" / "honest.toml")
    known = [one for one in [*timed_cases(spec, None), *edge_cases(spec, None)] if one.label != "S2"]
    submission = read_submission(write_submission(tmp_path, spec, spec_card(spec, known)))
    trial = SubmissionTrial(submission, JudgeTask(spec, CATALOGUE))
    verdict = trial.verdict()
    assert ("unchecked", ()) == (verdict.ruling, verdict.objections)
    assert any("only a GPU runs a kernel in" in words for words in verdict.unjudged)
    assert verdict.code
    judged = judged_spec(spec, submission)
    for case in timed_cases(judged, None):
        plan, cubins = case_plan(case, Device(), trial.built["90"])
        check_parameters(plan, cubins)


def test_constants_are_written_to_a_card(tmp_path: Path) -> None:
    spec = CATALOGUE.kernel("softmax").with_variant("triton")
    cases: Sequence[Case] = timed_cases(spec, None)[:2]
    submission = read_submission(write_submission(tmp_path, spec, spec_card(spec, cases)))
    judged = judged_spec(spec, submission)
    for case in cases:
        own = Case(judged, case.workload, case.label)
        assert case.plan.instances(Device()) == own.plan.instances(Device())
