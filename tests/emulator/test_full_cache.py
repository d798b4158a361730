"""A cache that takes no more in the middle of a run: the machine's fault, never a kernel's."""

import errno
import os

import pytest

from prism_bench.catalogue import discover
from prism_bench.emulator import build as building
from prism_bench.errors import CacheUnavailable
from prism_bench.io.files import cache_errors, writable_cache
from prism_bench.run.session import MeasuringSession
from prism_bench.run.settings import Settings
from tests.cli.conftest import TOYS

FULL = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.ENOTDIR])
def test_what_the_machine_refuses_is_no_fault_of_a_kernel(tmp_path, number):
    with pytest.raises(CacheUnavailable, match=f"cannot write the cache {tmp_path}: {os.strerror(number)}"):
        with cache_errors(tmp_path):
            raise OSError(number, os.strerror(number))


def test_a_compiler_without_room_is_told_from_a_bad_source(tmp_path):
    with pytest.raises(CacheUnavailable, match=FULL):
        building._refuse_full(f"/tmp/x.s: fatal error: {FULL}", tmp_path)
    building._refuse_full("x.cu:3: error: expected ';'", tmp_path)


def test_a_cache_below_a_file_is_refused_before_anything_is_compiled(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(CacheUnavailable, match="set PRISM_BENCH_CACHE"):
        writable_cache("emulator")


def test_a_case_whose_code_cannot_be_kept_is_skipped_with_the_reason(monkeypatch):
    from prism_bench.backends.numpy_reference import open_backend

    catalogue = discover(TOYS)
    backend = open_backend()

    def refuse(*_):
        raise CacheUnavailable(f"cannot write the cache /x: {FULL}")

    monkeypatch.setattr(backend, "prepare", refuse)
    session = MeasuringSession(backend, catalogue, Settings(), 0, True)
    (case,) = catalogue.cases(["triple"], ["S0"])
    result = session.case(case)
    assert ("skipped", f"cannot write the cache /x: {FULL}") == (result.status, result.reason)
