"""Our pages in asv's site: from planted records, from broken ones, from none."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from prism_bench.analysis.gate.budgets import Promises
from prism_bench.analysis.run_analysis import read
from prism_bench.catalogue import discover
from prism_bench.errors import ResultsError
from prism_bench.record import store
from prism_bench.report.asv.pages import PAGES, build, promises
from prism_bench.spec.metric import Budget
from tests.analysis.gate.test_outcome import catalogue
from tests.report.asv.site import copied
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of

SMALL = record_of(case_result("softmax", times={"cold_time": 5e-6}))


def site_of(folder, *records, broken=()):
    """The site built over these records and broken files, and our pages by name."""
    for record in records:
        store.save(record, store.path_for(record, folder / "runs"))
    for name in broken:
        (folder / "runs" / "nvidia-h200").mkdir(parents=True, exist_ok=True)
        (folder / "runs" / "nvidia-h200" / name).write_bytes(b"\x1f\x8bcut")
    site = copied(folder / "site")
    build(site, folder / "runs")
    return site, {name: (site / "prism_bench" / f"{name}.html").read_text() for name in PAGES}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    """A cache of its own, and libraries without a network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRISM_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr("prism_bench.report.asv.pages.carry_libraries", lambda site: None)
        yield


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """The pages about a full record of a GPU and one of a laptop."""
    return site_of(tmp_path_factory.mktemp("full"), gpu_record(), cpu_record())[1]


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The site and the pages without any record."""
    return site_of(tmp_path_factory.mktemp("empty"))


def test_the_pages_stand_in_the_navigation(empty):
    site, _ = empty
    index = (site / "index.html").read_text()
    places = [index.index(f'<a href="#/{name}">{title}</a>') for name, title in PAGES.items()]
    assert index.index("#/regressions") < places[0] < places[1] < places[2] < index.index("nav-li-graphdisplay")
    for name in ("our_pages.js", "our_pages.css", "offline.js"):
        assert (site / name).is_file()


def test_no_page_loads_anything(full):
    for name, page in full.items():
        assert [] == re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"(?!data:)[^\"]*", page), name
        assert "default-src 'none'" in page


def test_each_machine_has_its_part(full):
    for page in full.values():
        assert "NVIDIA H200" in page and "AMD Ryzen 7 7840U" in page
    assert 2 == full["roofline"].count('<svg class="chart"')
    assert "No roofline: it needs cases" in full["roofline"]


def test_without_records_the_next_step_is_said(empty):
    _, pages = empty
    assert all("No run record yet" in page for page in pages.values())


def test_a_broken_record_is_passed_by_and_said(tmp_path):
    _, pages = site_of(tmp_path, SMALL, broken=["20991231T000000Z-aaaaaaaa.json.gz"])
    assert "Passed by: 20991231T000000Z-aaaaaaaa.json.gz: not a readable run record" in pages["budgets"]
    assert "2026-11-20 22:14:05 UTC" in pages["budgets"]


def test_budgets_that_are_not_right_stop_the_publishing(tmp_path, monkeypatch):
    from prism_bench.report.asv import pages as newest

    (tmp_path / "mine" / "budgets").mkdir(parents=True)
    (tmp_path / "mine" / "budgets" / "nvidia-h200.toml").write_text("[[budget")
    monkeypatch.setattr(newest, "of_project", lambda: discover(tmp_path / "mine"))
    with pytest.raises(ResultsError, match=r"nvidia-h200\.toml: "):
        site_of(tmp_path, SMALL)


def test_a_machine_with_nothing_readable_is_named(tmp_path):
    _, pages = site_of(tmp_path, broken=["20991231T000000Z-aaaaaaaa.json.gz"])
    assert "<h2>nvidia-h200</h2>" in pages["roofline"] and "Passed by:" in pages["roofline"]


def test_names_are_only_text(tmp_path):
    _, pages = site_of(tmp_path, record_of(case_result("<b>k</b>"), machine={"id": "box", "device": "<i>box</i>"}))
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


def nights(count, step, factor):
    """A record a night, whose softmax becomes slower by the factor on the night of the step."""
    for night in range(count):
        seconds = 5e-5 * (factor if night >= step else 1) * (1 + 0.001 * (night * 7 % 5))
        case = case_result("softmax", times={"cold_time": seconds}, code={"sass": "b" if night >= step else "a"})
        yield record_of(case, created=f"2026-10-{night + 1:02d}T03:00:00")


def test_a_step_is_told_and_drawn(tmp_path):
    _, pages = site_of(tmp_path, *nights(20, 14, 1.2))
    page = pages["steps"]
    assert "20 records." in page and 1 == page.count('<article class="step">') == page.count('<svg class="chart"')
    assert "machine code changed" in page
    assert 'aria-label="softmax[n=100]: 50.1 us before, 60.1 us after"' in page


def test_too_few_nights_are_said(tmp_path):
    _, pages = site_of(tmp_path, SMALL)
    assert "1 record, and no step in them. A step needs 11" in pages["steps"]


def test_without_the_libraries_the_page_stays_as_it_was_and_that_is_told(tmp_path, monkeypatch):
    def refuse(site):
        raise ResultsError("https://registry does not answer")

    monkeypatch.setattr("prism_bench.report.asv.pages.carry_libraries", refuse)
    told, site = [], copied(tmp_path / "site")
    build(site, tmp_path / "runs", told.append)
    assert ["asv's page needs a network to be looked at: https://registry does not answer"] == told
    page = (site / "index.html").read_text()
    assert "https://code.jquery.com/jquery-3.3.1.min.js" in page and "#/roofline" in page
