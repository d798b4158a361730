"""Every noun of a spec refuses values of a wrong kind, and names the noun, the field and the value."""

from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy
import pytest

import prism_bench
import prism_bench.spec
from prism_bench import (
    Chain,
    Constant,
    Edge,
    In,
    KernelSpec,
    Launch,
    LaunchCard,
    Out,
    Size,
    TensorMap,
    Tune,
    Variant,
    Workload,
    normal,
)
from prism_bench.errors import SpecError
from prism_bench.spec.case import Case

NOUNS = {
    name: noun
    for module in (prism_bench, prism_bench.spec)
    for name in module.__all__
    if is_dataclass(noun := getattr(module, name)) and isinstance(noun, type)
}
FACTORIES = (
    "absolute", "constant", "elementwise", "exact_except", "integers", "normal", "normwise", "product", "reduction",
    "selection", "uniform",
)  # fmt: skip
SIMPLE = {str: str, int: int, float: (int, float), bool: bool, type(None): type(None)}
WRONG = (3, -1, 2.5, True, "3", b"3", "", [3], (), (3,), ("x",), ["x"], [[3]], {3: 3}, {"x": 3}, {"x"}, object())
WRONG = (*WRONG, None, str, numpy.ones(3), numpy.array(3), numpy.float32, len, print)

# Fields without a default, by noun.
FILLED: dict[str, dict[str, Any]] = {
    "Budget": {"metric": "cold_time", "at_most": 1.0},
    "CardParameter": {"kind": "int32"},
    "Chain": {"name": "c", "stages": {"baseline": None}},
    "Edge": {"name": "e", "workload": Workload(n=1), "fills": {}},
    "Fill": {"draw": print, "meaning": "m"},
    "Golden": {"workload": Workload(n=1), "inputs": {}, "expected": {}, "source": "s"},
    "KernelCall": {"function": print},
    "KernelSpec": {"arguments": (Out("y", "n"),), "reference": "m:f", "workloads": {"S0": Workload(n=1)}},
    "Launch": {"grid": 1},
    "LaunchCard": {"entry": "f", "architecture": "90", "parameters": ()},
    "Peer": {"call": print},
    "Requirement": {"what": "w", "compute_capability": 90},
    "Rule": {"text": "t", "holds": print},
    "Tolerance": {"name": "t"},
    "Variant": {"meaning": "m"},
    **dict.fromkeys(("Array", "In", "InOut", "Out", "Scratch", "Constant"), {"name": "x", "shape": "n"}),
    **dict.fromkeys(("Scalar", "Struct", "TensorMap", "Zero"), {"name": "x"}),
}


def takes(kind, value):
    """Whether the type takes the value: False where it is simple and the value another kind, None where unknown."""
    if get_origin(kind) in (Union, UnionType):
        answers = [takes(choice, value) for choice in get_args(kind)]
        return True if True in answers else None if None in answers else False
    if get_origin(kind) is tuple and get_args(kind)[1:] == (...,):
        if not isinstance(value, tuple | list | set | numpy.ndarray) or getattr(value, "shape", None) == ():
            return False
        answers = [takes(get_args(kind)[0], part) for part in value]
        return False if False in answers else None if None in answers else True
    if kind not in SIMPLE:
        return None
    is_number = kind in (int, float) and isinstance(value, numpy.ndarray | numpy.generic)
    return None if is_number else isinstance(value, SIMPLE[kind]) and (kind is bool or not isinstance(value, bool))


FIELDS = [
    (name, field.name) for name, noun in NOUNS.items() if name not in ("Tune", "Variant") for field in fields(noun)
]


def test_every_noun_can_be_made():
    assert {"KernelSpec", "Tune", "In", "Budget", "Domain", "Device"} <= set(NOUNS)
    for name in set(NOUNS) - {"Tune"}:
        required = {field.name for field in fields(NOUNS[name]) if field.default is field.default_factory is MISSING}
        assert name == "Variant" or required <= set(FILLED.get(name, ())), name
        NOUNS[name](**FILLED.get(name, {}))


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_a_value_of_another_kind_is_refused_with_noun_and_field(name, field):
    noun, kind = NOUNS[name], get_type_hints(NOUNS[name])[field]
    for value in WRONG:
        filled = FILLED.get(name, {}) | {field: value}
        try:
            noun(**filled)
        except SpecError as error:
            if takes(kind, value) is False:
                label = noun(**FILLED[name]).label_in_errors if noun is KernelSpec else name
                label = str(filled["name"]) if noun is KernelSpec and field == "name" else label
                assert (label if field != "entry" else "") in str(error), value
                assert field in str(error), value
        else:
            assert takes(kind, value) is not False, f"{name}.{field} took {value!r}"


@pytest.mark.parametrize("name", FACTORIES)
def test_a_fill_or_tolerance_of_another_kind_is_refused(name):
    factory = getattr(prism_bench, name)
    kinds = {parameter: kind for parameter, kind in get_type_hints(factory).items() if parameter != "return"}
    right = {parameter: print if "Callable" in str(kind) else 1 for parameter, kind in kinds.items()}
    if name == "product":
        right |= {"depth": lambda k: k}
    factory(**right)
    for parameter, kind in kinds.items():
        for value in WRONG:
            try:
                factory(**right | {parameter: value})
            except SpecError:
                continue
            except ValueError as error:  # a built-in function such as `print` has no parameters by name
                assert callable(value), error
            assert takes(kind, value) is not False, f"{name}({parameter}={value!r})"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tune(block=64), r"Tune: block is 64; it is a tuple of numbers or texts"),
        (lambda: Tune(block="64"), r"Tune: block is '64'"),
        (lambda: Tune(block=numpy.array(64)), r"Tune: block is array\(64\)"),
        (lambda: Tune(block=([64], [128])), r"Tune: block holds \[64\]"),
        (lambda: Tune(block=(64,), rules=3), r"Tune: rules is 3; it is a tuple of Rule"),
        (lambda: Tune(block=(64,), default=3), r"Tune: default is 3; it is a dict of functions by name"),
        (lambda: Variant(3), r"Variant: meaning is 3; it is a text"),
        (lambda: In("x", ("n",)), r"In\('x'\): shape is \('n',\); write axes in a text: \"rows cols\""),
        (lambda: In("x", "n", fill=normal), r"In\('x'\): fill is <function normal at .*>?; write a fill: normal\(\)"),
        (lambda: Edge(3, Workload(n=1), {}), "Edge: name is 3; it is a text"),
        (lambda: Workload(n=[3]), r"Workload: n is \[3\]; it is a number or a text or True or False or None"),
        (lambda: TensorMap("x", box=3), r"TensorMap\('x'\): box is 3; it is a tuple of whole numbers"),
        (lambda: Launch(1, 32, shared=2.5), r"Launch: shared is 2\.5; it is a whole number"),
        (lambda: LaunchCard("f", "90", (), block=(1, 1)), r"LaunchCard\('f'\): block is .*; it is a tuple of 3 whole"),
    ],
)  # fmt: skip
def test_a_wrong_kind_is_shown_with_what_is_right(make, message):
    with pytest.raises(SpecError, match=message):
        make()


@pytest.mark.parametrize("n", ["3", 2.5, None, float("nan"), float("inf")])
def test_an_axis_that_is_no_whole_number_is_no_extent_and_no_size(n):
    arguments, workload = (In("x", "n"), Out("y", "n"), Size("n")), Workload(n=n)
    spec = KernelSpec(arguments=arguments, reference="m:f", workloads={"S0": workload}, name="k")
    with pytest.raises(SpecError, match="x: shape 'n': n is .*; it is a whole number"):
        Case(spec, workload, "S0").sizes.shape("x")
    with pytest.raises(SpecError, match="n(=| is )"):
        Size("n").value(workload)


def test_a_tuple_may_be_written_as_a_list():
    launch = Launch([1, 2], [32], arguments=["x"], maps=[TensorMap("x", box=[8])])
    assert Launch((1, 2), (32,), arguments=("x",), maps=(TensorMap("x", box=(8,)),)) == launch
    assert isinstance(hash(launch), int)
    assert ("s",) == Chain("c", {"baseline": None}, between=["s"]).between
    arguments = [In("x", "n"), Out("y", "n")]
    spec = KernelSpec(arguments=arguments, reference="m:f", workloads={"S0": Workload(n=1)}, batch_invariant=["n"])
    assert ["n"] == list(spec.batch_invariant)
    assert "v" == Constant("x", "n", symbol="v").variable
