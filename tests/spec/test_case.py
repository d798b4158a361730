"""A case knows its name, shapes, bytes and inputs, and what its reference says."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.special

from prism_bench import (
    Edge,
    Golden,
    In,
    InOut,
    KernelSpec,
    Launch,
    Out,
    Requirement,
    Rule,
    Scratch,
    Size,
    Workload,
    Zero,
    constant,
    exact,
    integers,
    product,
)  # fmt: skip
from prism_bench.errors import SpecError
from prism_bench.spec.case import Case, Device

SPEC = KernelSpec(
    entry="scale",
    arguments=(In("x", "rows cols"), Out("y", "rows half", dtype="float64"), Scratch("s", "rows"), Size("rows")),
    parameters={"factor": 2},
    derived={"half": lambda cols: cols // 2, "quarter": lambda half: half // 2},
    rules=(Rule("cols is even", lambda cols: cols % 2 == 0),),
    launch=lambda rows, factor, device: (Zero("s"), Launch(grid=min(rows, device.sm_count), block=factor)),
    reference=lambda x, factor, half: factor * x[:, :half],
    flops=lambda rows, half: rows * half,
    workloads={"S0": Workload(rows=3, cols=4)},
    name="scale",
    family="toys",
)


def case(workload=None, spec=SPEC, **more):
    return Case(spec, workload or Workload(rows=3, cols=4), "S0", **more)


def offered(one, inputs=None):
    arrays = {name: array.on(np) for name, array in (inputs or one.inputs()).items()}
    return one.correctness.expected(arrays, np, scipy.special)


def test_its_name_is_kernel_variant_and_every_axis():
    assert "scale[rows=3,cols=4]" == case().name
    assert "scale:fast[rows=3,cols=4]" == case(variant="fast").name


def test_the_shape_makes_the_case():
    assert case() == case()
    assert case() != case(Workload(rows=3, cols=6))
    assert 1 == len({case(), case()})


def test_axes_hold_parameters_workload_and_what_derives_from_them():
    assert {"factor": 2, "rows": 3, "cols": 4, "half": 2, "quarter": 1} == dict(case().axes)


def test_a_workload_overrides_a_parameter():
    assert 5 == case(Workload(rows=3, cols=4, factor=5)).axes["factor"]


def test_a_workload_against_a_rule_is_refused_in_the_rules_words():
    with pytest.raises(SpecError, match=r"scale\[rows=3,cols=5\]: needs cols is even"):
        case(Workload(rows=3, cols=5))


def test_a_workload_that_lacks_an_axis_says_who_asked():
    with pytest.raises(SpecError, match="scale: derived 'half' asks for 'cols'"):
        case(Workload(rows=3))


def test_shapes_bytes_and_operations_follow_from_the_axes():
    one = case()
    assert ((3, 4), (3, 2)) == (one.sizes.shape("x"), one.sizes.shape("y"))
    assert 3 * 4 * 4 + 3 * 2 * 8 == one.sizes.bytes_moved
    assert one.sizes.bytes_moved + 3 * 4 == one.sizes.allocated_bytes
    assert 6 == one.sizes.flops


def test_bytes_beyond_32_bits_are_counted():
    assert (1 << 40) * 4 + (1 << 39) * 8 == case(Workload(rows=1 << 20, cols=1 << 20)).sizes.bytes_moved


def test_an_array_read_and_written_moves_twice():
    spec = KernelSpec(
        entry="f", arguments=(InOut("x", "n"),), launch=lambda n: Launch(n, 1), reference=lambda x: x,
        workloads={"S0": Workload(n=8)},
    )  # fmt: skip
    assert 64 == Case(spec, Workload(n=8), "S0").sizes.bytes_moved


def test_a_spec_may_say_the_bytes_itself_and_stay_silent_on_operations():
    one = case(spec=replace(SPEC, bytes_moved=lambda rows: 7 * rows, flops=None))
    assert (21, None) == (one.sizes.bytes_moved, one.sizes.flops)


def test_a_plan_may_be_one_launch_a_tuple_or_a_list_and_may_ask_for_the_device():
    assert (Zero("s"), Launch(grid=2, block=2)) == case().plan.steps(Device(sm_count=2))
    assert (Launch(1, 1),) == case(spec=replace(SPEC, launch=lambda: Launch(1, 1))).plan.steps(Device())
    assert (Zero("s"),) == case(spec=replace(SPEC, launch=lambda: [Zero("s")])).plan.steps(Device())


def test_inputs_are_the_same_for_a_seed_and_others_for_another():
    one, again, other = (case().inputs(seed)["x"].on(np) for seed in (0, 0, 1))
    assert one.tobytes() == again.tobytes()
    assert one.tobytes() != other.tobytes()


def test_two_inputs_of_one_case_differ():
    spec = replace(SPEC, arguments=(In("x", "rows cols"), In("z", "rows cols"), Out("y", "rows half")))
    inputs = case(spec=spec).inputs()
    assert inputs["x"].on(np).tobytes() != inputs["z"].on(np).tobytes()


def test_inputs_may_take_their_bounds_from_an_axis():
    spec = replace(
        SPEC, arguments=(In("x", "rows cols", dtype="int32", fill=integers(0, "rows")), Out("y", "rows half"))
    )
    values = case(Workload(rows=2, cols=100), spec).inputs()["x"].on(np)
    assert (np.dtype("int32"), {0, 1}) == (values.dtype, set(values.reshape(-1).tolist()))


def test_the_reference_gets_float64_and_its_result_is_shaped_as_the_output():
    one = case()
    expected = offered(one)["y"]
    x = one.inputs()["x"].on(np).astype("float64")
    assert ((3, 2), np.dtype("float64")) == (expected.shape, expected.dtype)
    assert np.array_equal(2 * x[:, :2], expected)


def test_the_reference_gets_integers_as_they_are():
    spec = replace(SPEC, arguments=(In("x", "rows cols", dtype="int32"), Out("y", "rows half")),
                   reference=lambda x, half: x[:, :half])  # fmt: skip
    assert np.dtype("int32") == offered(case(spec=spec))["y"].dtype


def test_a_reference_may_ask_for_special_functions():
    spec = replace(SPEC, reference=lambda x, half, special, xp: special.erf(x[:, :half]))
    assert 1 >= float(abs(offered(case(spec=spec))["y"]).max())


def test_a_reference_that_gives_too_many_outputs_says_how_many():
    with pytest.raises(SpecError, match="scale: reference gives 2 outputs, not 1"):
        offered(case(spec=replace(SPEC, reference=lambda x: (x, x))))


def test_a_reference_of_the_wrong_size_says_both_shapes():
    with pytest.raises(SpecError, match=r"reference gives y of shape \(3, 4\), not \(3, 2\)"):
        offered(case(spec=replace(SPEC, reference=lambda x: x)))


def test_a_reference_that_asks_for_nobody_is_named():
    with pytest.raises(SpecError, match="scale: reference asks for 'weights', which is none of"):
        offered(case(spec=replace(SPEC, reference=lambda weights: weights)))


GOLDEN = Golden(
    Workload(rows=1, cols=4),
    inputs={"x": lambda cols: np.arange(cols)},
    expected={"y": [[7, 8]]},
    source="by hand",
    tolerance=exact(),
)


def golden(**changes):
    data = replace(GOLDEN, **changes)
    return Case(replace(SPEC, golden=(GOLDEN, data)), data.workload, "golden", golden=data)


def test_golden_inputs_are_the_same_whatever_the_seed():
    assert [[0, 1, 2, 3]] == golden().inputs(0)["x"].on(np).tolist() == golden().inputs(1)["x"].on(np).tolist()


def test_a_golden_number_fills_its_array():
    assert [[5, 5, 5, 5]] == golden(inputs={"x": 5}).inputs()["x"].on(np).tolist()


def test_golden_outputs_are_the_given_ones():
    assert [[7, 8]] == offered(golden())["y"].tolist()


def test_golden_outputs_that_no_kernel_writes_are_a_mistake_of_the_spec():
    with pytest.raises(SpecError, match="scale: no argument is called 'z'"):
        offered(golden(expected={"z": 1}))


def test_golden_outputs_of_the_wrong_shape_say_both():
    with pytest.raises(SpecError, match=r"golden y has shape \(3,\), not \(1, 2\)"):
        offered(golden(expected={"y": [1, 2, 3]}))


def test_golden_data_without_outputs_leave_them_to_the_reference():
    assert [[0, 2]] == offered(golden(expected={}))["y"].tolist()


def test_golden_data_may_have_a_tolerance_of_their_own():
    one = golden()
    arrays = {name: array.on(np) for name, array in one.inputs().items()}
    assert "exact" == one.correctness.allowance("y", arrays, np, scipy.special).tolerance.name
    usual = case().correctness
    assert "elementwise" == usual.allowance("y", usual.inputs() and arrays, np, scipy.special).tolerance.name


def test_golden_data_that_lack_an_input_say_which():
    with pytest.raises(SpecError, match=r"scale\[.*rows=1,cols=4\]: golden data give no 'x'"):
        golden(inputs={}).inputs()


def test_golden_data_of_the_wrong_shape_are_a_mistake_of_the_spec():
    with pytest.raises(SpecError, match=r"scale\[.*rows=1,cols=4\]: golden x has shape \(3,\), not \(1, 4\)"):
        golden(inputs={"x": [1, 2, 3]}).inputs()


def test_golden_data_beyond_a_block_are_a_mistake_of_the_spec():
    big = Workload(rows=1 << 11, cols=1 << 10)
    with pytest.raises(SpecError, match="1048576 values at most"):
        golden(workload=big, inputs={"x": 1}).inputs()


def test_a_tolerance_evaluates_what_it_asks_for():
    tolerance = product(magnitude=lambda x, xp: xp.abs(x).sum(), depth=lambda cols: cols)
    one = case(spec=replace(SPEC, tolerance=tolerance))
    arrays = {name: array.on(np) for name, array in one.inputs().items()}
    found = one.correctness.allowance("y", arrays, np, scipy.special)
    assert float(np.abs(arrays["x"].astype("float64")).sum()) == found.magnitude
    assert 4 * 2**-24 == pytest.approx(found.terms, rel=1e-6)


def test_a_device_without_the_instructions_refuses_the_case():
    wanting = case(spec=replace(SPEC, requires=Requirement("wgmma", 90)))
    assert "wgmma: for compute capability 90, not 80" == wanting.plan.refusal(Device(compute_capability=80))
    assert [None, None] == [wanting.plan.refusal(Device(compute_capability=90)), case().plan.refusal(Device())]


def test_an_edge_with_fills_of_its_own_has_a_name_and_those_inputs():
    spec = replace(SPEC, arguments=(*SPEC.arguments, In("z", "rows")))
    edge = Edge("all in one", Workload(rows=3, cols=4), {"x": constant(5)})
    usual, filled = case(spec=spec), case(edge.workload, spec, edge=edge)
    assert "scale[all in one: rows=3,cols=4]" == filled.name
    assert usual != filled
    assert bool((filled.inputs()["x"].on(np) == 5).all())
    assert filled.inputs()["z"].on(np).tobytes() == usual.inputs()["z"].on(np).tobytes()
