"""What a callable is known by beyond its file: versions of distributions, the content of a project's own modules."""

from dataclasses import replace

import numpy as np
import pytest

from prism_bench.catalogue import discover
from prism_bench.compilation.sources import imported_words
from prism_bench.spec.peer import KernelCall
from prism_bench.workflows.case_code import _callable_text
from tests.run.conftest import TOYS


@pytest.fixture
def project(tmp_path):
    """A repository: a package below `src` and a module next to the specs' folder."""
    (tmp_path / ".git").mkdir()
    package = tmp_path / "src" / "fastops"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .inner import two\n")
    (package / "inner.py").write_text("import numpy\n\nTWO = 2\n")
    (package / "other.py").write_text("THREE = 3\n")
    return tmp_path


def words_of(project, text):
    spec = project / "kernels" / "rows" / "spec.py"
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(text)
    return imported_words([spec])


CALLED = "from importlib import import_module\nimport_module('fastops.inner')"


@pytest.mark.parametrize("text", ["import fastops", "def f():\n    from fastops import two", CALLED])
def test_a_change_in_an_imported_module_of_the_project_is_another_identity(project, text):
    before = words_of(project, text)
    assert before == words_of(project, text)
    (project / "src" / "fastops" / "inner.py").write_text("import numpy\n\nTWO = 3\n")
    assert before != words_of(project, text)


def test_what_is_not_imported_does_not_count(project):
    before = words_of(project, "import fastops")
    (project / "src" / "fastops" / "other.py").write_text("THREE = 4\n")
    assert before == words_of(project, "import fastops")


def test_distributions_count_by_version_also_those_of_the_project_s_modules(project):
    assert f"numpy=={np.__version__}" in words_of(project, "import fastops")
    assert ["no_such_module_at_all: of no distribution"] == words_of(project, "import no_such_module_at_all, sys")


def test_an_extension_of_the_project_counts_by_its_content(project):
    built = project / "kernels" / "rows" / "_ops.cpython-312-x86_64-linux-gnu.so"
    words_of(project, "import _ops")
    built.write_bytes(b"one")
    before = words_of(project, "import _ops")
    built.write_bytes(b"two")
    assert before != words_of(project, "import _ops")


def test_a_callable_is_known_by_the_version_of_its_library(monkeypatch):
    spec = discover(TOYS).anywhere("double[n=1000]").spec
    monkeypatch.setattr("prism_bench.workflows.case_code.distribution_word", lambda top: f"{top}==1")
    first = _callable_text(replace(spec, callable=KernelCall(lambda torch, x: x)))
    monkeypatch.setattr("prism_bench.workflows.case_code.distribution_word", lambda top: f"{top}==2")
    assert first != _callable_text(replace(spec, callable=KernelCall(lambda torch, x: x)))
    assert "torch==1" in first
    assert [] == _callable_text(spec)
