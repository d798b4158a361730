"""The host compiler: which is found, what is said where there is none, and what is built only once."""

import os
import shutil

import numpy as np
import pytest

from prism_bench.emulator import compile_source
from prism_bench.emulator.build import cache_folder
from prism_bench.emulator.compiler import find_compiler
from prism_bench.errors import BackendUnavailable

SOURCE = "__global__ void k(float* y) { y[threadIdx.x] = 1; }\n"


def test_without_a_compiler_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BackendUnavailable, match=r"found none \(tried g\+\+, clang\+\+\); install g\+\+"):
        find_compiler()


def test_chosen_compiler_is_tried_alone(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BackendUnavailable, match="tried no-such-compiler"):
        find_compiler()


def test_cxx_names_the_compiler(monkeypatch, tmp_path):
    alias = tmp_path / "my-compiler"
    os.symlink(shutil.which("g++") or shutil.which("clang++"), alias)
    monkeypatch.setenv("CXX", str(alias))
    assert find_compiler().command == str(alias)


def test_compiler_that_is_too_old_is_refused(monkeypatch, tmp_path):
    old = tmp_path / "old"
    old.write_text(
        "#!/bin/sh\n"
        "[ \"$1\" = --version ] && echo 'g++ (old) 4.8.5' && exit 0\n"
        "echo \"unrecognized option '-std=c++17'\" >&2\n"
        "exit 1\n"
    )
    old.chmod(0o755)
    monkeypatch.setenv("CXX", str(old))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    with pytest.raises(
        BackendUnavailable, match=r"old \(g\+\+ \(old\) 4\.8\.5\) cannot build the emulator's runtime.*c\+\+17"
    ):
        compile_source(SOURCE, entries=["k"])


def test_same_content_is_built_once(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    first = compile_source(SOURCE, entries=["k"]).path
    stamp = first.stat().st_mtime_ns
    assert compile_source(SOURCE, entries=["k"]).path == first
    assert first.stat().st_mtime_ns == stamp
    assert compile_source(SOURCE, entries=["k"], defines=("OTHER",)).path != first
    assert first.parent == cache_folder() == tmp_path / "emulator"
    assert {path.suffix for path in first.parent.iterdir() if path.is_file()} == {".so", ".o"}


def test_half_built_libraries_do_not_stay(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    compile_source(SOURCE, entries=["k"])
    before = set((tmp_path / "emulator").iterdir())
    with pytest.raises(Exception, match="nonsense"):
        compile_source("nonsense\n", entries=[])
    assert set((tmp_path / "emulator").iterdir()) == before


def test_built_library_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    y = np.zeros(32, np.float32)
    assert compile_source(SOURCE, entries=["k"]).launch("k", 1, 32, [y]).is_clean
    assert y.sum() == 32
