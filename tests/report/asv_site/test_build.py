"""Our pages in asv's site: from planted records, from broken ones, from none."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from prism_bench import store
from prism_bench.analysis.promises import Promises
from prism_bench.analysis.reading import read
from prism_bench.budget import Budget
from prism_bench.report.asv_site.build import build
from prism_bench.report.asv_site.pages import PAGES, promises
from tests.analysis.test_gate import catalogue
from tests.report.asv_site.site import copied
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of


@pytest.fixture
def built(tmp_path):
    """A function that puts records (or broken files) below `runs` and builds the site; gives our pages by name."""

    def make(*records, broken=()):
        runs = tmp_path / "runs"
        for record in records:
            store.save(record, store.path_for(record, runs))
        for name in broken:
            (runs / "nvidia-h200").mkdir(parents=True, exist_ok=True)
            (runs / "nvidia-h200" / name).write_bytes(b"\x1f\x8bcut")
        site = copied(tmp_path / "site")
        build(site, runs)
        return {name: (site / "prism_bench" / f"{name}.html").read_text() for name in PAGES}, site

    return make


def test_the_pages_stand_in_the_navigation(built):
    _, site = built()
    index = (site / "index.html").read_text()
    places = [index.index(f'<a href="#/{name}">{title}</a>') for name, title in PAGES.items()]
    assert index.index("#/regressions") < places[0] < places[1] < places[2] < index.index("nav-li-graphdisplay")
    for name in ("our_pages.js", "our_pages.css", "offline.js", "vendor/jquery.min.js"):
        assert (site / name).is_file()


def test_no_page_loads_anything(built):
    pages, _ = built(gpu_record(), cpu_record())
    for name, page in pages.items():
        assert [] == re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"(?!data:)[^\"]*", page), name
        assert "default-src 'none'" in page


def test_each_machine_has_its_part(built):
    pages, _ = built(gpu_record(), cpu_record())
    for page in pages.values():
        assert "NVIDIA H200" in page and "AMD Ryzen 7 7840U" in page
    assert 2 == pages["roofline"].count('<svg class="chart"')
    assert "No roofline: it needs cases" in pages["roofline"]


def test_without_records_the_next_step_is_said(built):
    pages, _ = built()
    assert all("No run record yet" in page for page in pages.values())


def test_a_broken_record_is_passed_by_and_said(built):
    pages, _ = built(gpu_record(), broken=["20991231T000000Z-aaaaaaaa.json.gz"])
    assert "Passed by: 20991231T000000Z-aaaaaaaa.json.gz: not a readable run record" in pages["budgets"]
    assert "2026-11-20 22:14:05 UTC" in pages["budgets"]


def test_a_machine_with_nothing_readable_is_named(built):
    pages, _ = built(broken=["20991231T000000Z-aaaaaaaa.json.gz"])
    assert "<h2>nvidia-h200</h2>" in pages["roofline"] and "Passed by:" in pages["roofline"]


def test_names_are_only_text(built):
    pages, _ = built(record_of(case_result("<b>k</b>"), machine={"id": "box", "device": "<i>box</i>"}))
    assert all("<i>box" not in page and "<b>k" not in page for page in pages.values())


def test_promises_come_broken_ones_first_the_worst_of_them_before_all():
    over = Budget("cold_time", at_most=1e-6, expires=date(2020, 1, 1))
    limits = [Budget("cold_time", at_most=4e-6), Budget("cold_time", at_most=2e-6), Budget("hot_time", at_most=1.0),
              Budget("cold_time", at_most=8e-6), Budget("cold_time", at_least=3e-6), over]  # fmt: skip
    reading = read(record_of(case_result("softmax", times={"cold_time": 5e-6})), catalogue(*limits))
    found = [(one.verdict, one.limit, one.use and round(one.use, 3)) for one in promises(reading)]
    assert [
        ("missed", "at most 2.00 us", 2.5), ("missed", "at most 4.00 us", 1.25), ("expired", "at most 1.00 us", 5.0),
        ("unmeasured", "at most 1.00 s", None), ("met", "at most 8.00 us", 0.625), ("met", "at least 3.00 us", 0.6),
    ] == found  # fmt: skip


def test_a_promise_on_a_case_that_did_not_run_is_there_with_its_reason():
    budget = Budget("cold_time", at_most=1.0, owner="Ada", reason="a guess", expires=date(2030, 1, 2))
    reading = replace(read(record_of()), promises=Promises(Path("box.toml"), {"gone[n=1]": (budget,)}))
    (found,) = promises(reading)
    assert ("gone[n=1]", "unmeasured", "-") == (found.case, found.verdict, found.value)
    assert "a guess; Ada; until 2030-01-02; box.toml" == found.why
