"""Reports of records without a device: whose the times are, and which of them are unstable."""

from dataclasses import replace

import pytest

from prism_bench.analysis.run_analysis import findings, read
from prism_bench.extensions.ci.digest import markdown
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import decode, encode
from prism_bench.report import plain
from prism_bench.report.asv import results
from prism_bench.report.headline import headline
from prism_bench.report.plain import backend_text
from prism_bench.report.view import case_views, table_of
from prism_bench.spec.metric import timed_on
from prism_bench.units import time_text
from tests.report.site.pages import read as page_of
from tests.report.site.pages import site_of
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of
from tests.report.test_terminal import shown

NUMPY, EMULATOR = "NumPy reference", "emulator"


def of_backend(backend, *medians):
    """A record of one case that the backend timed, a process for each median."""
    processes = tuple((seconds,) * 3 for seconds in medians)
    case = case_result("k", "S0", code={}, workload={"n": 7})
    return record_of(replace(case, measurements=(Measurement("wall_time", "kernel", processes),)), backend=backend)


@pytest.mark.parametrize(("backend", "name"), [("numpy_reference", NUMPY), ("emulator", EMULATOR)])
def test_titles_and_sentences_name_what_was_timed(backend, name):
    record = of_backend(backend, 0.048, 0.048)
    reading = read(record)
    table = table_of(case_views(reading))
    assert headline(reading) == f"The one case verified and timed on the {name}."
    assert [column.title.lower() for column in table.columns if column.key == "wall_time"] == [name.lower()]
    assert plain.view(read(record))["timed"] == timed_on(backend) == name
    assert f"times of the {name}" in backend_text(backend)


def test_a_record_of_a_device_has_no_stand_in():
    record = gpu_record()
    assert (record.stand_in, plain.view(read(record))["timed"], backend_text("cuda")) == (
        None,
        "kernel",
        "cuda backend",
    )
    assert record_of(backend="asv").stand_in is None


def test_the_terminal_names_the_reference_next_to_its_times():
    text = shown(cpu_record())
    assert "Times are those of the NumPy reference on the CPU: this backend runs no kernel." in text
    assert "numpy reference" in text


def test_a_kernels_page_never_calls_the_references_time_its_own(tmp_path):
    site = site_of(tmp_path, cpu_record())
    page, catalogue = page_of(site, "kernels/matmul"), page_of(site, "catalogue")
    case = cpu_record().case("matmul[n=256]")
    seconds = time_text(case.measurement("wall_time").median).replace(" us", " µs")
    answer = f"No kernel was timed: the NumPy reference on the CPU takes {seconds} at S0."
    assert answer in page.text
    assert "S0 takes" not in page.text
    assert "have a time of the NumPy reference" in catalogue.text
    for name in ("index", "catalogue", "kernels/matmul", "trend", "budgets"):
        text = page_of(site, name).text
        assert "this backend runs no kernel" in text, name
        assert '"timed":"NumPy reference"' in (site / f"{name}.json").read_text(), name


def test_a_page_of_a_device_has_no_such_sentence(tmp_path):
    site = site_of(tmp_path, record_of(case_result("matmul", times={"cold_time": 1e-5})))
    assert "runs no kernel" not in page_of(site, "kernels/matmul").text


def test_a_digest_names_whose_the_times_are():
    sections = ("worse", "better", "ground", "untrusted", "wrong", "unmeasured", "ending", "left_out")
    facts = {"machine": "AMD", "backend": "numpy_reference", "headline": "No problem", "nights": 0, "commit": None}
    machine = {**facts, "newest": "2026-11-01T00:00:00", **dict.fromkeys(sections, ())}
    text = markdown({"since": "2026-11-01", "until": "2026-11-02", "machines": [machine]})
    assert "times of the NumPy reference" in text


def test_a_benchmark_of_asv_names_the_stand_in(tmp_path):
    results.write(cpu_record(), tmp_path)
    assert "NumPy reference" in (tmp_path / "benchmarks.json").read_text()


def test_a_time_whose_processes_differ_is_marked_by_the_rule_for_peers():
    steady, moved = of_backend("numpy_reference", 1e-3, 1.04e-3), of_backend("numpy_reference", 1e-3, 1.6e-3)
    [finding] = findings(moved)
    assert (finding.kind, finding.gravity) == ("unstable", "note")
    assert finding.message == "the time of the NumPy reference is unstable: 1.00 ms to 1.60 ms by process"
    assert not findings(steady)
    assert [table_of(case_views(read(one))).rows[0].state for one in (steady, moved)] == ["ok", "unstable"]
    assert not findings(replace(moved, backend="asv"))


def test_whose_time_survives_a_trip_through_a_file():
    record = of_backend("emulator", 1.0)
    assert decode(encode(record), "here").stand_in == record.stand_in
