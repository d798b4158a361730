"""The table of what changes the bits of kernels and peers."""

from pathlib import Path

from lab import bits

from prism_bench.catalogue import discover

TOYS, PLANTED = (Path(__file__).parent.parent / name for name in ("toys", "bits"))


def test_a_table_has_a_row_for_each_kernel_and_peer(tmp_path, monkeypatch):
    script, table = tmp_path / "script.json", tmp_path / "bits" / "table.csv"
    script.write_text('{"double*": {"peers": {"cupy": {}, "torch": {"skips": true}}}, "triple*": {"nan": true}}')
    monkeypatch.setenv("PRISM_BENCH_NULL", str(script))
    bits.work("null", discover(TOYS).cases(("double", "triple"), ("S0",)), table)
    bits.finished(table)
    rows = {(row["case"], row["subject"]): row for row in bits.written(table)}
    assert "4 same" == rows["double[n=1000]", "kernel"]["repeated"]
    assert "same" == rows["double[n=1000]", "peer:cupy"]["class"]
    assert "repeated" == rows["double[n=1000]", "peer:torch"]["class"], "from its second call on it does nothing"
    assert "-" == rows["triple[n=1000]", "kernel"]["class"]
    assert "reference" in rows["triple[n=1000]", "kernel"]["cause"]


def test_a_table_is_continued_and_what_ended_its_process_stays(tmp_path):
    table, cases = tmp_path / "table.csv", discover(TOYS).cases(("double", "triple"), ("S0",))
    bits.work("null", cases[:1], table)
    with table.open("a") as stream:
        stream.write(f'"{cases[1].name}",not done,,,,,,,,,ended its process\n')
    before = table.read_text()
    bits.work("null", cases, table)
    assert table.read_text().startswith(before), "rows that the table has stay"
    bits.finished(table)
    ended = [row["case"] for row in bits.written(table) if row["subject"] == "not done"]
    assert [cases[1].name] == ended
    assert {case.name for case in cases} == {row["case"] for row in bits.written(table)}


def test_a_batch_goes_along_the_first_axis_that_inputs_and_outputs_share():
    catalogue = discover(PLANTED)
    axes = {name: bits.batch_axes(catalogue.kernel(name)) for name in ("row_sums", "peak", "total", "counts")}
    assert {"row_sums": ("rows",), "peak": ("rows",), "total": (), "counts": ()} == axes


def test_an_axis_whose_indices_enter_each_other_is_no_batch():
    entry = {"check": "batch", "same": False, "passed": True, "launches": 1, "axis": "n", "ulps": 4, "cause": "values"}
    repeated = {"check": "repeated", "same": True, "passed": True, "launches": 4}
    mixed = bits.row("k[n=9]", "kernel", [repeated, entry | {"against": "other values in the other n"}])
    assert ("same", "mixed") == (mixed["class"], mixed["batch"])
    batch = bits.row("k[n=9]", "kernel", [repeated, entry | {"against": "n=1"}])
    assert ("batch", "differs", 4) == (batch["class"], batch["batch"], batch["ulps"])
