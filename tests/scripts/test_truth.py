"""`scripts/truth`: what failed in a process that another kernel may have spoilt is done again in a fresh one."""

import csv
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.workbench.truth import COLUMNS, FAILED, NOTHING

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "truth"


@pytest.fixture(scope="module")
def script():
    """The script as a module, without leaving bytecode beside it."""
    loader = SourceFileLoader("truth", str(SCRIPT))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setattr(sys, "path", list(sys.path))
        module = module_from_spec(spec_from_loader("truth", loader))
        loader.exec_module(module)
    return module


def line(kernel, verdict):
    return {**dict.fromkeys(COLUMNS, ""), "kernel": kernel, "verdict": verdict}


def test_only_what_failed_is_done_again_alone(script, monkeypatch, tmp_path, capsys):
    found = {"a": "agrees", "b": f"{FAILED}: CUDARuntimeError: illegal", "c": NOTHING, "d": "1 outputs differ"}
    monkeypatch.setattr(script, "alone", lambda make, name: line(name, "agrees"))
    make = lambda name: line(name, found[name])  # noqa: E731
    lines = script.lines(SimpleNamespace(map=map), make, list(found))
    assert 2 == script.write(lines, tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert ["agrees", "agrees", NOTHING, "1 outputs differ"] == [row["verdict"] for row in rows]
    assert 4 == len(capsys.readouterr().out.splitlines())
