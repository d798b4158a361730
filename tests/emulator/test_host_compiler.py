"""The host compiler: which is found, what is said where there is none, and what is built only once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import compile_source
from prism_bench.emulator.build import cache_folder, find_compiler
from prism_bench.errors import BackendUnavailable

ROOT = Path(__file__).parents[2]
SOURCE = "__global__ void k(float* y) { y[threadIdx.x] = 1; }\n"


@pytest.fixture(scope="module")
def empty_cache(tmp_path_factory):
    """A cache that held nothing when the first test came."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("PRISM_BENCH_CACHE", str(folder))
        yield folder / "emulator"


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


def test_same_content_is_built_once(empty_cache):
    first = compile_source(SOURCE, entries=["k"]).path
    stamp = first.stat().st_mtime_ns
    assert compile_source(SOURCE, entries=["k"]).path == first
    assert first.stat().st_mtime_ns == stamp
    assert compile_source(SOURCE, entries=["k"], defines=("OTHER",)).path != first
    assert first.parent == cache_folder() == empty_cache
    assert {path.suffix for path in empty_cache.iterdir() if path.is_file()} == {".so", ".o"}


def test_processes_that_want_the_same_build_it_once(empty_cache, monkeypatch, tmp_path):
    compiler = tmp_path / "counted"
    log = tmp_path / "log"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {find_compiler().command} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    script = f"from prism_bench.emulator import compile_source; compile_source({SOURCE!r}, entries=['k'], mode='race')"
    asking = [subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) for _ in range(3)]
    assert [0, 0, 0] == [process.wait() for process in asking]
    built = [line.split()[-1] for line in log.read_text().splitlines() if line.split()[-1].endswith(".so")]
    assert 1 == len(built)


def test_two_installations_share_no_build(empty_cache, tmp_path):
    package = shutil.copytree(
        ROOT / "prism_bench", tmp_path / "prism_bench", ignore=shutil.ignore_patterns("__pycache__")
    )
    script = f"from prism_bench.emulator import compile_source; print(compile_source({SOURCE!r}, entries=['k']).path)"
    asked = subprocess.run(
        [sys.executable, "-c", script], cwd=package.parent, capture_output=True, text=True, check=True
    )
    other = Path(asked.stdout.strip())
    assert other.parent == empty_cache
    assert other != compile_source(SOURCE, entries=["k"]).path


def test_half_built_libraries_do_not_stay(empty_cache):
    compile_source(SOURCE, entries=["k"])
    before = set(empty_cache.iterdir())
    with pytest.raises(Exception, match="nonsense"):
        compile_source("nonsense\n", entries=[])
    assert set(empty_cache.iterdir()) == before


def test_built_library_runs(empty_cache):
    y = np.zeros(32, np.float32)
    assert compile_source(SOURCE, entries=["k"]).launch("k", 1, 32, [y]).is_clean
    assert y.sum() == 32


@pytest.mark.parametrize("broken", [b"", b"gpch.014"], ids=["empty", "another compiler's"])
def test_header_compiled_ahead_that_does_not_fit_is_left_out(empty_cache, broken):
    compile_source(SOURCE, entries=["k"])
    for ahead in empty_cache.glob("prelude-fast-*/*.gch"):
        ahead.write_bytes(broken)
    y = np.zeros(32, np.float32)
    built = compile_source(SOURCE, entries=["k"], defines=(f"OTHER={len(broken)}",))
    assert built.launch("k", 1, 32, [y]).is_clean
