"""Points of many records: those of several boards, and a table of all of them that is written in parts."""

from dataclasses import replace

import pandas
import pytest

from prism_bench.errors import ResultsError
from prism_bench.record.formats.tables import write_parts
from prism_bench.record.store import History, all_points, parquet, points_in_parts, read_history, records_in, save
from prism_bench.record.store import history as history_module
from prism_bench.record.store.history import add_record, compact, migrate
from prism_bench.record.store.shards import ShardFolder
from prism_bench.run import merge
from tests.record.store.test_shards import CASES, RUNS, run
from tests.report.synthetic import MACHINE, case_result, record_of

pytest.importorskip("pyarrow", reason="shards are Parquet: pip install 'prism-gpu-bench[parquet]'")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    for number in range(RUNS):
        run(tmp_path / "runs", number)
    return tmp_path / "runs"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_export_in_parts_is_the_whole_table(runs, tmp_path, monkeypatch, kind):
    migrate(runs)
    whole = read_history(runs)
    expected = all_points(whole)
    read_at_once, original = [], History.part
    monkeypatch.setattr(history_module, "AT_ONCE", 7)
    monkeypatch.setattr(History, "part", lambda own, places: read_at_once.append(len(places)) or original(own, places))
    path = write_parts(points_in_parts(whole), tmp_path / f"all.{kind}", kind)
    found = pandas.read_csv(path) if kind == "csv" else pandas.read_parquet(path)
    assert [7, 7, 7, 7, 2] == read_at_once, "never more than those were in memory"
    assert list(expected.columns) == list(found.columns)
    texts = expected["case"].astype(str).tolist(), expected["file"].tolist(), expected["value"].tolist()
    assert texts == (found["case"].tolist(), found["file"].tolist(), found["value"].tolist())


def test_an_export_that_fails_in_the_middle_leaves_the_file_before(runs, tmp_path, monkeypatch):
    migrate(runs)
    monkeypatch.setattr(history_module, "AT_ONCE", 25)
    history = read_history(runs)
    (tmp_path / "all.csv").write_text("of yesterday")
    last = ShardFolder(runs).paths()[-1]
    last.write_bytes(last.read_bytes()[:-40])
    with pytest.raises(ResultsError, match="not a readable shard"):
        write_parts(points_in_parts(history), tmp_path / "all.csv", "csv")
    assert ("of yesterday", ["all.csv"]) == (
        (tmp_path / "all.csv").read_text(), [path.name for path in tmp_path.glob("*all*")])  # fmt: skip


def test_a_shard_older_than_the_column_of_boards_has_the_board_of_its_record(runs):
    migrate(runs)
    expected = read_history(runs).points["board"].astype(str).tolist()
    assert {"GPU-5ab1c0de"} == set(expected)
    for path in ShardFolder(runs).paths():
        parts = [replace(part, rows=part.rows.drop_columns([parquet.BOARD])) for part in parquet.parts_of(path)]
        parquet.write_shard(path, parts)
        assert parquet.BOARD not in parquet._opened(path).schema_arrow.names
    assert expected == read_history(runs).points["board"].astype(str).tolist()
    add_record(run(runs, RUNS), runs)
    compact(runs)
    assert [*expected, *["GPU-5ab1c0de"] * 2 * CASES] == read_history(runs).points["board"].astype(str).tolist()


def test_points_have_the_boards_of_a_merged_record_and_facts_have_its_anchors(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    boards = [{"uuid": uuid, "vbios": "96.00", "power_limit": 700.0} for uuid in ("GPU-a", "GPU-b")]
    parts = []
    for board, kernel, seconds_ in zip(boards, ("one", "other"), (1e-6, 3e-6), strict=True):
        cases = [case_result("null", times={"cold_time": seconds_}, ceiling="launch", family="machine"),
                 case_result(kernel, times={"cold_time": 1e-4})]  # fmt: skip
        parts.append(record_of(*cases, machine={**MACHINE, "uuid": board["uuid"]}, boards=(board,)))
    save(
        merge([(f"{number}", part) for number, part in enumerate(parts)]),
        tmp_path / "runs/m/20260101T000000Z-a.json.gz",
    )
    migrate(tmp_path / "runs")
    for path in records_in(tmp_path / "runs"):
        path.unlink()
    history = read_history(tmp_path / "runs")
    (facts,) = history.records
    assert (boards, {"GPU-a": {"null[n=100]": {"cold_time": 1e-6}}, "GPU-b": {"null[n=100]": {"cold_time": 3e-6}}}) == (
        facts.boards, facts.anchors)  # fmt: skip
    points = history.points
    assert {"null[n=100]": "", "one[n=100]": "GPU-a", "other[n=100]": "GPU-b"} == dict(
        zip(points["case"].astype(str), points["board"].astype(str), strict=True))  # fmt: skip
