"""Planted faults of CUDA, libraries, profilers and host."""

import pytest

from prism_bench import doctor
from prism_bench.doctor import checks
from prism_bench.doctor.checks import STATES
from prism_bench.errors import BackendUnavailable
from prism_bench.extension import installed
from prism_bench.io.installation import pip_install
from prism_bench.spec.peer import Library


def by_name(group):
    return {check.name: check for check in group}


class Opened:
    def facts(self):
        software = {"runtime": "13.0", "driver_cuda": "13.0"}
        return {"device": "NVIDIA H200", "compute_capability": 90, "software": software}


def opens(what):
    def open_backend(name):
        if isinstance(what, Exception):
            raise what
        return what

    return open_backend


def test_a_kernel_that_compiles_and_loads_is_the_proof(monkeypatch):
    monkeypatch.setattr(checks, "open_backend", opens(Opened()))
    found = by_name(checks.cuda_checks())
    assert "compiles and loads on NVIDIA H200, sm_90" == found["CUDA backend"].found
    assert "13.0, driver for CUDA 13.0" == found["CUDA runtime"].found


@pytest.mark.parametrize(
    ("error", "state", "words"),
    [
        (BackendUnavailable("no NVIDIA driver answers"), "broken", "no NVIDIA driver answers"),
        (RuntimeError("cudaErrorUnknown\nmore"), "broken", "cudaErrorUnknown"),
    ],
)
def test_cuda_that_does_not_open_says_so(monkeypatch, driver_loaded, error, state, words):
    monkeypatch.setattr(checks, "open_backend", opens(error))
    found = by_name(checks.cuda_checks())["CUDA backend"]
    assert (state, words) == (found.state, found.found)
    assert found.cure


def test_without_a_driver_cuda_is_missing_and_not_broken(monkeypatch, tmp_path):
    monkeypatch.setattr(checks, "NODES", tmp_path / "none")
    monkeypatch.setattr(checks, "open_backend", opens(BackendUnavailable("no NVIDIA driver answers")))
    assert "missing" == by_name(checks.cuda_checks())["CUDA backend"].state


def test_headers_and_builds_that_are_not_there_are_named(monkeypatch):
    monkeypatch.setattr(checks, "open_backend", opens(Opened()))
    monkeypatch.setattr(checks, "include_folders", lambda: ())
    monkeypatch.setattr(checks, "installed", lambda *packages: [])
    found = by_name(checks.cuda_checks())
    assert ["missing"] * 4 == [found[name].state for name in ("CuPy", *checks.HEADERS)]
    assert "nvidia-cuda-crt" in found["crt/mma.h"].cure


def test_two_builds_of_cupy_are_a_fault(monkeypatch):
    monkeypatch.setattr(checks, "open_backend", opens(Opened()))
    monkeypatch.setattr(checks, "installed", lambda *packages: ["cupy-cuda12x 13.6", "cupy-cuda13x 14.2"])
    assert "broken" == by_name(checks.cuda_checks())["CuPy"].state


def test_each_library_says_what_it_is_for(monkeypatch):
    monkeypatch.setattr(checks, "find_spec", lambda module: None if module == "torch" else object())
    found = by_name(checks.libraries_checks())
    assert ["torch"] == [name for name, check in found.items() if check.state == "missing"]
    assert (pip_install("peers"), True) == (found["torch"].cure, "peers" in found["torch"].cause)


def test_strong_libraries_are_checked_by_version_and_their_absence_is_a_note(monkeypatch):
    monkeypatch.setattr(Library, "is_installed", lambda library: library.name == "quack")
    monkeypatch.setattr(Library, "installed_version", lambda library: "0.6.5")
    found = by_name(checks.libraries_checks())
    assert ("works", "0.6.5") == (found["quack-kernels"].state, found["quack-kernels"].found)
    assert ("note", pip_install("peers-strong")) == (found["flash-attn-4"].state, found["flash-attn-4"].cure)


def test_a_build_of_torch_without_cuda_is_a_fault(monkeypatch):
    monkeypatch.setattr(checks, "find_spec", lambda module: object())
    monkeypatch.setattr(checks, "installed", lambda package: [f"{package} 2.11.0+cpu"])
    found = by_name(checks.libraries_checks())["torch"]
    assert ("broken", "2.11.0+cpu") == (found.state, found.found)


@pytest.mark.parametrize(
    ("parameters", "capabilities", "state"),
    [
        ("RmProfilingAdminOnly: 1\n", "0000000000000000", "broken"),
        ("RmProfilingAdminOnly: 1\n", "000001ffffffffff", "works"),
        ("RmProfilingAdminOnly: 0\n", "0000000000000000", "works"),
        ("Other: 1\n", "0000000000000000", "note"),
    ],
)
def test_counters_for_administrators_only(monkeypatch, tmp_path, driver_loaded, parameters, capabilities, state):
    for name, text in (("PARAMETERS", f"ResmanDebugLevel: 4\n{parameters}"), ("STATUS", f"CapEff:\t{capabilities}\n")):
        path = tmp_path / name
        path.write_text(text)
        monkeypatch.setattr(checks, name, path)
    assert state == by_name(checks.profiling_checks())["counters"].state


def test_tools_that_are_not_there_and_one_that_prints_no_version(monkeypatch, tmp_path):
    tool = tmp_path / "ncu"
    tool.write_text("#!/bin/sh\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("prism_bench.profilers.tools._FOLDERS", ())
    found = by_name(checks.profiling_checks())
    assert ("broken", "missing", "missing") == tuple(found[name].state for name in ("ncu", "nsys", "compute-sanitizer"))
    tool.write_text("#!/bin/sh\necho Version 2025.3.1.0\n")
    assert found["ncu"].found == str(tool)
    assert by_name(checks.profiling_checks())["ncu"].found.startswith("2025.3.1.0, ")


def test_a_locale_that_changes_numbers_is_noted(monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert "note" == by_name(checks.profiling_checks())["locale"].state
    monkeypatch.setenv("LC_ALL", "C")
    assert "works" == by_name(checks.profiling_checks())["locale"].state


def test_no_compiler_and_no_git(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    found = by_name(checks.host_checks())
    assert ("missing", "missing") == (found["compiler"].state, found["git"].state)
    assert "apt install g++" in found["compiler"].cure


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "file" / "cache"))
    assert "broken" == by_name(checks.host_checks())["cache"].state


@pytest.mark.parametrize(("load", "state"), [(0.1, "works"), (99.0, "note")])
def test_a_busy_host_is_noted(monkeypatch, load, state):
    monkeypatch.setattr(checks.os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(checks.os, "cpu_count", lambda: 4)
    assert state == by_name(checks.host_checks())["load"].state


def test_a_group_that_fails_is_a_finding_and_the_others_go_on(monkeypatch):
    def fails():
        raise KeyError("odd")
        yield

    monkeypatch.setattr(doctor, "GROUPS", {"device": fails, "libraries": checks.libraries_checks})
    found = list(doctor.examine())
    assert ("device", "broken", "KeyError: 'odd'") == (found[0][0], found[0][1].state, found[0][1].found)
    extensions = {one.name for one in installed() if one.checks}
    assert {"libraries", *extensions} == {group for group, _ in found[1:]}


def test_what_is_not_well_has_a_cause_and_a_cure():
    for _, check in doctor.examine():
        assert check.state in STATES
        assert check.state == "works" or (check.cause and check.cure)
