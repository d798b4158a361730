"""`prism-bench trend`: steps over records on disk, for people and programs; broken records are told and left out."""

import json
import random
from dataclasses import asdict

import pytest

from prism_bench.analysis.compare.noise import Floor, Noise, path_for, write_noise
from prism_bench.record.store import path_for as record_path
from prism_bench.record.store import save
from tests.report.synthetic import MACHINE, SOFTWARE, case_result, record_of

RUNS = "reports/runs"
STEP, NIGHTS = 20, 30


@pytest.fixture
def nights(shell, tmp_path, monkeypatch):
    """A function that leaves a month of records of two cases, of which one changes by a factor at the 21st."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))

    def make(factor=1.1):
        rng = random.Random(0)
        for night in range(NIGHTS):
            late = night >= STEP
            times = [1e-3 * rng.gauss(1, 0.002) for _ in range(2)]
            cases = (
                case_result("moved", times={"cold_time": times[0] * (factor if late else 1)}),
                case_result("still", times={"cold_time": times[1]}),
            )
            software = {**SOFTWARE, "driver": "580.2" if late else "570.1"}
            record = record_of(*cases, created=f"2026-01-{night + 1:02d}T03:00:00", software=software)
            save(record, record_path(record, tmp_path / RUNS))

    return make


def test_a_step_to_the_worse_is_told_and_ends_with_one(shell, nights):
    nights()
    found = shell("trend")
    assert 1 == found.code
    assert found.out.startswith(
        "1 step in 2 series, 30 records of 1 machine\nstep: moved[n=100], cold time: worse by 1"
    )
    assert "driver 570.1 -> 580.2" in found.out
    assert "breakpoint: nvidia-h200, cuda: driver 570.1 -> 580.2 since 2026-01-21T03:00:00" in found.out


@pytest.mark.parametrize("factor", [1.0, 0.9])
def test_nothing_that_is_worse_ends_with_nought(shell, nights, factor):
    nights(factor)
    assert 0 == shell("trend").code


def test_programs_read_the_same(shell, nights):
    nights()
    found = shell("trend", "--json").json
    assert (30, 60, 2) == (found["records"], found["points"], found["series"])
    (step,), (finding,) = found["steps"], found["findings"]
    assert ("moved[n=100]", pytest.approx(1.1, rel=0.01)) == (step["key"]["case"], step["ratio"])
    assert ("bad", ["moved[n=100]"]) == (finding["gravity"], finding["cases"])


def test_a_part_can_be_asked_for(shell, nights):
    nights()
    assert 0 == shell("trend", "--filter", "still").code
    assert 1 == shell("trend", "--filter", "moved", "--metric", "cold_time", "--machine", "nvidia-h200").code
    unknown = shell("trend", "--filter", "movd")
    assert (2, "prism-bench: unknown kernel or case 'movd'; did you mean moved") == (
        unknown.code,
        unknown.err.partition(",")[0],
    )


@pytest.fixture
def sizes(shell, tmp_path, monkeypatch):
    """Twelve records: from the sixth on a kernel has 16 bytes more of code, which the compiler made only then."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    for night in range(12):
        grown = night >= 5
        code = {"sass": str(grown), "code_bytes": 4112 if grown else 4096, "compile_seconds": 0.6 if grown else 0.5}
        record = record_of(
            case_result("k", code=code, times={"cold_time": 1e-3}), created=f"2026-01-{night + 1:02d}T03:00:00"
        )
        save(record, record_path(record, tmp_path / RUNS))


def test_every_change_of_the_size_of_code_is_a_step(shell, sizes):
    assert (0, True) == (lambda found: (found.code, "no step in 1 series" in found.out))(shell("trend"))
    found = shell("trend", "--metric", "code_bytes")
    assert 1 == found.code
    assert "k[n=100], code bytes: worse by 0.39 % (4,096 B -> 4,112 B) since 2026-01-06" in found.out
    assert "the machine code changed" in found.out
    assert "code_bytes: exact, one value per record: a step needs no confirmation" in found.out
    assert 0 == shell("trend", "--metric", "code_bytes", "--least", "0.01").code
    (step,) = shell("trend", "--metric", "code_bytes", "--json").json["steps"]
    assert (4096, 4112, True) == (step["before"], step["after"], step["exact"])


def test_a_compile_time_counts_once_for_each_compilation(shell, sizes):
    found = shell("trend", "--metric", "compile_seconds")
    assert 0 == found.code
    assert "no step in 1 series" in found.out
    assert "compile_seconds: noisy, one value per compilation" in found.out
    assert "set aside: 10 measurements: the compiler did not run" in found.out


def test_boards_are_not_compared_in_what_no_board_changes(shell, sizes):
    found = shell("trend", "--boards", "--metric", "code_bytes")
    assert (2, True) == (found.code, "a board does not change it" in found.err)


def test_a_metric_that_no_record_has_is_not_called_unknown(shell, sizes):
    for words in (("trend",), ("trend", "--boards")):
        found = shell(*words, "--metric", "energy")
        assert (2, True) == (found.code, found.err.startswith("prism-bench: no record has the metric energy; "))


def test_what_is_too_small_or_too_old_is_no_bad_finding(shell, nights):
    nights()
    assert 0 == shell("trend", "--least", "0.15").code
    assert 1 == shell("trend", "--least", "0.01").code
    for wrong in ("0", "-1", "nan", "1"):
        found = shell("trend", "--least", wrong)
        assert (2, True) == (found.code, "must be between" in found.err)


def test_the_noise_floor_of_the_machine_withholds_a_step(shell, nights, tmp_path):
    nights()
    floor = Floor(1e-3, 0.05, 0.0, 8, 5, 0.2, 0, 20, "2026-01-01T00:00:00")
    noise = Noise(MACHINE["id"], "NVIDIA H200", "cuda", 1, {("moved[n=100]", "cold_time"): floor})
    write_noise(noise, path_for(MACHINE["id"], tmp_path / "reports/noise"))
    assert asdict(floor)["smallest_change"] == 0.2
    assert 0 == shell("trend").code


def test_broken_and_double_records_are_told_and_left_out(shell, nights, tmp_path):
    nights(1.0)
    paths = sorted((tmp_path / RUNS / "nvidia-h200").iterdir())
    paths[3].write_bytes(paths[3].read_bytes()[:50])
    (paths[4].parent / "copy.json.gz").write_bytes(paths[4].read_bytes())
    found = shell("trend", "--json").json
    assert (29, 2) == (found["records"], len(found["problems"]))
    assert "left out: " in shell("trend").out


def test_without_records_the_next_step_is_said(shell):
    found = shell("trend")
    assert (2, "prism-bench: no run record below reports/runs; 'prism-bench run' makes one\n") == (
        found.code,
        found.err,
    )


def test_where_no_record_can_be_read_one_is_named(shell, tmp_path):
    (tmp_path / RUNS / "m").mkdir(parents=True)
    (tmp_path / RUNS / "m" / "x.json.gz").write_text("{}")
    found = shell("trend")
    assert (2, True) == (found.code, "x.json.gz: not a run record" in found.err)


def test_colours_stay_out_of_a_pipe(shell, nights):
    nights()
    assert "\x1b" not in shell("trend").out
    json.dumps(shell("trend", "--json").json, allow_nan=False)
