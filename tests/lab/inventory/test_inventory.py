"""What is defined, launched, verified and timed is counted from sources, cases and a record, and gaps are named."""

import shutil
from pathlib import Path

from lab.inventory.inventory import inventory, totals

from prism_bench.catalogue import discover
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import RunRecord
from prism_bench.run.session import result_of
from tests.built_in import CATALOGUE

TOYS = Path(__file__).parents[2] / "toys"


def record_of(catalogue, status="ok", timed=("S0",)):
    """A record in which every case of the catalogue ended so, timed at those labels."""

    def result(case):
        times = [Measurement("cold_time", "kernel", ((1e-6,),))] if case.label in timed else []
        return result_of(case, status, None, measurements=times)

    cases = tuple(result(case) for case in (*catalogue.cases(), *catalogue.edges()))
    return RunRecord("2026-01-01T00:00:00", "null", {"id": "toy"}, {}, {}, cases)


def test_definitions_and_launched_instances_are_counted_without_a_record():
    items = {item.kernel: item for item in inventory(discover(TOYS))}
    assert ("doubled", "doubled_by_adding") == items["double"].definitions == items["double"].launched
    assert (0, (), ()) == (items["double"].checks, items["double"].timed, items["double"].gaps)
    assert items["nothing"].measures_machine


def test_a_definition_that_no_case_launches_is_unused(tmp_path):
    mine = Path(shutil.copytree(TOYS, tmp_path / "mine"))
    source = mine / "arith" / "triple.cu"
    extra = "\n// __global__ void commented()\n__global__ void __launch_bounds__(4 * (8)) lonely(int n) {}\n"
    source.write_text(source.read_text() + extra)
    item = next(item for item in inventory(discover(mine)) if item.kernel == "triple")
    assert (("lonely",), ("unused: lonely",)) == (item.unused, item.gaps)
    assert 1 == totals([item])["definitions unused"]


def test_a_definition_in_a_header_that_nobody_launches_is_told_under_the_header(tmp_path):
    mine = Path(shutil.copytree(TOYS, tmp_path / "mine"))
    (mine / "include").mkdir(exist_ok=True)
    (mine / "include" / "shared.cuh").write_text("template <int N> __global__ void __launch_bounds__(N) forgotten() {}")
    item = inventory(discover(mine))[-1]
    assert ("shared.cuh", "include", ("unused: forgotten", "launches nothing")) == (item.kernel, item.family, item.gaps)


def test_a_record_says_what_is_verified_and_timed():
    catalogue = discover(TOYS)
    right = {item.kernel: item for item in inventory(catalogue, record_of(catalogue, timed=("S0", "S1", "S2")))}
    assert all(item.verified == item.checks and not item.gaps for item in right.values())
    half = {item.kernel: item for item in inventory(catalogue, record_of(catalogue))}
    assert any("no time at" in gap for item in half.values() for gap in item.gaps)
    wrong = next(item for item in inventory(catalogue, record_of(catalogue, "wrong")) if item.kernel == "double")
    assert f"{wrong.checks} of {wrong.checks} cases not verified" in wrong.gaps


def test_machine_kernels_are_not_counted_as_kernels():
    assert 2 == totals(inventory(discover(TOYS)))["kernels"]


def test_the_built_in_catalogue_has_its_61_and_six_kernels_and_nothing_unused():
    counts = totals(inventory(CATALOGUE))
    assert counts["kernels"] >= 67
    assert 0 == counts["definitions unused"]
