"""Data that a page loads: cut into chunks that never change once they are full."""

import json

import pytest

from prism_bench.report.site import data_files
from tests.report.site.pages import nights, site_of
from tests.report.synthetic import case_result, record_of


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(data_files, "CHUNK", 4)


def data(site):
    return {path.relative_to(site / "data").as_posix(): path.read_text() for path in (site / "data").rglob("*.js")}


def given(text):
    """Name, first night and values that a data file hands over."""
    return json.loads(f"[{text.removeprefix('prism.give(').removesuffix(');' + chr(10))}]")


def records(count):
    case = case_result("k", times={"cold_time": 1.2345e-5, "hot_time": 1e-5, "cold_time@peer:torch": 2e-5})
    return nights(record_of(case), count)


def test_every_night_is_in_the_chunks_with_four_digits(tmp_path):
    found = [given(text) for name, text in sorted(data(site_of(tmp_path, *records(6))).items()) if name[0] == "k"]
    assert [("k", 0), ("k", 4)] == [(name, first) for name, first, _ in found]
    values = [one["k[n=100]"]["cold_time kernel"] for _, _, one in found]
    assert [4, 2] == [len(one) for one in values]
    assert 1.234e-5 == pytest.approx(values[0][0], rel=1e-3)
    assert {"cold_time kernel", "hot_time kernel", "cold_time peer:torch"} == set(found[0][2]["k[n=100]"])


def test_a_count_of_the_compiler_keeps_all_of_its_digits(tmp_path):
    coded = case_result("k", times={"cold_time": 1e-5}, code={"sass": "1", "code_bytes": 74624, "registers": 42})
    site = site_of(tmp_path, *nights(record_of(coded), 3))
    ((_, _, values),) = [given(text) for name, text in data(site).items() if name[0] == "k"]
    assert {"cold_time kernel", "code_bytes kernel", "registers kernel"} == set(values["k[n=100]"])
    assert [74624] * 3 == values["k[n=100]"]["code_bytes kernel"]


def test_a_new_night_leaves_full_chunks_as_they_are(tmp_path):
    every = records(7)
    before = data(site_of(tmp_path, *every[:6]))
    after = data(site_of(tmp_path, *every))
    full = {name for name in before if "/000000-" in name}
    assert 2 == len(full)
    assert {name: before[name] for name in full} == {name: after[name] for name in full}
    new = {name.split("/")[0] for name in set(after) - set(before)}
    assert {"k", "nights", "pages", "records"} == new, "of pages, those that show the newest night"


def test_a_night_that_cannot_be_trusted_is_a_gap(tmp_path):
    every = records(3)
    (case,) = every[1].cases
    wrong = type(case)(**{**vars(case), "status": "wrong", "reason": "y[0] is 7"})
    every[1] = type(every[1])(**{**vars(every[1]), "cases": (wrong,)})
    (text,) = [text for name, text in data(site_of(tmp_path, *every)).items() if name[0] == "k"]
    first, second, third = given(text)[2]["k[n=100]"]["hot_time kernel"]
    assert second is None and first == third
