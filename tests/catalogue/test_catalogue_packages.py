"""Packages of catalogues: what specs share."""

import importlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.catalogue.importer import package_name
from prism_bench.compilation.sources import python_files
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


def test_specs_share_python_through_include(folder):
    """Each catalogue has its own; what an earlier one shared is not seen."""
    imports = SPEC.replace("\nfrom prism_bench import", "\nfrom ..include.shared import AXIS\nfrom prism_bench import")
    plant(folder, imports + "    parameters={'axis': AXIS},\n)\n")
    (folder / "include").mkdir(exist_ok=True)
    (folder / "include" / "shared.py").write_text("AXIS = 1\n")
    first = discover(folder)
    assert (1, ()) == (first.kernel("planted").parameters["axis"], first.problems)
    other = Path(shutil.copytree(folder, folder.parent / "other"))
    (other / "include" / "shared.py").write_text("AXIS = 22\n")
    assert 22 == discover(other).kernel("planted").parameters["axis"]
    (other / "include" / "shared.py").unlink()
    (problem,) = discover(other).problems
    assert ".include.shared" in problem.message


def test_specs_find_the_built_in_python_where_they_have_none_of_that_name(folder):
    words = "\nfrom prism_bench import"
    imports = SPEC.replace(words, f"\nfrom ..include.launches import host_plan{words}")
    plant(folder, imports + "    parameters={'whose': len(host_plan.__file__)},\n)\n")
    built_in = default_folder() / "include" / "launches" / "host_plan.py"
    assert len(str(built_in)) == discover(folder).kernel("planted").parameters["whose"]
    (folder / "include" / "launches").mkdir(parents=True)
    (folder / "include" / "launches" / "host_plan.py").write_text("")
    own = folder.resolve() / "include" / "launches" / "host_plan.py"
    assert len(str(own)) == discover(folder).kernel("planted").parameters["whose"]


def test_a_catalogue_adds_files_to_a_subject_and_to_peers(folder):
    for place in ("include/launches", "peers"):
        (folder / place).mkdir(parents=True)
        (folder / place / "mine.py").write_text(
            "from .host_plan import together\n" if "include" in place else "A = 1\n"
        )
    imports = (
        "from ..include.launches.host_plan import together\nfrom ..include.launches.mine import together as same\n"
        "from ..peers.mine import A\nfrom ..peers.poor_ways import NARROW\n"
    )
    path = plant(folder, imports + SPEC + "    parameters={'same': together is same, 'axis': A},\n)\n")
    catalogue = discover(folder)
    assert ((), True) == (catalogue.problems, catalogue.kernel("planted").parameters["same"])
    built_in, own = default_folder(), folder.resolve()
    files = {file.resolve() for file in python_files(path)} - {path.resolve()}
    assert files == {
        built_in / "include/launches/host_plan.py", own / "include/launches/mine.py",
        own / "peers/mine.py", built_in / "peers/poor_ways.py",
    }  # fmt: skip


def test_the_packages_of_two_catalogues_exist_side_by_side(folder):
    (folder / "include" / "launches").mkdir(parents=True)
    (folder / "include" / "launches" / "host_plan.py").write_text("OWN = True\n")
    discover()
    discover(folder)
    own, built_in = package_name(folder), package_name(default_folder())
    assert built_in != own
    assert [str(folder.resolve())] == list(importlib.import_module(own).__path__)
    assert importlib.import_module(f"{own}.include.launches.host_plan").OWN
    assert importlib.import_module(f"{built_in}.include.launches.host_plan").together
    assert discover(folder).kernel("double").reference.__module__ == f"{own}.arith.double"


def test_a_package_does_not_depend_on_how_its_folder_is_written(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert package_name(folder) == package_name(Path()) == package_name(folder / "arith" / "..")


def test_a_family_may_have_a_dot_in_its_name(folder):
    shutil.move(folder / "arith", folder / "v1.5")
    path = folder / "v1.5" / "double.py"
    path.write_text("from ..include.shared import AXIS\n" + path.read_text())
    (folder / "include").mkdir()
    (folder / "include" / "shared.py").write_text("AXIS = 1\n")
    found = discover(folder)
    assert ((), "v1.5") == (found.problems, found.kernel("double").family)


def test_the_file_that_makes_a_family_a_package_for_type_checkers_is_no_spec(folder):
    (folder / "arith" / "__init__.py").write_text("")
    assert () == discover(folder).problems


@pytest.mark.parametrize("shared", [False, True], ids=["the spec", "what it imports"])
def test_an_edit_within_a_second_to_the_same_length_is_seen(folder, shared, monkeypatch):
    """Python's own cache of bytecode compares whole seconds and sizes, and would give the value of before."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (folder / "include").mkdir(exist_ok=True)
    imports = SPEC.replace("\nfrom prism_bench import", "\nfrom ..include.axis import AXIS\nfrom prism_bench import")
    path = plant(folder, imports + "    parameters={'axis': AXIS, 'own': 1},\n)\n")
    (folder / "include" / "axis.py").write_text("AXIS = 1\n")
    edited, name = (folder / "include" / "axis.py", "axis") if shared else (path, "own")
    found = []
    for value in "1223":
        edited.write_text(re.sub(r"(AXIS = |'own': )\d", rf"\g<1>{value}", edited.read_text()))
        os.utime(edited, (1_700_000_000, 1_700_000_000))
        found.append(discover(folder).kernel("planted").parameters[name])
    assert [1, 2, 2, 3] == found
