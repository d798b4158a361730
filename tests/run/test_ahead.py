"""Compiling ahead: each library once, and whatever fails is left to the case that meets it."""

from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.run import precompile
from prism_bench.spec.case import Case, Device

TOYS = Path(__file__).parent.parent / "toys"


@pytest.fixture
def compiled(monkeypatch):
    """The jobs that the compiler was given."""
    jobs = []
    monkeypatch.setattr(precompile, "build", jobs.append)
    return jobs


def test_cases_that_launch_the_same_share_a_library(compiled):
    cases = discover(TOYS).cases(["double"])
    made = precompile.compile_ahead(cases, Device(compute_capability=80))
    assert (made, ["doubled", "doubled_by_adding"]) == (
        len(compiled), [str(entry) for job in compiled for entry in job.instances],
    )  # fmt: skip
    assert {"80"} == {job.architecture for job in compiled}


def test_a_launch_that_raises_is_left_to_its_case(compiled):
    def broken():
        raise ZeroDivisionError

    case = discover(TOYS).cases(["triple"])[0]
    assert 0 == precompile.compile_ahead([Case(replace(case.spec, launch=broken), case.workload, "S0")], Device())
    assert not compiled


def test_a_compiler_that_is_killed_leaves_the_rest_to_who_launches_it(monkeypatch):
    def killed(job):
        raise BrokenProcessPool

    monkeypatch.setattr(precompile, "_compile", killed)
    assert 2 == precompile.compile_ahead(discover(TOYS).cases(["double"]), Device(compute_capability=80))
