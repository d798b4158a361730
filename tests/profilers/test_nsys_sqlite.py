"""SQLite exports of nsys: written here table by table, and others' read where they lie."""

import json
import sqlite3

import pytest

from prism_bench.analysis.bounds.profiles import ledger
from prism_bench.errors import ResultsError
from prism_bench.profilers import nsys

TABLES = {
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "StringIds": "id INTEGER, value TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, correlationId, globalPid, shortName",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start, end, deviceId, correlationId, globalPid, bytes, copyKind",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId",
    "NVTX_EVENTS": "start, end, eventType, text, textId, globalTid",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start, end, deviceId, correlationId, globalPid, graphId",
    "NVTX_EVENTS_V2": "start, end, eventType, text, textId, globalTid",
    "NVTX_EVENTS_V3": "start, end, kind",
    "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS": "start, end, deviceId",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start, end, deviceId",
}
KERNEL, COPY, CALL = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
ONE, OTHER = 7 << 24, 8 << 24
SCHEMA = {"META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", "3.21.0")]}
NAMES = {"StringIds": [(1, "copy_kernel"), (2, "cudaLaunchKernel_v7000"), (3, "cudaDeviceSynchronize"), (4, "named")]}


@pytest.fixture
def export(tmp_path):
    """A function that writes an export with the given rows by table; `without` are columns left out."""

    def write(rows, without=()):
        path = tmp_path / "export.sqlite"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as database:
            for table, found in {**SCHEMA, **NAMES, **rows}.items():
                columns = [column for column in TABLES[table].split(", ") if column not in without]
                database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
                database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", found)
        database.close()
        return path

    return write


def test_kernels_join_to_calls_by_id_and_process(export):
    kernels = [(100, 150, 0, 5, ONE, 1), (160, 180, 0, 5, OTHER, 1)]
    calls = [(10, 20, ONE + 1, 5, 2), (30, 40, OTHER + 1, 5, 2)]
    total = ledger(nsys.read_export(export({KERNEL: kernels, CALL: calls}))).total
    assert (2, 2) == (total.kernels, total.launch_calls)
    assert 10e-9 == pytest.approx(total.idle)


def test_copies_fill_gaps_and_a_running_maximum_bridges_them(export):
    kernels = [(0, 100, 0, 1, ONE, 1), (10, 20, 0, 2, ONE, 1), (120, 130, 0, 3, ONE, 1), (140, 150, 0, 5, ONE, 1)]
    copies = [(100, 118, 0, 4, ONE, 4096, 1)]
    total = ledger(nsys.read_export(export({KERNEL: kernels, COPY: copies}))).total
    assert (2, 4096, 1) == (total.gap_count, total.copied_bytes, total.copies)
    assert (150e-9, 12e-9) == (pytest.approx(total.span), pytest.approx(total.idle))


def test_ranges_by_their_own_text_or_a_registered_one(export):
    kernels = [(100, 150, 0, 5, ONE, 1), (200, 250, 0, 6, ONE, 1)]
    calls = [(10, 20, ONE + 1, 5, 2), (60, 70, ONE + 1, 6, 2)]
    ranges = [
        (0, 30, 59, "own text", None, ONE + 1),
        (50, 80, 59, None, 4, ONE + 1),
        (0, None, 34, "mark", None, ONE + 1),
    ]
    found = ledger(nsys.read_export(export({KERNEL: kernels, CALL: calls, "NVTX_EVENTS": ranges})))
    assert {"own text": 1, "named": 1} == {row.name: row.kernels for row in found.ranges}


def test_without_processes_in_the_kernels_there_must_be_but_one(export):
    kernels, calls = [(100, 150, 0, 5, 1)], [(10, 20, ONE + 1, 5, 2)]
    path = export({KERNEL: kernels, CALL: calls}, without=["globalPid"])
    assert 1 == ledger(nsys.read_export(path)).total.launch_calls


def test_kernels_of_nobody_among_several_processes_are_refused(export):
    calls = [(10, 20, ONE + 1, 5, 2), (10, 20, OTHER + 1, 5, 2)]
    path = export({KERNEL: [(100, 150, 0, 5, 1)], CALL: calls}, without=["globalPid"])
    with pytest.raises(ResultsError, match="2 processes, and kernels that do not say whose they are"):
        nsys.read_export(path)


GRAPH_LAUNCH = {"StringIds": [*NAMES["StringIds"], (5, "cudaGraphLaunch_v10000")]}
MS = 1_000_000


def graphs(count=10, launched=True):
    """Executions of 950 us each ms from 60 us on, launched right before; their ids begin at 10."""
    work = [(60_000 + i * MS, 1_010_000 + i * MS, 0, 10 + i, ONE, 109) for i in range(count)]
    calls = [(50_000 + i * MS, 55_000 + i * MS, ONE + 1, 10 + i, 5) for i in range(count)]
    return {GRAPHS: work, CALL: calls if launched else []}


def test_executions_of_graphs_are_work_of_the_device(export):
    rows = graphs()
    kernels = [(0, 10_000, 0, 1, ONE, 1), (11_000_000, 11_010_000, 0, 2, ONE, 1)]
    calls = [(-5_000, -1_000, ONE + 1, 1, 2), *rows[CALL], (10_990_000, 10_995_000, ONE + 1, 2, 2)]
    found = ledger(nsys.read_export(export({**GRAPH_LAUNCH, KERNEL: kernels, GRAPHS: rows[GRAPHS], CALL: calls})))
    total = found.total
    assert (2, 10, 12) == (total.kernels, total.graphs, total.launch_calls)
    assert (0.8647, 11.01e-3) == (pytest.approx(total.busy_share, abs=1e-4), pytest.approx(total.span))
    assert {"host": 11} == {cause: gaps.count for cause, gaps in total.gaps.items()}
    assert any("10 executions of graphs were traced as a whole" in note for note in found.notes)


def test_graphs_without_any_kernel_are_enough(export):
    rows = graphs()
    named = {"NVTX_EVENTS": [(40_000, 56_000, 59, "step", None, ONE + 1)]}
    found = ledger(nsys.read_export(export({**GRAPH_LAUNCH, **rows, **named})))
    assert (0, 10, 10) == (found.total.kernels, found.total.graphs, found.total.launch_calls)
    assert [("step", 1)] == [(row.name, row.graphs) for row in found.ranges]
    assert ["unknown"] == list(ledger(nsys.read_export(export(graphs(launched=False)))).total.gaps)


def test_launches_into_a_graph_count_once_when_it_is_launched(export):
    names = [*GRAPH_LAUNCH["StringIds"], (6, "cudaStreamBeginCapture_v10000"), (7, "cudaStreamEndCapture_v10000")]
    captured = [(0, 10, ONE + 1, 100, 6), *((20 + i, 21 + i, ONE + 1, 101 + i, 2) for i in range(5)),
                (30, 40, ONE + 1, 110, 7)]  # fmt: skip
    elsewhere, into_another_stream = (22, 23, ONE + 2, 120, 2), (25, 26, ONE + 1, 121, 2)
    rows = graphs()
    calls = [*captured, elsewhere, into_another_stream, *rows[CALL]]
    kernels = [(100, 110, 0, 121, ONE, 1)]
    found = ledger(nsys.read_export(export({"StringIds": names, KERNEL: kernels, GRAPHS: rows[GRAPHS], CALL: calls})))
    assert 10 + 2 == found.total.launch_calls


def test_a_newer_version_of_a_table_is_read_and_an_unknown_one_is_named(export):
    kernels, calls = [(100, 150, 0, 5, ONE, 1)], [(10, 20, ONE + 1, 5, 2)]
    newer = {"NVTX_EVENTS_V2": [(0, 30, 59, "step", None, ONE + 1), (0, 30, 59, None, 4, ONE + 1)]}
    found = ledger(nsys.read_export(export({KERNEL: kernels, CALL: calls, **newer})))
    assert ({"step", "named"}, ()) == ({row.name for row in found.ranges}, found.notes)
    older = {"NVTX_EVENTS": [(0, 30, 59, "old", None, ONE + 1)], "NVTX_EVENTS_V3": [(0, 30, 59)]}
    device = {"CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS": [(0, 9, 0)], "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [(0, 9, 0)]}
    found = ledger(nsys.read_export(export({KERNEL: kernels, CALL: calls, **newer, **older, **device})))
    unread = ("CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS", "NVTX_EVENTS", "NVTX_EVENTS_V3")
    assert {"step", "named"} == {row.name for row in found.ranges}
    assert tuple(f"table {name} was not read: 1 row" for name in unread) == found.notes


def test_an_untried_schema_is_read_with_a_note(export):
    rows = {"META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", "4.1.0")], KERNEL: [(1, 2, 0, 5, ONE, 1)]}
    assert "schema 4.1.0 is none of those" in nsys.read_export(export(rows)).notes[0]


def test_an_export_without_work_is_an_error(export):
    with pytest.raises(ResultsError, match="no kernel, copy, set or graph"):
        nsys.read_export(export({KERNEL: []}))


def test_what_is_no_export_is_an_error(tmp_path):
    (tmp_path / "text.sqlite").write_text("this is no database at all, however long it may become" * 99)
    with pytest.raises(ResultsError, match="not a readable SQLite export"):
        nsys.read_export(tmp_path / "text.sqlite")
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    with pytest.raises(ResultsError, match="no META_DATA_EXPORT"):
        nsys.read_export(tmp_path / "empty.sqlite")
    with pytest.raises(ResultsError, match="no such export"):
        nsys.read_export(tmp_path / "none.sqlite")


def _oracle(samples):
    return json.loads((samples / "nsys_trim_expected.json").read_text())


@pytest.mark.parametrize("name", ["h100_2gpu", "mfu_before", "mfu_after", "cupy_power_iteration_t4"])
def test_captures_give_the_stored_values(samples, name):
    expected = _oracle(samples)[f"nsys_{name}_trim.sqlite"]
    found = ledger(nsys.read_export(samples / f"nsys_{name}_trim.sqlite"))
    assert expected["total_kernel_ns"] == round(found.total.kernel_seconds * 1e9)
    assert expected["join_rows_correlationId_and_pid"] == found.total.kernels
    for device, values in expected["per_device"].items():
        row = found.devices[int(device)]
        stored = values["kernel_memcpy_memset"]
        gaps = (round(row.span * 1e9), round(row.idle * 1e9), row.gap_count)
        assert (stored["span_ns"], stored["idle_ns"], stored["gaps"]) == gaps


def test_kernels_of_a_capture_by_name(samples):
    timeline = nsys.read_export(samples / "nsys_cupy_power_iteration_t4_trim.sqlite")
    expected = _oracle(samples)["nsys_cupy_power_iteration_t4_trim.sqlite"]
    for name, (count, nanoseconds) in expected["by_kernel"].items():
        mine = timeline.work.name == timeline.names.index(name)
        assert (count, nanoseconds) == (mine.sum(), timeline.work.length[mine].sum())
    steps = {row.name for row in ledger(timeline, most=100).ranges}
    assert set(expected["nvtx_steps"]) <= steps


def test_both_kinds_of_launch_calls_are_counted(samples):
    found = ledger(nsys.read_export(samples / "nsys_cupy_power_iteration_t4_trim.sqlite")).total
    assert (500, 500, 12) == (found.kernels, found.launch_calls, found.copies)


def test_a_capture_with_few_tables(samples):
    found = ledger(nsys.read_export(samples / "nsys_healthy_1pct_minimal.sqlite")).total
    assert (400, 400, 0) == (found.kernels, found.launch_calls, found.copies)
    assert 0.99 == pytest.approx(found.busy_share, abs=0.001)
