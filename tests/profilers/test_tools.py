"""Profilers as programs: found with their version, run in the C locale, ended at their limit; their command lines."""

import sys
from pathlib import Path

import pytest

from prism_bench.profilers import ncu, nsys, tools
from prism_bench.profilers.tools import ProfilerFailed

FAKES = Path(__file__).parent / "fakes"
NCU = tools.Tool("ncu", "/bin/ncu", "2025.3.1")


@pytest.mark.parametrize(
    ("name", "version"), [("ncu", "2025.3.1.0"), ("nsys", "2025.5.1.121"), ("compute-sanitizer", "2025.3.1.0")]
)
def test_a_tool_is_found_with_its_version(monkeypatch, name, version):
    monkeypatch.setenv("PATH", f"{FAKES}:/usr/bin:/bin")
    found = tools.find(name)
    assert (name, version, str(FAKES / name)) == (found.name, found.version, found.program)


def test_a_tool_that_is_not_here_is_a_failure_with_a_cure(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(tools, "_FOLDERS", ())
    with pytest.raises(ProfilerFailed, match="ncu: the tool is not on this machine. .*CUDA toolkit"):
        tools.find("ncu")


def test_programs_run_in_the_c_locale_with_all_their_words_in_the_log(monkeypatch, tmp_path):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    script = "import os, sys; print(os.environ['LC_ALL'], os.environ['MORE']); sys.exit('wrong')"
    ended = tools.run([sys.executable, "-c", script], tmp_path / "new" / "log", 30, MORE="more")
    assert (1, {"C more", "wrong"}) == (ended.status, set(ended.text.splitlines()))


def test_a_program_is_ended_at_its_limit_with_its_children(tmp_path):
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    with pytest.raises(ProfilerFailed, match="took longer than its limit"):
        tools.run([sys.executable, "-c", script], tmp_path / "log", 0.5)


def test_ncu_is_told_everything_explicitly():
    counting = ncu.Counting(("dram__bytes.sum", "gpu__time_duration.sum"))
    words = ncu.capture(NCU, counting, Path("r.ncu-rep"), ["python", "x.py"])
    settings = dict(zip(words[1:-2:2], words[2:-2:2], strict=False))
    assert ("off", "none", "all", "kernel", "off") == tuple(
        settings[f"--{name}"]
        for name in ("config-file", "clock-control", "cache-control", "replay-mode", "profile-from-start")
    )
    assert "dram__bytes.sum,gpu__time_duration.sum" == words[words.index("--metrics") + 1]
    assert ["python", "x.py"] == words[-2:]


def test_a_report_is_exported_in_base_units_with_ranges_or_without():
    first, second = ncu.exports(NCU, Path("r.ncu-rep"))
    assert [*second, "--nvtx"] == first
    assert "base" == first[first.index("--print-units") + 1]


def test_passes_are_read_off_the_progress_lines():
    log = '==PROF== Profiling "f(int)" - 0: 0%....50%....100% - 3 passes\n==PROF== Profiling "g" - 1: 100% - 1 pass\n'
    assert 3 == ncu.passes(log)
    assert ncu.passes("==PROF== Connected") is None


def test_nsys_sees_kernels_inside_graphs():
    words = nsys.capture(tools.Tool("nsys", "/bin/nsys", "2025.5"), Path("r.nsys-rep"), ["python", "x.py"])
    assert "node" == words[words.index("--cuda-graph-trace") + 1]
    assert "cudaProfilerApi" == words[words.index("--capture-range") + 1]
    assert ["python", "x.py"] == words[-2:]
