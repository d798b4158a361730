"""The cases of the built-in catalogue are built once for each state of it, those of another catalogue each time."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench.catalogue import catalogue as kept_checks
from prism_bench.catalogue import loading
from prism_bench.catalogue.loading import discover
from prism_bench.spec.kernel import KernelSpec

BUILT_IN = kept_checks.default_folder()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return the names of the specs whose cases were built, with a cache in which nothing is kept yet."""
    names: list[str] = []

    def check(spec: KernelSpec, variant: str | None = None) -> None:
        names.append(spec.name)

    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_checks, "_passed", set())
    monkeypatch.setattr(loading, "check_spec", check)
    monkeypatch.setattr(loading, "check_variant", check)
    return names


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a small catalogue that counts as the built-in one."""
    folder = tmp_path / "kernels"
    (folder / "basic").mkdir(parents=True)
    shutil.copytree(BUILT_IN / "include", folder / "include")
    for name in ("vector_add.py", "vector_add.cu"):
        shutil.copy(BUILT_IN / "basic" / name, folder / "basic" / name)
    monkeypatch.setattr(kept_checks, "default_folder", lambda: folder)
    return folder


def test_a_second_process_builds_no_case_of_an_unchanged_catalogue(catalogue: Path, built: list[str]) -> None:
    assert ["vector_add"] == list(discover(catalogue).kernels)
    assert ["vector_add"] == built
    kept_checks._passed.clear()  # as in another process
    assert ["vector_add"] == list(discover(catalogue).kernels)
    assert ["vector_add"] == built


@pytest.mark.parametrize("name", ["basic/vector_add.py", "include/launches/host_plan.py"])
def test_a_changed_file_is_checked_again(catalogue: Path, built: list[str], name: str) -> None:
    discover(catalogue)
    path = catalogue / name
    path.write_text(f"{path.read_text()}\n# changed\n")
    discover(catalogue)
    assert ["vector_add"] * 2 == built


def test_a_changed_package_checks_again(
    catalogue: Path, built: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "prism_bench"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(kept_checks.prism_bench, "__file__", str(package / "__init__.py"))
    discover(catalogue)
    (package / "case.py").write_text("")
    discover(catalogue)
    assert ["vector_add"] * 2 == built


def test_a_catalogue_with_a_problem_is_checked_each_time(catalogue: Path, built: list[str]) -> None:
    (catalogue / "basic" / "broken.py").write_text("spec = 1\n")
    for _ in range(2):
        assert discover(catalogue).problems
    assert ["vector_add"] * 2 == built


def test_another_catalogue_is_checked_each_time(
    catalogue: Path, built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_checks, "default_folder", lambda: BUILT_IN)
    for _ in range(2):
        discover(catalogue)
    assert ["vector_add"] * 2 == built


def test_a_cache_that_takes_no_file_costs_the_check_in_each_process_alone(
    catalogue: Path, built: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "file"))
    for _ in range(2):
        discover(catalogue)
    assert ["vector_add"] == built


def test_a_few_states_are_remembered(catalogue: Path, built: list[str], tmp_path: Path) -> None:
    path = catalogue / "basic" / "vector_add.py"
    text = path.read_text()
    for number in range(kept_checks._MOST + 3):
        path.write_text(f"{text}\n# {number}\n")
        discover(catalogue)
    assert kept_checks._MOST == len(list((tmp_path / "cache" / "catalogue").iterdir()))


def test_the_built_in_catalogue_passes_its_checks_in_any_order_of_processes(tmp_path: Path) -> None:
    """A process that checks and one that does not find the same."""
    code = (
        "from prism_bench.catalogue import discover; c = discover(); print(len(c.kernels), c.problems, list(c.aliases))"
    )
    environment = {"PRISM_BENCH_CACHE": str(tmp_path), "PYTHONPATH": str(BUILT_IN.parent), "PATH": "/usr/bin:/bin"}
    printed = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert printed[0] == printed[1] != ""
