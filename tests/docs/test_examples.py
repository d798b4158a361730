"""Every example runs to its end, here without a GPU, and says what it promises to say."""

import re
import runpy
from pathlib import Path

import pytest

from prism_bench.backends import open_backend
from prism_bench.errors import BackendUnavailable
from tests.docs.blocks import ROOT

EXAMPLES = ROOT / "docs" / "examples"
SAYS = {
    "family_pipeline": r"segments\.labels +right\nevery spot was found",
    "integration_showcase": r"verified: (\d+) of \1 edges(.|\n)*budget: wall_time of at most 1.00 s: met\njudged: ",
    "kernel_benchmarks": r"All \d+ cases verified and timed",
    "memory": r"allocations, (.|\n)* % served by blocks that were free",
    "monitoring": r"critical: 97 % of the memory in use(.|\n)*over: temperature|clock",
    "production_profiler": r"(\w+ +5 calls, .*\n){3}",
    "tensor_cores": r"wmma +\S+: right, error ",
    "tuning": r"launched from now on: block=\d+\n12 executions, 3 configurations measured",
}


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    """What an example prints, in an empty folder."""
    try:
        open_backend("emulator")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)

    def printed(name):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capfd.readouterr().out

    return printed


@pytest.mark.parametrize("name", SAYS)
def test_an_example_says_what_it_promises(name, run):
    printed = run(name)
    assert re.search(SAYS[name], printed), printed
    assert "WRONG" not in printed
    assert [] == [path.name for path in Path().iterdir()], "an example leaves nothing behind"


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)
