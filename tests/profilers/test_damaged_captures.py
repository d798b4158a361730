"""Damaged captures: a row that no tool writes is refused by its place, and never becomes a wrong number."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from prism_bench.errors import ResultsError
from prism_bench.profilers import ncu, nsys
from prism_bench.profilers import timeline as timeline_file
from prism_bench.profilers.metrics import chips_in
from prism_bench.profilers.tools import parse
from tests.profilers.test_ncu_csv import LONG, METRIC, WHERE, current
from tests.profilers.test_nsys_csv import KERNELS
from tests.profilers.test_nsys_sqlite import CALL, COPY, KERNEL, NAMES, ONE, export

__all__ = ["export"]  # the fixture
WORK = (100, 150, 0, 5, ONE, 1)
HUGE = 1 << 62


def rows(table, good, column, value):
    """Two rows of the table, the second with the value in the column."""
    return {table: [good, (*good[:column], value, *good[column + 1 :])]}


NSYS = {
    "an end before its start": (rows(KERNEL, WORK, 1, 90), "row 2: 'end' is 90, not no time before its start"),
    "no end": (rows(KERNEL, WORK, 1, None), "row 2: 'end' is NULL, not a time in nanoseconds"),
    "a time in words": (rows(KERNEL, WORK, 0, "100"), "row 2: 'start' is '100', not a time"),
    "a time with a fraction": (rows(KERNEL, WORK, 0, 100.5), "'start' is 100.5, not a time"),
    "bytes for a time": (rows(KERNEL, WORK, 0, b"\xff"), "'start' is"),
    "a time beyond all": (rows(KERNEL, WORK, 1, HUGE), f"'end' is {HUGE}"),
    "a kernel of years": (rows(KERNEL, WORK, 1, 1 << 60), "at most 30 days"),
    "no device": (rows(KERNEL, WORK, 2, None), "'deviceId' is NULL"),
    "a device beyond all": (rows(KERNEL, WORK, 2, 300), "'deviceId' is 300, not a device"),
    "an id in words": (rows(KERNEL, WORK, 3, "x"), "'correlationId' is 'x'"),
    "no process": (rows(KERNEL, WORK, 4, None), "'globalPid' is NULL"),
    "a name that is not there": (rows(KERNEL, WORK, 5, 99), "name 99, which StringIds lacks"),
    "a name below zero": (rows(KERNEL, WORK, 5, -3), "'shortName' is -3"),
    "bytes below zero": ({KERNEL: [WORK], **rows(COPY, (1, 2, 0, 9, ONE, 64, 1), 5, -64)}, "'bytes' is -64"),
    "a call without a thread": ({KERNEL: [WORK], **rows(CALL, (1, 2, ONE + 1, 5, 2), 2, None)}, "'globalTid' is NULL"),
    "a call that ends too early": ({KERNEL: [WORK], **rows(CALL, (5, 6, ONE + 1, 5, 2), 1, 1)}, "'end' is 1, not no"),
    "a range that ends too early": (
        {KERNEL: [WORK], "NVTX_EVENTS": [(9, 3, 59, "mine", None, ONE + 1)]}, "NVTX_EVENTS, row 1: 'end' is 3"),
    "a mark with a number": ({KERNEL: [WORK], "NVTX_EVENTS": [(1, 2, 59, 7, None, ONE)]}, "'text' is 7"),
    "an event of no kind": ({KERNEL: [WORK], "NVTX_EVENTS": [(1, 3, "59", "mine", None, ONE)]}, "'eventType' is '59'"),
    "one id with two names": ({KERNEL: [WORK], "StringIds": [(1, "a"), (1, "b")]}, "two names of id 1"),
    "a name that is none": ({KERNEL: [WORK], "StringIds": [(1, None)]}, "'value' is NULL, not text"),
    "an id of names in words": ({KERNEL: [WORK], "StringIds": [("x", "a")]}, "'id' is 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("name", NSYS)
def test_a_row_that_nsys_does_not_write_is_named(export, name):
    damaged, words = NSYS[name]
    path = export(damaged)
    with pytest.raises(ResultsError) as caught:
        nsys.read_export(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize("column", ["start", "end", "deviceId", "correlationId"])
def test_a_column_that_is_needed_is_named(export, column):
    columns = ("start", "end", "deviceId", "correlationId", "globalPid", "shortName")
    row = tuple(value for name, value in zip(columns, WORK, strict=True) if name != column)
    with pytest.raises(ResultsError, match=f"{KERNEL} has no column '{column}'"):
        nsys.read_export(export({KERNEL: [row]}, without=[column]))


def test_an_export_without_names_is_refused(export):
    path = export({KERNEL: [WORK]})
    with nsys.sqlite3.connect(path) as database:
        database.execute("DROP TABLE StringIds")
    database.close()
    with pytest.raises(ResultsError, match="no table StringIds with the names of"):
        nsys.read_export(path)


@pytest.mark.parametrize("version", [None, 5, "", "²", "9" * 5000, b"\xff"])
def test_a_schema_that_is_none_is_read_with_a_note(export, version):
    path = export({"META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", version)], KERNEL: [WORK]})
    assert "is none of those this reader was tried on" in nsys.read_export(path).notes[0]


def test_a_name_that_is_no_utf8_is_shown_as_it_is(export):
    path = export({KERNEL: [WORK]})
    with nsys.sqlite3.connect(path) as database:
        database.execute("UPDATE StringIds SET value = CAST(x'66ff' AS TEXT) WHERE id = 1")
    database.close()
    assert "f\\xff" in nsys.read_export(path).names


def test_a_name_with_a_huge_id_takes_no_memory(export):
    path = export({KERNEL: [(*WORK[:5], 1 << 61)], "StringIds": [*NAMES["StringIds"], (1 << 61, "far")]})
    timeline = nsys.read_export(path)
    assert ["far"] == [timeline.names[place] for place in timeline.work.name]


WHOLE = current('"","y__z.sum","","1,234.5"', '"","x__y.sum","byte","7,072"') + "\n"


def test_a_capture_of_ncu_that_is_cut_anywhere_gives_no_other_number(tmp_path):
    path = tmp_path / "cut.csv"
    first_row = WHOLE[:-1].rindex("\n") + 1  # a capture that ends behind a row is one of fewer rows
    for length in {*range(len(WHOLE))} - {first_row}:
        path.write_text(WHOLE[:length])
        with pytest.raises(ResultsError, match=str(path)):
            ncu.read(path)
    for length, value in ((first_row, None), (len(WHOLE), 7072.0)):
        path.write_text(WHOLE[:length])
        assert (1234.5, value) == tuple(ncu.read(path)[0].value(name) for name in ("y__z.sum", "x__y.sum"))


NCU = {
    "a quoted cell that is cut": (WHOLE[:-6], "the table is cut or no CSV"),
    "no column of values": (WHOLE.replace("Metric Value", "Metric Worth"), "no column 'Metric Value'"),
    "a column twice": (WHOLE.replace('"Stream"', '"Context"'), "two columns 'Context'"),
    "a metric with two values": (current('"","x__y.sum","","1"', '"","x__y.sum","","2"'), r"two values, \('1', '2'\)"),
    "a number beyond all": (current('"","x__y.sum","","1e999"'), "x__y.sum'?: '1e999' is larger than any number"),
    "a launch that contradicts itself": (
        f'{LONG},{METRIC}\n{WHERE},"","x__y.sum","","1"\n{WHERE.replace("void f", "void g")},"","x__z.sum","","1"',
        "contradict each other about launch 0"),
    "a grid beyond all": (WHOLE.replace("(9, 32, 1)", "(9, 3" + "2" * 30 + ", 1)"), "Grid Size is"),
}  # fmt: skip


@pytest.mark.parametrize("name", NCU)
def test_a_damaged_table_of_ncu_is_named(name):
    text, words = NCU[name]
    with pytest.raises(ResultsError, match=f"here: .*{words}"):
        ncu.parse(text, "here")


@pytest.mark.parametrize("cell", ["1,2345.6", "1.2.3", "12,34,5", "²"])
def test_what_is_grouped_wrong_is_no_number(cell):
    text = current(f'"","x__y.sum","","{cell}"', '"","x__z.sum","","1,234.5"')
    assert ncu.parse(text, "here")[0].value("x__y.sum") is None


@pytest.mark.parametrize(("unit", "cell"), [("", "٣"), ("ns", "1,2345.6"), ("byte", "12,34,5"), ("ns", "1٬234٫5")])
def test_a_value_with_separators_of_no_locale_is_refused_with_the_cure(unit, cell):
    text = current(f'"","x__y.sum","{unit}","{cell}"', '"","x__z.sum","","1,234.5"')
    with pytest.raises(ResultsError, match=rf"here: launch 0, 'x__y.sum' is '{cell}', a number in no .*LC_ALL=C"):
        ncu.parse(text, "here")


TRACE = "Start (ns),Duration (ns),CorrId,Bytes (MB),Device,Strm,Name"
NSYS_CSV = {
    "a start in another unit": (f"{TRACE.replace('Start (ns)', 'Start (fs)')}\n1,5,7,,GPU (0),7,f", "start is in 'fs'"),
    "a duration below zero": (f"{TRACE}\n1000,-500,7,,GPU (0),7,f", "duration is -500"),
    "a start in words": (f"{TRACE}\nsoon,500,7,,GPU (0),7,f", "start is 'soon', not a number"),
    "no start": (f"{TRACE}\n,500,7,,GPU (0),7,f", "a start, a duration"),
    "a device beyond all": (f"{TRACE}\n1,500,7,,GPU (999),7,f", "a device below 128"),
    "a time beyond all": (f"{TRACE}\n1,1e999,7,,GPU (0),7,f", "larger than any number"),
    "a share above one": (f"{KERNELS}\n250,1,1,1,1,1,1,0,x", "share is 250"),
    "a cell that is cut": (f'{KERNELS}\n50,1,1,1,1,1,1,0,"x', "the table is cut"),
    "a column twice": ("Time (%),Total Time (ns),Instances,Instances,Name\n1,1,1,1,x", "two columns 'count'"),
}


@pytest.mark.parametrize("name", NSYS_CSV)
def test_a_damaged_table_of_nsys_is_named(name):
    text, words = NSYS_CSV[name]
    with pytest.raises(ResultsError, match=f"here: .*{words}"):
        nsys.timeline(nsys.parse(text, "here"), "here")


def test_a_table_of_nsys_that_is_cut_in_its_last_name_is_refused(tmp_path):
    path = tmp_path / "cut.csv"
    path.write_text(f"{KERNELS}\n50,1,1,1,1,1,1,0,vector_a")
    with pytest.raises(ResultsError, match="the last line has no end"):
        nsys.read(path)


def saved(export, tmp_path):
    path = tmp_path / "timeline.npz"
    timeline_file.save(nsys.read_export(export({KERNEL: [WORK], CALL: [(10, 20, ONE + 1, 5, 2)]})), path)
    return path


def altered(path, **members):
    """The file with arrays replaced; None takes one away."""
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    arrays |= {name.replace("__", "."): array for name, array in members.items()}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


TIMELINES = {
    "a length below zero": {"work__length": np.array([-5])},
    "a column that is short": {"work__start": np.array([1, 2])},
    "a name that is not there": {"work__name": np.array([99])},
    "a call that is not there": {"work__call": np.array([99])},
    "a fraction": {"work__start": np.array([0.5])},
    "no column": {"work__kind": None},
    "no facts": {"facts": None},
    "facts that are none": {"facts": np.array(json.dumps([1]))},
    "objects": {"work__start": np.array([{}], object)},
}


@pytest.mark.parametrize("name", TIMELINES)
def test_a_damaged_timeline_is_refused(export, tmp_path, name):
    with pytest.raises(ResultsError, match=r"timeline\.npz: not a recorded timeline"):
        timeline_file.load(altered(saved(export, tmp_path), **TIMELINES[name]))


def test_a_timeline_that_is_cut_or_packed_too_well_is_refused(export, tmp_path):
    path = saved(export, tmp_path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 41):
        path.write_bytes(whole[:length])
        with pytest.raises(ResultsError, match="not a recorded timeline"):
            timeline_file.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed, packed.open("facts.npy", "w") as member:
        for _ in range(300):
            member.write(bytes(1_000_000))
    with pytest.raises(ResultsError, match="300 MB of data; the limit is 256 MB"):
        timeline_file.load(path)


def test_a_kernel_in_an_anonymous_namespace_is_found():
    text = "@@ begin k[n=1]\n========= Invalid __global__ write of size 4 bytes\n"
    text += "=========     at (anonymous namespace)::k(int *)+0x10\n@@ end k[n=1]\n"
    (found,) = parse(text, "memcheck", {"k[n=1]": ("k",)}).findings
    assert "k[n=1]" == found.case
    parse(text.replace("::k(int *)", ""), "memcheck", {"k[n=1]": ("k",)})


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "not a table of counters"), ("metric,GH100_9.0\na,counter", "last line has no end"),
     ("metric,GH100_9.0\na\n", "line 2 has 1 of 2"), ("metric,GH100_9.0\na,x\na,x\n", "line 3"),
     ("metric,GH100\n", "'GH100' is no CHIP_CAPABILITY"), ("metric,A_9.0,B_9.0\n", "'B_9.0' is no")],
)  # fmt: skip
def test_a_damaged_table_of_counters_is_named(tmp_path, text, words):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ResultsError, match=words):
        chips_in(path)


def test_a_file_above_the_limit_is_refused(tmp_path, monkeypatch):
    from prism_bench.io import documents

    monkeypatch.setattr(documents.bytes_of, "__defaults__", (10,))
    path = tmp_path / "large.csv"
    path.write_text(WHOLE)
    with pytest.raises(ResultsError, match="the limit for CSV of ncu"):
        ncu.read(path)


@pytest.mark.parametrize("read", [ncu.read, nsys.read, nsys.read_export, timeline_file.load])
def test_a_folder_is_no_capture(tmp_path, read):
    with pytest.raises(ResultsError, match=str(tmp_path)):
        read(Path(tmp_path))


def test_an_export_with_damaged_pages_is_refused(export):
    """Also where they are none of those that are read: nobody knows what else was damaged with them."""
    path = export({KERNEL: [WORK]})
    with nsys.sqlite3.connect(path) as database:
        database.execute("CREATE TABLE OTHER (x)")
        database.executemany("INSERT INTO OTHER VALUES (?)", [(number,) for number in range(5000)])
        page, size = (
            database.execute(words).fetchone()[0]
            for words in ("SELECT rootpage FROM sqlite_master WHERE name = 'OTHER'", "PRAGMA page_size")
        )
    database.close()
    whole = bytearray(path.read_bytes())
    whole[(page - 1) * size : (page - 1) * size + 64] = b"\xff" * 64
    path.write_bytes(whole)
    with pytest.raises(ResultsError, match="damaged as an SQLite file|not a readable SQLite export"):
        nsys.read_export(path)
