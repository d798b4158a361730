"""Pages of two stored kernels: their widest tables fit the window."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.record import store
from tests.report.site.browser import OVERLAPS, opened, window
from tests.report.site.pages import site_of

ROOT = Path(__file__).resolve().parents[3]
RECORD = max((ROOT / "reports" / "runs" / "nvidia-h200").glob("*.json.gz"))
KERNELS = {"matmul": "basic", "ar_forecast": "time_series"}  # both have a peer with a long name or an unstable time
PAGES = [*(f"kernels/{name}" for name in KERNELS), "operations/matmul"]
CUT = """() => [...document.querySelectorAll(".scroll")].filter((one) => one.scrollWidth > one.clientWidth + 1)
    .map((one) => [one.querySelector("table")?.dataset.name, one.scrollWidth - one.clientWidth])"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The site about two kernels of the newest stored record of an H200."""
    patch, folder = pytest.MonkeyPatch(), tmp_path_factory.mktemp("reports")
    patch.setenv("PRISM_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
    for name, family in KERNELS.items():
        (folder / "kernels" / family).mkdir(parents=True)
        for file in (ROOT / "kernels" / family).glob(f"{name}.*"):
            (folder / "kernels" / family / file.name).write_bytes(file.read_bytes())
    (folder / "kernels" / "include").symlink_to(ROOT / "kernels" / "include")
    record = store.read(RECORD, edges=False)
    cases = tuple(case for case in record.cases if case.kernel in KERNELS or case.ceiling is not None)
    yield site_of(folder, replace(record, cases=cases), catalogue=discover(folder / "kernels"))
    patch.undo()


def test_no_table_is_cut_at_the_edge_of_a_wide_window(browser, stored):
    with window(browser, 1440) as page:
        for name in PAGES:
            opened(page, stored, name)
            assert [] == page.evaluate(CUT), name
            assert [] == page.evaluate(OVERLAPS), f"{name}: text on text"


def test_a_table_that_is_too_wide_is_found(browser, stored):
    """The check itself: a page with a peer's words on one line is cut."""
    with window(browser, 1440) as page:
        opened(page, stored, "kernels/ar_forecast")
        page.add_style_tag(content=".cases td small { white-space: nowrap !important; width: auto !important }")
        page.add_style_tag(content=".cases .axes { max-width: none !important }")
        assert [name for name, _ in page.evaluate(CUT)] == ["ar_forecast"]


def test_an_unstable_peer_is_in_the_table(stored):
    """Without one the test above would check nothing."""
    assert any(re.search(r", unstable: .* to ", (stored / f"kernels/{name}.html").read_text()) for name in KERNELS)
