"""Accesses whose address is no multiple of what their type needs, which a GPU ends the launch for."""

import platform
from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import compile_source
from prism_bench.emulator.build import find_compiler

SOURCE = Path(__file__).parent / "kernels" / "alignment.cu"
NEEDED = {
    "float": 4, "float2": 8, "float4": 16, "int2": 8, "int4": 16, "uint4": 16, "double": 8, "double2": 16, "short4": 8,
    "uchar4": 4, "half2": 4, "__nv_bfloat162": 4, "longlong2": 16,
}  # fmt: skip
KERNELS = ("loads", "caches", "stores", "shares")
ENTRIES = [
    *(f"{kernel}<{name}>" for kernel in KERNELS for name in NEEDED),
    *(f"copies<{size}>" for size in (4, 8, 16)),
    *("moves", "reads_a_member", "counts", "keeps<float4>", "keeps<half2>"),
]
ACCESSES = [
    *((f"{kernel}<{name}>", needed) for kernel in KERNELS for name, needed in NEEDED.items()),
    *((f"copies<{size}>", size) for size in (4, 8, 16)),
    ("moves", 16),
    ("reads_a_member", 16),
    ("counts", 4),
    ("keeps<float4>", 16),
]


@pytest.fixture(scope="module")
def module():
    return compile_source(SOURCE, entries=ENTRIES, mode="race")


@pytest.fixture(scope="module")
def fast():
    return compile_source(SOURCE, entries=ENTRIES)


def launch(module, entry, shift):
    x, y = np.arange(64, dtype=np.int8), np.zeros(64, np.int8)
    return module.launch(entry, 1, 1, [x, y, np.int32(shift)], shared_bytes=64), y


@pytest.mark.parametrize(("entry", "needed"), [("copies<4>", 4), ("copies<8>", 8), ("copies<16>", 16), ("counts", 4)])
def test_asynchronous_copies_and_atomics_are_checked_in_fast_mode_too(fast, entry, needed):
    report, y = launch(fast, entry, needed // 2)
    assert [finding.kind for finding in report.findings] == ["misaligned"]
    assert not y.any()
    assert launch(fast, entry, needed)[0].is_clean


@pytest.mark.parametrize(("entry", "needed"), ACCESSES)
def test_misaligned_access_ends_the_launch_at_its_line(module, entry, needed):
    report, y = launch(module, entry, needed // 2)
    (finding,) = report.findings
    assert finding.kind == "misaligned"
    assert finding.message.endswith(f"; its address is a multiple of {needed // 2} and has to be one of {needed}")
    assert finding.accesses[0].thread == (0, 0, 0)
    line = SOURCE.read_text().split("\n")[finding.line - 1]
    assert "// ACCESS" in line
    assert not y.any()


@pytest.mark.parametrize(("entry", "needed"), ACCESSES)
def test_aligned_access_passes(module, entry, needed):
    report, _ = launch(module, entry, needed)
    assert report.is_clean, str(report)


@pytest.mark.skipif(platform.machine() != "x86_64" or find_compiler().is_clang, reason="there it does not crash")
def test_crash_in_fast_mode_says_that_an_address_is_misaligned(fast):
    x, y = np.zeros(64, np.int8), np.zeros(64, np.int8)
    (finding,) = fast.launch("moves", 1, 1, [x, y, np.int32(4)], isolate=True).findings
    assert finding.kind == "crash"
    assert finding.message.startswith("the kernel crashed (SIGBUS): a vector at a misaligned address")
    fast.close()


def test_finding_names_type_and_argument(module):
    (read,), (written,) = (launch(module, f"{kernel}<float4>", 4)[0].findings for kernel in ("loads", "stores"))
    assert read.message.startswith("access to float4 at byte 4 of argument 0; its")
    assert written.message.startswith("access to float4 at byte 4 of argument 1; its")
    assert (written.argument, written.offset, written.accesses[0].is_write) == (1, 4, True)
    (shared,) = launch(module, "shares<half2>", 2)[0].findings
    assert shared.message.startswith("access to __half2 at byte 2 of dynamic shared memory")


def test_small_vector_in_an_own_array_is_not_judged(module):
    report, y = launch(module, "keeps<half2>", 2)
    assert report.is_clean, str(report)
    assert list(y[:4]) == [2, 3, 4, 5]
