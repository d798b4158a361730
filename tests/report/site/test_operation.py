"""The page of an operation: its languages side by side."""

import json
import re
from dataclasses import replace

import pytest

from prism_bench.record import store
from tests.report.languages import languages_record, operation_catalogue
from tests.report.site.browser import OVERLAPS, opened, window
from tests.report.site.pages import read, site_of


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("PRISM_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
    catalogue = operation_catalogue(tmp_path_factory.mktemp("catalogue") / "kernels")
    yield site_of(tmp_path_factory.mktemp("reports"), languages_record(), catalogue=catalogue)
    patch.undo()


@pytest.fixture
def table(site):
    view = json.loads((site / "operations/vector_add.json").read_text())
    return next(one for one in view["workloads"] if one["label"] == "S1")


def test_the_slowest_language_is_first_and_one_without_a_time_last(table):
    assert ["Numba-CUDA", "cuTile", "Triton", "CUDA C++", "CuTe DSL"] == [
        row["title"] for row in table["rows"] if "case" in row
    ]
    assert 4.75 == pytest.approx(table["rows"][0]["behind"], rel=0.02)
    assert "not installed" in next(row["reason"] for row in table["rows"] if row["language"] == "cute")


def test_a_row_has_times_with_intervals_share_and_machine_code(table):
    row = table["rows"][2]
    assert row["cold"]["low"] < row["cold"]["seconds"] < row["cold"]["high"]
    assert row["hot"]["seconds"] == pytest.approx(0.9 * row["cold"]["seconds"], rel=0.02)
    assert 0 < row["share"] <= 1
    assert ("Triton 3.6.0", 1024, 0.21, 32) == (
        row["compiler"], *(row["code"][name] for name in ("code_bytes", "compile_seconds", "registers")),
    )  # fmt: skip
    assert [5, 0] == row["lines"]


def test_a_workload_that_only_the_kernel_was_timed_at_has_reasons(site):
    view = json.loads((site / "operations/vector_add.json").read_text())
    small = next(one for one in view["workloads"] if one["label"] == "S0")
    assert {"no record of this machine has timed it"} == {row["reason"] for row in small["rows"] if "cold" not in row}


def test_the_overview_and_the_catalogue_link_to_it(site):
    page = read(site, "operations/vector_add")
    assert "Numba-CUDA 0.30.4" in page.text
    assert "operations/vector_add.html" in read(site, "index").linked
    assert "operations/vector_add.html" in read(site, "catalogue").linked
    assert "../operations/vector_add.html" in read(site, "kernels/vector_add").linked


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (400, True)])
def test_it_stands_wide_and_narrow_without_overlaps(browser, site, width, dark):
    with window(browser, width, dark) as page:
        opened(page, site, "operations/vector_add")
        assert [] == page.evaluate(OVERLAPS)
        assert width >= page.evaluate("document.documentElement.scrollWidth")
        assert 1 == page.locator("figure[data-plot=languages] svg.chart").count()
        assert [] == page.problems


def test_times_of_a_record_of_languages_are_shown_where_no_run_has_them(tmp_path, monkeypatch):
    """The run timed the kernel alone; a newer record of the emulator has no times of the device."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    full, catalogue = languages_record(), operation_catalogue(tmp_path / "kernels")
    alone = replace(full, cases=tuple(case for case in full.cases if case.variant is None))
    other = replace(full, created="2026-11-23T00:00:00", backend="emulator")
    for record in (replace(full, created="2026-11-22T00:00:00", commit="e" * 40), other):
        store.save(record, store.path_for(record, tmp_path / "languages"))
    site = site_of(tmp_path, alone, catalogue=catalogue)
    page = read(site, "operations/vector_add").text
    assert re.search(r"At S1 CUDA C\+\+ is the fastest, and Numba-CUDA takes 4\.[678]\dx its time\.", page)
    assert 4 == page.count("from a record of languages"), "three times and a reason"
    assert "Numba-CUDA" in read(site, "index").text.partition("Operations that are written")[2]
    assert "in a record of languages: no run has timed it" in read(site, "kernels/vector_add").text
    cases = json.loads((site / "kernels/vector_add.json").read_text())["cases"]
    assert {None, "e" * 40} == {one["elsewhere"]["commit"] if "elsewhere" in one else None for one in cases}
    assert "languages" == next(row["state"] for row in json.loads((site / "catalogue.json").read_text())["kernels"]
                               if row.get("variant") == "triton")  # fmt: skip
