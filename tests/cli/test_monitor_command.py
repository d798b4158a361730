"""`prism-bench monitor` and `doctor` on the scripted GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    """No journal and no webhook of the user's."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PRISM_BENCH_WEBHOOK", raising=False)
    monkeypatch.delenv("PRISM_BENCH_SLACK_WEBHOOK", raising=False)


def test_once_as_json_is_the_documented_shape(shell, gpu):
    found = shell("monitor", "--seconds", "0", "--json")
    assert (0, "") == (found.code, found.err)
    assert ["status", "kernels", "alerts", "report"] == list(found.json)
    assert 35.0 == found.json["status"]["gpu_utilization"]
    assert 0.825 == found.json["status"]["devices"][0]["values"]["sm_active"]


def test_once_for_people(shell, gpu):
    gpu.set(0, reasons=4, processes="77:2000000000")
    shown = shell("monitor", "--seconds", "0").out
    assert "a single look" in shown
    assert "Ctrl-C" not in shown
    for words in ("NVIDIA H200", "35 %", "30.0 GB of 150 GB", "SM 1.98 GHz", "310 W of 700 W", "41 C", "sw power cap",
                  "stranger (77) 2.00 GB", "no alert"):  # fmt: skip
        assert words in shown


def test_json_lines_for_a_while(shell, gpu):
    lines = shell("monitor", "--json", "--interval", "0.1", "--seconds", "0.3").out.splitlines()
    assert lines
    assert all("status" in json.loads(line) for line in lines)


def test_a_pipe_gets_a_line_per_look_and_alerts_of_their_own(shell, gpu):
    gpu.set(0, memory_used=145_000_000_000)
    lines = shell("monitor", "--interval", "0.1", "--seconds", "0.1").out.splitlines()
    assert "0: 35 %, 145 GB, 1980 MHz, 310 W, 41 C" in lines[0]
    assert "critical raised: 96.67 % of the memory in use" in lines


def test_rules_can_be_changed(shell, gpu):
    Path("alerts.toml").write_text("[memory]\nabove = 0.1\nclear = 0.05\n")
    found = shell("monitor", "--seconds", "0", "--json", "--alerts", "alerts.toml")
    (alert,) = found.json["alerts"]["active_alerts"]
    assert ("warning", "20 % of the memory in use", "memory_share", 0.2, "memory") == tuple(
        alert[key] for key in ("severity", "message", "metric", "value", "rule")
    )


def test_a_csv_is_written_beside(shell, gpu):
    shell("monitor", "--seconds", "0", "--output", "gpu.csv")
    assert 2 == len(Path("gpu.csv").read_text().splitlines())


def test_a_csv_is_continued_in_a_folder_that_takes_no_new_file(shell, gpu, monkeypatch):
    Path("gpu.csv").touch()
    monkeypatch.setattr(os, "access", lambda _, mode: mode == os.R_OK)
    assert 0 == shell("monitor", "--seconds", "0", "--output", "gpu.csv").code
    assert 2 == len(Path("gpu.csv").read_text().splitlines())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--device", "5"), "unknown device '5'"),
        (("--output", "none/gpu.csv"), "cannot write none/gpu.csv"),
        (("--alerts", "none.toml"), "none.toml: not a readable TOML file"),
        (("--sort-by", "avgtime"), "unknown order of kernels 'avgtime'; did you mean avg_time"),
    ],
)
def test_a_mistake_is_one_line_and_ends_with_2(shell, gpu, words, said):
    found = shell("monitor", "--seconds", "0", *words)
    assert 2 == found.code
    assert 1 == len(found.err.splitlines())
    assert said in found.err


def test_without_nvml_it_ends_with_2_and_says_why(shell, gpu):
    gpu.library(init="!9")
    found = shell("monitor", "--seconds", "0", "--json")
    assert (2, "") == (found.code, found.out)
    assert "Driver Not Loaded" in found.err


def test_a_device_lost_on_the_way_ends_with_2_and_is_shown(shell, gpu, monkeypatch):
    from prism_bench.cli import monitor

    line = monitor._line
    monkeypatch.setattr(monitor, "_line", lambda moment: (line(moment), gpu.set(0, lost=1)))
    found = shell("monitor", "--interval", "0.1", "--seconds", "1")
    lines = found.out.splitlines()
    assert 2 == found.code
    assert "35 %" in lines[0]
    assert any("lost at" in line for line in lines)
    assert "critical raised: the device does not answer any more" in lines


@pytest.mark.parametrize("terminal", ["xterm-256color", "dumb"])
def test_a_terminal_is_drawn_on_and_survives_a_change_of_its_size(gpu, seen, terminal):
    """In a terminal of its own: Rich draws in place there, and a dumb one gets lines."""
    import fcntl
    import pty
    import struct
    import termios

    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [sys.executable, "-m", "prism_bench", "monitor", "--interval", "0.1", "--seconds", "0.6"]
    environment = {**os.environ, "TERM": terminal, "PYTHONPATH": str(HOUSE)}
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment)
    os.close(child)
    written, resized = b"", False
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # how Linux tells the end of a terminal
            break
        written += part
        if not resized and b"H200" in written:
            fcntl.ioctl(parent, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 50, 0, 0))
            resized = True
        if not part:
            break
    os.close(parent)
    assert 0 == process.wait()
    assert b"Traceback" not in written
    assert (b"\x1b[?1049h" in written) == (terminal != "dumb")
    assert b"\x1b[2J" not in written, "clearing the whole screen flickers"
    assert b"35 %" in written


def test_a_reader_that_leaves_ends_it_quietly(gpu, seen):
    command = [sys.executable, "-m", "prism_bench", "monitor", "--json", "--interval", "0.1", "--seconds", "5"]
    environment = {**os.environ, "PYTHONPATH": str(HOUSE)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert b"status" in process.stdout.readline()
        process.stdout.close()
        assert b"" == process.stderr.read()


def test_the_exporter_says_where_it_serves(shell, gpu):
    pytest.importorskip("prometheus_client")
    found = shell("monitor", "--serve", "0", "--seconds", "0.1", "--interval", "0.1")
    assert 0 == found.code
    assert found.out.startswith("serving http://127.0.0.1:")


def test_the_doctor_has_an_entry_per_check_and_ends_with_1_where_something_is_broken(shell, gpu):
    gpu.set(0, ecc_uncorrected=2)
    found = shell("doctor", "--json")
    assert 1 == found.code
    (faulty,) = [entry for entry in found.json if entry["state"] == "broken" and entry["group"] == "device"]
    assert ("memory errors of GPU 0", "the memory is faulty") == (faulty["name"], faulty["cause"])
    assert {"group", "name", "state", "found", "cause", "cure"} == set(faulty)


def test_the_doctor_for_people_names_cause_and_cure(shell, gpu):
    gpu.set(0, persistence=0)
    shown = shell("doctor").out
    assert "the driver unloads between processes" in shown
    assert "nvidia-persistenced" in shown


@pytest.mark.parametrize("place", ["x", "1:2:x", "70000", "localhost:"])
def test_a_place_that_nothing_can_be_served_at_is_refused(shell, gpu, place):
    found = shell("monitor", "--serve", place)
    assert (2, "") == (found.code, found.out)
    assert f"--serve '{place}': give PORT or ADDRESS:PORT" in found.err


def test_what_is_shown_is_not_served(shell, gpu):
    found = shell("monitor", "--serve", "0", "--output", "gpu.csv")
    assert (2, "prism-bench: --output: leave it out with --serve\n") == (found.code, found.err)


def test_the_exporter_names_what_replaces_it(shell):
    found = shell("exporter", "--port", "0")
    assert 2 == found.code
    assert "prism-bench: 'exporter' is no command any more; use 'prism-bench monitor --serve PORT'\n" == found.err
