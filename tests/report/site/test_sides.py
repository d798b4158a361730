"""What a record brings to a comparison lies in one file, made once; a record without one harms nothing."""

import json
from dataclasses import replace

import pytest

from prism_bench.report.site import data_files
from prism_bench.report.site.data_files import file_of, side_files, side_of
from tests.report.site.pages import nights, site_of
from tests.report.synthetic import MACHINE, case_result, gpu_record, record_of


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def records(count):
    return nights(record_of(case_result("k", times={"cold_time": 1.2345e-5})), count)


def laid(site):
    return {path.name: path.stat().st_mtime_ns for path in (site / "data" / "records").glob("*.js")}


def listed(site):
    (file,) = (site / "data" / "nights").glob("*.js")
    return [night[2] for night in json.loads(f"[{file.read_text().partition('(')[2].rpartition(')')[0]}]")[2]]


def test_every_record_has_a_side_that_the_list_of_nights_names(tmp_path):
    site = site_of(tmp_path, *records(3))
    assert sorted(laid(site)) == sorted(f"{name}.js" for name in listed(site))


def test_a_side_is_made_once(tmp_path, monkeypatch):
    every = records(4)
    before = laid(site_of(tmp_path, *every[:3]))
    made, content = [], data_files.side_of
    monkeypatch.setattr(data_files, "side_of", lambda record: (made.append(record), content(record))[1])
    after = laid(site_of(tmp_path, *every))
    assert 1 == len(made)
    assert before == {name: after[name] for name in before}


def test_a_side_that_was_cut_is_made_again(tmp_path):
    every = records(2)
    site = site_of(tmp_path, *every)
    cut = site / file_of(listed(site)[0])
    whole = cut.read_bytes()
    cut.write_bytes(whole[:40])
    assert whole == (site_of(tmp_path, *every) / file_of(listed(site)[0])).read_bytes()


def test_other_code_or_another_record_makes_another_side(tmp_path, monkeypatch):
    every = records(2)
    before = listed(site_of(tmp_path, *every))
    monkeypatch.setattr(data_files, "_maker", lambda: "other code")
    after = listed(site_of(tmp_path, *every))
    assert 4 == len({*before, *after})


def test_a_record_that_cannot_be_read_has_no_side(tmp_path):
    path = tmp_path / "cut.json.gz"
    path.write_bytes(b"cut")
    assert [] == list(side_files(tmp_path, [("abc", path)]))


def test_a_case_without_a_time_says_why_and_edges_are_left_out():
    record = gpu_record()
    told = side_of(record)["cases"]
    assert {case.name for case in record.cases if not case.is_edge} == set(told)
    skipped = next(case for case in record.cases if case.kernel == "softmax" and case.status == "skipped")
    assert [None, f"skipped in {{side}}: {skipped.reason}"] == told[skipped.name]


def test_a_merged_record_tells_which_device_measured_which_kernel():
    parts = ({"uuid": "a", "kernels": ["softmax", "matmul"]}, {"uuid": "b", "kernels": ["conv2d"]})
    merged = side_of(gpu_record(machine={"id": "m"}, parts=parts))
    assert (None, {"softmax": "a", "matmul": "a", "conv2d": "b"}) == (merged["uuid"], merged["units"])
    assert (MACHINE["uuid"], None) == tuple(side_of(gpu_record())[name] for name in ("uuid", "units"))


def test_a_time_of_zero_is_no_time():
    case = case_result("k", times={"cold_time": 1e-5})
    (one,) = case.measurements
    broken = replace(case, measurements=(replace(one, processes=((0.0, 1e-5),)),))
    assert ["cold_time", "{side} has a time that is not above zero"] == side_of(record_of(broken))["cases"][case.name]
