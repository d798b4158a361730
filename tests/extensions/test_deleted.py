"""Each extension can be deleted: the rest of the package works and does not mention it."""

import json
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


# Runs the command lines of standard input one after the other, as a shell would, but imports the package once.
DRIVER = """
import contextlib, io, json, sys, traceback
from prism_bench.cli import main

def ended(words):
    out, err, sys.argv = io.StringIO(), io.StringIO(), ["prism-bench", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main() or 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
    return [code, out.getvalue(), err.getvalue()]

print(json.dumps([ended(words) for words in json.load(sys.stdin)]))
"""


def shell(copy, *lines):
    """Return the exit code, output and remarks of each command line, run by the copy."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "PRISM_BENCH_CACHE": str(copy.parent / "cache")}
    words = json.dumps([list(map(str, line)) for line in lines])
    done = subprocess.run([sys.executable, "-c", DRIVER], input=words, cwd=copy.parent / "work", env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [one.name for one in installed()])
def test_the_rest_works_without(copy, name):
    shutil.rmtree(copy / "prism_bench" / "extensions" / name)
    for path in [*needing(copy / "kernels", name)]:
        path.unlink(missing_ok=True)
    (deleted,) = [one for one in installed() if one.name == name]
    commands = list(deleted.commands)
    pages = [page.name for page in deleted.pages]
    lines = (
        (0, "--help"),
        (0, "list"),
        (0, "run", "--catalogue", TOYS, "triple", "--backend", "null", "--processes", "1", "--no-energy"),
        (0, "show", "--catalogue", TOYS),
        (0, "report", "--catalogue", TOYS),
        (0, "check", "--catalogue", TOYS),
        (None, "doctor"),
        *((2, command) for command in commands),
    )
    texts = []
    for (wanted, *words), (code, out, err) in zip(lines, shell(copy, *(line[1:] for line in lines)), strict=True):
        assert "Traceback" not in err, err
        assert wanted in (None, code), (words, out[-2000:] + err)
        texts.append(out + err)
    listed = set(re.findall(r"^  (\w+)  ", texts[0], re.MULTILINE))
    assert {"run", "doctor"} <= listed
    assert not listed & set(commands)
    assert not any(f"prism_bench.extensions.{name}" in text or f"extensions/{name}" in text for text in texts)
    site = copy.parent / "work" / "reports" / "site"
    assert [*site.rglob("index.html")]
    assert [] == [path for page in pages for path in site.rglob(f"{page}.html")]


def test_specs_that_need_an_extension_are_found():
    kernels = ROOT / "kernels"
    assert {"fused_free_energy.py", "fused_free_energy.cu"} <= {path.name for path in needing(kernels, "fusion")}
    assert {"persistent_queue.py"} <= {path.name for path in needing(kernels, "persistent")}
    assert [] == [*needing(kernels, "memory")]
