"""asv on two commits: each case's time stands under its own name, and asv keeps the samples it is handed."""

import re
import sys
from statistics import median

import pytest

from tests.suites.planted import PLANTED, SECONDS, plant

pytestmark = pytest.mark.xdist_group("asv commits")  # one worker measures both

COLD, WALL = "times.Cold.track_cold_time", "times.Wall.track_wall_time"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("asv"))


@pytest.fixture(scope="module")
def newer(project):
    return project.measure(project.newer)


@pytest.fixture(scope="module")
def older(project):
    return project.measure(project.older)


def column(result, name, benchmark=COLD):
    """One column of a benchmark's row, by case name; asv drops a row's trailing empty columns."""
    row = dict(zip(result["result_columns"], result["results"][benchmark], strict=False))
    cases = [case.strip("'") for case in row["params"][0]]
    values = row.get(name) or [None] * len(cases)
    return dict(zip(cases, values, strict=True))


def measured(result):
    """Medians by case; a case that says nothing (NaN) is left out, one that failed (None) stays."""
    return {case: value for case, value in column(result, "result").items() if value is None or value == value}


def kernels(values):
    """The kernels that the cases belong to; a variant counts as its kernel, whose scripted time it shares."""
    return {case.split("[")[0].split(":")[0] for case in values}


def assert_own_times(values):
    for kernel, seconds in SECONDS.items():
        own = [value for case, value in values.items() if case.startswith(kernel)]
        assert own == pytest.approx([seconds] * len(own), rel=0.05), kernel


def test_newer_commit_times_every_kernel_under_its_own_name(newer):
    assert kernels(measured(newer)) == set(SECONDS)
    assert_own_times(measured(newer))


def test_older_commit_says_nothing_about_the_planted_kernel(older):
    assert kernels(measured(older)) == set(SECONDS) - {PLANTED}
    assert_own_times(measured(older))


def test_both_commits_are_asked_for_the_same_cases_in_the_same_order(older, newer):
    assert list(column(older, "result")) == list(column(newer, "result"))
    assert any(case.startswith(PLANTED) for case in column(older, "result"))


def test_a_metric_that_the_backend_does_not_have_is_not_a_failure(newer):
    values = column(newer, "result", WALL).values()
    assert all(value != value for value in values)


def test_asv_computes_its_statistics_from_our_samples(newer):
    samples, repeats = column(newer, "samples"), column(newer, "stats_repeat")
    quartiles = column(newer, "stats_q_25"), column(newer, "stats_q_75")
    interval = column(newer, "stats_ci_99_a"), column(newer, "stats_ci_99_b")
    for case, value in measured(newer).items():
        assert len(samples[case]) == repeats[case] >= 20
        assert value == pytest.approx(median(samples[case]))
        for low, high in (quartiles, interval):
            assert low[case] < value < high[case]
            assert min(samples[case]) * 0.999 <= low[case]
            assert high[case] <= max(samples[case]) * 1.001


def test_version_is_the_protocol_and_the_metric_not_the_source_text(newer):
    from prism_bench.run import PROTOCOL

    versions = {name: row[newer["result_columns"].index("version")] for name, row in newer["results"].items()}
    assert versions == {COLD: f"{PROTOCOL} cold_time", WALL: f"{PROTOCOL} wall_time"}


def test_compare_show_and_publish_read_the_results(project, older, newer):
    before, after = project.commit(project.older), project.commit(project.newer)
    compared = project.asv("compare", before, after)
    assert any("n/a" in line and PLANTED in line for line in compared.splitlines())
    assert "vector_add" in project.asv("show", after)
    project.asv("publish", "--no-pull")
    site = project.newer / "reports/site/asv"
    assert list(site.glob("graphs/**/times.Cold.track_cold_time.json"))
    assert "vendor/jquery.min.js" in (site / "index.html").read_text()
    assert "No run record yet" in (site / "prism_bench/budgets.html").read_text()
    for name in ("index.json", "info.json"):  # asv writes these after every publisher
        assert (site / name).read_text() in (site / f"{name}.js").read_text()


def test_chosen_cases_alone_are_measured_and_their_progress_is_printed(project):
    where = ("-E", f"existing:{sys.executable}", "--dry-run", "--bench", "Cold", "--launch-method", "forkserver")
    chosen = {"PRISM_BENCH_ASV_CASES": f"vector_add {PLANTED}", "ASV_PYTHONPATH": str(project.newer)}
    output, errors = project.output_and_errors("run", *where, **chosen)
    assert {"vector_add", PLANTED} == kernels(re.findall(r"(\w+)\[.*?\] +\d", output))
    progress = [line for line in errors.splitlines() if line.startswith("prism-bench: ")]
    assert progress and all(re.search(r"s: .+, \d+ of \d+: .+", line) for line in progress)


def test_the_measuring_processes_run_the_package_of_their_commit(project, older):
    """A commit whose worker is broken measures nothing, whatever else is installed. Last: it spoils the results."""
    worker = project.older / "prism_bench/run/worker.py"
    sound = worker.read_text()
    worker.write_text("raise SystemExit('broken on purpose')")
    try:
        with pytest.raises(AssertionError, match="broken on purpose"):
            project.measure(project.older)
    finally:
        worker.write_text(sound)
