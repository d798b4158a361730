"""Verification carried over: what is kept, what is verified anew, and what a record says of it."""

import shutil
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.catalogue import Catalogue, discover
from prism_bench.catalogue.project_reference import ProjectReference
from prism_bench.run import Carrier, Settings, carrying, run
from prism_bench.run.controls import is_turn

TOYS = Path(__file__).parent.parent / "toys"
FACTS = {"device": "a GPU", "uuid": "GPU-1", "software": {"driver": "580", "nvrtc": "13.0"}}
TASKS = ("edges:double", "double[n=1000]")


@pytest.fixture
def toys(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    carrying._code_hash.cache_clear()
    yield Path(shutil.copytree(TOYS, tmp_path / "toys"))
    carrying._code_hash.cache_clear()


def due(task, day):
    return is_turn(task, 20, day)


QUIET_DAY = next(day for day in range(20) if not any(due(task, day) for task in TASKS))


def verified(folder, *, facts=FACTS):
    """Return by case of `double` whether a run carried its verification over, on a day when no case has its turn."""
    catalogue = discover(folder)
    cases = [case for case in catalogue.cases(["double"], ["S0"]) if not case.variant]
    carrier = Carrier(catalogue, "null", facts, (0, 1), QUIET_DAY)
    record = run(catalogue, "null", cases, Settings(processes=1, lanes=2, peers=False), carrier=carrier)
    assert {"ok"} == {case.status for case in record.cases}
    assert TASKS[1] in {case.name for case in record.cases}
    return {case.name: case.carried is not None for case in record.cases}


def test_unchanged_kernels_are_carried_over_and_say_since_when(toys):
    first = verified(toys)
    assert {False} == set(first.values())
    again = verified(toys)
    assert first.keys() == again.keys() and {True} == set(again.values())


@pytest.mark.parametrize("file", ["arith/double.cu", "arith/double.py"])
def test_a_changed_file_is_verified_anew(toys, file):
    verified(toys)
    path = toys / file
    path.write_text(path.read_text() + ("// changed\n" if path.suffix == ".cu" else "# changed\n"))
    carrying._code_hash.cache_clear()
    assert {False} == set(verified(toys).values())


def test_other_data_of_the_family_is_verified_anew(toys):
    verified(toys)
    (toys / "arith/expected.npy").write_bytes(b"data")
    carrying._code_hash.cache_clear()
    assert {False} == set(verified(toys).values())


@pytest.mark.parametrize(
    "facts",
    [
        {"device": "another GPU"},
        {"uuid": "GPU-2"},
        {"software": {"driver": "590", "nvrtc": "13.0"}},
        {"software": {"driver": "580", "nvrtc": "13.1"}},
    ],
)
def test_another_driver_board_or_compiler_is_verified_anew(toys, facts):
    verified(toys)
    assert {False} == set(verified(toys, facts={**FACTS, **facts}).values())


def test_another_version_of_a_package_is_verified_anew(toys, monkeypatch):
    verified(toys)
    newer = [*metadata.distributions(), SimpleNamespace(name="triton", version="99")]
    monkeypatch.setattr(carrying.metadata, "distributions", lambda: newer)
    assert {False} == set(verified(toys).values())


def test_a_task_is_verified_anew_when_it_is_its_turn(toys):
    verified(toys)
    carried = [bool(Carrier(discover(toys), "null", FACTS, (0, 1), day).carried(TASKS[0])) for day in range(20)]
    assert [not due(TASKS[0], day) for day in range(20)] == carried
    assert 19 == sum(carried)


def test_a_wrong_kernel_is_not_kept(toys, tmp_path, monkeypatch):
    script = tmp_path / "script.json"
    script.write_text('{"double*": {"wrong": true}}')
    monkeypatch.setenv("PRISM_BENCH_NULL", str(script))
    catalogue = discover(toys)
    carrier = Carrier(catalogue, "null", FACTS, (0, 1), QUIET_DAY)
    cases = catalogue.cases(["double"], ["S0"])
    record = run(catalogue, "null", cases, Settings(processes=1, lanes=2), carrier=carrier)
    assert "wrong" in {case.status for case in record.cases}
    assert [] == carrier.carried(TASKS[0])


def test_a_damaged_file_is_verified_anew(toys, tmp_path):
    verified(toys)
    for path in (tmp_path / "cache" / "verified").glob("*.json"):
        path.write_text(path.read_text()[:40])
    assert {False} == set(verified(toys).values())


@pytest.mark.parametrize(
    "changes", [{"callable": lambda **_: None}, {"reference": ProjectReference("m", "f", Path("double.py"), "m:f")}]
)
def test_code_that_may_be_anywhere_is_never_kept(toys, changes):
    catalogue = discover(toys)
    spec = replace(catalogue.kernels["double"], variants={}, **changes)
    assert Carrier(catalogue, "null", FACTS, (0, 1)).path(TASKS[1]) is not None
    carrier = Carrier(Catalogue(catalogue.folder, {"double": spec}), "null", FACTS, (0, 1))
    assert carrier.path(TASKS[1]) is None
