"""Honest kernels of a catalogue pass the judge: `scripts/judge_catalogue` tries all, these tests a few."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from lab.judge.fairness import FairnessStudy, JudgedForm, forms, main

from prism_bench.catalogue import discover
from prism_bench.catalogue.catalogue import edge_cases, timed_cases
from prism_bench.compilation import compile_source
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.jail.jail import jail_maker
from prism_bench.extensions.judge.machine_code import form_objections
from prism_bench.extensions.judge.submission import judged_spec, read_submission, spec_card, write_submission
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import KernelSpec, Launch, Zero
from tests.built_in import CATALOGUE

TASKS = Path(__file__).parents[2] / "extensions" / "judge" / "tasks"


HOPPER = Device(sm_count=132, max_shared_bytes=227 << 10, compute_capability=90)


def plan(case: Case, device: Device) -> list[tuple[object, ...]]:
    """Return what a case launches on a device, in one form for specs and cards."""
    return [_step(one, case.spec) for one in case.plan.steps(device) if isinstance(one, Zero) or not one.is_empty]


def _step(step: Launch | Zero, spec: KernelSpec) -> tuple[object, ...]:
    if isinstance(step, Zero):
        return (step.name,)
    grid, block = ((one if isinstance(one, tuple) else (one,)) for one in (step.grid, step.block))
    arguments = step.arguments or tuple(one.name for one in spec.arguments)
    extents = (*grid, 1, 1)[:3], (*block, 1, 1)[:3], step.shared
    return (step.entry or spec.entry, *extents, arguments, step.cooperative, step.maps)


def host_cases(spec: KernelSpec) -> Sequence[Case]:
    return [*(case for case in timed_cases(spec, None) if case.label == "S0"), *edge_cases(spec, None)]


@pytest.mark.parametrize("form", list(forms(CATALOGUE))[::7], ids=lambda spec: spec.name)
def test_a_card_of_a_kernel_launches_what_its_spec_does(tmp_path: Path, form: KernelSpec) -> None:
    """On an emulator, and on a device where that is launched in another way."""
    cases = [*timed_cases(form, None), *edge_cases(form, None)]
    judged = judged_spec(form, read_submission(write_submission(tmp_path, form, spec_card(form, cases, HOPPER))))
    for case in cases:
        for device in (Device(), HOPPER):
            assert plan(case, device) == plan(Case(judged, case.workload, case.label), device), case.name


def test_a_card_has_tensor_maps(tmp_path: Path) -> None:
    form = next(one for one in forms(CATALOGUE) if one.name == "fused_conv_relu__half_wgmma")
    cases = host_cases(form)
    card = spec_card(form, cases, HOPPER)
    assert any(one.maps and one.maps[0].box for one in card.launch)
    assert card == read_submission(write_submission(tmp_path, form, card)).card


def test_the_rate_of_false_rejections_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        jail_maker()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    output = tmp_path / "rate.csv"
    assert main(["add", "--catalogue", str(TASKS), "--output", str(output)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "add: right", "1 form: 1 right", "false rejections: 0 of 1 submission",
    ]  # fmt: skip
    assert output.read_text().startswith("form,outcome,words")


def test_an_unknown_kernel_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no_such", "--catalogue", str(TASKS)]) == 2
    assert "unknown kernel 'no_such'" in capsys.readouterr().err


def test_a_cubin_has_no_other_kernels_and_a_source_may(tmp_path: Path) -> None:
    source = tmp_path / "two.cu"
    source.write_text('extern "C" __global__ void one() {}\nextern "C" __global__ void other() {}\n')
    try:
        made = compile_source(source, ("one",), "90")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert [objection.text for objection in form_objections(made.cubin, ["one"])] == [
        "the machine code has kernels that the card does not launch: other"
    ]
    assert not list(form_objections(made.cubin, ["one"], compiled_here=True))
    assert "has no kernel three" in next(iter(form_objections(made.cubin, ["three"]))).text


def test_sources_of_other_kernels_are_written_into_one_file_once(tmp_path: Path) -> None:
    spec = CATALOGUE.kernel("active_inference_chain")
    text = write_submission(tmp_path, spec, spec_card(spec, host_cases(spec))).with_suffix(".cu").read_text()
    assert '.cu"' not in text
    assert 1 == text.count("void ai_velocity_update")
    assert "#pragma once" not in text


def test_a_part_of_the_forms_can_be_judged(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(FairnessStudy, "judged", lambda study, spec: JudgedForm(spec.name, "right"))
    assert main(["--every", "4", "--skip", "1", "--catalogue", str(TASKS)]) == 0
    judged = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()][:-2]
    assert [one.name for one in forms(discover(TASKS))][1::4] == judged


def test_a_study_goes_on_and_its_parts_are_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def judged(study: FairnessStudy, spec: KernelSpec) -> JudgedForm:
        asked.append(spec.name)
        return JudgedForm(spec.name, "right", "", 0, 1.5, 0.0, 2.0, 3.25, 2)

    monkeypatch.setattr(FairnessStudy, "judged", judged)
    names = [one.name for one in forms(discover(TASKS))]
    first, second = (tmp_path / f"{part}.csv" for part in (0, 1))
    parted = [["--every", "2", "--skip", str(part), "--catalogue", str(TASKS)] for part in (0, 1)]
    assert main([*parted[0], "--output", str(first), "--seconds", "0"]) == 3
    assert "--resume goes on" in capsys.readouterr().out
    assert not asked
    assert not first.exists()
    assert main([*parted[0], "--output", str(first)]) == main([*parted[1], "--output", str(second)]) == 0
    assert main([*parted[0], "--output", str(first), "--resume"]) == 0
    assert sorted(names) == sorted(asked), "a form that has a row is not judged again"
    together = ["--catalogue", str(TASKS), "--output", str(tmp_path / "all.csv"), "--tables", str(first)]
    summary = json.loads(first.with_suffix(".json").read_text())
    first.with_suffix(".json").write_text(json.dumps(summary | {"devices": ["a GPU"], "seconds": 2.5}))
    assert main([*together, str(second)]) == 0
    assert f"false rejections: 0 of {len(names)} submissions" in capsys.readouterr().out.splitlines()[-1]
    assert len(names) + 1 == len((tmp_path / "all.csv").read_text().splitlines())
    whole = json.loads((tmp_path / "all.csv").with_suffix(".json").read_text())
    assert "a GPU" in whole["devices"]
    assert ({"right": len(names), "without an answer": 0}, True) == (whole["counts"], whole["seconds"] >= 2.5)
    assert main(together) == 3, "the other half has no answer"
    rejected = first.read_text().replace("right", "rejected", 1)
    first.write_text(rejected)
    assert main(["--catalogue", str(TASKS), "--tables", str(first), str(second)]) == 1
    first.write_text(rejected.replace("rejected", "liked"))
    assert main(["--catalogue", str(TASKS), "--tables", str(first)]) == 2
    first.with_suffix(".json").write_text("{")
    assert main([*together[:-1], str(second), str(first)]) == 2


def test_a_signal_leaves_no_folder_behind(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, root / "scripts/judge_catalogue", "--trust-source", "--catalogue", str(TASKS)]
    variables = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(root)}
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("prism-judge-*")):
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 2
    assert [] == list(tmp_path.glob("prism-judge-*"))
