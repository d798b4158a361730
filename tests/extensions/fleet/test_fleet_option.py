"""`--fleet` of `run`: what is refused before anything starts, how a fleet is shown, and one run of it."""

import io
import re
import signal
from types import SimpleNamespace

import pytest
from rich.console import Console

from prism_bench.cli import options
from prism_bench.cli.measuring import SECONDS
from prism_bench.extensions.fleet import cluster
from prism_bench.extensions.fleet import place as fleet
from prism_bench.extensions.fleet.catalogue_run import FleetProgress
from prism_bench.extensions.fleet.dispatch import BoardState
from prism_bench.io.installation import pip_install
from prism_bench.record import store

NULL = ("--backend", "null", "--processes", "1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--fleet", "banana"), "--fleet banana: it is local, an address"),
        (("--workers", "2"), "--workers 2: it is for --fleet"),
        (("--fleet", "tcp://127.0.0.1:1", "--workers", "2"), "--workers 2: only local starts so many"),
        (("--fleet", "tcp://127.0.0.1:1"), "no scheduler answers at tcp://127.0.0.1:1 "),
        (("--fleet", "tcp://127.0.0.1:1", "nothing_such"), "unknown kernel, family or case 'nothing_such'"),
        (("--fleet", "slurm"), "--fleet slurm: it is local, an address such as tcp://host:8786, slurm:JOBS"),
    ],
)
def test_a_fleet_that_is_none_ends_with_2_and_no_record(shell, toys, monkeypatch, tmp_path, words, message):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    found = shell("run", *NULL, *toys, *words)
    assert 2 == found.code
    assert message in found.err
    assert "Traceback" not in found.err
    assert not list(tmp_path.glob("**/*.json.gz"))


def test_a_port_where_something_else_answers_ends_with_2_and_no_traceback(shell, toys, monkeypatch, foreign_port):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 10)
    address = f"tcp://127.0.0.1:{foreign_port(b'HTTP/1.1 400 Bad Request' * 4)}"
    found = shell("run", *NULL, *toys, "--fleet", address)
    assert 2 == found.code
    assert f"no scheduler answers at {address} (" in found.err and "Traceback" not in found.err


def test_a_missing_extra_is_named(shell, toys, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(cluster, "import_module", missing)
    found = shell("run", *NULL, *toys, "--fleet", "local")
    assert 2 == found.code
    assert f"dask is not installed; {pip_install('fleet')}" in found.err


def test_ctrl_c_while_jobs_of_slurm_wait_takes_them_back_and_ends_at_once(shell, toys, monkeypatch):
    closed = []

    class Waiting:
        def __init__(self, n_workers, **options):
            assert 8 == n_workers

        def wait_for_workers(self, count):
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("the signal was held until the jobs run")

        def close(self, timeout):
            closed.append(timeout)

    usual = cluster._library
    slurm = SimpleNamespace(SLURMCluster=Waiting)
    monkeypatch.setattr(cluster, "_library", lambda name: slurm if name == "dask_jobqueue" else usual(name))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    try:
        found = shell("run", *NULL, *toys, "--fleet", "slurm:8")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (2, [10]) == (found.code, closed)
    assert "fleet slurm:8: waits for its workers" in found.err
    assert "Traceback" not in found.err


def test_a_run_on_a_fleet_writes_one_record(shell, toys, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_FLEET_SECONDS", "0")
    found = shell("run", *NULL, *toys, "triple", "--fleet", "local", "--json")
    assert 0 == found.code
    assert ["triple[n=1000]"] == [case["name"] for case in found.json["cases"] if case["label"] == "S0"]
    assert "fleet of 1 board: " in found.err
    (path,) = store.records_in("reports/runs")
    assert store.read(path).complete


def progress(done=3):
    boards = [
        BoardState(
            "host-with-a-long-name bb343702", "softmax:two_reads[rows=8192,cols=8192] and what else", 1.98e9, 41, 98
        ),
        BoardState("gpu2 3243c4e7", "its worker is lost", lost=True),
    ]
    return FleetProgress(boards, done, 745)


def test_a_terminal_of_80_columns_shows_a_line_for_each_board(monkeypatch):
    text = io.StringIO()
    monkeypatch.setattr(options, "err", lambda: Console(file=text, width=80, force_terminal=True, color_system=None))
    with fleet.fleet_progress() as show:
        show(progress())
    lines = [re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", line) for line in text.getvalue().splitlines()][:3]
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("3 of 745 cases")
    assert "1980 MHz 42%" in lines[1] and "softmax:two_reads[rows=8192" in lines[1]
    assert lines[2].startswith("gpu2 3243c4e7") and lines[2].rstrip().endswith("its worker is lost")


def test_elsewhere_each_board_has_a_line_once_in_a_while(monkeypatch, capsys):
    monkeypatch.setenv(SECONDS, "0")
    with fleet.fleet_progress() as show:
        show(progress())
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.endswith("3 of 745 cases")
    assert "host-with-a-long-name bb343702, 1980 MHz, 42%, softmax:two_reads" in second
    assert third.endswith("gpu2 3243c4e7, its worker is lost")
