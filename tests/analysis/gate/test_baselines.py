"""Baselines: a record's medians, kept and read strictly."""

from dataclasses import replace

import pytest

from prism_bench.analysis.gate.budgets import baseline_of, host_notes, read_baseline, slowdowns, write_baseline
from prism_bench.errors import ResultsError
from tests.report.synthetic import MACHINE, case_result, measurement, record_of


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


def copies(factor=1.0, host="a", slow=None, **changes):
    """A record of ten cases whose copies take `factor` as long, on a host; those of `slow` take three times as long."""
    boards = ({"uuid": MACHINE["uuid"], **({"host": host} if host else {})},)
    cases = [
        case_result(name, times={"cold_time": 1e-5, "end_to_end_time": 1e-3 * factor * (3 if name == slow else 1)})
        for name in (f"k{number}" for number in range(10))
    ]
    return record_of(*cases, **{"boards": boards, **changes})


def held(record, baseline):
    """The slow cases and the notes of a record against the baseline."""
    slow = slowdowns(record, baseline=baseline)
    grave = [(one.case, one.metric) for one in slow if one.kept is False]
    return grave, list(host_notes(record, slow, baseline))


def test_times_of_another_host_are_not_compared_and_noted_once():
    """All copies of a record took 1.47 times as long on another host, and 186 cases were called slower."""
    cores = {**MACHINE, "host": {**MACHINE["host"], "cores": 32}}
    reason = (
        "not compared: 10 cases of end to end time: the host's clock read the end to end time, and the baseline and"
    )
    for other in (copies(2.0, host="b"), copies(2.0, host="a", machine=cores), copies(2.0, host=None)):
        grave, (note,) = held(other, baseline_of(copies(), "r.json.gz"))
        assert [] == grave and f"{reason} this record are not known to be of one host" == note
    unknown = replace(baseline_of(copies(), "r.json.gz"), host="")
    grave, (note,) = held(copies(2.0, created="2026-11-21T00:00:00"), unknown)
    assert [] == grave and note.endswith(": 'prism-bench check --accept' writes a baseline with its host")
    assert [] == held(copies(), unknown)[1]  # the baseline's own record


def test_what_most_copies_have_in_common_on_one_host_is_one_note():
    grave, (note,) = held(copies(1.6, slow="k3"), baseline_of(copies(), "r.json.gz"))
    assert [("k3[n=100]", "end_to_end_time")] == grave
    assert (
        "end to end time differs by +60.0 % from the baseline's in the median of 10 cases" in note
        and "divided out" in note
    )


def test_the_host_of_a_baseline_is_kept(tmp_path):
    found = baseline_of(copies(), "r.json.gz")
    assert "a, processor x86_64, cores 16" == found.host
    assert found.host == read_baseline(write_baseline(found, tmp_path / "b.toml")).host
    grave, notes = held(copies(1.0, slow="k3"), found)
    assert ([("k3[n=100]", "end_to_end_time")], []) == (grave, notes)


def test_a_machine_without_a_gpu_is_its_own_host():
    cpu = {"id": "runner", "host": {"processor": "x86_64", "cores": 2}}
    old, new = (record_of(case_result("k", times={"wall_time": seconds}), backend="numpy", machine=cpu)
                for seconds in (1e-3, 2e-3))  # fmt: skip
    for host in ("runner, processor x86_64, cores 2", ""):
        assert [("k[n=100]", "wall_time")] == held(new, replace(baseline_of(old, "r.json.gz"), host=host))[0]
