"""What pages show of years of runs: the same as if all were in memory at once, of which only one window is."""

import weakref

import pytest

from prism_bench.analysis.trend import series as windows
from prism_bench.analysis.trend import trend
from prism_bench.analysis.trend.causes import shifts
from prism_bench.analysis.trend.series import SeriesPoints, courses
from prism_bench.report.site import context, data_files
from prism_bench.report.site.context import SeriesPast
from tests.analysis.trend.histories import history, row, series
from tests.report.site.pages import nights, site_of
from tests.report.synthetic import case_result, record_of

NIGHTS = 90
STEPS = {"a": {30: 1.2, 60: 1.3}, "b": {33: 0.8}}


@pytest.fixture(autouse=True)
def small_windows(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(windows, "LENGTH", 16)
    monkeypatch.setattr(windows, "OVERLAP", 12)
    monkeypatch.setattr(context, "RUNS", 10)
    monkeypatch.setattr(context, "AROUND", 6)


def made():
    """A history of two cases, one of which is not in every run, with steps; two boards take turns at the end."""
    values = {name: series(NIGHTS, seed=number, steps=steps) for number, (name, steps) in enumerate(STEPS.items())}
    boards = {"board": lambda night: "GPU-2" if night in {70, 71, 88, 89} else "GPU-1"}
    whole, gaps = row(values["a"], case="a[n=1]", **boards), row(values["b"], case="b[n=1]", **boards)
    return history(NIGHTS, whole, lambda night: None if night % 7 == 3 else gaps(night))


def read(of):
    drawn = [one.largest for one in shifts(trend(of).steps)]
    return SeriesPast(of, "cuda", drawn), drawn


def test_lines_and_pictures_are_those_of_whole_series():
    of = made()
    found, drawn = read(of)
    whole = {one.key: one for one in courses(of)}
    assert {"a[n=1]", "b[n=1]"} == {step.key.case for step in drawn} and len(drawn) > 2
    for key, one in whole.items():
        (newest,) = found.newest(key.case)
        assert [one.records[-10:].tolist(), one.values[-10:].tolist(), one.boards[-10:].tolist()] == [
            newest.records.tolist(), newest.values.tolist(), newest.boards.tolist()]  # fmt: skip
    for step in drawn:
        one, files = whole[step.key], [facts.file for facts in of.records]
        at = one.records.tolist().index(files.index(step.record))
        around, place = found.around(step)
        part = slice(max(0, at - 6), at + 6)
        assert (one.values[part].tolist(), one.values[at]) == (around.values.tolist(), around.values[place])


def test_other_boards_are_found_across_windows():
    found, _ = read(made())
    assert [70, 72, 88] == found.other_boards("a[n=1]")
    assert [70, 72, 88] == found.other_boards("b[n=1]")
    assert [] == found.other_boards("c[n=1]")


def test_no_more_than_a_window_is_in_memory(monkeypatch):
    of = made()
    found, drawn = read(of)
    read_before: list[weakref.ref] = []
    alive: list[int] = []
    of_part = SeriesPoints.of

    def counted(part):
        alive.append(sum(one() is not None for one in read_before))
        points = of_part(part)
        read_before.extend(map(weakref.ref, [points, *points.columns.values()]))
        return points

    monkeypatch.setattr(SeriesPoints, "of", counted)
    for window in found.windows():
        assert all(len(one.records) <= windows.LENGTH for one in window)
    assert [0] * 6 == alive
    kept = [*found.newest("a[n=1]"), *found.newest("b[n=1]"), *found._around.values()]
    assert all(array.base is None for one in kept for array in (one.records, one.values, one.boards))
    assert max(len(one.records) for one in found._around.values()) <= context.AROUND * (2 * len(drawn) + 1)


def test_a_site_of_many_windows_is_that_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "CHUNK", 4)
    case, other = (case_result(name, times={"cold_time": 1.2345e-5, "hot_time": 1e-5}, code={"sass": name})
                   for name in ("k", "l"))  # fmt: skip
    records = nights(record_of(case, other), 30, slower="k", since=14)
    many = files(site_of(tmp_path / "many", *records))
    monkeypatch.setattr(windows, "LENGTH", 768)
    assert files(site_of(tmp_path / "one", *records)) == many
    assert 2 * 8 == sum(name.startswith(("data/k/", "data/l/")) for name in many)


def files(site):
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def test_a_window_has_a_whole_number_of_chunks(monkeypatch):
    monkeypatch.undo()
    assert 0 == windows.LENGTH % data_files.CHUNK
