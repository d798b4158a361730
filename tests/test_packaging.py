"""The wheel: it carries the catalogue and works from any folder."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.wheel import HOUSE


@pytest.fixture(scope="module")
def wheel(installed):
    return installed.path


@pytest.fixture(scope="module")
def elsewhere(installed, tmp_path_factory):
    """A function that runs the unpacked wheel's command line in an empty folder far from the checkout."""
    folder = tmp_path_factory.mktemp("elsewhere")

    def run(*words):
        return installed.command(folder, *words)

    run.unpacked, run.folder = installed.site, folder
    return run


def test_wheel_holds_every_source_and_nothing_left_behind(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    kept = subprocess.run(["git", "ls-files", "prism_bench", "kernels"], cwd=HOUSE, capture_output=True, text=True)
    for name in kept.stdout.split():
        if (HOUSE / name).is_file():
            assert (f"prism_bench/{name}" if name.startswith("kernels/") else name) in names
    assert "prism_bench/kernels/machine/null.cu" in names
    assert "prism_bench/py.typed" in names, "without it type checkers ignore annotations"
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_wheel_has_its_license_and_its_command(wheel):
    archive = zipfile.ZipFile(wheel)
    facts = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert "The Prism Bench authors" in facts["LICENSE"]
    assert "prism-bench = prism_bench.__main__:main" in facts["entry_points.txt"]
    assert "License-Expression: BSD-3-Clause" in facts["METADATA"]


def test_pytest_finds_the_fixture_of_an_installed_wheel(installed, tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it(prism):\n    prism(lambda: 1.0, reference=1.0)\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--prism-backend", "null", "test_it.py"]
    environment = installed.environment(PYTEST_ADDOPTS="-p no:benchmark")
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert 1 == len(list(tmp_path.glob("reports/runs/*/*.json.gz")))


def test_lists_its_own_catalogue(elsewhere):
    listed = elsewhere("list", "--json")
    assert listed.returncode == 0, listed.stderr
    sources = [case["source"] for case in json.loads(listed.stdout)]
    assert sources
    assert all(source.startswith(str(elsewhere.unpacked)) for source in sources)


def test_sets_up_a_repository_with_every_part(elsewhere, tmp_path):
    from prism_bench.extensions.init.project import PARTS

    made = elsewhere("init", str(tmp_path), "--with", ",".join(PARTS), "--json")
    assert made.returncode == 0, made.stderr
    assert (HOUSE / "suites" / "times.py").read_text() == (tmp_path / "suites" / "times.py").read_text()
    assert {"asv.conf.json", "suites/listing.py"} < set(json.loads(made.stdout)["wrote"])


def test_verifies_measures_and_reports(elsewhere):
    verified = elsewhere("verify", "--backend", "numpy_reference", "--filter", "vector_add")
    assert verified.returncode == 0, verified.stderr
    measured = elsewhere("run", "--backend", "numpy_reference", "--label", "S0", "-f", "vector_add", "--processes", "1")
    assert measured.returncode == 0, measured.stderr
    assert list(elsewhere.folder.glob("reports/runs/*/*.json.gz"))
    reported = elsewhere("report")
    assert reported.returncode == 0, reported.stderr
    assert "vector_add" in (elsewhere.folder / "reports/site/catalogue.html").read_text()
