"""Generated kernels are right, the same every time, and what the repository keeps is what the programs say now."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.catalogue import discover
from prism_bench.compilation import compile_source, sass_hash, source_hash
from prism_bench.errors import BackendUnavailable, SpecError, UsageError
from prism_bench.extensions.fusion import Map, keeping, names
from prism_bench.extensions.fusion.keeping import Declaration, declarations
from prism_bench.extensions.fusion.specification import fused_program
from prism_bench.io.files import default_folder
from prism_bench.run.verification import complaint, passed, verify
from tests.built_in import CATALOGUE
from tests.extensions.fusion import toys

KERNELS = default_folder()
DECLARED = {one.name: one for one in declarations(KERNELS)}
TOYS = {name.lower(): one for name, one in vars(toys).items() if isinstance(one, toys.FusionProgram)}


SPEC = """from prism_bench.extensions.fusion import fuse
from tests.extensions.fusion.toys import {} as program

spec = fuse(program, __name__)
"""


@pytest.fixture
def catalogue(tmp_path):
    """A catalogue of the small programs, generated now."""
    (tmp_path / "toys" / "generated").mkdir(parents=True)
    for name, program in TOYS.items():
        (tmp_path / "toys" / f"{name}.py").write_text(SPEC.format(name.upper()))
        (tmp_path / "toys" / "generated" / f"{name}.cu").write_text(fused_program(program, name).source())
    return discover(tmp_path)


def test_every_kind_of_launch_gives_what_its_program_says(catalogue):
    """On the emulator, every access watched."""
    assert [] == list(catalogue.problems)
    assert set(TOYS) == set(catalogue.kernels)
    try:
        backend = EmulatorBackend("race")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    for case in [*catalogue.edges(), *catalogue.cases()]:
        if case.plan.requirement:
            continue  # an edge that is pinned to warpgroup instructions
        entries = verify(backend, case, seeds=(0,))
        assert passed(entries), complaint(case, "emulator", entries)


def test_the_programs_of_the_plan_are_there():
    expected = "accuracy_pipeline belief_update free_energy gemv_operations kl_complexity matmul_bias_activation"
    assert {f"fused_{name}" for name in expected.split()} <= set(DECLARED)


@pytest.mark.parametrize("name", DECLARED)
def test_generating_again_changes_no_byte(name):
    assert DECLARED[name].text().encode() == DECLARED[name].source.read_bytes(), (
        f"run `prism-bench fuse --write {name}`"
    )
    assert DECLARED[name].text() == declarations(KERNELS, [name])[0].text()


@pytest.mark.parametrize("name", DECLARED)
def test_the_kept_ptx_is_that_of_the_source(name):
    source = DECLARED[name].source
    facts = keeping.read_facts(source.with_suffix(".json"))
    assert source_hash(source) == facts["source"], f"run `prism-bench fuse --write {name}`"
    assert keeping.entries(DECLARED[name], CATALOGUE) == facts["entries"]
    assert f".target sm_{facts['architecture'].partition('_')[2]}" in source.with_suffix(".ptx").read_text()


@pytest.mark.parametrize("name", DECLARED)
def test_the_same_compiler_gives_the_same_ptx(name):
    try:
        kept = keeping.keep_ptx(DECLARED[name], CATALOGUE, write=False)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert [] == [one for one in kept if not one.is_same]


@pytest.mark.parametrize("name", [name for name, one in DECLARED.items() if one.program.by_hand])
def test_the_form_by_hand_is_a_variant_with_the_same_cases(name):
    spec = CATALOGUE.kernel(name)
    by_hand = spec.with_variant("by_hand")
    assert f"{name}.cu" == by_hand.source.name == spec.source.name
    assert by_hand.source.parent == spec.source.parents[1]
    assert spec.workloads == by_hand.workloads


SAME_INSTRUCTIONS = {
    "fused_kl_complexity": "<float>", "fused_free_energy": "<float>", "fused_accuracy_pipeline": "<float, false>",
}  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), SAME_INSTRUCTIONS.items(), ids=SAME_INSTRUCTIONS)
def test_the_compiler_makes_the_same_instructions_of_the_form_by_hand(name, arguments):
    """Sums of terms: what is generated costs nothing, whatever the device."""
    made = DECLARED[name].source
    forms = {made: f"{name}_generated<float>", made.parents[1] / f"{name}.cu": f"{name}{arguments}"}
    try:
        compiled = [compile_source(source, [entry], keeping.ARCHITECTURE) for source, entry in forms.items()]
    except BackendUnavailable as error:
        pytest.skip(str(error))
    generated_form, by_hand = (sass_hash(one.cubin) for one in compiled)
    assert by_hand == generated_form


def declare(folder, text):
    path = folder / "family" / "mine.py"
    path.parent.mkdir(parents=True)
    path.write_text(f"from prism_bench.extensions.fusion import Reduce\n{text}")
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("program = 1\n", "defines no 'program = FusionProgram(...)'"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("Reduce('a', 'mean', 1)\n", "unknown reduction 'mean'"),
    ],
)
def test_a_declaration_that_does_not_load_is_named(tmp_path, text, words):
    path = declare(tmp_path, text)
    with pytest.raises(SpecError) as caught:
        declarations(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


def test_an_unknown_program_comes_with_the_nearest():
    with pytest.raises(UsageError, match="unknown program 'fused_free_enrgy'; did you mean fused_free_energy"):
        declarations(KERNELS, ["fused_free_enrgy"])


def test_a_refused_program_is_named_with_its_file():
    program = toys.program([Map("a", names("q")[0])], ("a",))
    with pytest.raises(SpecError, match=r"^k/f/mine.py: stage 'a': unknown name 'q'"):
        Declaration(Path("k/f/mine.py"), program).text()


def test_a_peer_is_any_function(catalogue, tmp_path):
    """A lambda too: specs are made in memory, and no text of a peer is copied."""
    spec_file = tmp_path / "toys" / "maps.py"
    text = SPEC.format("MAPS").replace("spec =", "from dataclasses import replace\n\nspec =")
    text = text.replace("fuse(program", "fuse(replace(program, peers={'numpy': lambda numpy, x, y: (x, y)})")
    spec_file.write_text(text)
    assert (1, 2) == discover(tmp_path).kernel("maps").peers["numpy"](numpy=None, x=1, y=2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda source: source.write_text("// mine\n"), "generated/maps.cu is not what its program generates; `prism"),
        (
            lambda source: source.unlink(),
            "generated/maps.cu is not written yet; `prism-bench fuse --write maps` writes it",
        ),
    ],
)
def test_a_source_that_is_not_the_programs_is_a_problem(catalogue, tmp_path, change, words):
    """Its arguments and its launch would be those of another kernel."""
    change(tmp_path / "toys" / "generated" / "maps.cu")
    found = discover(tmp_path)
    assert set(TOYS) - {"maps"} == set(found.kernels)
    assert [tmp_path / "toys" / "maps.py"] == [problem.path for problem in found.problems]
    assert words in found.problems[0].message


def test_a_spec_keeps_its_own_catalogues_python(catalogue):
    """Another catalogue that is loaded later shares other functions."""
    case = catalogue.case("sums[n=1030]")
    before = case.correctness.expected({name: one.on(np) for name, one in case.inputs().items()}, np, None)
    discover(Path(__file__).parents[2] / "toys")
    after = case.correctness.expected({name: one.on(np) for name, one in case.inputs().items()}, np, None)
    assert {name: array.tobytes() for name, array in before.items()} == {k: a.tobytes() for k, a in after.items()}


def test_a_program_where_programs_were_before_is_told_where_it_goes(tmp_path):
    path = tmp_path / "family" / "fusions" / "mine.py"
    path.parent.mkdir(parents=True)
    path.write_text("")
    with pytest.raises(SpecError, match=r"a program is declared in .*family/mine.py, a spec file that ends with"):
        declarations(tmp_path)
