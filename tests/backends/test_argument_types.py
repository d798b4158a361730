"""Types of arguments, each by a small kernel that is right and by one that writes a wrong value."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism_bench import (
    Constant,
    In,
    InOut,
    KernelSpec,
    Launch,
    Out,
    Scalar,
    Size,
    Struct,
    Variant,
    Workload,
    elementwise,
    exact,
    integers,
)
from prism_bench.backends import open_backend
from prism_bench.backends.host import not_interpreted
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.run.verification import passed, verify
from prism_bench.spec import packed, unpacked
from prism_bench.spec.case import Case

SOURCE = Path(__file__).parent / "kernels" / "argument_types.cu"
FLOATS = {
    "bfloat16": "__nv_bfloat16",
    "float16": "__half",
    "float8_e4m3fn": "__nv_fp8_e4m3",
    "float8_e5m2": "__nv_fp8_e5m2",
}
FIELDS = [
    ("scale", "float32"),
    ("shift", "int32"),
    ("inner", [("offset", "float64"), ("sign", "int8")]),
    ("taps", "float32", 3),
    ("narrow", "bfloat16"),
]
PARAMETERS = {"scale": 1.5, "shift": -2, "inner": (3.25, -1), "taps": (1.0, 2.0, 3.0), "narrow": 0.7}
NUMBERS = {"c": -3, "s": -4, "u": 250, "h": -1000, "l": -70_000, "z": 12, "w": 2**40, "flag": 1}
TYPES = {
    "c": "int8", "s": "int8", "u": "uint8", "h": "int16", "l": "int64", "z": "uint64", "w": "uint64", "flag": "bool",
}  # fmt: skip


def forms(name, entry, **changes):
    """Return a right variant and one that writes a wrong value, whose entries differ in the last argument."""
    return {
        f"{name}{suffix}": Variant(name, entry=entry.format(wrong=wrong), **changes)
        for suffix, wrong in (("", "false"), (" wrong", "true"))
    }


def floats(dtype, cpp):
    return forms(
        dtype,
        f"scaled<{cpp}, {{wrong}}>",
        arguments=(In("x", "n", dtype), Out("y", "n", dtype), InOut("z", "n", dtype), Scalar("alpha", dtype),
                   Size("n", "uint32")),
        parameters={"alpha": 0.3},
        reference=lambda x, z, alpha: (2 * x + alpha, -z),
        tolerance={"y": elementwise(1), "z": exact()},
    )  # fmt: skip


def pairs(dtype, fill, signed):
    return forms(
        dtype,
        f"pairs<{'true' if signed else 'false'}, {{wrong}}>",
        arguments=(In("x", "n", dtype, fill=fill), Out("y", "n twice"), Out("z", "n", dtype), Size("n", "uint64")),
        derived={"twice": lambda n: 2},
        reference=lambda x, n, xp: (x, x.reshape(n, 2)[:, ::-1].reshape(2 * n)),
        tolerance=exact(),
    )


STRUCTURES = {
    "arguments": (In("x", "n"), Out("y", "n"), Struct("p", FIELDS), Struct("combine"), Size("n", "uint32")),
    "parameters": {"p": PARAMETERS},
    "reference": lambda x, p: (
        x * p["scale"] + p["inner"]["offset"] * p["inner"]["sign"] + p["shift"] + p["taps"][2] * p["narrow"]
    ),
    "tolerance": elementwise(4, 1e-5),
}
VARIABLES = {
    "arguments": (
        In("x", "n"), Out("y", "n"), Size("n", "uint32"), Constant("filter", "5"),
        Constant("last", "4", symbol="weights"),
        Constant("added", "1", "int32", symbol="bias", fill=integers(1, 100)),
    ),
    "reference": lambda x, n, filter, last, added, xp: x * filter[xp.arange(n) % 5] + last[3] + added[0],
    "tolerance": elementwise(4, 1e-5),
}  # fmt: skip
SPEC = KernelSpec(
    name="argument_types",
    source=SOURCE,
    launch=lambda n: Launch(-(-n // 128), 128),
    workloads={"S0": Workload(n=300)},
    entry="structures<Plus, false>",
    **STRUCTURES,
    variants={
        **{name: form for dtype, cpp in FLOATS.items() for name, form in floats(dtype, cpp).items()},
        **pairs("int4x2", integers(-8, 8), True),
        **pairs("uint4x2", integers(0, 16), False),
        **forms("structure", "structures<Plus, {wrong}>"),
        **forms("variables", "variables<{wrong}>", **VARIABLES),
        **forms(
            "integers",
            "integers<long long, 4, Mode::fast, Op::Sum, {wrong}>",
            arguments=(
                In("x", "n", "int64", fill=integers(-50, 50)), Out("y", "n", "int64"),
                *(Scalar(name, dtype) for name, dtype in TYPES.items()), Size("n", "uint32"),
            ),
            parameters=NUMBERS,
            reference=lambda x, c, s, u, h, l, z, w: x + 4 + c + s + u + h + l + z + w,  # noqa: E741 - a long
            tolerance=exact(),
        ),
    },
)  # fmt: skip
RIGHT = [name for name in SPEC.variants if not name.endswith(" wrong")]


@pytest.fixture(scope="module", params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request):
    try:
        return open_backend(request.param)
    except BackendUnavailable as error:
        pytest.skip(str(error))


def case_of(name, **changes):
    spec = SPEC.with_variant(name)
    return Case(replace(spec, **changes), spec.workloads["S0"], "S0", name)


def verified(backend, case):
    with np.errstate(over="ignore", invalid="ignore"):
        return verify(backend, case)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_passes(backend, name):
    entries = verified(backend, case_of(name))
    assert passed(entries), entries
    assert 2 * len(SPEC.with_variant(name).outputs) == len(entries)


@pytest.mark.parametrize("name", RIGHT)
def test_a_wrong_value_is_called_wrong(backend, name):
    wrong = [entry for entry in verified(backend, case_of(f"{name} wrong")) if not entry["passed"]]
    place = [14] if "4x2" in name else [7]
    assert [place, place] == [entry["place"] for entry in wrong]


@pytest.mark.parametrize("name", RIGHT)
def test_the_reference_rounded_to_the_type_is_right(name):
    assert passed(verified(open_backend("numpy_reference"), case_of(name)))


def test_a_structure_of_another_size_is_refused_with_both_sizes(backend):
    arguments = (In("x", "n"), Out("y", "n"), Struct("p", FIELDS[:3]), Struct("combine"), Size("n", "uint32"))
    fields = {name: PARAMETERS[name] for name, *_ in FIELDS[:3]}
    with pytest.raises(SpecError, match=r"\b24\b.*\b40\b"):
        verify(backend, case_of("structure", arguments=arguments, parameters={"p": fields}))


def test_a_packed_structure_has_no_gaps(backend):
    arguments = (In("x", "n"), Out("y", "n"), Struct("p", FIELDS, packed=True), Struct("combine"), Size("n", "uint32"))
    with pytest.raises(SpecError, match=r"\b31\b.*\b40\b"):
        verify(backend, case_of("structure", arguments=arguments))


def test_an_unknown_variable_is_refused_with_those_that_are_there(backend):
    arguments = (In("x", "n"), Out("y", "n"), Size("n", "uint32"), Constant("fitler", "5"))
    with pytest.raises(SpecError, match=r"'fitler'.*\bfilter\b"):
        verify(backend, case_of("variables", arguments=arguments, reference=lambda x, fitler: x))


def test_a_constant_of_another_size_is_refused_with_both_sizes(backend):
    arguments = (In("x", "n"), Out("y", "n"), Size("n", "uint32"), Constant("filter", "6"))
    with pytest.raises(SpecError, match=r"'filter'.*\b24 bytes\b.*\b20\b"):
        verify(backend, case_of("variables", arguments=arguments, reference=lambda x, filter: x))


def test_cases_of_one_source_keep_their_constants_apart(backend):
    case = case_of("variables")
    first, second = case.inputs(0), case.inputs(1)
    with backend.prepare(case, first) as one, backend.prepare(case, second) as other:
        for runnable, inputs in ((one, first), (other, second), (one, first)):
            runnable()
            x, taps, last, added = (inputs[name].on(np).astype("float64") for name in ("x", "filter", "last", "added"))
            expected = x * taps[np.arange(300) % 5] + last[3] + added[0]
            actual = runnable.arrays(["y"])["y"]
            assert np.allclose(expected, actual.get() if hasattr(actual, "get") else actual, rtol=1e-5, atol=1e-5)


def test_an_interpreter_without_the_type_is_not_asked():
    spec = replace(SPEC.with_variant("bfloat16"), language="numba")
    reason = not_interpreted(Case(spec, spec.workloads["S0"], "S0"))
    assert "'x' has elements of bfloat16, which the arrays of Numba-CUDA's interpreter lack" == reason


def test_pairs_go_there_and_back():
    every = np.arange(256, dtype="uint8").reshape(16, 16)
    assert every.tolist() == packed(unpacked(every)).tolist()
    assert every.tolist() == packed(unpacked(every, signed=False), signed=False).tolist()
    assert [[-2, 1, 7, -8]] == unpacked(np.array([[0x1E, 0x87]], "uint8")).tolist()
    with pytest.raises(SpecError, match="whole numbers from -8 to 7"):
        packed(np.array([1, 8]))
