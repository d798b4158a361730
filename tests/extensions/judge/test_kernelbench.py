"""A problem of KernelBench as a task, in its format. A stand-in for PyTorch has what the problem here asks for."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.extensions.judge.jail.jail import jail_maker
from prism_bench.extensions.judge.kernelbench.problem import KernelBenchProblem, judge_problem, main

TORCH = """
import numpy as np

_RNG = [np.random.default_rng(0)]

class Tensor:
    def __init__(self, values): self.values = np.asarray(values)
    def detach(self): return self
    def numpy(self): return self.values
    def double(self): return Tensor(self.values.astype(np.float64))
    def is_floating_point(self): return self.values.dtype.kind == "f"
    def __mul__(self, other): return Tensor(self.values * getattr(other, "values", other))
    def __add__(self, other): return Tensor(self.values + getattr(other, "values", other))

def manual_seed(seed): _RNG[0] = np.random.default_rng(seed)
def rand(*shape): return Tensor(_RNG[0].random(shape, np.float32))
def from_numpy(array): return Tensor(array)
"""
NN = """
from torch import Tensor

class Parameter(Tensor): pass

class Module:
    def __call__(self, *inputs): return self.forward(*inputs)
    def state_dict(self): return {name: one for name, one in vars(self).items() if isinstance(one, Tensor)}
    def load_state_dict(self, state): vars(self).update(state)
    def double(self):
        self.load_state_dict({name: one.double() for name, one in self.state_dict().items()})
        return self
"""
PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, scale):
        super(Model, self).__init__()
        self.bias = nn.Parameter(torch.rand(dim).values)
        self.scale = scale

    def forward(self, x):
        return x * self.scale + self.bias

batch_size = 4096
dim = 16384
shape = (batch_size, dim)

def get_inputs():
    return [torch.rand(*shape)]

def get_init_inputs():
    return [3.0]
"""
KERNEL = """
__global__ void scaled(const float* x, const float* bias, float* y, int batch, int dim) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < batch * dim) y[i] = x[i] * SCALE + bias[i % dim];
}
"""
CARD = """source = "scaled.cu"
[[launch]]
entry = "scaled"
grid = "ceil_div(batch_size * dim, 64)"
block = 64
arguments = ["x0", "p_bias", "y0", "batch_size", "dim"]
"""
SMALL = {"batch_size": 5, "dim": 33}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with the problem and a right kernel; child processes import a stand-in for PyTorch."""
    try:
        jail_maker()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    package = tmp_path / "packages" / "torch"
    package.mkdir(parents=True)
    (package.parent / "torch-0.dist-info").mkdir()  # a folder of distributions, which a jail shows
    (package / "__init__.py").write_text(TORCH)
    (package / "nn.py").write_text(NN)
    monkeypatch.syspath_prepend(str(package.parent))
    for path in (tmp_path, tmp_path.parent):
        path.chmod(0o755)  # the jail's user is another one
    (tmp_path / "1_Scaled.py").write_text(PROBLEM)
    (tmp_path / "scaled.cu").write_text(KERNEL.replace("SCALE", "3.0f"))
    (tmp_path / "scaled.toml").write_text(CARD)
    yield tmp_path
    assert "torch" not in sys.modules or not getattr(sys.modules["torch"], "_RNG", None), "only the jail imports it"


def test_a_problem_judges_a_kernel_by_its_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(folder / "scaled.toml"), str(folder / "1_Scaled.py"), "--set", "batch_size=5", "--set", "dim=33"]
    assert main(words) == 0
    assert '"ruling":"right"' in capsys.readouterr().out.replace(" ", "")
    (folder / "scaled.cu").write_text(KERNEL.replace("SCALE", "3.001f"))
    verdict = judge_problem(folder / "scaled.toml", folder / "1_Scaled.py", SMALL)
    assert "wrong" == verdict.ruling
    assert "y0[" in verdict.objections[0].text


def test_its_numbers_are_sizes_and_what_is_made_of_them_changes_too(folder: Path) -> None:
    with KernelBenchProblem(folder / "1_Scaled.py", SMALL) as problem:
        spec = problem.spec()
    assert [("x0", "5 33"), ("p_bias", "33"), ("y0", "5 33")] == [(one.name, one.shape) for one in spec.arrays]
    assert SMALL == dict(spec.workloads["S0"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import torch\nModel = get_inputs = None\n", "defines no get_init_inputs"),
        (PROBLEM.replace("16384", "1025"), "x0 has 1,049,600 elements"),
        (PROBLEM.replace("[torch.rand(*shape)]", "[3.0]"), "get_inputs gives float"),
        (PROBLEM.replace("return x *", "return 1 / 0 *"), "ZeroDivisionError"),
        (PROBLEM.replace("import torch\n", "import torch; open('/etc/passwd')\n", 1), "FileNotFoundError"),
        ("import no_such\n", "No module named 'no_such'"),
    ],
)
def test_what_is_no_problem_is_named(folder: Path, text: str, words: str) -> None:
    path = folder / "2_Odd.py"
    path.write_text(text.replace("4096", "1024").replace("16384", "8"))
    with KernelBenchProblem(path) as problem, pytest.raises(SpecError, match=words):
        problem.spec()


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ("[torch.rand(*shape)]", "[torch.rand(int(torch.rand(1).values[0] * 100) + 1, dim)]", "x0 is another one"),
        ("[torch.rand(*shape)]", "[torch.Tensor(torch.rand(*shape).values.astype('c8'))]", "numbers of type complex64"),
        ("return x * self.scale + self.bias", "raise ValueError('\\x1b[31m' * 9999)", "1_Scaled.py: ValueError:  [31m"),
        ("self.bias = nn.Parameter(torch.rand(dim).values)", "setattr(self, 'a b;', torch.rand(dim))", "no attribute"),
    ],
)
def test_whatever_a_problem_is_it_ends_in_words(
    folder: Path, capsys: pytest.CaptureFixture[str], was: str, now: str, words: str
) -> None:
    (folder / "1_Scaled.py").write_text(PROBLEM.replace(was, now))
    sizes = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    assert 1 == main([str(folder / "scaled.toml"), str(folder / "1_Scaled.py"), *sizes])
    shown = capsys.readouterr().err
    assert words in shown
    assert "\x1b" not in shown
    assert len(shown) < 5000


def test_a_parameter_has_a_name_that_a_card_can_write(folder: Path) -> None:
    named = PROBLEM.replace(
        "self.bias =", "setattr(self, 'a b;\\n', nn.Parameter(torch.rand(dim).values)); self.bias ="
    )
    (folder / "1_Scaled.py").write_text(named)
    with KernelBenchProblem(folder / "1_Scaled.py", SMALL) as problem:
        assert {"x0", "p_a_b__", "p_bias", "y0"} == {one.name for one in problem.spec().arrays}


def test_a_number_that_it_does_not_have_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(folder / "scaled.toml"), str(folder / "1_Scaled.py"), "--set"]
    assert main([*words, "width=3"]) == 2
    assert "no whole number 'width'; it has batch_size, dim" in capsys.readouterr().err
    assert main([*words, "dim=many"]) == 2
    assert "NAME=N" in capsys.readouterr().err
    assert main([words[0], str(folder / "none.py")]) == 2


def test_without_pytorch_the_cure_is_named(folder: Path) -> None:
    (folder / "packages" / "torch" / "__init__.py").write_text("raise ImportError('no library')\n")
    with KernelBenchProblem(folder / "1_Scaled.py", SMALL) as problem:
        with pytest.raises(BackendUnavailable, match="pip install torch"):
            problem.spec()


def test_a_card_that_none_may_be_has_a_score(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "scaled.toml").write_text("source = ")
    sizes = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    assert 1 == main([str(folder / "scaled.toml"), str(folder / "1_Scaled.py"), *sizes])
    verdict = json.loads(capsys.readouterr().out)
    assert (0.0, "refused") == (verdict["score"], verdict["ruling"])
