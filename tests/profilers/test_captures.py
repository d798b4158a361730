"""Our own captures of an H200, made by captures/capture: every layout read to what the kernels must have done."""

from pathlib import Path

import pytest

from prism_bench.profilers import ncu
from prism_bench.profilers.tools import classify, parse
from tests.built_in import CATALOGUE

CODE = 20e3  # bytes: caches are empty, so a kernel's instructions and parameters come from memory too
CAPTURES = Path(__file__).parent / "captures"


@pytest.fixture
def capture():
    """A function that gives the path of a capture; the test is skipped where none was made yet."""

    def path(name):
        if not (CAPTURES / name).is_file():
            pytest.skip(f"no {name} yet; captures/capture makes it on a machine with a GPU")
        return CAPTURES / name

    return path


def launch(path, kernel):
    return next(one for one in ncu.read(path) if one.kernel.startswith(kernel))


@pytest.mark.parametrize("kernel", ["vector_add", "softmax"])
def test_the_raw_page_reads_what_the_kernel_must_read(capture, kernel):
    case = next(case for case in CATALOGUE.cases([kernel], ["S0"]) if not case.variant)
    counted = launch(capture("raw_ranges.csv"), kernel)
    read = sum(case.sizes.nbytes(array.name) for array in case.spec.inputs)
    assert read <= counted.value("dram__bytes_read.sum") <= read + CODE
    assert 0 < counted.value("gpu__time_duration.sum") < 1e-3
    assert "9.0" == counted.capability


def test_ranges_name_the_case(capture):
    counted = launch(capture("raw_ranges.csv"), "vector_add")
    assert any(":vector_add[" in cell for cell in counted.ranges)


def test_details_with_labels_and_with_names_tell_the_same(capture):
    by_name = launch(capture("details_names.csv"), "vector_add")
    assert by_name.value("launch__registers_per_thread") == launch(capture("raw_ranges.csv"), "vector_add").value(
        "launch__registers_per_thread"
    )
    by_label = launch(capture("details.csv"), "vector_add")
    labelled = [value.value for name, value in by_label.metrics.items() if "Registers Per Thread" in name]
    assert [by_name.value("launch__registers_per_thread")] == labelled


def test_all_sections_come_with_rules(capture):
    (counted,) = ncu.read(capture("full_details.csv"))
    assert len(counted.metrics) > 60
    assert counted.rules


@pytest.mark.parametrize("failure", ["unknown_metric", "no_kernels", "application_failed"])
def test_real_failures_are_recognised(capture, failure):
    words = capture(f"{failure}.txt").read_text()
    assert failure == classify(words, 1, produced=False).name


@pytest.mark.parametrize(
    ("check", "entry"), [("memcheck", "beyond"), ("racecheck", "race"), ("initcheck", "unwritten")]
)
def test_real_findings_are_read_to_case_and_kernel(capture, check, entry):
    case = f"{entry}[n=64]"
    found = parse(capture(f"{check}.txt").read_text(), check, {case: (entry,)}).findings
    assert found
    assert {(case, entry)} == {(one.case, one.kernel.split("(")[0]) for one in found}
