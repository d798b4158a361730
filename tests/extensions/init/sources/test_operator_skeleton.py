"""Skeletons of PyTorch operators: a spec with a callable, arguments from schema or annotations, marked guesses."""

import ast
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.extensions.init.sources.kernels import FoundOperator
from prism_bench.extensions.init.sources.skeleton import operator_skeleton, scan
from prism_bench.extensions.init.sources.torch import signature_of

PROJECT = Path(__file__).parent / "project" / "src"


def of_schema(schema):
    return FoundOperator("mylib::one", schema, Path("ops.cpp"), 1, "cpp")


def of_python(folder, text):
    """Return the operator of a Python file and its skeleton."""
    (folder / "ops.py").write_text(f"import torch\nfrom torch import Tensor\n\n{text}\n")
    (operator,) = scan(folder / "ops.py").operators
    return operator, operator_skeleton(operator, "src/mylib/ops.py")


def loaded(folder, made):
    """Return the spec of a skeleton in a catalogue."""
    family = folder / "bench" / "found"
    family.mkdir(parents=True)
    (family / made.file_name).write_text(made.text)
    catalogue = discover(folder / "bench")
    assert () == catalogue.problems
    return catalogue.kernel(made.file_name.removesuffix(".py"))


@pytest.mark.parametrize(
    ("schema", "kinds", "returned"),
    [
        ("one(Tensor x, float eps=1e-5) -> Tensor", {"x": "tensor", "eps": "float"}, 1),
        ("one(Tensor x, Tensor? bias=None, *, int[] dims=[0, 1], bool fast) -> (Tensor, Tensor(a) y)",
         {"x": "tensor", "bias": "none", "dims": "other", "fast": "bool"}, 2),
        ("one(Tensor(a!) x, SymInt n, Scalar by) -> ()", {"x": "tensor", "n": "int", "by": "float"}, 0),
        ("one(str mode) -> int", {"mode": "other"}, None),
    ],
)  # fmt: skip
def test_a_schema_gives_arguments_and_results(schema, kinds, returned):
    signature = signature_of(of_schema(schema))
    assert (kinds, returned) == (
        {argument.name: argument.kind for argument in signature.arguments},
        signature.returned,
    )


def test_schema_gives_written_keyword_and_default_arguments():
    x, dims, fast = signature_of(of_schema("one(Tensor(a!) x, int[] dims=[0, 1], *, bool fast) -> ()")).arguments
    assert (True, False, "[0, 1]", True) == (x.is_written, x.is_keyword, dims.default, fast.is_keyword)


@pytest.mark.parametrize("schema", [None, "one(Tensor)", "one(Tensor) -> Tensor"])
def test_operator_with_unknown_arguments_gets_no_spec(schema):
    assert operator_skeleton(of_schema(schema), "ops.cpp") is None


def test_annotations_give_a_spec_that_loads(tmp_path):
    _, made = of_python(
        tmp_path,
        '@torch.library.custom_op("mylib::scale", mutates_args=())\n'
        "def scale(x: torch.Tensor, bias: Tensor | None, by: float = 0.5, *, fast: bool) -> tuple[Tensor, Tensor]: ...",
    )
    assert made.loads
    spec = loaded(tmp_path, made)
    assert ["x", "out0", "out1"] == [array.name for array in spec.arrays]
    assert {"by": 0.5, "fast": False} == spec.parameters
    assert "    import mylib.ops  # it registers the operator  # guess: confirm\n" in made.text
    assert "    return torch.ops.mylib.scale(x, None, by=by, fast=fast)\n" in made.text
    guesses = [line for line in made.text.splitlines() if line.partition("  # guess: confirm")[1]]
    assert 8 == len(guesses), "the import, three arrays, two numbers, two workloads"
    assert ["the reference", "shape and type of x", "shape and type of out0", "shape and type of out1"] == [
        *made.open_points
    ]


def test_written_arguments_are_outputs(tmp_path):
    operator, made = of_python(
        tmp_path,
        '@torch.library.triton_op("mylib::add_", mutates_args={"x"})\ndef add_(x: Tensor, y: Tensor) -> None: ...',
    )
    assert ("x",) == operator.written
    assert {"x": "InOut", "y": "In"} == {array.name: type(array).__name__ for array in loaded(tmp_path, made).arrays}


def test_names_that_a_spec_reserves_get_an_underscore():
    made = operator_skeleton(of_schema("one(Tensor self, int n, float lambda=2.0, int stream) -> Tensor"), "ops.cpp")
    ast.parse(made.text)
    assert "torch.ops.mylib.one(self_, n_, lambda_, stream_)" in made.text
    assert all(f"        {item},  # guess" in made.text for item in ('"n_": 1', '"lambda_": 2.0', '"stream_": 1'))


@pytest.mark.parametrize(
    ("schema", "missing"),
    [
        ("one(Tensor x, str mode) -> Tensor", "the argument mode has type str: write what the call gives it"),
        ("one(Tensor x) -> int", "the outputs: the operator returns no tensors"),
        ("one(Tensor x) -> ()", "the outputs: the operator returns no tensors"),
    ],
)
def test_unknown_types_and_outputs_make_a_draft(schema, missing):
    made = operator_skeleton(of_schema(schema), "ops.cpp")
    ast.parse(made.text)
    assert (False, True) == (made.loads, missing in made.open_points)
    assert f"- {missing}\n" in made.text


def test_every_operator_of_a_project_with_known_arguments_gets_a_skeleton():
    operators = [operator for path in ("add.py", "operators.cpp") for operator in scan(PROJECT / path).operators]
    skeletons = {operator.name: operator_skeleton(operator, "src/x.py") for operator in operators}
    assert {"mylib::add": True, "mylib::scaled_add": False, "mylib::norm": False, "other::twice": None} == {
        name: skeleton and skeleton.loads for name, skeleton in skeletons.items()
    }
