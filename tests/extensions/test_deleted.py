"""Each extension can be deleted: the rest of the package works and does not mention it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench.extension import installed

ROOT = Path(__file__).parent.parent.parent
TOYS = ROOT / "tests" / "toys"


def needing(kernels, name):
    """The spec files that import the extension, with the sources next to them and those it generated."""
    imported = re.compile(rf"^(from|import) prism_bench\.(extensions\.)?{name}\b", re.MULTILINE)
    for spec in kernels.rglob("*.py"):
        if imported.search(spec.read_text()):
            yield from (spec, spec.with_suffix(".cu"), *(spec.parent / "generated").glob(f"{spec.stem}.*"))


@pytest.fixture
def copy(tmp_path):
    """A copy of the package and its kernels; compiled modules come along, so that no command compiles them again."""
    for name in ("prism_bench", "kernels"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name)
    (tmp_path / "work").mkdir()
    return tmp_path / "copy"


def shell(copy, *words):
    environment = {**os.environ, "PYTHONPATH": str(copy), "PRISM_BENCH_CACHE": str(copy.parent / "cache")}
    command = [sys.executable, "-m", "prism_bench", *map(str, words)]
    return subprocess.run(command, cwd=copy.parent / "work", env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("name", [one.name for one in installed()])
def test_the_rest_works_without(copy, name):
    shutil.rmtree(copy / "prism_bench" / "extensions" / name)
    for path in [*needing(copy / "kernels", name)]:
        path.unlink(missing_ok=True)
    commands = [module.NAME for one in installed() if one.name == name for module in one.command_modules()]
    texts = []
    for code, *words in (
        (0, "--help"),
        (0, "list"),
        (0, "run", "--catalogue", TOYS, "triple", "--backend", "null", "--processes", "1", "--no-energy"),
        (0, "show", "--catalogue", TOYS),
        (0, "report", "--catalogue", TOYS),
        (0, "check", "--catalogue", TOYS),
        (None, "doctor"),
    ):
        done = shell(copy, *words)
        assert "Traceback" not in done.stderr, done.stderr
        if code is not None:
            assert code == done.returncode, done.stdout[-2000:] + done.stderr
        texts.append(done.stdout + done.stderr)
    listed = set(re.findall(r"^  (\w+)  ", texts[0], re.MULTILINE))
    assert {"run", "doctor"} <= listed
    assert not listed & set(commands)
    assert not any(f"prism_bench.extensions.{name}" in text or f"extensions/{name}" in text for text in texts)
    site = copy.parent / "work" / "reports" / "site"
    pages = [page.name for one in installed() if one.name == name for page in one.pages]
    assert [*site.rglob("index.html")]
    assert [] == [path for page in pages for path in site.rglob(f"{page}.html")]
    for command in commands:
        assert 2 == shell(copy, command).returncode


def test_specs_that_need_an_extension_are_found():
    kernels = ROOT / "kernels"
    assert {"fused_free_energy.py", "fused_free_energy.cu"} <= {path.name for path in needing(kernels, "fusion")}
    assert {"persistent_queue.py"} <= {path.name for path in needing(kernels, "persistent")}
    assert [] == [*needing(kernels, "memory")]
