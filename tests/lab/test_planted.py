"""A planted slowdown: where the waits go, how long they are, and that the copy still computes what it did."""

import shutil
from pathlib import Path

import pytest
from lab.planted import Wait, plant, planted_text

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.run.verification import passed, verify
from prism_bench.spec.case import Device
from tests.report.synthetic import case_result, measurement, record_of

TOYS = Path(__file__).parents[1] / "toys"


def timed(kernel, n, seconds, variant=None):
    """A case that ran at a clock of 2 GHz."""
    one = measurement("cold_time", seconds, noise=0, samples=3)
    clocks = tuple((2e9,) * 3 for _ in one.processes)
    name = f"{kernel}:{variant}" if variant else kernel
    one = type(one)(one.metric, one.subject, one.processes, clocks)
    return case_result(kernel, name=f"{name}[n={n}]", workload={"n": n}, measurements=(one,))


@pytest.fixture
def planted(tmp_path):
    """A function that plants 5 % into the toys: what was planted, and the copy."""

    def run(*cases):
        names = plant(discover(TOYS), record_of(*cases), 0.05, tmp_path / "copy", Device())
        return names, tmp_path / "copy"

    return run


def test_a_wait_is_the_share_of_the_cases_own_time(planted):
    names, copy = planted(timed("triple", 1000, 1e-5))
    assert ["triple[n=1000]"] == names
    source = (copy / "arith" / "triple.cu").read_text()
    assert source.startswith('#include "planted.cuh"\n')
    assert "const PlantedEnd planted{PLANTED_BLOCKS == 8ull ? 1000ll : 0ll, &planted_ended};" in source


def test_each_workload_has_its_own_wait(planted):
    names, copy = planted(timed("double", 1000, 1e-5), timed("double", 100_000, 4e-5))
    assert ["double[n=1000]", "double[n=100000]"] == names
    source = (copy / "arith" / "double.cu").read_text()
    assert "planted{PLANTED_BLOCKS == 8ull ? 1000ll : PLANTED_BLOCKS == 782ull ? 4000ll : 0ll, &" in source


def test_cases_that_the_record_does_not_time_are_not_planted(planted):
    wrong = case_result("triple", name="triple[n=1000]", status="wrong")
    names, copy = planted(wrong, timed("stranger", 1, 1e-5))
    assert [] == names
    assert "planted" not in (copy / "arith" / "triple.cu").read_text()


def test_the_copy_computes_what_the_original_does(planted):
    _, copy = planted(timed("triple", 1000, 1e-5))
    catalogue = discover(copy)
    assert () == catalogue.problems
    assert passed(verify(open_backend("emulator"), catalogue.case("triple[n=1000]"), (0,)))


def test_the_original_is_left_alone(planted):
    before = {path: path.read_bytes() for path in TOYS.rglob("*.cu")}
    planted(timed("triple", 1000, 1e-5))
    assert before == {path: path.read_bytes() for path in TOYS.rglob("*.cu")}


GUARD = (
    " __device__ static unsigned planted_ended;"
    " const PlantedEnd planted{PLANTED_BLOCKS == 3ull ? 7ll : 0ll, &planted_ended};"
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("__global__ void k(int n) {\n", "\n}"),
        ("template <int N>\n__global__ void __launch_bounds__(N, max(1, 2)) k(const float* x,\n  F (*f)(int)) {", " }"),
        ('extern "C" __global__ void k()\n{', "}"),
        ("__global__ void other(int n) {}\n__global__ void k(int n) {", "}"),
        ("__global__ void k(int n);\n__global__ void k(int n) {", "}"),
    ],
)
def test_the_guard_stands_at_the_start_of_the_entry(before, after):
    before = before.rstrip("\n")
    assert before + GUARD + after == planted_text(before + after, [Wait("k", 3, 7)])


def test_an_entry_without_a_wait_stays_as_it_is():
    text = "__global__ void other(int n) {}"
    assert text == planted_text(text, [Wait("k", 3, 7)])


def test_cases_that_share_a_launch_with_another_time_are_left_out(tmp_path):
    """The variant launches the kernel's own entry here: one wait cannot be 5 % of both."""
    mine = shutil.copytree(TOYS, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__"))
    spec = mine / "arith" / "double.py"
    spec.write_text(spec.read_text().replace('entry="doubled_by_adding", ', ""))
    record = record_of(timed("double", 1000, 1e-5), timed("double", 1000, 2e-5, "by_adding"))
    names = plant(discover(mine), record, 0.05, tmp_path / "copy", Device())
    assert ["double:by_adding[n=1000]"] == names
