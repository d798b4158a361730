"""Noise floors on disk: kept case by case, read strictly."""

import json
from dataclasses import replace

import pytest

from prism_bench.analysis.compare.noise import Floor, Noise, keep_noise, path_for, read_noise, stored_noise, write_noise
from prism_bench.errors import ResultsError

FLOOR = Floor(2e-5, 0.01, 0.002, 10, 6, 0.03, 0, 20, "2026-11-20T22:14:05", "7471611d")
NOISE = Noise("nvidia-h200", "NVIDIA H200", "cuda", 1, {("k[n=1]", "cold_time"): FLOOR})


def test_what_is_written_is_read(tmp_path):
    path = write_noise(NOISE, path_for("nvidia-h200", tmp_path))
    assert tmp_path / "nvidia-h200.json" == path
    assert NOISE == stored_noise("nvidia-h200", tmp_path)


def test_a_machine_without_noise_has_none(tmp_path):
    assert stored_noise("laptop", tmp_path) is None


def test_measuring_one_case_again_leaves_the_others_alone(tmp_path):
    keep_noise(NOISE, tmp_path)
    again = replace(FLOOR, between=0.02)
    keep_noise(replace(NOISE, floors={("other[n=1]", "hot_time"): again}), tmp_path)
    found = stored_noise("nvidia-h200", tmp_path).floors
    assert {("k[n=1]", "cold_time"): FLOOR, ("other[n=1]", "hot_time"): again} == found


@pytest.mark.parametrize("change", [{"protocol": 2}, {"device": "NVIDIA H100"}, {"backend": "null"}])
def test_floors_of_something_else_are_left_behind(tmp_path, change):
    keep_noise(NOISE, tmp_path)
    new = replace(NOISE, floors={("other[n=1]", "hot_time"): FLOOR}, **change)
    keep_noise(new, tmp_path)
    assert new == stored_noise("nvidia-h200", tmp_path)


def test_the_same_floors_make_the_same_bytes(tmp_path):
    first = write_noise(NOISE, tmp_path / "one.json").read_bytes()
    assert first == write_noise(NOISE, tmp_path / "two.json").read_bytes()


def damaged(tmp_path, change):
    path = write_noise(NOISE, tmp_path / "noise.json")
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.update(schema=2), "schema is 2, not 1"),
        (lambda data: data.update(machine=7), "'machine' is 7, not a str"),
        (lambda data: data.pop("backend"), "'backend' is None, not a str"),
        (lambda data: data.update(cases=[]), r"'cases' is \[\], not a dict"),
        (lambda data: data["cases"].update({"k[n=1]": []}), r"k\[n=1\]: not a table of metrics"),
        (lambda data: data["cases"]["k[n=1]"]["cold_time"].update(between=-1), r"k\[n=1\] cold_time: a negative"),
        (lambda data: data["cases"]["k[n=1]"]["cold_time"].pop("within"), r"k\[n=1\] cold_time: damaged .*within"),
        (lambda data: data["cases"]["k[n=1]"]["cold_time"].update(joy=1), r"k\[n=1\] cold_time: damaged .*joy"),
        (lambda data: data["cases"]["k[n=1]"].update(cold_time="x"), r"k\[n=1\] cold_time: damaged"),
    ],
)
def test_a_damaged_file_is_named_with_the_place(tmp_path, change, words):
    path = damaged(tmp_path, change)
    with pytest.raises(ResultsError, match=words) as refused:
        read_noise(path)
    assert str(refused.value).startswith(f"{path}: ")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_what_is_no_noise_file_is_named(tmp_path, content):
    path = tmp_path / "noise.json"
    path.write_bytes(content)
    with pytest.raises(ResultsError, match="noise.json"):
        read_noise(path)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ResultsError, match="cannot write .*file/noise.json"):
        write_noise(NOISE, tmp_path / "file" / "noise.json")
