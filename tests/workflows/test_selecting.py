"""Two builds compiled and compared without a device: what changed of which case, and what does not build."""

import shutil
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.compilation import compilers, nvrtc_version
from prism_bench.compilation.listing import tool
from prism_bench.errors import BackendUnavailable
from prism_bench.run.builds import Build
from prism_bench.run.pool import measuring
from prism_bench.spec.case import Device
from prism_bench.workflows import pairs
from prism_bench.workflows.case_code import identity_on
from prism_bench.workflows.pairs import other_environment, other_package, restricted, selected, with_broken

TOYS = Path(__file__).parents[1] / "toys"


@pytest.fixture
def two(tmp_path):
    """A function that changes a file of the second of two copies of the toys, and returns both as builds."""
    folders = [
        Path(shutil.copytree(TOYS, tmp_path / side / "kernels", ignore=shutil.ignore_patterns("__pycache__")))
        for side in "ab"
    ]

    def builds(file="", old="", new="", side=1):
        if file:
            path = folders[side] / "arith" / file
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        a, b = (discover(folder) for folder in folders)
        return tuple(Build(str(one.folder), one, tuple(one.cases())) for one in (a, b))

    return builds


@pytest.fixture(params=["machine code", "source text"])
def by(request):
    """Both ways to know code; the first needs NVRTC."""
    if request.param == "machine code":
        need_nvrtc()
    return request.param


def need_nvrtc():
    try:
        nvrtc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def reasons(builds, by, **options):
    found = selected(builds, Device(), by, **options)
    return {one.case: one.reasons for one in found.cases if one.reasons}


def test_two_copies_are_the_same(two, by):
    found = selected(two(), Device(), by)
    assert () == found.changed
    assert {"control", "same machine code"} == {one.role for one in found.cases}
    assert all(not build.cases for build in restricted(two(), found))


def test_a_comment_changes_nothing(two, by):
    assert {} == reasons(two("triple.cu", "const int i", "// here\n    const int i"), by)


def test_other_code_is_a_change_of_its_kernels_cases_alone(two, by):
    assert {"triple[n=1000]": ("code",)} == reasons(two("triple.cu", "3.0f", "5.0f"), by)


def test_another_launch_is_a_change(two, by):
    found = reasons(two("triple.py", "block=128", "block=64"), by)
    assert {"triple[n=1000]": ("launch",)} == found


@pytest.mark.parametrize(
    ("old", "new"),
    [('In("x", "n")', 'In("x", "n", fill=uniform())'), ('In("x", "n")', 'In("x", "n", fill=normal(1.0))')],
)
def test_other_inputs_are_a_change(two, by, old, new):
    builds = two("triple.py", old, new)
    path = builds[1].catalogue.folder / "arith" / "triple.py"
    path.write_text(path.read_text().replace("exact\n", "exact, normal, uniform\n"))
    catalogue = discover(builds[1].catalogue.folder)
    assert not catalogue.problems
    assert {"triple[n=1000]": ("inputs",)} == reasons((builds[0], Build("b", catalogue, tuple(catalogue.cases()))), by)


def test_another_reference_is_no_change(two, by):
    assert {} == reasons(two("triple.py", "lambda x: 3 * x", "lambda x: 2 * x + x"), by)


def test_an_unused_kernel_of_the_same_source_is_no_change_of_the_others(two):
    need_nvrtc()
    found = reasons(two("double.cu", "x[i] + x[i]", "x[i] + x[i] * 1.5f"), "machine code")
    assert {case for case in found if case.startswith("double:by_adding")} == set(found) != set()


@pytest.mark.parametrize(("side", "broken"), [(0, "a"), (1, "b")])
def test_a_side_that_does_not_compile_is_named(two, side, broken):
    need_nvrtc()
    found = selected(two("triple.cu", "const int i", "const integer i", side), Device(), "machine code")
    (one,) = (one for one in found.cases if one.case == "triple[n=1000]")
    assert ("does not build", broken, True) == (one.role, one.broken, "integer" in one.problem)
    assert "triple[n=1000]" not in {case.name for build in restricted(two(), found) for case in build.cases}


def test_a_launch_that_raises_is_named(two, by):
    builds = two("triple.py", "-(-n // 128)", "n // 0")
    builds = builds[0], Build("b", builds[1].catalogue, tuple(builds[1].catalogue.cases()))
    (one,) = (one for one in selected(builds, Device(), by).cases if one.case == "triple[n=1000]")
    assert ("does not build", "b", True) == (one.role, one.broken, "ZeroDivisionError" in one.problem)


def test_all_cases_are_measured_where_there_is_a_reason(two, by):
    found = selected(two(), Device(), by, "--all is given")
    assert {"control", "measured"} == {one.role for one in found.cases}
    assert len(found.cases) == len(restricted(two(), found)[0].cases)


def test_the_difference_has_registers_and_instructions(two):
    need_nvrtc()
    found = selected(two("triple.cu", "3.0f * x[i]", "sqrtf(x[i]) / x[i]"), Device(), "machine code")
    (entry,) = next(one.differences for one in found.cases if one.differences)
    assert entry.before.resources.registers <= entry.after.resources.registers
    assert ("tripled", tool("nvdisasm") is not None) == (entry.entry, bool(entry.kinds))


def test_other_variables_and_another_package_are_reasons_to_measure_all(two, tmp_path):
    a, b = two()
    assert (None, None) == (other_environment((a, b)), other_package((a, b)))
    changed = Build("b", b.catalogue, b.cases, measuring(None, {"MODE": "1"}))
    assert "MODE differs between the sides" == other_environment((a, changed))
    (tmp_path / "prism_bench").mkdir()
    elsewhere = Build("b", b.catalogue, b.cases, measuring(tmp_path))
    assert "the package differs between the sides" in other_package((a, elsewhere))


@pytest.mark.parametrize(("launched", "count"), [(False, 2), (True, 4)])
def test_code_of_the_control_is_compiled_ahead_where_it_is_launched(two, monkeypatch, launched, count):
    need_nvrtc()
    seen, really = [], pairs.compiled_jobs
    monkeypatch.setattr(pairs, "compiled_jobs", lambda jobs: seen.extend(jobs) or really(seen))
    selected(two(), Device(), "machine code", launched=launched)
    assert not seen, "nothing differs, so that nothing is measured"
    found = selected(two("triple.cu", "3.0f", "5.0f"), Device(), "machine code", launched=launched)
    assert (("triple[n=1000]",), count) == (found.changed, len(set(seen)))
    assert 4 == len(found.names("control"))


def test_code_is_known_by_its_source_where_there_is_no_compiler(monkeypatch):
    def missing():
        raise BackendUnavailable(compilers.missing())

    assert "source text" == identity_on("emulator")
    monkeypatch.setattr(compilers, "load", missing)
    assert "source text" == identity_on("cuda")


def test_another_compiler_is_a_reason_where_the_code_differs(two, by):
    builds = two("triple.py", "entry=", 'compiler="nvcc", entry=')
    assert not builds[1].catalogue.problems
    assert {"triple[n=1000]": ("code", "compiler")} == reasons(two("triple.cu", "3.0f", "5.0f"), by)


def test_a_case_whose_spec_cannot_be_used_is_added_as_broken(two, by):
    found = with_broken(selected(two(), Device(), by), {"gone[n=1]": "gone.py: line 1: SyntaxError"})
    assert ("gone[n=1]", "does not build", "b") == tuple(
        getattr(found.cases[-1], name) for name in ("case", "role", "broken")
    )
    assert () == found.changed and "gone[n=1]" not in {one.name for one in restricted(two(), found)[0].cases}
