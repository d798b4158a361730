"""Baselines: a record's medians, kept and read strictly."""

import pytest

from prism_bench.analysis.gate.baselines import baseline_of, read_baseline, write_baseline
from prism_bench.errors import ResultsError
from tests.report.synthetic import case_result, measurement, record_of


def record():
    times = {"cold_time": 2.1234e-6, "hot_time": 1e-6, "launch_time": 5e-6, "cold_time@peer:torch": 3e-6}
    return record_of(case_result("k", times=times), case_result("wrong", status="wrong", times={"cold_time": 1e-6}))


def test_a_baseline_holds_the_valid_medians_of_the_kernels_own_times():
    found = baseline_of(record(), "r.json.gz")
    assert {("k[n=100]", "cold_time"), ("k[n=100]", "hot_time")} == set(found.seconds)
    assert 2.1234e-6 == pytest.approx(found.seconds["k[n=100]", "cold_time"])
    assert ("NVIDIA H200", "cuda", 1, "r.json.gz") == (found.device, found.backend, found.protocol, found.record)


def test_what_is_written_is_read(tmp_path):
    found = baseline_of(record(), "r.json.gz")
    read = read_baseline(write_baseline(found, tmp_path / "b.toml"))
    assert found.seconds == pytest.approx(read.seconds, rel=1e-3)
    assert {**vars(found), "seconds": 0} == {**vars(read), "seconds": 0}


def test_a_name_that_toml_would_misread_survives(tmp_path):
    odd = record_of(case_result('a"b\\c', times={"cold_time": 1e-6}))
    path = write_baseline(baseline_of(odd, 'r "1".json'), tmp_path / "b.toml")
    assert [('a"b\\c[n=100]', "cold_time")] == list(read_baseline(path).seconds)


def test_a_record_without_valid_times_makes_no_baseline():
    doubtful = case_result("k", measurements=(measurement("cold_time", 1e-6, valid=False, reason="no"),))
    with pytest.raises(ResultsError, match="r.json.gz: holds no valid time"):
        baseline_of(record_of(doubtful), "r.json.gz")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('device = "NVIDIA H200"', "device = 7", "'device' is 7, not str"),
        ("protocol = 1\n", "", "'protocol' is missing"),
        ("protocol = 1", "protocol = 1\njoy = 2", "unknown key 'joy'"),
        ("seconds.cold_time", "seconds.cold_tim", "seconds: unknown metric 'cold_tim'"),
        ("2.123e-06", "-1", r"seconds.cold_time: 'k\[n=100\]' is -1; it must be a number from 0 upwards"),
        ("2.123e-06", '"x"', r"seconds.cold_time: 'k\[n=100\]' is 'x', not int or float"),
        ("[seconds", "[seconds.", "not readable TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, old, new, words):
    path = write_baseline(baseline_of(record(), "r.json.gz"), tmp_path / "b.toml")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ResultsError, match=words) as refused:
        read_baseline(path)
    assert str(refused.value).startswith(f"{path}: ")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ResultsError, match="cannot write .*file/b.toml"):
        write_baseline(baseline_of(record(), "r.json.gz"), tmp_path / "file" / "b.toml")
