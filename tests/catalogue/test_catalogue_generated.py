"""A spec that names its source: a generated one, in a folder of its family; the source next to it is a variant's."""

import shutil
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.extension import header_folders
from prism_bench.io.files import default_folder, shared_with

TOYS = Path(__file__).parents[1] / "toys"
GENERATED = """
from dataclasses import replace
from pathlib import Path

spec = replace(spec, source=Path(__file__).parent / "generated" / "made.cu")
"""
SPEC = (TOYS / "arith" / "triple.py").read_text() + GENERATED


@pytest.fixture
def folder(tmp_path):
    """A copy of the toys, to add to."""
    return Path(shutil.copytree(TOYS, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__")))


def generate(folder, name="made"):
    """Put a spec into the family `arith` whose source is generated."""
    made = folder / "arith" / "generated"
    made.mkdir()
    (made / f"{name}.cu").write_text("")
    (folder / "arith" / f"{name}.py").write_text(SPEC)
    return made


def test_a_generated_kernel_is_a_member_of_its_family(folder):
    made = generate(folder)
    found = discover(folder)
    assert () == found.problems
    assert ("arith", made / "made.cu") == (found.kernel("made").family, found.kernel("made").source)


def test_the_source_by_hand_of_a_generated_kernel_needs_no_spec_of_its_own(folder):
    made = generate(folder)
    (folder / "arith" / "made.cu").write_text("")
    assert () == discover(folder).problems
    (folder / "arith" / "made.py").unlink()
    assert {folder / "arith" / "made.cu", made / "made.cu"} == {problem.path for problem in discover(folder).problems}


def test_generated_specs_share_python_and_headers_of_their_catalogue(folder):
    made = generate(folder)
    (folder / "include").mkdir(exist_ok=True)
    (folder / "include" / "shared.py").write_text("AXIS = 1\n")
    (folder / "arith" / "made.py").write_text("from ..include.shared import AXIS\n" + SPEC)
    assert () == discover(folder).problems
    shared = (folder / "include", default_folder() / "include", *header_folders())
    assert shared == shared_with(made / "made.cu") == shared_with(folder / "arith" / "double.cu")
