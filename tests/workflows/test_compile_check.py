"""The compile check: the stored table fits the catalogue, nothing has grown, and growth would be noticed."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.compilation import nvrtc_architectures, nvrtc_version
from prism_bench.compilation.program import require_known
from prism_bench.errors import BackendUnavailable, ResultsError, UsageError
from prism_bench.spec.kernel import CUDA
from prism_bench.workflows.compile_table import (
    ARCHITECTURES,
    REGISTER_GROWTH,
    CompileRow,
    compile_check,
    launched,
    launched_blocks,
    left_out,
    merged_table,
    missing_compiler,
    read_table,
    whole_kernels,
    worsened,
    write_table,
)
from tests.built_in import CATALOGUE

HERE = Path(__file__).parent
ZOO, TOYS = HERE.parent / "zoo", HERE.parent / "toys"
STORED = read_table(HERE.parents[1] / "reports/compile/resources.csv")
SOME = [(name, index % 5 == 0) for index, name in enumerate(CATALOGUE.kernels)]
ROW = CompileRow("softmax", "softmax<32, 4>", "90", 40, 0, 0, 264, 1)


@pytest.fixture(scope="module")
def nvrtc():
    """Skips, saying what to install, where there is no offline compiler."""
    try:
        return nvrtc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_the_stored_table_covers_every_entry_and_nothing_else():
    """Of CUDA C++: the rows of other languages depend on which compilers are installed where the table is made."""
    wanted = {
        (request.source.stem, str(instance), architecture)
        for architecture in ARCHITECTURES
        for request in launched(CATALOGUE, (), architecture)
        for instance in request.instances
        if request.language == CUDA
    }
    stored = {row.key for row in STORED if ":" not in row.kernel}
    advice = "run: prism-bench compile --write"
    assert (set(), set()) == (wanted - stored, stored - wanted), advice


@pytest.mark.parametrize(
    "name", [name if some else pytest.param(name, marks=pytest.mark.thorough) for name, some in SOME]
)
def test_it_compiles_without_new_spills_or_more_registers(nvrtc, name):
    """What its workloads launch; what only edges launch is compiled by `prism-bench compile`, in twice the time.

    A fifth of the kernels always: a workflow's own job compiles all of them.
    """
    rows, complaints = compile_check(CATALOGUE, (name,), ("90",), edges=False)
    assert [] == complaints + worsened(rows, STORED)
    assert {name} == {row.kernel.partition(":")[0] for row in rows}


def test_planted_register_growth_is_complained_about():
    grown = replace(ROW, registers=int(REGISTER_GROWTH * ROW.registers) + 3)
    (complaint,) = worsened([grown], [ROW])
    assert ("softmax", "softmax<32, 4> on sm_90 takes 49 registers, 40 before") == (complaint.kernel, complaint.message)


@pytest.mark.parametrize(
    ("registers", "block", "words"),
    [
        (41, (256, 0), "takes 41 registers, 40 before: 5 blocks of 256 threads fit a multiprocessor, 6 before"),
        (41, (1024, 0), None),  # one block either way
        (41, (256, 100_000), None),  # shared memory is the limit
        (40, (256, 0), None),
        (39, (256, 0), None),
    ],
)
def test_a_register_step_that_lowers_occupancy_is_complained_about(registers, block, words):
    complaints = worsened([replace(ROW, registers=registers)], [ROW], {ROW.key: {block, (32, 0)}})
    assert ([] if words is None else [f"softmax<32, 4> on sm_90 {words}"]) == [one.message for one in complaints]


def test_blocks_are_those_of_launches_whose_registers_grew():
    (job,) = launched(discover(TOYS), ("triple",))
    row = CompileRow("triple", str(job.instances[0]), "90", 10, 0, 0, 0, 0)
    blocks = launched_blocks(discover(TOYS), (), [(replace(row, registers=8), row), (None, replace(row, entry="new"))])
    assert {row.key: {(128, 0)}} == blocks
    assert {} == launched_blocks(discover(TOYS), (), [(row, row)])


def test_growth_within_the_allowance_is_a_compilers_own():
    assert [] == worsened([replace(ROW, registers=int(REGISTER_GROWTH * ROW.registers) + 2)], [ROW])


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ([ROW], "spills 8 bytes, 0 before"),
        ([replace(ROW, spill_bytes=4)], "spills 8 bytes, 4 before"),
        ([], "spills 8 bytes, and is not in the table yet"),
        ([replace(ROW, architecture="80", spill_bytes=8)], "spills 8 bytes, and is not in the table yet"),
    ],
    ids=["new", "more", "an entry not stored", "another architecture"],
)
def test_planted_spills_are_complained_about(before, words):
    (complaint,) = worsened([replace(ROW, spill_bytes=8)], before)
    assert words in complaint.message


def test_spills_that_were_there_and_registers_of_a_new_entry_are_no_complaint():
    spilling = replace(ROW, spill_bytes=8)
    assert [] == worsened([spilling, replace(ROW, entry="new", registers=255)], [spilling])


def test_a_table_is_read_as_it_was_written_and_sorted(tmp_path):
    path = tmp_path / "deep" / "resources.csv"
    rows = [replace(ROW, kernel="z", spill_bytes=4), ROW]
    write_table(path, rows)
    assert [ROW, rows[0]] == read_table(path)
    before = path.read_bytes()
    write_table(path, read_table(path))
    assert before == path.read_bytes()


def test_a_table_without_sizes_and_compilers_is_read(tmp_path):
    path = tmp_path / "resources.csv"
    write_table(path, [ROW])
    header, line = path.read_text().splitlines()
    path.write_text(header.removesuffix(",code_bytes,compiler") + "\n" + line.removesuffix(",,") + "\n")
    assert [ROW] == read_table(path)


def test_the_size_and_the_compiler_of_a_form_are_kept(tmp_path):
    row = replace(ROW, kernel="softmax:triton", code_bytes=4096, compiler="Triton 3.6.0")
    write_table(tmp_path / "resources.csv", [row])
    assert [row] == read_table(tmp_path / "resources.csv")


@pytest.mark.parametrize(("before", "complaints"), [("Triton 3.6.0", 1), ("", 1), ("Triton 3.9.0", 0)])
def test_what_another_compiler_made_is_no_measure(before, complaints):
    row = replace(ROW, spill_bytes=8, compiler="Triton 3.6.0")
    assert complaints == len(worsened([row], [replace(ROW, compiler=before)]))


def test_a_form_is_compiled_alone_and_a_variant_with_its_kernel():
    assert ["softmax:triton"] == whole_kernels(CATALOGUE, ["softmax:triton"])
    assert ["matmul"] == whole_kernels(CATALOGUE, ["matmul:naive"])


def test_rows_have_the_size_of_the_code_and_forms_their_compiler(nvrtc):
    (row, *_), _ = compile_check(CATALOGUE, ("vector_add[n=100000]",), ("90",), edges=False)
    assert (row.code_bytes or 0) > 0
    assert row.compiler == ""


def test_no_table_is_an_empty_one_and_a_broken_one_an_error(tmp_path):
    assert [] == read_table(tmp_path / "none.csv")
    for text in ("kernel,entry\nsoftmax,softmax\n", "registers\nmany\n"):
        (tmp_path / "broken.csv").write_text(text)
        with pytest.raises(ResultsError, match="broken.csv: not a table of compiled resources"):
            read_table(tmp_path / "broken.csv")


def test_merging_replaces_what_was_compiled_anew_and_keeps_the_rest():
    old, kernel, architecture = replace(ROW, entry="gone"), replace(ROW, kernel="relu"), replace(ROW, architecture="80")
    assert [kernel, architecture, ROW] == merged_table([old, kernel, architecture], [ROW], {"softmax", "relu"})


def test_merging_forgets_a_kernel_that_is_no_longer_there():
    assert [ROW] == merged_table([replace(ROW, kernel="relu")], [ROW], {"softmax"})


def test_the_compilers_words_are_a_complaint_and_the_rest_goes_on(nvrtc):
    rows, complaints = compile_check(discover(ZOO), ("does_not_compile", "honest"), ("90",))
    assert ["does_not_compile"] == [complaint.kernel for complaint in complaints]
    assert 'does_not_compile.cu(2): error: identifier "undeclared_name" is undefined' in complaints[0].message
    honest = ["double", "doubled_by_turns", "doubled_in_place", "nearly_doubled"]
    assert [(kernel, "90") for kernel in honest] == [(row.kernel, row.architecture) for row in rows]


def test_every_variants_entry_is_compiled_for_every_architecture(nvrtc):
    rows, complaints = compile_check(discover(TOYS), ("double",))
    assert [] == complaints
    assert {row.key for row in rows} == {
        ("double", entry, one) for entry in ("doubled", "doubled_by_adding") for one in ARCHITECTURES
    }
    assert all(row.registers > 0 for row in rows)


def test_what_one_architecture_alone_can_run_is_compiled_for_it_and_told_of_the_others():
    tiles = {one: launched(CATALOGUE, ("tensor_core_matmul:wgmma",), one) for one in ARCHITECTURES}
    assert {"90"} == {one for one, sources in tiles.items() if sources}
    notes = left_out(CATALOGUE, ("tensor_core_matmul",), ("80", "90"))
    reason = "not for sm_80: wgmma: for compute capability 90, not 80"
    expected = {(f"tensor_core_matmul:{form}", reason) for form in ("wgmma", "tma", "tma_square")}
    variants = CATALOGUE.kernels["tensor_core_matmul"].variants
    languages = {name: one.changes["language"] for name, one in variants.items() if "language" in one.changes}
    expected |= {
        (f"tensor_core_matmul:{name}", why) for name, one in languages.items() if (why := missing_compiler(one))
    }
    assert expected == {(note.kernel, note.message) for note in notes}


def test_a_variant_of_which_an_edge_alone_is_for_one_architecture_is_not_left_out_of_the_others():
    turned = {case.name for case in CATALOGUE.edges(("matmul:tf32",)) if case.plan.requirement}
    assert 0 < len(turned) < len(CATALOGUE.edges(("matmul:tf32",)))
    assert [] == left_out(CATALOGUE, ("matmul:tf32",), ("80", "90"))


@pytest.mark.parametrize("word", ["sm_90", "hopper", ""])
def test_an_architecture_is_a_number(word):
    require_known(("90", "90a"))
    with pytest.raises(UsageError, match="is not a number such as 90"):
        require_known((word,))


def test_an_architecture_is_one_that_the_compiler_knows(nvrtc):
    with pytest.raises(UsageError, match=r"architecture '12' is none that NVRTC .* knows: .*\b90\b"):
        require_known(("90", "12"))
    assert {80, 90, 100, 120} <= set(nvrtc_architectures())


def test_every_form_has_rows_with_its_compiler_and_the_size_of_its_code():
    """Made where the compilers are installed, for the architecture of the records."""
    variants = {
        f"{name}:{variant}"
        for name, spec in CATALOGUE.kernels.items()
        for variant in spec.variants
        if spec.with_variant(variant).language != CUDA
    }
    rows = [row for row in STORED if ":" in row.kernel]
    assert variants == {row.kernel for row in rows if row.architecture == "90"}
    assert all(row.compiler and row.code_bytes for row in rows)


FAULTS = discover(HERE.parents[1] / "scripts" / "lab" / "faults")


def test_refused_launches_cost_their_kernels_and_no_row(nvrtc):
    rows, complaints = compile_check(FAULTS, ["limits"], ["90"])
    assert {"registers<true>", "registers<false>", "doubled"} <= {row.entry for row in rows}
    refused = {complaint.kernel: complaint.message for complaint in complaints}
    names = ("launch_bounds", "grid_y", "grid_z", "block_z", "block_threads", "dynamic_shared", "registers",
             "cluster_size", "cooperative")  # fmt: skip
    assert {"limits", *(f"limits:{name}_fault" for name in names)} == set(refused)
    assert "limits:registers_fault[n=256]: registers<true> does not launch: block" in refused["limits:registers_fault"]
    assert "Entry function 'static_shared<true>' uses too much shared data" in refused["limits"]


def test_launch_that_one_architecture_refuses_is_a_note(nvrtc):
    notes = []
    rows, complaints = compile_check(FAULTS, ["limits:cooperative"], ["90", "120"], elsewhere=notes)
    assert [] == complaints
    assert ["limits:cooperative"] == [note.kernel for note in notes]
    assert "some workloads do not launch on sm_120: a block of sm_120 has at most 101,376 (99 KB)" == notes[0].message


PASSED = """
from prism_bench import In, KernelSpec, Launch, Out, Scalar, Size, TensorMap, Workload, elementwise
spec = KernelSpec(
    entry="scaled",
    arguments=(In("x", "n"), Out("y", "n"), Size("n"), Scalar("by"{dtype})),
    launch=lambda n: Launch(grid=-(-n // 256), block=256{more}),
    parameters={{"by": 2}},
    reference=lambda x, by: by * x,
    tolerance=elementwise(),
    workloads={{"S0": Workload(n=1000)}},
)
"""
SCALED = """
extern "C" __global__ void scaled(const float* x, float* y, int n, float by) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = by * x[i];
}
"""


@pytest.mark.parametrize(
    ("dtype", "more", "reason"),
    [
        ("", "", None),
        (', "float64"', "", "passes parameters of 8, 8, 4, 8 bytes; the machine code takes 8, 8, 4, 4"),
        ("", ', arguments=("x", "y", "n")', "passes parameters of 8, 8, 4 bytes; the machine code takes 8, 8, 4, 4"),
        ("", ', maps=(TensorMap("x", box=(64,)),)', "passes parameters of 128, 8, 4, 4 bytes; the machine code takes"),
        ("", ', maps=(TensorMap("x", box=(3,)),)', "x: a tensor map needs lines of a box of whole 16 bytes, not 12"),
    ],
    ids=["right", "wider scalar", "missing argument", "map for a pointer", "box of odd lines"],
)
def test_what_a_launch_passes_is_held_against_the_machine_code(nvrtc, tmp_path, dtype, more, reason):
    (tmp_path / "arith").mkdir()
    (tmp_path / "arith" / "scaled.cu").write_text(SCALED)
    (tmp_path / "arith" / "scaled.py").write_text(PASSED.format(dtype=dtype, more=more))
    rows, complaints = compile_check(discover(tmp_path), (), ("80", "90"))
    assert ["80", "90"] == [row.architecture for row in rows]
    assert (reason is None) == (complaints == [])
    for complaint in complaints:
        assert f"scaled[n=1000]: scaled does not launch: {reason}" in complaint.message
