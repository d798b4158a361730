"""The child process of a compiler: one that hangs, one that crashes, one that prints 100 MB. No compiler is needed."""

import sys
from types import ModuleType

import pytest

from prism_bench.compilation.languages.building import CompiledAnswer, CompileQuestion, ask
from prism_bench.compilation.languages.language import absent_modules
from prism_bench.errors import CompilationFailed
from prism_bench.spec.launch import Instance

# What a kernel's file does when the child reads it; a compiler's own passes run in the same process.
HANGS = "while True: pass\n"
CRASHES = "import os, sys\nprint('ptxas fatal: out of registers', file=sys.stderr, flush=True)\nos.abort()\n"
PRINTS = "for _ in range(100):\n    print('x' * 1_000_000)\nraise ValueError('no such layout')\n"
REFUSES = "\n\nraise ValueError('no such layout')\n"


@pytest.fixture
def compiled(tmp_path):
    """A function that asks the child of Triton to compile a kernel of a file with that text."""

    def compile(text, limit=60.0):
        path = tmp_path / "family" / "scaled.triton.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        question = CompileQuestion(str(path), Instance("scaled"), "90")
        return ask("triton", question, CompiledAnswer, limit=limit)

    return compile


def test_one_that_hangs_is_ended_and_another_one_answers(compiled):
    with pytest.raises(CompilationFailed, match=r"scaled\.triton\.py: scaled: Triton took longer than 1 s"):
        compiled(HANGS, limit=1.0)
    with pytest.raises(CompilationFailed, match=r"scaled\.triton\.py:3: ValueError: no such layout"):
        compiled(REFUSES)


def test_one_that_crashes_is_reported_with_its_last_words_and_another_one_answers(compiled):
    with pytest.raises(CompilationFailed, match=r"scaled: the process ended .*signal 6.*ptxas fatal: out of registers"):
        compiled(CRASHES)
    with pytest.raises(CompilationFailed, match="no such layout"):
        compiled(REFUSES)


def test_one_that_prints_a_hundred_megabytes_answers_all_the_same(compiled):
    with pytest.raises(CompilationFailed, match=r"scaled\.triton\.py:3: ValueError: no such layout") as refused:
        compiled(PRINTS)
    assert len(str(refused.value)) < 10_000


def test_placeholders_go_without_asking_modules_that_load_lazily(monkeypatch):
    class Lazy(ModuleType):
        def __getattr__(self, name):
            sys.modules["loaded_lazily"] = ModuleType(name)
            raise AttributeError(name)

    lazy = Lazy("lazy")
    del lazy.__dict__["__loader__"]
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    before = set(sys.modules)
    with absent_modules():
        pass
    assert before == set(sys.modules)
