"""Shards of records: what they say is what the records say, also while they are compacted, cut or written by two."""

import fcntl
import os
import random
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path

import pytest

from prism_bench.analysis.gate.checks import trend_part
from prism_bench.analysis.trend import series, trend
from prism_bench.analysis.trend.detection import WindowTest
from prism_bench.analysis.trend.series import courses
from prism_bench.errors import ResultsError
from prism_bench.extensions.ci.keeping import Checkout, keep, opened
from prism_bench.extensions.ci.keeping.branch import Base
from prism_bench.extensions.ci.raw_samples import KeptRaw
from prism_bench.io import documents
from prism_bench.record.store import all_points, parquet, read, read_history, records_in, save, shards
from prism_bench.record.store.history import add_record, compact, migrate, prune, removable, verify
from prism_bench.record.store.points import counted, seconds, shown, units_of
from prism_bench.record.store.shards import ShardFolder
from prism_bench.report.terminal.gate import trend_json
from tests.report.synthetic import case_result, record_of

pytest.importorskip("pyarrow", reason="shards are Parquet: pip install 'prism-gpu-bench[parquet]'")
RUNS, CASES = 30, 5


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    yield
    documents.supply(None)


def run(runs, number):
    """The record of a run: 30 of them are in two months, and one case becomes slower with other machine code."""
    rng = random.Random(number)
    times = [{"cold_time": 1e-4 * (case + 1) * rng.gauss(1, 0.003) * (1.2 if case == 2 and number > 14 else 1),
              "cold_time@peer:torch": 2e-4} for case in range(CASES)]  # fmt: skip
    cases = [case_result(f"k{case}", times=own, code={"sass": f"{case}{case == 2 and number > 14}"})
             for case, own in enumerate(times)]  # fmt: skip
    created = f"2026-{1 + number // 20:02d}-{1 + number % 20:02d}T03:00:00"
    record = record_of(*cases, created=created, commit=f"{number:08x}")
    return save(
        record, runs / "nvidia-h200" / f"{created[:19].replace('-', '').replace(':', '')}Z-{number:08x}.json.gz"
    )


@pytest.fixture
def runs(tmp_path):
    for number in range(RUNS):
        run(tmp_path / "runs", number)
    return tmp_path / "runs"


def said(runs):
    """What trend, check and an export say of the records."""
    history = read_history(runs)
    newest = read(records_in(runs)[-1])
    found = trend_json(trend(history), history)
    gate = asdict(trend_part(history, newest))
    lines = [(one.key, one.records.tolist(), one.values.tolist()) for one in courses(history)]
    return found, gate, sorted(lines, key=str), all_points(history).to_csv()


def points_folder(runs):
    return runs / "nvidia-h200" / "points"


def test_shards_say_what_the_records_say_as_small_files_as_months_and_without_raw_samples(runs, monkeypatch):
    monkeypatch.setattr(series, "LENGTH", 16)  # so that a short history has several windows
    monkeypatch.setattr(series, "OVERLAP", 12)
    expected = said(runs)
    assert ["k2"] == sorted({step["key"]["case"].partition("[")[0] for step in expected[0]["steps"]})
    points_folder(runs).mkdir()
    for path in records_in(runs):
        add_record(path, runs)
    assert RUNS == len(list(points_folder(runs).glob("*/*.parquet")))
    assert expected == said(runs)
    assert 2 == len(compact(runs))
    assert ["2026-01.parquet", "2026-02.parquet"] == sorted(os.listdir(points_folder(runs)))
    for path in records_in(runs)[:-1]:
        path.unlink()
    assert expected == said(runs)


def test_migrating_reads_each_record_once(runs, monkeypatch):
    assert RUNS == migrate(runs).records
    assert (RUNS, 2, 0, ()) == (
        verify(runs).records,
        verify(runs).shards,
        len(verify(runs).missing),
        verify(runs).problems,
    )
    before = {path: path.read_bytes() for path in ShardFolder(runs).paths()}
    new = run(runs, RUNS)
    assert (new.parent.parent / "nvidia-h200" / "points" / "2026-02").name == add_record(new, runs).parent.name
    monkeypatch.setattr("prism_bench.record.store.history.text_at", lambda *_: pytest.fail("was read again"))
    assert 0 == migrate(runs).records
    assert RUNS + 1 == len(read_history(runs).records)
    assert all(path.read_bytes() == data for path, data in before.items())


def test_a_changed_record_counts_as_it_is_now(runs):
    migrate(runs)
    path = records_in(runs)[3]
    save(replace(read(path), commit="changed"), path)
    assert "changed" == read_history(runs).records[3].commit
    (problem,) = verify(runs).problems
    assert path.name in problem
    migrate(runs)
    assert () == verify(runs).problems
    assert "changed" == read_history(runs).records[3].commit


@pytest.mark.parametrize("cut", [0, 10, 0.5, -1])
def test_a_cut_shard_is_named_and_the_rest_works(runs, cut):
    migrate(runs)
    for path in records_in(runs):
        path.unlink()
    shard = points_folder(runs) / "2026-01.parquet"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: int(cut * len(whole)) if isinstance(cut, float) else cut])
    history = read_history(runs)
    assert RUNS - 20 == len(history.records)
    assert RUNS - 20 == trend(history).points / CASES / 2
    (problem,) = history.problems
    assert ("nvidia-h200/points/2026-01.parquet", True) == (problem.file, str(shard) in problem.reason)
    assert 1 == len(verify(runs).problems)
    assert [] == compact(runs)


def test_a_cut_shard_costs_nothing_while_its_records_are_there(runs):
    expected = all_points(read_history(runs)).to_csv()
    migrate(runs)
    shard = points_folder(runs) / "2026-01.parquet"
    shard.write_bytes(shard.read_bytes()[:-1])
    assert expected == all_points(read_history(runs)).to_csv()


def test_a_damaged_page_is_an_error_that_names_the_shard(runs):
    migrate(runs)
    shard = points_folder(runs) / "2026-01.parquet"
    data = bytearray(shard.read_bytes())
    data[200] ^= 0xFF
    shard.write_bytes(data)
    with pytest.raises(ResultsError, match="2026-01.parquet"):
        _ = read_history(runs).points


def test_a_reader_is_right_in_the_middle_of_a_compaction(runs):
    points_folder(runs).mkdir()
    for path in records_in(runs):
        add_record(path, runs)
    history, expected = read_history(runs), said(runs)
    compact(runs)  # after it has listed the small files, and before it reads them
    assert expected[3] == all_points(history).to_csv()


def test_a_reader_is_right_at_every_moment_of_compactions(runs, monkeypatch):
    points_folder(runs).mkdir()
    for path in records_in(runs):
        add_record(path, runs)
    seen, write = [], parquet.write_shard

    def looked_at(*words):
        seen.append(len(read_history(runs).records))
        write(*words)
        seen.append(len(read_history(runs).records))

    monkeypatch.setattr(parquet, "write_shard", looked_at)
    compact(runs)
    assert [RUNS] * 4 == seen


def test_two_writers_wait_for_each_other(runs, monkeypatch):
    points_folder(runs).mkdir()
    for path in records_in(runs):
        add_record(path, runs)
    writers = [threading.Thread(target=compact, args=(runs,)) for _ in range(2)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert (RUNS, ()) == (verify(runs).records, verify(runs).problems)
    monkeypatch.setattr(shards, "WAIT", 0.0)
    add_record(run(runs, RUNS), runs)
    descriptor = os.open(points_folder(runs), os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(ResultsError, match="another process"):
        compact(runs)
    os.close(descriptor)
    assert 1 == len(compact(runs))


def test_what_windows_found_with_other_noise_floors_is_kept(runs, tmp_path, monkeypatch):
    history = read_history(runs)
    floors = [{("nvidia-h200", "cuda", "k2[n=100]", "cold_time"): floor} for floor in (0.01, 0.5)]
    first, other = (trend(history, one).steps for one in floors)
    assert (1, 0) == (len(first), len(other))
    assert 2 == len(list((tmp_path / "cache" / "trends").glob("*.json")))
    monkeypatch.setattr(WindowTest, "run", lambda *arguments: pytest.fail("a window was tested again"))
    assert [first, other] == [trend(history, one).steps for one in floors]


@pytest.mark.parametrize("damaged", [b"", b"{}", b'{"digest":"","found":{"points":"many"}}', b"\xff" * 9])
def test_damaged_findings_of_a_window_are_found_again(runs, tmp_path, damaged):
    history = read_history(runs)
    expected = trend(history)
    (kept,) = (tmp_path / "cache" / "trends").glob("*.json")
    whole = kept.read_bytes()
    kept.write_bytes(damaged)
    assert expected == trend(history)
    assert whole == kept.read_bytes()


@pytest.mark.parametrize("command", [("trend",), ("check",), ("comment", "--since", "7d")])
def test_a_command_that_makes_no_table_does_not_import_pandas(runs, command):
    migrate(runs)
    of_toys = [] if command == ("trend",) else ["--catalogue", str(Path(__file__).parents[2] / "tunable")]
    words = [sys.executable, "-X", "importtime", "-m", "prism_bench", *command, "--runs", str(runs), *of_toys]
    found = subprocess.run(words, capture_output=True, text=True)
    assert found.returncode in (0, 1, 3), found.stderr[-2000:]
    imported = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert {"numpy", "pyarrow.parquet.core"} <= imported
    assert [] == [name for name in sorted(imported) if name.partition(".")[0] == "pandas"]


def test_old_raw_samples_are_removed_where_a_history_has_them(runs, tmp_path):
    migrate(runs)
    target = opened(str(tmp_path / "kept"), tmp_path)
    paths = records_in(runs)
    used = {paths[2].name: "the baseline"}
    nothing = prune(runs, "2026-02-01", used, KeptRaw(lambda: target), remove=True)
    assert ((), 19) == (nothing.removed, sum("nowhere else" in reason for reason in nothing.stay.values()))
    keep(target, Checkout(runs, Base(tmp_path, target.address)))
    counted = prune(runs, "2026-02-01", used, KeptRaw(lambda: target), remove=False)
    assert (19, paths) == (len(counted.removed), records_in(runs))
    assert counted.removed == prune(runs, "2026-02-01", used, KeptRaw(lambda: target), remove=True).removed
    assert [paths[2], *paths[20:]] == records_in(runs)
    assert RUNS == len(read_history(runs).records)
    with pytest.raises(ResultsError, match="no such record"):
        read(paths[0])
    documents.supply(lambda: KeptRaw(lambda: target))
    assert "00000000" == read(paths[0]).commit
    assert documents.is_present(paths[1])
    assert not documents.is_present(tmp_path / "elsewhere" / "a.json.gz")


@pytest.mark.parametrize("damage", ["gone", "zeroed", "cut"])
def test_no_raw_samples_are_removed_whose_copy_cannot_be_read(runs, tmp_path, damage):
    migrate(runs)
    target = opened(str(tmp_path / "kept"), tmp_path)
    keep(target, Checkout(runs, Base(tmp_path, target.address)))
    path = records_in(runs)[0]
    (copy,) = (tmp_path / "kept" / "files").rglob(path.name)
    whole = copy.read_bytes()
    if damage == "gone":
        copy.unlink()
    else:
        copy.write_bytes(bytes(len(whole)) if damage == "zeroed" else whole[:-9])
    found = prune(runs, "2026-02-01", {}, KeptRaw(lambda: target), remove=True)
    file = path.relative_to(runs).as_posix()
    assert (19, True, True) == (len(found.removed), path.is_file(), "missing or damaged" in found.stay[file])
    path.unlink()
    documents.supply(lambda: KeptRaw(lambda: target))
    assert (False, True) == (documents.is_present(path), documents.is_present(runs / found.removed[0]))
    with pytest.raises(ResultsError, match="its copy is missing or damaged"):
        read(path)
    copy.write_bytes(whole)
    documents.supply(lambda: KeptRaw(lambda: target))
    assert "00000000" == read(path).commit
    (cached,) = (tmp_path / "cache" / "raw").rglob(path.name)
    cached.write_bytes(b"")
    documents.supply(lambda: KeptRaw(lambda: target))
    assert "00000000" == read(path).commit


def test_the_newest_record_and_what_no_shard_has_are_not_removable(runs):
    migrate(runs)
    new = run(runs, RUNS)
    found, stay = removable(runs, str(date(2030, 1, 1)), {})
    assert (RUNS - 1, 2) == (len(found), len(stay))
    assert "no shard has it" in stay[new.relative_to(runs).as_posix()]


def test_times_are_the_same_after_they_were_counted():
    import numpy

    rng = random.Random(1)
    some = [rng.uniform(1, 10) * 10 ** rng.randint(-10, 3) for _ in range(2000)]
    short = [round(rng.uniform(1, 10), 3) / 10**9 for _ in range(100)]
    values = numpy.array([shown(value) for value in (0.0, 1.0, 1234.0, *some, *short)])
    units = units_of(values)
    assert values.tolist() == seconds(counted(values, units), units).tolist()
    assert (0.0, 0.0) == (shown(float("inf")), shown(float("nan")))
