"""What two words on a command line stand for."""

import shutil
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import UsageError
from prism_bench.run.builds import Choice, of_itself, opened, words_of

TOYS = Path(__file__).parent.parent / "toys"


@pytest.fixture(scope="module")
def toys():
    return discover(TOYS)


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(TOYS, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__")))


def names(build):
    return [case.name for case in build.cases]


def test_a_kernel_and_its_variant_meet_at_their_workloads(toys):
    with opened(("twice", "double:by_adding"), Choice(toys, labels=("S0", "S1"))) as sides:
        a, b = sides.builds
    assert ("variants", ()) == (sides.across, sides.notes)
    assert ["double[n=1000]", "double[n=100000]"] == names(a)
    assert ["double:by_adding[n=1000]", "double:by_adding[n=100000]"] == names(b)


def test_a_workload_of_one_side_only_is_told(toys):
    with opened(("double", "triple"), Choice(toys, labels=("S0",))) as sides:
        assert ("on one side only: double[n=1000], triple[n=1000] (2)",) == sides.notes
        assert [[], []] == [names(build) for build in sides.builds]


def test_two_folders_share_their_cases(toys, copy):
    (copy / "arith" / "triple.py").unlink()
    (copy / "arith" / "triple.cu").unlink()
    with opened((str(TOYS), str(copy)), Choice(toys)) as sides:
        a, b = sides.builds
    assert ["double[n=1000]", "double:by_adding[n=1000]", "nothing[blocks=1]"] == names(a)
    assert names(a) == names(b)
    assert ("builds", ("on one side only: triple[n=1000] (1)",)) == (sides.across, sides.notes)
    assert [TOYS, copy] == [build.catalogue.folder for build in sides.builds]


def test_a_broken_spec_of_a_side_is_told(toys, copy):
    (copy / "arith" / "triple.py").write_text("import prism_bench\nspec = 1 / 0")
    with opened((str(TOYS), str(copy)), Choice(toys)) as sides:
        assert "ZeroDivisionError" in sides.notes[-1]


def test_cases_that_a_broken_spec_takes_away_are_broken_and_deleted_ones_are_not(toys, copy):
    (copy / "arith" / "triple.py").write_text("spec = 1 +")
    for name in ("nothing.py", "nothing.cu"):
        (copy / "machine" / name).unlink()
    with opened((str(TOYS), str(copy)), Choice(toys)) as sides:
        assert ["triple[n=1000]"] == list(sides.broken)
        assert "SyntaxError" in sides.broken["triple[n=1000]"]
        assert "on one side only: nothing[blocks=1] (1)" == sides.notes[0]
    with opened((str(copy), str(TOYS)), Choice(toys)) as sides:
        assert {} == sides.broken, "B repaired what A had broken"


def test_a_form_that_cannot_be_used_breaks_its_cases_alone(toys, copy):
    form = 'from prism_bench import Variant\n\nvariant = Variant("adds", entry="doubled")\n'
    other = Path(shutil.copytree(copy, copy.parent / "other"))
    (copy / "arith" / "double.triton.py").write_text(form)
    (other / "arith" / "double.triton.py").write_text("variant = 1 +")
    with opened((str(copy), str(other)), Choice(discover(copy))) as sides:
        assert ["double:triton[n=1000]"] == list(sides.broken)
        assert "double[n=1000]" in names(sides.builds[0])


def test_a_side_without_any_usable_spec_is_named(toys, copy):
    for path in copy.glob("*/*.py"):
        path.write_text("spec = 1 +")
    with pytest.raises(UsageError, match=r"copy does not build: .*double\.py: line 1: SyntaxError: .*; correct it"):
        with opened((str(TOYS), str(copy)), Choice(toys)):
            pass


def test_the_bundled_catalogue_of_an_installed_package_has_no_history(copy, monkeypatch):
    monkeypatch.setattr("prism_bench.io.files._PACKAGE", copy.parent)
    catalogue = discover(copy.rename(copy.parent / "kernels"))
    for words in (lambda: words_of(None, None, catalogue), lambda: opened(("main", "HEAD"), Choice(catalogue))):
        with pytest.raises(UsageError, match="the bundled catalogue has no history: run 'prism-bench init', or give"):
            with words():
                pass


def test_a_checkout_is_measured_by_its_own_package(toys, copy):
    checkout = copy.parent / "checkout"
    (checkout / "prism_bench").mkdir(parents=True)
    (checkout / "prism_bench" / "__init__.py").write_text("")
    shutil.copytree(copy, checkout / "kernels")
    with opened((str(copy), str(checkout)), Choice(toys)) as sides:
        assert [None, checkout] == [build.place.root for build in sides.builds]


def test_each_side_has_its_environment(toys):
    choice = Choice(toys, ["double"], environments=({}, {"POOL": "1"}))
    with opened((str(TOYS), str(TOYS)), choice) as sides:
        assert [{}, {"POOL": "1"}] == [build.place.variables for build in sides.builds]
        assert ["double[n=1000]", "double:by_adding[n=1000]"] == names(sides.builds[0])


def test_a_kernel_and_a_folder_do_not_compare(toys):
    with pytest.raises(UsageError, match="double is a kernel and the other side is not"):
        with opened(("double", str(TOYS)), Choice(toys)):
            pass


def test_what_is_nothing_is_said(copy, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(copy.parent))
    with pytest.raises(UsageError, match="'nonsense' is no record, no folder"):
        with opened((str(copy), "nonsense"), Choice(discover(copy))):
            pass


def test_a_build_against_itself_has_the_same_cases_twice(toys):
    a, b = of_itself(Choice(toys, ["triple"])).builds
    assert (names(a), [f"{TOYS} (A)", f"{TOYS} (B)"]) == (names(b), [a.name, b.name])
