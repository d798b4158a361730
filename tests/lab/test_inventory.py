"""What is defined, launched, verified and timed is counted from sources, cases and a record, and gaps are named."""

import io
import json
import shutil
from pathlib import Path

import pytest
from lab.inventory import inventory, items_table, main, totals
from rich.console import Console

from prism_bench.catalogue import discover
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import RunRecord
from prism_bench.run.session import result_of
from tests.built_in import CATALOGUE

TOYS = Path(__file__).parents[1] / "toys"


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


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_table_names_kernel_verified_and_gaps_at_any_width(width):
    stream = io.StringIO()
    Console(file=stream, width=width, legacy_windows=False).print(items_table(inventory(CATALOGUE), None))
    shown = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert max(map(len, shown)) <= width
    assert all(word in shown[1] for word in ("kernel", "verified", "timed", "gaps"))
    assert any(line.startswith("softmax ") for line in shown)


@pytest.fixture
def run(tmp_path, capsys):
    """A function that runs the script on the toys without records; it returns exit code, output and errors."""

    def run(*words):
        code = main(["--catalogue", str(TOYS), "--runs", str(tmp_path), *words])
        return code, *capsys.readouterr()

    return run


def test_what_is_here_stands_beside_what_the_documents_say(run):
    code, out, _ = run()
    assert 0 == code
    for words in ("double", "no record", "170", "GPU optimisation master plan", "definitions unused"):
        assert words in out


def test_json_names_definitions_and_gaps(run):
    found = json.loads(run("--json")[1])
    assert {"documents": "61", "source": "infrastructure status report", "here": 2} == found["claims"]["kernels"]
    double = next(one for one in found["kernels"] if one["kernel"] == "double")
    assert (["doubled", "doubled_by_adding"], [], []) == (double["definitions"], double["unused"], double["gaps"])


def test_kernels_are_chosen_and_an_unknown_one_is_refused(run):
    assert ["double"] == [one["kernel"] for one in json.loads(run("double", "--json")[1])["kernels"]]
    assert (2, "", "inventory: unknown kernel or family 'dubble'; did you mean double?\n") == run("dubble")


def test_a_record_that_is_not_there_ends_with_2(run):
    assert (2, "", "inventory: nowhere.json.gz: no such record\n") == run("--record", "nowhere.json.gz")
