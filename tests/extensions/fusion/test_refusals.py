"""What does not fit together, and what one launch cannot do, is refused with the reason."""

import pytest

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion import ColumnSums, Input, Map, Nearest, Product, Reduce, RowDots, Within, names
from prism_bench.extensions.fusion.expression import Includes, activation, divergence
from prism_bench.extensions.fusion.plan import planned, refuse
from prism_bench.extensions.fusion.program import operands
from prism_bench.extensions.fusion.specification import sizes, written
from tests.extensions.fusion.toys import program

x, y, z, v, w, a, b, total = names("x y z v w a b total")
INPUTS = (Input("x", "n"), Input("y", "n"), Input("z", "m"), Input("w", "m n"), Input("v", "n k"))


class NothingShared(Includes):
    """What is refused is refused before anything is computed."""

    def value(self, module, name):
        return None


def refusal(*stages, outputs=("a",), inputs=INPUTS, **more):
    """The words of the error; of the inputs, the program gets those that its stages read or write."""
    read = {name for stage in stages for name in (*operands(stage), getattr(stage, "into", None))}
    made = program(stages, outputs, inputs=tuple(one for one in inputs if one.name in read), **more)
    with pytest.raises(SpecError) as caught:
        plan = planned(made)
        refuse(plan)
        sizes(plan, NothingShared(""))
        written(plan, "toy")
    return str(caught.value)


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([Map("a", x + z)], "stage 'a' joins 'x' of shape 'n' with 'z' of shape 'm': operands of one expression"),
        ([RowDots("a", "w", "z")], "columns of 'w' go along 'n', 'z' along 'm'"),
        ([RowDots("a", "x", "y")], "'x' of shape 'n' is no matrix"),
        ([ColumnSums("a", "w", x)], "rows of 'w' go along 'm', its weights along 'n'"),
        ([Product("a", "v", "w")], "columns of 'v' go along 'k', rows of 'w' along 'm'"),
        ([Product("product", "w", "v"), Map("a", names("product")[0] + z)], "joins 'product' of shape 'm k' with 'z'"),
        ([Reduce("b", "sum", x), Reduce("a", "sum", b)], "stage 'a' reduces what is one number already"),
        ([Map("b", x), Map("a", b + 1, into="z")], "stage 'a' goes into 'z', which is no input of its shape"),
    ],
)
def test_wrong_shapes_between_stages(stages, words):
    assert words in refusal(*stages)


def test_a_circle_is_told_as_one():
    first, second, third = Map("a", b + x), Map("b", names("c")[0]), Map("c", a * 2)
    assert "stages go in a circle: a -> b -> c -> a" == refusal(first, second, third)
    assert "stages go in a circle: a -> a" == refusal(Map("a", a + x))


def test_names_are_known_and_given_once():
    assert "stage 'a': unknown name 'xx'; did you mean x?" in refusal(Map("a", x + names("xx")[0]))
    assert "output: unknown stage 'aa'; did you mean a?" in refusal(Map("a", x), outputs=("aa",))
    assert "two things are called 'x'" in refusal(Map("x", x + y), outputs=("x",))
    assert "two things are called 'n'" in refusal(Map("n", x), outputs=("n",))
    assert "nothing can be called 'row'" in refusal(Map("row", x), outputs=("row",))


@pytest.mark.parametrize("precision", ["float4", "double", "fp16"])
def test_an_unknown_precision_comes_with_the_known_ones(precision):
    known = "known: float32, three_bfloat16, tf32, float16, bf"
    with pytest.raises(SpecError, match=f"stage 'a': unknown precision '{precision}'; {known}"):
        Product("a", "w", "v", ("float32", precision))
    with pytest.raises(SpecError, match=f"unknown precision '{precision}' of the program; known: float32, float64"):
        program([Map("a", x)], ("a",), numbers=(precision,))


def test_a_product_begins_with_float32():
    with pytest.raises(SpecError, match="precisions begin with float32"):
        Product("a", "w", "v", ("float16",))


def test_unknown_reductions_and_shapes():
    with pytest.raises(SpecError, match="stage 'a': unknown reduction 'mean'; known: sum, squares, max"):
        Reduce("a", "mean", x)
    with pytest.raises(SpecError, match="input 'x' has shape 'a b c': one axis or two"):
        program([Map("a", x)], ("a",), inputs=(Input("x", "a b c"),))


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([Reduce("total", "sum", x), Map("a", x / total)], "'a' cannot be fused: it goes over an axis with 'total', "),
        ([Reduce("total", "sum", x), Reduce("a", "sum", x - total)], "'a' cannot be fused: it goes over an axis with"),
        ([Reduce("total", "sum", x), ColumnSums("a", "w", z * total)], "'a' cannot be fused: it goes over an axis"),
        ([RowDots("b", "w", "x"), ColumnSums("a", "w", b)], "one launch walks one matrix"),
        ([Map("b", x * y), RowDots("a", "w", "b")], "every block reads all of 'b', so it must be in memory"),
        ([Map("a", w * 2)], "maps go along one axis, not over 'm n'"),
        ([ColumnSums("b", "w", z), Reduce("a", "sum", b)], "the blocks of 'b' end with their tiles of columns"),
        ([Product("b", "w", "v"), Map("a", b * z)], "joins 'b' of shape 'm k' with 'z' of shape 'm'"),
        ([RowDots("b", "w", "x"), Reduce("total", "sum", x), Map("a", b * 1)], "does not reduce what comes of 'b'"),
        ([ColumnSums("b", "w", z), Map("a", activation(b))], "'activation' chooses a function, which is for products"),
        ([Reduce("a", ("sum", "max"), x)], "the parameter 'reduce' chooses for RowDots and Product alone"),
    ],
)
def test_what_one_launch_cannot_do(stages, words):
    assert words in refusal(*stages)


def test_a_grid_barrier_is_the_reason():
    words = refusal(Reduce("total", "sum", x), Map("a", x / total))
    assert "all others would have to wait for it (a grid barrier). Make it a separate program" in words


def test_an_epilogue_takes_its_vector_beside_the_product():
    product, bias = names("product bias")
    inputs = (Input("w", "m n"), Input("v", "n k"), Input("bias", "k"), Input("gain", "k"))
    stage = Product("product", "w", "v")
    assert "holds bias in another way" in refusal(stage, Map("a", product * bias), inputs=inputs)
    both = refusal(stage, Map("a", (product + bias) * names("gain")[0]), inputs=inputs)
    assert "holds bias, gain in another way" in both
    assert "it has one output" in refusal(
        stage, Map("a", product + bias), Map("b", product), outputs=("a", "b"), inputs=inputs
    )


def test_what_others_still_read_is_not_overwritten():
    inputs = (Input("w", "m n"), Input("z", "m"), Input("x", "n"))
    step = (ColumnSums("b", "w", z), Map("a", b + x, into="x"))
    refuse(planned(program(step, ("a",), inputs=inputs)))
    square = (Input("w", "n n"), Input("x", "n"))
    words = refusal(ColumnSums("b", "w", x), Map("a", b + x, into="x"), inputs=square)
    assert "'x' cannot be fused: it is overwritten while other blocks still read it; give it an output" in words
    assert "it is overwritten" in refusal(Map("a", x + y, into="x"), Map("b", x * 2), outputs=("a", "b"))


def test_maps_over_two_axes_have_nothing_to_join_them():
    assert "'b' cannot be fused: it maps over another axis" in refusal(Map("a", x), Map("b", z), outputs=("a", "b"))


def test_products_with_vectors_have_no_double_form():
    words = refusal(RowDots("a", "w", "x"), numbers=("float32", "float64"))
    assert "stage 'a' comes in float32 and, on tensor cores, less; not in float64" in words


def test_an_error_that_cannot_be_derived_is_refused():
    words = refusal(RowDots("b", "w", "x"), Map("a", divergence(b, z, z, z)))
    assert "how far 'divergence' of 'b' is off cannot be derived" in words


def test_an_input_that_nobody_reads():
    made = program([Map("a", x)], ("a",))
    with pytest.raises(SpecError, match="input 'y' is read by no stage"):
        refuse(planned(made))


CLOUD = (Input("u", "n d"), Input("z", "m"), Input("x", "n"), Input("y", "n"), Input("w", "m n"))


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([Nearest("a", ("u", "z"))], "stage 'a': points of 'u' go along 'n', 'z' along 'm'"),
        ([Within("a", ("u",), "z")], "stage 'a': points of 'u' go along 'n', 'z' along 'm'"),
        (
            [Nearest("a", ("x",)), Nearest("b", ("y",))],
            "'b' cannot be fused: a kernel looks for one k-th neighbour, and",
        ),
        (
            [Within("b", ("x",), "y"), Within("a", ("x",), "b")],
            "'a' cannot be fused: its radius 'b' is neither an input",
        ),
        ([Map("b", x * x), Nearest("a", ("b",))], "every block reads all of 'b', so it must be in memory"),
        ([Nearest("a", ("x",)), RowDots("b", "w", "x")], "it goes over all pairs of points, 'b' over a matrix"),
        ([Nearest("b", ("x",)), Reduce("total", "sum", z), Map("a", total + 0)], "'z' cannot be fused: it is along m"),
        ([Nearest("b", ("x",)), Map("a", activation(b))], "parameters choose functions and reductions for RowDots and"),
        ([Reduce("total", "sum", x), Within("a", ("x",), "total")], "points of 'x' go along 'n', 'total' along ''"),
    ],
)
def test_what_a_scan_of_neighbours_cannot_do(stages, words):
    outputs = ("a", "b") if len(stages) == 2 and stages[1].name == "b" else ("a",)
    assert words in refusal(*stages, outputs=outputs, inputs=CLOUD)


def test_points_come_from_three_arrays_at_most():
    inputs = tuple(Input(name, "n") for name in "uvxy")
    assert "points come from three arrays at most, not from u, v, x, y" in refusal(
        Nearest("a", ("u", "v", "x", "y")), inputs=inputs
    )


def test_k_is_taken_where_neighbours_are_looked_for():
    assert "two things are called 'k'" in refusal(Nearest("a", ("v",)), inputs=(Input("v", "k"),))
    refuse(planned(program([Map("a", names("v")[0] * 2)], ("a",), inputs=(Input("v", "k"),))))
