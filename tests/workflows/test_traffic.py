"""Bytes counted on the emulator against bytes that a spec declares; a wrong model is a finding."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench import In, KernelSpec, Launch, Out, Scratch, Size, Workload, Zero, exact
from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.case import Case
from prism_bench.workflows.traffic import SMALL, traffic
from tests.built_in import CATALOGUE

TOYS = discover(Path(__file__).parents[1] / "toys")
DOUBLE = TOYS.case("double[n=1000]")
GREEDY = """
extern "C" __global__ void greedy(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 16; ++k) sum += x[(i + k) % n];
    y[i] = sum;
}
"""
PLAIN = (In("x", "n"), Out("y", "n"), Size("n"))
COUNTING = """
extern "C" __global__ void counting(const float* x, float* y, unsigned int* count, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
    if (threadIdx.x == 0) atomicAdd(count, 1u);
}
"""


@pytest.fixture(scope="module", autouse=True)
def compiler():
    """Nothing can be counted without a C++ compiler."""
    try:
        EmulatorBackend()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def planted(folder, text, arguments=PLAIN, **changes):
    """A case of 4096 elements whose source is `text`."""
    entry = text.partition("void ")[2].partition("(")[0]
    source = folder / "family" / f"{entry}.cu"
    source.parent.mkdir()
    source.write_text(text)
    launch = Launch(grid=32, block=128)
    spec = KernelSpec(
        entry=entry, arguments=arguments, launch=lambda: launch, reference=lambda x: x,
        workloads={"S0": Workload(n=4096)}, tolerance=exact(),
    )  # fmt: skip
    return Case(replace(spec, name=entry, family="family", source=source, **changes), Workload(n=4096), "S0")


@pytest.mark.parametrize("name", ["double[n=1000]", "double:by_adding[n=1000]", "triple[n=1000]"])
def test_a_sound_model_is_met_to_the_byte(name):
    found = traffic(TOYS.case(name))
    assert found.complaint is None
    assert found.declared == found.touched > 0
    assert 1 == found.launches


def test_every_access_counts_and_neighbours_share_sectors():
    found = traffic(DOUBLE)
    assert (8000, 8000, 0) == (found.touched, found.requested, found.scratch)
    assert 3.5 < found.sectors_per_request <= 4.0


def test_a_spec_that_declares_too_few_bytes_is_a_finding():
    case = replace(DOUBLE, spec=replace(DOUBLE.spec, bytes_moved=lambda n: 4 * n))
    assert "touches 8000 bytes of its inputs and outputs; the spec declares 4000" == traffic(case).complaint


def test_a_kernel_that_asks_too_much_is_a_finding(tmp_path):
    found = traffic(planted(tmp_path, GREEDY))
    assert (32768, 32768, 17 * 16384) == (found.declared, found.touched, found.requested)
    assert "asks for 8.5 times the declared 32768 bytes; its spec allows 4 times" == found.complaint


@pytest.mark.parametrize("factor", [9.0, None])
def test_a_spec_may_allow_more_or_leave_it_open(tmp_path, factor):
    assert traffic(planted(tmp_path, GREEDY, traffic_factor=factor)).complaint is None


def test_a_few_bytes_besides_are_no_finding():
    case = replace(DOUBLE, spec=replace(DOUBLE.spec, traffic_factor=(8000 - SMALL) / 8000))
    assert traffic(case).complaint is None


def test_working_memory_is_counted_apart(tmp_path):
    arguments = (In("x", "n"), Out("y", "n"), Scratch("count", "1", dtype="uint32"), Size("n"))
    launch = lambda n: (Zero("count"), Launch(grid=32, block=128))  # noqa: E731
    found = traffic(planted(tmp_path, COUNTING, arguments, launch=launch))
    assert (None, 32768) == (found.complaint, found.touched)
    assert 0 < found.scratch <= 8


def test_what_the_watching_finds_is_the_complaint(tmp_path):
    found = traffic(planted(tmp_path, GREEDY.replace("(i + k) % n", "i + 8 * k")))
    assert 0 == found.launches
    assert "out of bounds" in found.complaint
    assert "greedy.cu:6" in found.complaint


def test_a_kernel_that_is_not_emulated_says_why(tmp_path):
    found = traffic(planted(tmp_path, GREEDY.replace("float sum", 'asm("membar.gl;"); float sum')))
    assert "not emulated: inline PTX" in found.complaint


@pytest.mark.parametrize("language", ["tile", "triton"])
def test_a_form_in_another_language_is_left_out_which_is_no_finding(language):
    found = traffic(CATALOGUE.edges_of(f"vector_add:{language}")[1])
    assert (None, 0) == (found.complaint, found.launches)
    assert "interpreter" in found.left_out
