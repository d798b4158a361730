"""`prism-bench fuse`: records, the emulator without a record, exit codes, JSON, picture."""

from pathlib import Path

import pytest

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.errors import BackendUnavailable
from prism_bench.record import store
from tests.extensions.fusion.benefit.toy_chain import AFTER_TIMES, BEFORE_TIMES, MEASURED, record, result
from tests.record.store.test_records import empty_record

SOURCE = """
extern "C" __global__ void twice(const float* x, float* middle, float* own, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) middle[i] = 2.0f * x[i];
}
extern "C" __global__ void add(const float* middle, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = middle[i] + 1.0f;
}
extern "C" __global__ void both(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
"""
SPEC = '''"""y = 2 x + 1."""

from prism_bench import Chain, In, KernelSpec, Launch, Out, Scratch, Size, Variant, Workload


def launch(entry, n, *names):
    return Launch(-(-n // 128), 128, entry=entry, arguments=(*names, "n"))


spec = KernelSpec(
    entry="both",
    arguments=(In("x", "n"), Out("y", "n"), Scratch("middle", "n"), Scratch("own", "8"), Size("n")),
    launch=lambda n: (launch("twice", n, "x", "middle", "own"), launch("add", n, "middle", "y")),
    reference=lambda x: 2 * x + 1,
    workloads={"S0": Workload(n=1000)},
    variants={"full": Variant("one launch", launch=lambda n: launch("both", n, "x", "y"))},
    chains=(Chain("transfer_entropy", {"baseline": None, "full": "full"}, between=("middle",)),),
)
'''


@pytest.fixture
def chained(tmp_path):
    """The words that choose a catalogue of one chain."""
    folder = tmp_path / "kernels" / "toys"
    folder.mkdir(parents=True)
    (folder / "toy_chain.cu").write_text(SOURCE)
    (folder / "toy_chain.py").write_text(SPEC)
    return ("--catalogue", folder.parent)


@pytest.fixture
def kept(tmp_path):
    """A function that keeps a record below the folder of runs."""
    return lambda one: store.save(one, store.path_for(one, tmp_path / "reports" / "runs"))


@pytest.fixture
def compiler():
    """Nothing can be counted without a C++ compiler."""
    try:
        EmulatorBackend()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_a_record_is_read_and_a_passing_chain_ends_with_0(shell, chained, tmp_path):
    path = store.save(MEASURED, tmp_path / "here.json.gz")
    found = shell("fuse", "--from", path, *chained)
    assert 0 == found.code
    assert "transfer_entropy S0" in found.out
    assert "passed" in found.out


def test_a_stage_that_fails_the_rule_ends_with_1(shell, chained, tmp_path):
    slow = record(result(times=BEFORE_TIMES), result("full", times={**AFTER_TIMES, "cold_time": 7e-6}))
    found = shell("fuse", "--from", store.save(slow, tmp_path / "slow.json.gz"), *chained)
    assert 1 == found.code
    assert "failed" in found.out


def test_the_newest_record_that_timed_a_chain_is_taken(shell, chained, kept):
    kept(MEASURED)
    kept(record(created="2026-11-21T10:00:00"))
    kept(record(result(times=BEFORE_TIMES), backend="numpy_reference", created="2026-11-22T10:00:00"))
    empty_record(Path("reports/runs/nvidia-h200/20991231T000000Z-7471611d.json.gz"))  # harms no other
    found = shell("fuse", "transfer_entropy", "--json", *chained)
    assert 0 == found.code
    assert MEASURED.created in found.json["source"]


def test_without_a_record_the_emulator_tells_the_bytes_and_the_reason_stands_for_the_times(shell, chained, compiler):
    found = shell("fuse", "--json", *chained)
    assert 0 == found.code
    before, after = found.json["chains"][0]["rows"]
    assert [16000, 8000] == [row["figures"]["emulated"]["value"] for row in (before, after)]
    assert [16000, 8000] == [row["plan"]["bytes"] for row in (before, after)]
    assert "'prism-bench run --filter toy_chain' on a GPU makes one" in before["figures"]["cold_time"]["reason"]
    assert "no record of a GPU" in found.json["source"]


def test_emulated_bytes_come_beside_a_record_when_asked_for(shell, chained, tmp_path, compiler):
    path = store.save(MEASURED, tmp_path / "here.json.gz")
    plain = shell("fuse", "--from", path, "--backend", "emulator", "--json", *chained).json["chains"][0]["rows"][1]
    assert (8000, "emulator") == (plain["figures"]["emulated"]["value"], plain["savings"]["cold_time"]["basis"])


def test_a_picture_is_drawn(shell, chained, tmp_path):
    path = store.save(MEASURED, tmp_path / "here.json.gz")
    found = shell("fuse", "--from", path, "--output", tmp_path / "out" / "fusion.png", *chained)
    assert 0 == found.code
    assert b"\x89PNG" == (tmp_path / "out" / "fusion.png").read_bytes()[:4]


def test_without_times_the_picture_is_of_bytes(shell, chained, tmp_path):
    path = store.save(record(), tmp_path / "empty.json.gz")
    timed = store.save(MEASURED, tmp_path / "here.json.gz")
    for one, picture in ((path, "bytes.png"), (timed, "times.png")):
        assert 0 == shell("fuse", "--from", one, "--output", tmp_path / picture, *chained).code
    assert (tmp_path / "bytes.png").read_bytes() != (tmp_path / "times.png").read_bytes()


def test_counters_of_another_record_stand_in_the_ledger(shell, chained, tmp_path):
    moved = {"value": 4e6, "unit": "byte"}
    counted = {"tool": "ncu", "values": {f"dram_{way}_bytes": moved for way in ("read", "write")}}
    stale = {**counted, "values": {**counted["values"], "launches": {"value": 7, "unit": ""}}}
    found = record(result(profile=counted), result("full", profile=stale))
    store.save(found, tmp_path / "reports" / "profiles" / "toy" / "20260101T000000Z-0.json.gz")
    path = store.save(MEASURED, tmp_path / "here.json.gz")
    before, full = shell("fuse", "--from", path, "--json", *chained).json["chains"][0]["rows"]
    assert {"value": 8e6, "source": "counters of ncu", "reason": None} == before["figures"]["dram_bytes"]
    assert "counted in 7 launches, today's plan makes 1" == full["figures"]["dram_bytes"]["reason"]


def test_a_picture_that_cannot_be_written_ends_with_2(shell, chained, tmp_path):
    path = store.save(MEASURED, tmp_path / "here.json.gz")
    found = shell("fuse", "--from", path, "--output", path / "fusion.png", *chained)
    assert (2, "") == (found.code, found.out)
    assert f"--output {path / 'fusion.png'}: {path} is no folder" in found.err


def test_an_unknown_chain_a_missing_record_and_a_catalogue_without_chains_end_with_2(shell, chained, toys):
    assert "did you mean transfer_entropy" in shell("fuse", "transfer_entrop", *chained).err
    assert 2 == shell("fuse", "--from", "nowhere.json.gz", *chained).code
    found = shell("fuse", *toys)
    assert (2, "") == (found.code, found.out)
    assert "no kernel of the catalogue has chains" in found.err


def test_the_former_command_names_its_replacement(shell):
    assert "'fusion' is no command any more; use 'prism-bench fuse'" in shell("fusion", "image_chain").err
