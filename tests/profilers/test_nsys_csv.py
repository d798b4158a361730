"""Tables of nsys stats in every generation of headers."""

import pytest

from prism_bench.analysis.bounds.profiles import ledger
from prism_bench.errors import ResultsError
from prism_bench.profilers import nsys

KERNELS = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"


def parsed(text):
    return nsys.parse(text, "here")


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Time(%),Total Time,Instances,Average,Minimum,Maximum,Name", "62.5,5000,2,2500.5,1000,4000,f"),
        ("Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,StdDev,Name", "62.5,5000,2,2500.5,1000,4000,9,f"),
        (KERNELS, "62.5,5000,2,2500.5,2500,1000,4000,9,f"),
    ],
)
def test_kernel_summaries_of_all_generations(header, row):
    table = parsed(f"{header}\n{row}")
    (found,) = table.rows
    assert ("kernels", "f", 2) == (table.kind, found["name"], found["count"])
    times = (found["total"], found["mean"], found["least"], found["most"])
    assert (5e-6, 2.5005e-6, 1e-6, 4e-6) == tuple(map(pytest.approx, times))
    assert 0.625 == pytest.approx(found["share"])


def test_words_before_the_table_do_not_matter():
    text = f"Generating SQLite file\nNOTICE: Existing SQLite export found\nProcessing [x]...\n\n{KERNELS}\n"
    assert "g<1, 2>" == parsed(text + '50,1,1,1,1,1,1,0,"g<1, 2>"').rows[0]["name"]


def test_memory_operations_have_one_name_in_all_versions():
    header = "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation"
    names = [
        parsed(f"{header}\n50,1,1,1,1,1,1,0,{one}") for one in ("[CUDA memcpy HtoD]", "[CUDA memcpy Host-to-Device]")
    ]
    assert ["transfers"] * 2 == [table.kind for table in names]
    assert 1 == len({table.rows[0]["name"] for table in names})


def test_sizes_become_bytes():
    table = parsed(
        "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation\n1.5,2,0.75,0.75,0.5,1,0,x"
    )
    assert ("sizes", 1_500_000) == (table.kind, table.rows[0]["total"])


def test_calls_ranges_and_traces():
    calls = "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
    ranges = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Style,Range"
    trace = "Start (ns),Duration (ns),CorrId,Bytes (MB),Device,Ctx,GreenCtx,Strm,Name"
    assert ("calls", 3) == (
        parsed(f"{calls}\n1,1,3,1,1,1,1,0,x").kind,
        parsed(f"{calls}\n1,1,3,1,1,1,1,0,x").rows[0]["count"],
    )
    assert ("ranges", "mine") == (parsed(f"{ranges}\n1,1,3,1,1,1,1,0,PushPop,mine").kind, "mine")
    found = parsed(f"{trace}\n2000,500,7,1.5,GPU (0),1,,7,x")
    assert "device trace" == found.kind
    row = found.rows[0]
    assert (2e-6, 5e-7, 7, 1_500_000, "") == (*map(pytest.approx, (row["start"], row["duration"])), row["correlation"],
                                              row["bytes"], row["GreenCtx"])  # fmt: skip


def test_what_nsys_skipped_is_nothing_and_no_failure():
    table = parsed("Processing [x]...\nSKIPPED: x.sqlite does not contain CUDA kernel data.")
    assert ("nothing", ()) == (table.kind, table.rows)


@pytest.mark.parametrize(
    "text", ["", "ERROR: no such report", f"{KERNELS}\n50,1,1", f"{KERNELS}\n1.234,1,1,1,1,1,1,0,x"]
)
def test_what_is_no_table_is_an_error(text):
    with pytest.raises(ResultsError, match="here: "):
        parsed(text)


def test_headers_of_public_versions_are_all_recognised(samples):
    lines = [line for line in (samples / "nsys_header_variants.txt").read_text().splitlines() if " | " in line]
    headers = [
        header for _, header in (line.split(" | ", 1) for line in lines) if "Time" in header or "Total" in header
    ]
    for header in headers:
        columns = header.replace("... ", "").split(",")
        text = f"{','.join(columns)}\n{','.join('1' for _ in columns)}"
        assert 1 == len(parsed(text).rows), header


def test_a_trace_of_the_device_becomes_a_ledger():
    trace = "Start (ns),Duration (ns),CorrId,Bytes (MB),Device,Strm,Name"
    rows = ["1000,500,7,,NVIDIA H200 (0),7,f", "1700,100,8,1.5,NVIDIA H200 (0),7,[CUDA memcpy HtoD]"]
    rows += ["2000,25.5,9,,NVIDIA H200 (1),7,g"]
    found = ledger(nsys.timeline(parsed("\n".join([trace, *rows])), "here"))
    assert (2, 1, 1_500_000) == (found.total.kernels, found.total.copies, found.total.copied_bytes)
    assert [0, 1] == list(found.devices)
    assert 200e-9 == pytest.approx(found.devices[0].idle)
    assert ["unknown"] == list(found.devices[0].gaps)


def test_a_summary_has_no_gaps():
    with pytest.raises(ResultsError, match="a table of kernels has no gaps"):
        nsys.timeline(parsed(f"{KERNELS}\n62.5,5000,2,2500,2500,1000,4000,9,f"), "here")
