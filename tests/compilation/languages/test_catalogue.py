"""Forms of a kernel in other languages: found by suffix, read without their compilers, broken ones left out."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.compilation.languages import build_request, names, source_hash
from prism_bench.compilation.languages.language import Language, language
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.io.installation import pip_install
from prism_bench.spec.case import Device
from prism_bench.spec.workload import Workload

CATALOGUE = Path(__file__).parent / "catalogue"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(CATALOGUE, tmp_path / "catalogue"))


def test_a_form_is_a_variant_with_its_own_launch_and_tuning_space():
    found = discover(CATALOGUE)
    assert () == found.problems
    case = found.case("scaled:triton[n=4096]")
    assert ("triton", "scaled.triton.py") == (case.spec.language, case.spec.source_file.name)
    assert {"block": 256} == case.configuration
    assert ("scaled<BLOCK=256, num_warps=2; n:16>",) == case.plan.entries(Device())
    assert ("scaled",) == found.case("scaled[n=4096]").plan.entries(Device())


@pytest.mark.parametrize(("n", "entry"), [(1, "n=1"), (1001, ""), (4096, "n:16")])
def test_what_the_compiler_knows_of_a_value_is_part_of_the_instance(n, entry):
    (text,) = discover(CATALOGUE).anywhere(f"scaled:triton[n={n}]").plan.entries(Device())
    assert text.removeprefix("scaled<BLOCK=256, num_warps=2").strip("; >") == entry


def test_reading_imports_no_compiler():
    script = (
        "import sys; from prism_bench.catalogue import discover; "
        f"found = discover({str(CATALOGUE)!r}); assert not found.problems; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    tops = {name.partition(".")[0] for name in loaded.stdout.split()}
    compilers = {module for name in names() for module in language(name).modules}
    assert compilers
    assert not tops & compilers


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("variant = Variant(", "other = Variant(", "defines no 'variant = Variant(...)'"),
        ("import triton\n", "import triton, nothing_like_it\n", "line 3: ModuleNotFoundError"),
        ("Tune(block=(256, 1024))", "Tune(block=triton.sizes)", "catalogue is read"),
    ],
)
def test_a_broken_form_is_a_problem_and_the_others_go_on(copy, old, new, reason):
    file = copy / "small/scaled.triton.py"
    file.write_text(file.read_text().replace(old, new))
    found = discover(copy)
    (problem,) = found.problems
    assert file == problem.path
    assert reason in str(problem)
    assert {"scaled"} == {case.kernel for case in found.cases()}


def test_a_launch_that_needs_the_compiler_is_refused(copy):
    file = copy / "small/scaled.triton.py"
    file.write_text(file.read_text().replace("triton.cdiv(n, block)", "tl.cdiv(n, block)"))
    case = discover(copy).case("scaled:triton[n=4096]")
    with pytest.raises(SpecError, match=r"grid is triton.language.cdiv\(\), of a module that is not imported"):
        case.plan.entries(Device())


def test_a_form_without_a_spec_is_a_problem(copy):
    (copy / "small/scaled.py").unlink()
    (copy / "small/scaled.cu").unlink()
    (problem,) = discover(copy).problems
    assert "has no spec scaled.py next to it" == problem.message


def test_a_missing_compiler_is_one_sentence_with_the_extra(monkeypatch):
    monkeypatch.setattr(type(language("triton").library), "is_installed", lambda self: False)
    with pytest.raises(
        BackendUnavailable, match=re.escape(f"Triton is not installed ({pip_install('triton', anywhere=True)})")
    ):
        language("triton").require_installed()


def test_comments_are_no_part_of_the_source(copy):
    file = copy / "small/scaled.triton.py"
    before = source_hash(file)
    file.write_text(file.read_text().replace("@triton.jit", "# a comment // 2\n@triton.jit"))
    assert before == source_hash(file)
    file.write_text(file.read_text().replace("factor * tl", "2 * factor * tl"))
    assert before != source_hash(file)


def test_each_loader_is_a_language():
    assert "triton" in names()
    assert all(isinstance(language(name), Language) for name in names())


def test_a_request_has_the_instances_of_a_case():
    request = build_request(discover(CATALOGUE).case("scaled:triton[n=4096]"), Device(compute_capability=80))
    assert request is not None
    assert ("triton", "80") == (request.language, request.architecture)


def test_a_form_adds_edges_to_those_of_its_spec(copy):
    file = copy / "small" / "scaled.triton.py"
    text = file.read_text().replace("import Launch, Tune, Variant", "import Launch, Tune, Variant, Workload")
    file.write_text(text.replace('    "in Triton",\n', '    "in Triton",\n    more_edges=(Workload(n=4096 + 7),),\n'))
    found = discover(copy)
    assert () == found.problems
    spec = found.kernels["scaled"]
    assert (*spec.edges, Workload(n=4103)) == spec.with_variant("triton").edges


def test_the_guide_has_what_each_language_can():
    page = (ROOT / "docs" / "pages" / "guides" / "languages.md").read_text()
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.startswith("| ")}
    for name in names():
        spoken = language(name)
        row = rows[spoken.title]
        assert (f"`scale.{name}.py`" in row, f"`{spoken.library.extra}`" in row) == (True, True)
        assert (type(spoken).not_emulated is Language.not_emulated) == ("| nothing |" in row)


def test_softmax_has_at_least_six_implementations():
    found = {case.kernel for case in discover(ROOT / "kernels").cases(["softmax"], ("S0",))}
    assert {"softmax", *(f"softmax:{name}" for name in names())} <= found
    assert len(found) >= 6
