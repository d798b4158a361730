"""Expressions have the value that they mean, print it as CUDA C++, and their sizes bound them."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.expression import (
    Absolute,
    Binary,
    FunctionCall,
    FunctionChoice,
    Includes,
    Name,
    Number,
    absolute,
    activation,
    cuda,
    divergence,
    evaluator,
    flops,
    functions_in,
    gelu,
    log_likelihood,
    names,
    names_in,
    relu,
    replaced,
    sigmoid,
)

a, b, c = names("a b c")
LEAVES = st.sampled_from([a, b, c, Number(2.0), Number(-0.5)])
TREES = st.recursive(LEAVES, lambda t: st.builds(Binary, st.sampled_from("+-*/"), t, t), max_leaves=8)


def value(expression, **given):
    """What a reference computes of it."""
    return evaluator(expression, Includes("none"))({"xp": np, **given})


def directly(expression, given):
    """What the tree means, without printing it."""
    if isinstance(expression, Name | Number):
        return given[expression.name] if isinstance(expression, Name) else expression.value
    left, right = directly(expression.left, given), directly(expression.right, given)
    operations = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
    return operations[expression.sign](left, right)


@settings(deadline=None, max_examples=200)
@given(TREES)
def test_the_value_is_that_of_the_tree_and_its_size_bounds_it(tree):
    given = {"a": np.array([1.5, -2.0]), "b": np.array([-0.25, 4.0]), "c": np.array([3.0, -7.0])}
    with np.errstate(all="ignore"):
        expected = directly(tree, given)
        try:
            actual, size = value(tree, **given), value(absolute(tree), **given)
        except ZeroDivisionError:  # of two plain numbers, where NumPy gives an infinity
            reject()
    np.testing.assert_array_equal(expected, actual)
    finite = np.isfinite(expected)
    assert np.all(np.asarray(size)[finite] >= np.abs(expected)[finite] * (1 - 1e-12))


@settings(deadline=None, max_examples=200)
@given(TREES)
def test_cuda_text_is_the_tree(tree):
    """Without the number's type it is Python of the same value: brackets are where they must be."""
    given = {"a": np.array([1.5, -2.0]), "b": np.array([-0.25, 4.0]), "c": np.array([3.0, -7.0])}
    with np.errstate(all="ignore"):
        try:
            printed = eval(cuda(tree).replace("T(2.0)", "2.0").replace("T(-0.5)", "(-0.5)"), {}, given)
            np.testing.assert_array_equal(value(tree, **given), printed)
        except ZeroDivisionError:  # of two plain numbers, where NumPy gives an infinity
            reject()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (a - (b - c), "a - (b - c)"),
        ((a - b) - c, "a - b - c"),
        (a / (b * c), "a / (b * c)"),
        ((a + b) * c, "(a + b) * c"),
        (1 - a, "T(1.0) - a"),
        (2 / a, "T(2.0) / a"),
        (-a, "T(-1.0) * a"),
        (relu(a + b) * 2, "Relu{}(a + b) * T(2.0)"),
        (divergence(a, b, c, c), "GaussianDivergence<T>{}(a, b, c, c)"),
        (activation(a), "Activation{}(a)"),
    ],
)
def test_cuda_text(expression, expected):
    assert expected == cuda(expression)


def test_a_function_takes_the_number_type_of_its_place():
    assert "LogLikelihood<double>{}(a - b, c)" == cuda(log_likelihood(a - b, c), "double")


def test_sizes_of_functions():
    likelihood = absolute(log_likelihood(a - b, c))
    assert isinstance(likelihood, FunctionCall)
    assert ("likelihood_size", (a - b, c)) == (likelihood.function.value.name, likelihood.arguments)
    assert 1.13 * (Absolute(a) + Absolute(b)) == absolute(gelu(a - b))
    assert 0.5 + 0.25 * Absolute(a) == absolute(sigmoid(a))
    assert Absolute(a) + b == absolute(a + b, positive=("b",))


def test_what_an_expression_holds():
    expression = relu(a * b + a)
    assert ("a", "b") == names_in(expression)
    assert (relu,) == functions_in(expression, relu(c))
    assert 3 == flops(expression)
    assert "Relu{}((a - b) * b + (a - b))" == cuda(replaced(expression, {"a": a - b}))


def test_a_choice_is_among_functions_whose_errors_are_known():
    with pytest.raises(SpecError, match="activation 'divergence': a choice is among functions of one argument"):
        FunctionChoice("activation", {"gelu": gelu, "divergence": divergence})


def test_wrong_operands_and_arguments_are_refused():
    with pytest.raises(SpecError, match="divergence takes 4 arguments, not 1"):
        divergence(a)
    with pytest.raises(SpecError, match="'x' is neither expression nor number"):
        _ = a + "x"
