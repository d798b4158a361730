"""The default installation: light, and every command either works in it or names the extra that it needs."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from prism_bench.errors import ExtraMissing
from prism_bench.io.installation import EXTRAS, extras_named, host_special, pip_install
from prism_bench.record import store
from prism_bench.record.identity import COMMIT

pytestmark = pytest.mark.xdist_group("extras")  # one worker runs the commands

HOUSE = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
MOST_BYTES = 250e6
BYTECODE = 1.5  # bytes for each of the source: 1.2 (pip), 1.5 (NumPy, pandas) and 2.0 (ours) in an installation
# Modules that draw with Matplotlib or are asv's own; what imports them does so when it is called.
NEED_AN_EXTRA = {"prism_bench.report.asv.pages": "matplotlib", "prism_bench.report.asv.publisher": "asv"}
NOT_OF_ALL = {"fleet-slurm", "fleet-ssh"}  # of use on a cluster alone, so these tests do without them
TOYS = ("--catalogue", "toys")
NULL = (*TOYS, "--backend", "null", "--processes", "1")
WORKING = [
    ("list", *TOYS), ("verify", "triple", *TOYS, "--backend", "numpy_reference"), ("run", *NULL),
    ("run", *NULL, "--output", "b.json.gz"), ("show",), ("check", *TOYS), ("report", *TOYS),
    ("comment", "--since", "7d", *TOYS), ("trend",), ("check", "--accept", *TOYS),
    ("compare", "b.json.gz", "b.json.gz"), ("export", "--output", "a.csv"),
    ("export", "--output", "results", "--format", "asv"),
]  # fmt: skip
NEEDING = {
    ("export", "--output", "a.parquet"): "parquet",
    ("verify", "--catalogue", "special", "--backend", "numpy_reference"): "scipy",
}
# Every Python that finds this file, worker processes too, finds no library of any extra.
ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {extras}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
# Runs commands one after the other.
SCRIPT = """
import contextlib, importlib, io, json, pkgutil, sys, warnings
from prism_bench.io.installation import EXTRAS
from prism_bench.record.identity import COMMIT

def ran(words):
    from prism_bench.cli import main
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["prism-bench", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
    return [code, out.getvalue(), err.getvalue()]

def imported():
    import prism_bench
    warnings.simplefilter("ignore")
    for found in pkgutil.walk_packages(prism_bench.__path__, "prism_bench."):
        try:
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] in EXTRAS:
                yield found.name, error.name.partition(".")[0]

print(json.dumps({"runs": [ran(words) for words in json.loads(sys.argv[1])], "imports": dict(imported())}))
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """What the commands ended with and wrote, and the modules that could not be imported, without any extra."""
    words, hook = json.dumps([*WORKING, *NEEDING]), tmp_path_factory.mktemp("hook")
    (hook / "sitecustomize.py").write_text(ABSENT.format(extras={*EXTRAS}))
    folder = tmp_path_factory.mktemp("light")
    shutil.copytree(HOUSE / "tests" / "toys", folder / "toys")
    (folder / "special" / "arith").mkdir(parents=True)
    for suffix in ("cu", "py"):  # a reference that calls SciPy
        text = (HOUSE / "tests" / "toys" / "arith" / f"triple.{suffix}").read_text()
        text = text.replace("lambda x: 3 * x", "lambda x, special: 3 * special.exp10(x)")
        (folder / "special" / "arith" / f"triple.{suffix}").write_text(text)
    environment = {**os.environ, "PYTHONPATH": f"{hook}{os.pathsep}{HOUSE}", COMMIT: "0" * 39 + "1"}
    found = subprocess.run([sys.executable, "-c", SCRIPT, words], cwd=folder, env=environment,
                           capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    assert found.stdout, found.stderr
    return json.loads(found.stdout)


@pytest.mark.parametrize("words", WORKING, ids=[words[0] for words in WORKING])
def test_a_command_works_without_extras(light, words):
    code, out, err = light["runs"][WORKING.index(words)]
    assert 0 == code, out + err


@pytest.mark.parametrize(("words", "extra"), NEEDING.items(), ids=[words[0] for words in NEEDING])
def test_a_command_names_the_extra_that_it_needs(light, words, extra):
    code, out, err = light["runs"][len(WORKING) + [*NEEDING].index(words)]
    is_reason = words[0] in ("verify", "run")  # kept in a record: no path of this machine
    assert pip_install(extra, anywhere=is_reason) in " ".join((out + err).split())
    assert 2 == code, out + err


def test_modules_need_no_extra_unless_they_draw(light):
    assert light["imports"] == NEED_AN_EXTRA


def test_every_extra_is_declared_and_brings_its_library():
    declared, installed = PROJECT["optional-dependencies"], packages_distributions()
    for module, extra in EXTRAS.items():
        names = {Requirement(one).name.lower().replace("_", "-") for one in declared[extra]}
        packages = [module] if extra in NOT_OF_ALL else installed[module]
        assert names & {one.lower().replace("_", "-") for one in packages}, module
    assert {*EXTRAS.values()} - NOT_OF_ALL <= Requirement(declared["all"][0]).extras


def test_a_picture_names_the_extra_that_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    record = store.read(HOUSE / "reports" / "runs" / "nvidia-h200" / "20261120T232125Z-fd4cb4b0.json.gz")
    with pytest.raises(ExtraMissing, match=re.escape(f"matplotlib is not installed; {pip_install('plots')}")):
        record.plot("softmax")


def test_a_missing_module_of_ours_is_no_missing_extra():
    with pytest.raises(ModuleNotFoundError), extras_named():
        import prism_bench.no_such_module  # noqa: F401


def test_special_functions_are_named_with_their_extra(monkeypatch):
    import numpy as np

    assert 0.5 == host_special.expit(np.zeros(1))[0]
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(ExtraMissing, match=re.escape(pip_install("scipy", anywhere=True))):
        host_special.expit(np.zeros(1))


def test_the_default_installation_is_light(installed):
    names = set(_closure(PROJECT["dependencies"]))
    assert "numpy" in names
    assert not names & {"scipy", "matplotlib", "asv", "pyarrow"}
    files = [path for name in ("pip", *names) for path in _files(name)]
    files += [path for path in installed.site.rglob("*") if path.is_file()]
    size = sum(map(_bytes, files))
    assert size < MOST_BYTES, f"{size / 1e6:.0f} MB in {sorted(names)}, pip and ours"


def _files(name: str) -> Iterator[Path]:
    yield from (Path(str(one.locate())) for one in distribution(name).files or ())


def _bytes(path: Path) -> int:
    """Return the bytes of an installed file, for a module with the bytecode that pip compiles and others do not."""
    if path.suffix == ".pyc" or not path.is_file():
        return 0
    return round(path.stat().st_size * (1 + BYTECODE if path.suffix == ".py" else 1))


def test_the_page_about_installing_has_every_extra():
    text = (HOUSE / "docs" / "pages" / "install.md").read_text().partition("## Environment variables")[0]
    rows = {name for line in text.splitlines() if line.startswith("| `") for name in re.findall(r"`([^`]+)`",
            line.split("|")[1])}  # fmt: skip
    assert set(PROJECT["optional-dependencies"]) - {"docs", "test"} == rows
    (all_of_them,) = PROJECT["optional-dependencies"]["all"]
    lines = [line.split("|")[1].strip().strip("`") for line in text.splitlines() if line.startswith("| `")]
    counted = lines[lines.index("scipy") : lines.index("all")]
    assert Requirement(all_of_them).extras == set(counted) and len(counted) == 7
    assert "`scipy` to `fleet`, the seven above this line" in text


def _closure(requirements: list[str], seen: set[str] | None = None) -> Iterator[str]:
    """Yield the distributions that these requirements bring, and what those require."""
    seen = set() if seen is None else seen
    for one in map(Requirement, requirements):
        if one.name in seen or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        seen.add(one.name)
        yield one.name
        yield from _closure(distribution(one.name).requires or [], seen)
