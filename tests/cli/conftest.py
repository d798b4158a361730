"""Commands run in this process as a shell would run them: words in; exit code, output and remarks out."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.cli import main
from tests.monitor.conftest import fake_library, gpu, gpus, seen  # noqa: F401

HERE = Path(__file__).parent
TOYS = HERE.parent / "toys"


@dataclass(frozen=True)
class Outcome:
    """What a command ended with and wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def shell(monkeypatch, capsys, tmp_path):
    """A function that runs one command in an empty folder."""
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent.parent))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["prism-bench", *(str(word) for word in words)])
        with pytest.raises(SystemExit) as ended:
            main()
            raise SystemExit(0)
        caught = capsys.readouterr()
        return Outcome(ended.value.code or 0, caught.out, caught.err)

    return run


@pytest.fixture
def toys():
    """The words that choose the toys."""
    return ("--catalogue", TOYS)


@pytest.fixture
def script(monkeypatch, tmp_path):
    """A function that scripts the null backend."""

    def plant(behaviours):
        path = tmp_path / "script.json"
        path.write_text(json.dumps(behaviours))
        monkeypatch.setenv(SCRIPT, str(path))

    return plant
