"""A spec that replaces the clock's functions when it is imported: its process gets no times, and says why."""

from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.run import Settings, run

PATCHED = discover(Path(__file__).parent.parent / "patched")


def test_the_spec_does_nothing_to_who_only_reads_it():
    assert ["patched_clock"] == list(PATCHED.kernels)
    assert () == tuple(PATCHED.problems)


@pytest.mark.parametrize(
    ("backend", "name"),
    [("null", "statistics.median"), pytest.param("cuda", "cupy.cuda.get_elapsed_time", marks=pytest.mark.gpu)],
)
def test_no_time_of_its_process_is_believed(backend, name):
    settings = Settings(processes=1, peers=False, cpu_baseline=False)
    record = run(PATCHED, backend, PATCHED.cases(), settings)
    (case,) = [case for case in record.cases if case.label == "S0"]
    assert "ok" == case.status
    for metric in ("cold_time", "hot_time"):
        measured = case.measurement(metric)
        assert () == measured.samples
        assert name in measured.reason.partition(" was replaced: no time can be trusted")[0]
