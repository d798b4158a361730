"""`prism-bench store`: shards of records, made, put together, verified and pruned; mistakes are one sentence."""

import pytest

from prism_bench.record.store import records_in, save
from tests.report.synthetic import case_result, record_of

pytest.importorskip("pyarrow", reason="shards are Parquet: pip install 'prism-gpu-bench[parquet]'")


@pytest.fixture
def runs(tmp_path):
    for day in (1, 2, 3):
        record = record_of(case_result("k", times={"cold_time": day * 1e-3}), created=f"2026-01-{day:02d}T03:00:00")
        save(record, tmp_path / "runs" / "nvidia-h200" / f"202601{day:02d}T030000Z-abc.json.gz")
    return tmp_path / "runs"


def test_records_become_shards_and_old_samples_go(shell, runs, tmp_path):
    made = shell("store", "migrate", "--runs", runs, "--json")
    assert (0, 3, 1, []) == (made.code, made.json["records"], len(made.json["written"]), made.json["problems"])
    assert "nothing to put together" in shell("store", "compact", "--runs", runs).out
    found = shell("store", "verify", "--runs", runs, "--json").json
    assert (3, 1, 3, [], []) == tuple(found[name] for name in ("records", "shards", "raw", "problems", "missing"))
    away = ("store", "prune", "--runs", runs, "--keep-raw", "1d", "--to", tmp_path / "kept")
    kept = shell(*away)
    assert "2 records kept: its raw samples are nowhere else" in kept.out
    assert 3 == len(records_in(runs))
    assert 2 == len(shell(*away, "--drop", "--dry-run", "--json").json["removed"])
    assert "raw samples of 2 records removed" in shell(*away, "--drop").out
    assert 1 == len(records_in(runs))
    assert 3 == shell("trend", "--runs", runs, "--json").json["records"]


def test_samples_go_from_a_folder_of_any_name(shell, runs, tmp_path):
    measured = runs.rename(tmp_path / "measured")
    shell("store", "migrate", "--runs", measured)
    assert 0 == shell("store", "keep", "--runs", measured, "--to", "kept").code
    done = shell("store", "prune", "--runs", measured, "--keep-raw", "1d", "--to", "kept", "--json").json
    assert (2, 1) == (len(done["removed"]), len(records_in(measured)))


def test_a_cut_shard_ends_verify_with_1_and_names_it(shell, runs):
    shell("store", "migrate", "--runs", runs)
    (shard,) = runs.glob("*/points/*.parquet")
    shard.write_bytes(shard.read_bytes()[:-9])
    found = shell("store", "verify", "--runs", runs)
    assert 1 == found.code
    assert str(shard) in "".join(found.out.split("\n"))


@pytest.mark.parametrize(("words", "problem"), [
    (("prune",), "needs --keep-raw"), (("verify", "--keep-raw", "1d"), "--keep-raw is for prune"),
    (("prune", "--keep-raw", "soon"), "write 90d"),
])  # fmt: skip
def test_a_mistake_is_one_sentence(shell, runs, words, problem):
    found = shell("store", *words, "--runs", runs)
    assert (2, 1) == (found.code, len(found.err.strip().splitlines()))
    assert problem in found.err


def test_a_missing_folder_is_one_sentence(shell, tmp_path):
    found = shell("store", "verify", "--runs", tmp_path / "none")
    assert 2 == found.code
    assert "no folder of records" in found.err
