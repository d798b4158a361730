"""References of a user's repository: found without an import, called in a child, refused with their place."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from prism_bench.catalogue import discover, project_reference
from prism_bench.errors import SpecError
from prism_bench.workflows.tuning.code_of import CodeWords

_SPEC = '''"""y = 2 x."""

from prism_bench import In, KernelSpec, Out, Launch, Size, Workload

spec = KernelSpec(
    entry="twice",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(-(-n // 256), 256),
    reference="REFERENCE",
    workloads={"S0": Workload(n=8)},
)
'''
_LINE = 9  # of the reference in the text above
_KERNEL = 'extern "C" __global__ void twice(const float* x, float* y, int n) { y[threadIdx.x] = 2 * x[threadIdx.x]; }'

Made = Callable[[str, str], Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return a function that writes a project with that module `mine.numbers`, and a spec with that reference."""

    def make(module: str, reference: str = "mine.numbers:twice") -> Path:
        (tmp_path / "prism-bench.toml").write_text('catalogue = "kernels"\n')
        for path, text in {
            "mine/__init__.py": "",
            "mine/numbers.py": module,
            "kernels/rows/twice.py": _SPEC.replace("REFERENCE", reference),
            "kernels/rows/twice.cu": _KERNEL,
        }.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path / "kernels"

    yield make
    project_reference.end_references()


def _expected(folder: Path) -> np.ndarray:
    (case,) = discover(folder).cases(labels=["S0"])
    return case.correctness.expected({"x": np.arange(8, dtype=np.float32)}, np, None)["y"]


def _refusal(folder: Path) -> str:
    with pytest.raises(SpecError) as refused:
        _expected(folder)
    return str(refused.value)


def test_function_is_called_by_the_names_of_its_parameters(made: Made) -> None:
    folder = made("def twice(x, n, scale=2):\n    assert n == len(x)\n    return scale * x\n")
    assert [0, 2, 4, 6, 8, 10, 12, 14] == _expected(folder).tolist()


def test_text_may_name_the_arguments(made: Made) -> None:
    folder = made("def multiple(values, by):\n    return values * by\n", "mine.numbers:multiple(x, by=2)")
    assert [0, 2, 4, 6, 8, 10, 12, 14] == _expected(folder).tolist()


def test_torch_function_gets_tensors(made: Made) -> None:
    pytest.importorskip("torch")
    folder = made("import torch\n\ndef twice(x):\n    return torch.add(x, x).to(torch.bfloat16)\n")
    assert [0, 2, 4, 6, 8, 10, 12, 14] == _expected(folder).tolist()


def test_what_it_prints_is_no_answer(made: Made) -> None:
    folder = made("def twice(x):\n    print('hello')\n    return 2 * x\n")
    assert 14 == _expected(folder)[7]


def test_loading_the_catalogue_runs_nothing_of_the_project(made: Made, tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    folder = made(f"open({str(mark)!r}, 'w').close()\n\ndef twice(x):\n    return 2 * x\n")
    assert ((), False) == (discover(folder).problems, mark.exists())
    _expected(folder)
    assert mark.exists()


@pytest.mark.parametrize(
    ("module", "reference", "problem"),
    [
        ("", "mine.numbers:twice", "mine/numbers.py) has no twice"),
        ("", "mine.missing:twice", "No module named 'mine.missing'"),
        ("twice = 2", "mine.numbers:twice", "mine.numbers:twice is int, and has to be a function"),
        ("def twice(x):\n    return x['a']", "mine.numbers:twice", "numbers.py:2: IndexError: only integers"),
        ("def twice(x):\n    exit(3)", "mine.numbers:twice", "SystemExit: 3"),
        ("import os\ndef twice(x):\n    os._exit(3)", "mine.numbers:twice", "the process ended (exit status 3)"),
        ("def twice(x):\n    return None", "mine.numbers:twice", "it returned NoneType, and has to return an array"),
        (
            "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')",
            "mine.numbers:twice",
            "No module named 'torch'; pip install torch",
        ),
    ],
)  # fmt: skip
def test_refusal_names_the_spec_the_function_and_the_last_line(
    made: Made, module: str, reference: str, problem: str
) -> None:
    refusal = _refusal(made(module, reference))
    assert f"twice.py:{_LINE}: reference '{reference}': " in refusal
    assert problem in refusal


def test_unknown_argument_names_what_there_is(made: Made) -> None:
    assert "reference asks for 'weight', which is none of: n, special, x, xp" in _refusal(
        made("def twice(x, weight):\n    return x\n")
    )


def test_endless_reference_is_ended(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_reference, "LIMIT_SECONDS", 1.0)
    refusal = _refusal(made("def twice(x):\n    while True:\n        pass\n", "mine.numbers:twice(x)"))
    assert "no result within 1 s; its process was ended" in refusal


@pytest.mark.parametrize("text", ["numbers", "mine.numbers:twice(x + 1)", "mine.numbers:twice(x", "a b:c"])
def test_other_text_is_a_problem_of_the_spec(made: Made, text: str) -> None:
    (problem,) = discover(made("", text)).problems
    assert f"twice.py:{_LINE}: reference '{text}': " in str(problem)


def test_code_of_the_module_identifies_the_reference(made: Made) -> None:
    def words(module: str) -> list[str]:
        (case,) = discover(made(module, "mine.numbers:twice")).cases(labels=["S0"])
        return [*CodeWords([]).of(case.spec.reference)]

    first = words("def twice(x):\n    return 2 * x\n")
    assert first == words("def twice(x):\n    return 2 * x\n")
    assert first != words("def twice(x):\n    return 3 * x\n")
