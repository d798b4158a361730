"""`prism-bench store merge`: parts become a record on disk, and what cannot be merged ends with 2 and a sentence."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.record import store
from tests.report.synthetic import MACHINE, case_result, record_of

UUIDS = ("GPU-aaaa", "GPU-bbbb")


def part(uuid, kernel, **changes):
    floor = case_result("null", times={"cold_time": 1e-6, "hot_time": 1e-7}, ceiling="launch", family="machine")
    own = case_result(kernel, times={"cold_time": 1e-5})
    return record_of(own, floor, machine={**MACHINE, "uuid": uuid}, **changes)


@pytest.fixture
def parts(tmp_path):
    """The files of two parts."""
    records = [part(uuid, kernel) for uuid, kernel in zip(UUIDS, ("softmax", "matmul"), strict=True)]
    return [store.save(one, tmp_path / f"part{number}.json.gz") for number, one in enumerate(records, 1)]


def test_two_parts_become_a_record_below_the_machine(shell, parts):
    found = shell("store", "merge", *parts)
    assert (0, "") == (found.code, found.err)
    counts, place = found.out.splitlines()
    assert "merged: 2 parts, 2 kernels and the ceilings, 3 cases" == counts
    assert "record: reports/runs/nvidia-h200/20261120T221405Z-7471611d.json.gz" == place
    record = store.read(store.newest("reports/runs"))
    assert UUIDS == record.uuids
    assert ["matmul", "softmax", "null"] == [case.kernel for case in record.cases]


def test_json_tells_the_parts(shell, parts):
    found = shell("store", "merge", *parts, "--output", "whole.json", "--json").json
    assert ("whole.json", True, [], 3) == tuple(found[key] for key in ("record", "complete", "cut_short", "cases"))
    assert list(UUIDS) == found["uuids"]
    assert [["softmax"], ["matmul"]] == [one["kernels"] for one in found["parts"]]
    assert 1 == json.loads(Path("whole.json").read_text())["schema"]


def test_a_merged_record_is_shown_and_reported_with_its_devices(shell, parts):
    shell("store", "merge", *parts)
    assert "merged from 2 parts, 2 GPUs: GPU-aaaa, GPU-bbbb" in shell("show").out
    assert 2 == len(shell("show", "--json").json["parts"])
    assert 0 == shell("report").code
    assert "2 GPUs: GPU-aaaa, GPU-bbbb" in Path("reports/site/machine.html").read_text()


def test_a_part_that_was_cut_short_is_said(shell, parts):
    store.save(replace(store.read(parts[1]), complete=False), parts[1])
    found = shell("store", "merge", *parts, "--output", "whole.json.gz")
    assert 0 == found.code
    assert f"{parts[1]} was cut short, so the merged record is marked incomplete\n" == found.err
    assert not store.read("whole.json.gz").complete


def refused(found):
    assert (2, "") == (found.code, found.out)
    assert 1 == found.err.count("\n")
    assert not Path("reports").exists()
    return found.err


def test_a_part_alone_is_refused(shell, parts):
    assert "name two or more" in refused(shell("store", "merge", parts[0]))


def test_no_part_is_refused(shell):
    assert "name two or more" in refused(shell("store", "merge"))


def test_the_same_file_twice_is_refused(shell, parts):
    assert "is the same record as" in refused(shell("store", "merge", parts[0], parts[0]))


def test_a_part_that_cannot_be_read_is_named(shell, parts):
    parts[1].write_bytes(b"cut")
    assert f"prism-bench: {parts[1]}: not a readable run record" in refused(shell("store", "merge", *parts))


def test_parts_of_two_commits_are_refused_with_both_files_and_both_values(shell, parts):
    store.save(part(UUIDS[1], "matmul", commit="b" * 40), parts[1])
    words = refused(shell("store", "merge", *parts))
    assert f"{parts[1]}: its commit is '{'b' * 40}', that of {parts[0]} is '7471611d" in words


def test_a_part_is_not_written_over(shell, parts):
    before = parts[0].read_bytes()
    assert "exists already, and no record is replaced" in refused(shell("store", "merge", *parts, "--output", parts[0]))
    assert before == parts[0].read_bytes()


def test_a_record_of_the_same_second_is_not_written_over(shell):
    runs = Path("reports/runs")
    records = [part(uuid, kernel) for uuid, kernel in zip(UUIDS, ("softmax", "matmul"), strict=True)]
    other, *parts = (store.RecordPlace(runs).save(record) for record in (records[0], *records))
    before = other.read_bytes()
    found = shell("store", "merge", *parts, "--json").json
    assert str(other).replace(".json.gz", "-4.json.gz") == found["record"]
    assert before == other.read_bytes()


def test_the_machines_name_leads_to_no_other_folder(shell):
    records = [part(uuid, kernel) for uuid, kernel in zip(UUIDS, ("softmax", "matmul"), strict=True)]
    hostile = [replace(one, machine={**one.machine, "id": "../../x"}) for one in records]
    paths = [store.save(one, Path(f"part{number}.json.gz")) for number, one in enumerate(hostile)]
    before = set(Path.cwd().parent.iterdir())
    found = shell("store", "merge", *paths, "--json").json
    assert Path("reports/runs") in Path(found["record"]).parents and ".." not in Path(found["record"]).parts
    assert before == set(Path.cwd().parent.iterdir())


@pytest.fixture
def run(shell, toys):
    return lambda *words: shell("run", "--backend", "null", "--processes", "1", *toys, *words)


def test_parts_of_a_run_make_the_whole(shell, run):
    for number in (1, 2, 3):
        assert 0 == run("--part", f"{number}/3", "--output", f"part{number}.json").code
    found = shell("store", "merge", *(f"part{number}.json" for number in (1, 2, 3)), "--output", "merged.json")
    assert 0 == found.code
    assert 0 == run("--output", "whole.json").code
    whole, merged = (store.read(name) for name in ("whole.json", "merged.json"))
    assert [case.name for case in whole.cases] == [case.name for case in merged.cases]
    assert [["double"], [], ["triple"]] == [one["kernels"] for one in merged.parts]


def test_a_part_is_taken_of_what_filter_and_label_leave(run):
    assert 0 == run("--part", "2/2", "-f", "arith", "-l", "S0", "--output", "part.json").code
    assert {"triple"} == {case.kernel for case in store.read("part.json").cases}
    timed = [case.name for case in store.read("part.json").cases if not case.is_edge]
    assert ["triple[n=1000]"] == timed


@pytest.mark.parametrize(
    ("part", "words"), [("3/2", "I from 1 to N"), ("", "argument 9 is empty"), ("4/4", "3 chosen kernels")]
)
def test_a_part_that_is_not_there_ends_with_2(run, part, words):
    found = run("--part", part)
    assert 2 == found.code
    assert words in found.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("verify", "part1.json.gz"), "store verify: a run record is for merge"),
        (("migrate", "--output", "whole.json"), "store migrate: --output is for merge"),
        (("merge", "part1.json.gz", "--dry-run"), "store merge: --dry-run is for prune"),
        (("merge", "part1.json.gz", "--keep-raw", "90d"), "store merge: --keep-raw is for prune"),
    ],
)
def test_options_of_other_actions_are_refused(shell, words, sentence):
    assert f"prism-bench: {sentence}\n" == refused(shell("store", *words))


def test_the_former_command_names_its_replacement(shell):
    found = shell("merge", "part1.json.gz", "part2.json.gz")
    assert (2, "prism-bench: 'merge' is no command any more; use 'prism-bench store merge'\n") == (
        found.code,
        found.err,
    )
