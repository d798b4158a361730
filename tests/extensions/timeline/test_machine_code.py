"""Machine code of kernels with regions, compiled without a device: unchanged when off, complete when on."""

import pytest
from lab.timelines import KERNELS, PLACES, copy

from prism_bench.compilation import Resources
from prism_bench.compilation.compilers import has_nvcc, load
from prism_bench.compilation.cubin import variable_of
from prism_bench.compilation.languages import BuiltCode, BuiltKernel, build, build_request
from prism_bench.compilation.listing import listing_of, tool
from prism_bench.compilation.listing import missing as no_listing
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.timeline.recording import RegionBuffer, code_notes, region_names, within_registers
from prism_bench.spec.case import Device
from prism_bench.spec.launch import Instance
from tests.extensions.timeline.placed import AT, ROLES, case_of, write

H200 = Device(132, 227 * 1024, 90)


@pytest.fixture(autouse=True)
def compiler():
    try:
        load()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def built(case):
    return build(build_request(case, H200))


def probed(case):
    return built(RegionBuffer.of(case, H200, 1 << 12).probed(case))


def test_regions_that_are_off_leave_no_machine_code(tmp_path):
    write(tmp_path / "with", "roles")
    plain = ROLES
    for line in [line for line in ROLES.splitlines(keepends=True) if "PB_REGION" in line]:
        plain = plain.replace(line, "\n")
    write(tmp_path / "without", "roles", plain, head="\n")
    off, without, on = (
        built(case_of(tmp_path / "with", "roles")),
        built(case_of(tmp_path / "without", "roles")),
        probed(case_of(tmp_path / "with", "roles")),
    )
    assert off.sass == without.sass != on.sass
    assert off.code_bytes == without.code_bytes < on.code_bytes


@pytest.mark.parametrize(
    "kernel",
    ["tensor_core_matmul", *(pytest.param(name, marks=pytest.mark.thorough) for name in [*PLACES][1:])],
)
def test_regions_in_copies_of_our_kernels_compile_and_are_nothing_when_off(tmp_path, kernel):
    """The product is persistent, in clusters, with warps that copy by TMA and warpgroups that multiply by wgmma."""
    copy(tmp_path, kernel)
    case = case_of(tmp_path, kernel, "S1")
    off, on, ours = built(case), probed(case), built(case_of(KERNELS, kernel, "S1"))
    assert ours.sass == off.sass != on.sass
    assert len(region_names(case)) >= 2
    assert not [note for note in code_notes(off, on) if "wgmma" in note]


def test_probes_wait_for_no_atomic_before_the_end_of_a_region(tmp_path):
    """The compiler would sum up the lanes of an addition first, and wait for its result at the region's beginning."""
    if tool("nvdisasm") is None and tool("cuobjdump") is None:
        pytest.skip(no_listing())
    write(tmp_path, "roles")
    on = probed(case_of(tmp_path, "roles"))
    (kernel,) = on.kernels.values()
    names = [text.split()[0 if text[0] != "@" else 1] for text in listing_of(kernel.path)[kernel.symbol].instructions]
    assert 3 <= sum(name.startswith("ATOMG.E.INC") for name in names)
    assert not any(name.startswith(("SHFL", "ATOMG.E.ADD")) for name in names)


@pytest.mark.parametrize("kernel", ["active_inference_chain:full"])
def test_probes_take_no_residency_where_they_need_not(tmp_path, kernel):
    """Left to itself the compiler takes 80 registers with probes, and 63 without: three blocks fit, not four."""
    copy(tmp_path, kernel)
    case = case_of(tmp_path, kernel, "S1")
    wild = RegionBuffer.of(case, H200, 1 << 12).probed(case)
    held = within_registers(case, wild, H200)
    (before, more, after) = (built(each).resources.values() for each in (case, wild, held))
    most = max(entry.registers for entry in before)
    assert max(entry.registers for entry in more) > 64 >= max(entry.registers for entry in after) >= most
    assert 0 == sum(entry.spill_stores + entry.spill_loads for entry in after)


def test_probes_take_more_registers_where_they_would_spill(tmp_path):
    write(tmp_path, "crowded")
    case = case_of(tmp_path, "crowded")
    wild = RegionBuffer.of(case, H200, 1 << 12).probed(case)
    before, more = (max(entry.registers for entry in built(each).resources.values()) for each in (case, wild))
    assert -(-before // 8) * 8 < more, "a kernel whose probes need registers"
    assert wild is within_registers(case, wild, H200)


def test_the_buffer_is_a_variable_of_the_stated_size(tmp_path):
    write(tmp_path, "roles")
    case = case_of(tmp_path, "roles")
    buffer = RegionBuffer.of(case, H200, 1000)
    (kernel,) = built(buffer.probed(case)).kernels.values()
    assert (4, 250) == (buffer.shards, buffer.regions)  # 6 blocks
    assert 32 * 1000 == variable_of("prism_bench::region_records", kernel.path.read_bytes())[1]


@pytest.mark.thorough
def test_nvcc_finds_the_header(tmp_path):
    if not has_nvcc():
        pytest.skip("no nvcc")
    write(tmp_path, "roles", compiler="nvcc")
    case = case_of(tmp_path, "roles")
    off, on = built(case), probed(case)
    assert off.sass != on.sass
    assert on.compiler.startswith("nvcc"), on.compiler


def test_a_header_of_a_claim_is_in_its_catalogue(tmp_path):
    from prism_bench.extensions.claims.making import files_of

    write(tmp_path, "roles")
    case = case_of(tmp_path, "roles")
    assert {"planted/roles.cu", "include/prism_bench/regions.cuh"} < set(files_of(case, tmp_path))


def test_a_name_that_is_no_literal_is_refused_by_the_compiler(tmp_path):
    from prism_bench.errors import CompilationFailed

    write(tmp_path, "odd", "{ " + AT + ' const char* name = "a"; PB_REGION("b"); PB_REGION(name); y[at] = 2 * x[at]; }')
    with pytest.raises(CompilationFailed, match=r"odd\.cu"):
        probed(case_of(tmp_path, "odd"))


def test_what_probes_do_to_the_code_is_noted(tmp_path):
    def code(log="", **resources):
        path = tmp_path / "code.cubin"
        return BuiltCode({Instance("k"): BuiltKernel(path, "k", Resources(**resources), log=log)}, "CUDA", "NVRTC")

    warning = "Potential Performance Loss: wgmma.mma_async instructions are serialized due to a branch"
    plain = code(registers=168)
    assert [] == code_notes(plain, plain)
    assert ["registers with probes: 200, without: 168"] == code_notes(plain, code(registers=200))
    spilled = code_notes(plain, code(registers=168, spill_stores=36, spill_loads=40))
    assert ["the probes spill registers: 76 bytes, 0 without them"] == spilled
    (serialized,) = code_notes(plain, code(warning, registers=168))
    assert "overlapping wgmma" in serialized
    assert [] == code_notes(code(warning, registers=168), code(warning, registers=168))
