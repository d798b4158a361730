"""The folder is the registry: one broken pair is named with file and line, and the rest goes on."""

import shutil
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.catalogue.loading import require_definition
from prism_bench.errors import SpecError, UsageError
from prism_bench.io.files import default_folder

TOYS = Path(__file__).parents[1] / "toys"
SPEC = """
from prism_bench import In, KernelSpec, Launch, Out, Size, Workload

spec = KernelSpec(
    entry="f",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=n, block=1),
    reference=lambda x: x,
    workloads={"S0": Workload(n=3)},
"""


@pytest.fixture
def folder(tmp_path):
    """A copy of the toys, to break."""
    return Path(shutil.copytree(TOYS, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__")))


def plant(folder, text, name="planted", source=""):
    """Put a pair into the family `arith`; `source` None leaves the source out."""
    if source is not None:
        (folder / "arith" / f"{name}.cu").write_text(source)
    path = folder / "arith" / f"{name}.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def the_problem(folder):
    """The one problem of the catalogue, whose other kernels all stand."""
    found = discover(folder)
    assert {"double", "triple", "nothing"} <= set(found.kernels)
    (problem,) = found.problems
    return problem


def test_every_pair_of_somebody_elses_folder_is_found(folder):
    found = discover(folder)
    assert ["double", "triple", "nothing"] == list(found.kernels)
    assert ("arith", "machine") == found.families
    assert () == found.problems


def test_name_family_and_source_come_from_the_path(folder):
    spec = discover(folder).kernel("double")
    assert ("double", "arith", folder / "arith" / "double.cu") == (spec.name, spec.family, spec.source)


def test_a_folder_may_be_named_by_text(folder):
    assert discover(folder).kernels.keys() == discover(str(folder)).kernels.keys()


def test_a_missing_folder_says_what_a_catalogue_is(tmp_path):
    with pytest.raises(UsageError, match=r"no catalogue at .*nowhere: a catalogue is a folder of"):
        discover(tmp_path / "nowhere")


def test_an_empty_folder_is_an_empty_catalogue(tmp_path):
    assert ({}, ()) == (discover(tmp_path).kernels, discover(tmp_path).problems)


def test_the_built_in_catalogue_is_a_folder():
    assert default_folder().is_dir()


END = "from prism_bench import KernelSpec\nspec = KernelSpec()\n"  # a text that defines a spec is run


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nspec = KernelSpec(\n", "line 2: SyntaxError: '(' was never closed (planted.py, line 2)"),
        ("x = 1\n\nraise ValueError('no luck')\n" + END, "line 3: ValueError: no luck"),
        ("import does_not_exist\n" + END, "line 1: ModuleNotFoundError: No module named 'does_not_exist'"),
        ("def f():\n    return 1 / 0\n\n\nf()\n" + END, "line 2: ZeroDivisionError: division by zero"),
        ("x = 1\nraise SystemExit(0)\n" + END, "line 2: SystemExit: 0"),
        ("x = 1\n", "defines no 'spec = KernelSpec(...)'"),
        ("spec = {'entry': 'f'}\nimport prism_bench\n", "defines no 'spec = KernelSpec(...)'"),
    ],
)
def test_a_spec_that_does_not_load_is_named_with_its_line(folder, text, message):
    path = plant(folder, text)
    problem = the_problem(folder)
    assert (path, message) == (problem.path, problem.message)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import prism_bench\n",
        "spec = None\n",
        "from prism_bench import benchmark\n\ndef f():\n    spec = 1\n",
        "'''\nfrom prism_bench import KernelSpec\nspec = KernelSpec()\n'''\n",
        "import importlib.util\nspec = importlib.util.spec_from_file_location('a', 'b')\n",
    ],
)
def test_a_script_in_a_folder_of_kernels_is_not_run(folder, tmp_path, text):
    write = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
    plant(folder, text + write)
    assert the_problem(folder).message.startswith("defines no 'spec = KernelSpec(...)'")
    assert not (tmp_path / "ran").exists()


def test_a_form_in_another_language_is_run_where_it_defines_a_variant(folder, tmp_path):
    (folder / "arith" / "triple.triton.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert "defines no 'variant = Variant(...)'" == the_problem(folder).message
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "text",
    ["from ..include.made import spec\n", "if True:\n    from prism_bench import KernelSpec\n    spec: object = 1\n",
     "from .made import first as spec\n", "import prism_bench as p\nx, spec = 1, p.KernelSpec\n"],
)  # fmt: skip
def test_each_form_of_a_definition_is_run(tmp_path, text):
    (tmp_path / "a.py").write_text(text)
    require_definition(tmp_path / "a.py", "spec", "spec")


def test_a_spec_that_is_not_utf8_is_named(folder):
    path = plant(folder, "x = 'caf\u00e9'\nspec = 1\n".encode("latin1"))
    problem = the_problem(folder)
    assert path == problem.path
    assert "SyntaxError" in problem.message
    assert "None" not in problem.message


def test_a_source_without_spec_is_a_problem(folder):
    (folder / "arith" / "lonely.cu").write_text("")
    problem = the_problem(folder)
    assert (folder / "arith" / "lonely.cu", "has no spec lonely.py next to it") == (problem.path, problem.message)


def test_a_spec_without_source_is_a_problem(folder):
    plant(folder, SPEC + ")", source=None)
    assert "has no source planted.cu next to it" == the_problem(folder).message


def test_a_name_in_two_families_belongs_to_the_first(folder):
    shutil.copytree(folder / "arith", folder / "zoo")
    found = discover(folder)
    assert "arith" == found.kernel("double").family
    assert {"kernel 'double' is in family 'arith' too", "kernel 'triple' is in family 'arith' too"} == {
        problem.message for problem in found.problems
    }


def test_a_doubled_alias_belongs_to_the_first(folder):
    plant(folder, SPEC + "    aliases=('twice',),\n)")
    assert "alias 'twice' is taken" == the_problem(folder).message
    assert "double" == discover(folder).kernel("twice").name


def test_an_alias_cannot_hide_a_kernel(folder):
    plant(folder, SPEC + "    aliases=('triple',),\n)")
    assert "alias 'triple' is taken" == the_problem(folder).message
    assert "triple" == discover(folder).kernel("triple").name


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (
            "tolerance=1e-5",
            "tolerance is 1e-05, which does not say of what; write Tolerance('relative', relative=1e-05)",
        ),
        ("tolerance={'y': 1e-5}", "tolerance of 'y' is 1e-05, which does not say of what"),
        ("edges=(Workload(m=3),)", "names 'n', which is no axis"),
        ("rules=(Rule('n > 5', lambda n: n > 5),)", r"planted[n=3]: needs n > 5"),
        ("rules=(Rule('n > 5', lambda m: m > 5),)", "planted: rule 'n > 5' asks for 'm'"),
        ("derived={'half': lambda n: n / 0}", "ZeroDivisionError"),
        ("flops=lambda m: m", "planted: flops asks for 'm'"),
        ("bytes_moved=lambda n: 'many'", "ValueError"),
        ("only_labels=('S1',)", "only_labels names S1, which has no workload"),
        ("variants={'v': Variant('odd', entri='g')}", "variant 'v' changes entri, which no spec has"),
        ("variants={'v': Variant('odd', arguments=(Out('y', 'm'),))}", "names 'm', which is no axis"),
        ("golden=(Golden(Workload(n=1), inputs={'z': 1}, expected={'y': 1}, source='?'),)", "golden data give no 'x'"),
        (
            "golden=(Golden(Workload(n=1), inputs={'x': 1}, expected={'z': 1}, source='?'),)",
            "no argument is called 'z'",
        ),
    ],
)
def test_a_spec_that_contradicts_itself_is_named_and_left_out(folder, field, message):
    plant(folder, SPEC.replace("import In", "import Golden, Rule, Variant, In") + f"    {field},\n)")
    assert message in the_problem(folder).message
    assert "planted" not in discover(folder).kernels


def test_a_choice_of_a_broken_spec_gets_its_problem(folder):
    plant(folder, SPEC + "    tolerance=1e-5,\n)")
    for word in ("planted", "planted:other", "planted[n=3]"):
        with pytest.raises(SpecError, match=r"'planted' cannot be used: .*planted\.py: .* tolerance is 1e-05"):
            discover(folder).cases([word])


def test_a_catalogue_of_nothing_but_broken_specs_names_them(tmp_path):
    (tmp_path / "arith").mkdir()
    for name in ("one", "other"):
        plant(tmp_path, SPEC + "    tolerance=1e-5,\n)", name)
    with pytest.raises(SpecError, match=r"no kernel is left to run: .*one\.py: .* 1e-05.* \(and 1 more, above\)"):
        discover(tmp_path).refuse_nothing("run")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('Out("y", "n")', 'Out("y", "m")', "y: shape 'm' names 'm', which is no axis"),
        ('Out("y", "n")', 'Out("y", "n", dtype="flota32")', "flota32"),
        ('Size("n")', 'Size("m")', "scalar 'm' is neither axis nor parameter"),
        ('Size("n")', 'Size("n", "uint8")', "n=300 does not fit uint8"),
        ('Size("n")', '"n"', "arguments holds 'n'; write a tuple of arguments"),
    ],
)
def test_arguments_that_contradict_the_workloads_are_named(folder, before, after, message):
    plant(folder, SPEC.replace("n=3", "n=300").replace(before, after) + ")")
    assert message in the_problem(folder).message


def test_what_a_spec_prints_does_not_mix_with_the_output_of_commands(folder, capsys):
    plant(folder, "print('hello from a spec')\n" + SPEC + ")")
    assert "planted" in discover(folder).kernels
    assert "" == capsys.readouterr().out


def test_hidden_folders_hold_no_kernels(folder):
    shutil.copytree(folder / "arith", folder / ".ipynb_checkpoints")
    assert () == discover(folder).problems


def names(cases):
    return [case.name for case in cases]


def test_cases_are_every_workload_of_every_kernel_and_variant():
    found = discover(TOYS)
    doubles = [f"{kernel}[n={n}]" for kernel in ("double", "double:by_adding") for n in (1000, 100000)]
    assert [*doubles, "triple[n=1000]", "nothing[blocks=1]"] == names(found.cases())


@pytest.mark.parametrize(
    ("filters", "labels", "expected"),
    [
        (["triple"], ["S0"], ["triple[n=1000]"]),
        (["double"], ["S0"], ["double[n=1000]", "double:by_adding[n=1000]"]),
        (["twice"], ["S1"], ["double[n=100000]", "double:by_adding[n=100000]"]),
        (["double:by_adding"], ["S0"], ["double:by_adding[n=1000]"]),
        (["twice:by_adding"], ["S0"], ["double:by_adding[n=1000]"]),
        (["machine"], ["S0", "S1"], ["nothing[blocks=1]"]),
        (["double[n=100000]"], ["S0", "S1"], ["double[n=100000]"]),
        (["triple", "machine", "triple"], ["S0"], ["triple[n=1000]", "nothing[blocks=1]"]),
        (["triple"], ["S2"], []),
        (["double[n=100000]"], ["S0"], ["double[n=100000]"]),
        (["triple", "double:by_adding[n=100000]"], ["S0"], ["double:by_adding[n=100000]", "triple[n=1000]"]),
    ],
)
def test_filters_choose_by_kernel_alias_variant_family_or_case(filters, labels, expected):
    assert expected == names(discover(TOYS).cases(filters, labels))


def test_edges_and_golden_cases_are_never_among_the_timed_ones():
    found = discover(TOYS)
    assert ["double[n=0]", "double[n=1]", "double[golden 1: n=3]"] == names(found.edges(["double"]))[:3]
    assert {"edge", "golden"} == {case.label for case in found.edges()}
    assert not {case.label for case in found.cases()} & {"edge", "golden"}


def plain(cases):
    """Those that are no input regimes."""
    return [case for case in cases if not case.is_regime]


def test_the_edges_of_a_kernel_are_not_those_of_its_variants():
    found = discover(TOYS)
    assert ["double[n=0]", "double[n=1]", "double[golden 1: n=3]"] == names(plain(found.edges_of("double")))
    assert ["double:by_adding[n=0]", "double:by_adding[n=1]"] == names(plain(found.edges_of("double:by_adding")))
    assert {"double:by_adding"} == {case.kernel for case in found.edges_of("double:by_adding")}


def test_a_case_is_found_by_its_name():
    found = discover(TOYS)
    assert "double:by_adding[n=1000]" == found.case("double:by_adding[n=1000]").name
    with pytest.raises(UsageError, match=r"unknown case 'double\[n=1001\]'; did you mean double\[n=1000\]"):
        found.case("double[n=1001]")


@pytest.mark.parametrize("word", ["doubel", "arit", "tripel[n=1000]"])
def test_an_unknown_filter_comes_with_the_nearest_names(word):
    with pytest.raises(UsageError, match=f"unknown kernel, family or case '{word[:4]}.*did you mean"):
        discover(TOYS).cases([word])


def test_an_unknown_variant_in_a_filter_comes_with_the_nearest_names():
    with pytest.raises(UsageError, match="unknown variant of double 'by_ading'; did you mean by_adding?"):
        discover(TOYS).cases(["double:by_ading"])


def test_an_unknown_label_comes_with_the_nearest_names():
    with pytest.raises(UsageError, match="unknown label 'S3'; did you mean S"):
        discover(TOYS).cases(labels=["S3"])


def test_an_unknown_kernel_comes_with_the_nearest_names_and_aliases():
    with pytest.raises(UsageError, match="unknown kernel 'twic'; did you mean twice"):
        discover(TOYS).kernel("twic")
