"""Bits of outputs: planted kernels are told apart, promises are held, causes are those of the machine code."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism_bench import In, KernelSpec, Launch, Out, Size, Variant, Workload, exact
from prism_bench.backends import open_backend
from prism_bench.backends.null import NullBackend
from prism_bench.catalogue import discover
from prism_bench.compilation.listing import PROGRAM, tool
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.run.bitwise import BitChecks, arrival_kind, difference, difference_text, peer_checks
from prism_bench.run.verification import complaint, passed, verify
from prism_bench.spec.case import Case
from prism_bench.spec.peer import form_name

PLANTED = Path(__file__).parent.parent / "bits"
DEPENDS = {
    "peak:first_come": "order", "total:atomic_grid": "order", "total:atomic_block": "order", "total:turns": "order",
    "total:queue": "order", "total:tuned_block": "configurations", "total:tuned_parts": "configurations",
    "row_sums:split_rows": "batch", "row_sums:tile_rows": "batch", "row_sums:neighbour": "batch",
}  # fmt: skip
STEADY = {
    "counts", "peak", "row_sums", "row_sums:warp_rows", "row_sums:single_add", "total", "total:partials",
    "total:last_block", "total:fixed_point", "total:same_lanes",
}  # fmt: skip


def opened(name):
    try:
        return open_backend(name)
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def planted():
    catalogue = discover(PLANTED)
    assert not catalogue.problems
    return {case.kernel: case for case in catalogue.cases((), ("S0",))}


def checked(backend, case):
    with backend.prepare(case, case.inputs(0)) as runnable:
        return BitChecks(backend, runnable).every()


def differing(entries):
    return {entry["check"]: entry for entry in entries if entry["same"] is False}


@pytest.fixture(scope="module")
def emulated(planted):
    """By kernel, what differs on the emulator."""
    backend = opened("emulator")
    return {kernel: differing(checked(backend, case)) for kernel, case in planted.items()}


def test_twenty_planted_kernels_are_told_apart_on_the_emulator(emulated):
    assert (10, 10) == (len(DEPENDS), len(STEADY))
    assert DEPENDS.keys() | STEADY == emulated.keys()
    assert {kernel: [check] for kernel, check in DEPENDS.items()} | {kernel: [] for kernel in STEADY} == {
        kernel: list(checks) for kernel, checks in emulated.items()
    }


@pytest.mark.gpu
def test_twenty_planted_kernels_are_told_apart_on_a_gpu():
    backend = opened("cuda")
    cases = discover(PLANTED).cases((), ("S1",))
    kinds = {case.kernel: set(differing(checked(backend, case))) for case in cases}
    assert set() == DEPENDS.keys() ^ {kernel for kernel, checks in kinds.items() if checks}
    for kernel, check in DEPENDS.items():
        assert kinds[kernel] & ({"repeated", "contention"} if check == "order" else {check}), kernel


@pytest.mark.gpu
def test_peers_of_the_catalogue_are_checked_on_a_gpu():
    backend, case = opened("cuda"), discover().cases(("softmax",), ("S0",))[0]
    with backend.prepare(case, case.inputs(0)) as runnable:
        entries = list(peer_checks(backend, runnable, 0, lambda name: None, {}, ("rows",)))
    compared = {(entry["subject"], entry["check"]) for entry in entries if entry["same"] is not None}
    assert {"repeated", "batch"} == {check for _, check in compared}, entries


@pytest.mark.skipif(tool(PROGRAM) is None, reason="no nvdisasm")
@pytest.mark.parametrize(
    ("kernel", "cause"),
    [("total:atomic_grid", "ADD.F32.*in atomic_grid adds floating-point numbers in the order of arrival"),
     ("total:atomic_block", "ATOMS.*in atomic_block takes turns in the order of arrival"),
     ("total:turns", "CAS.*in turns takes turns in the order of arrival"),
     ("total:queue", "ATOMG.E.ADD.*in queue hands out numbers in the order of arrival"),
     ("peak:first_come", "CAS.*in first_come takes turns in the order of arrival"),
     ("total:tuned_block", r"another launch: block \(256, 1, 1\) and \(128, 1, 1\)"),
     ("total:tuned_parts", r"grid \(16, 1, 1\) and \(4, 1, 1\); partial results in 'partial' \(16,\) and \(4,\)"),
     ("row_sums:split_rows", "grid 2 blocks and 32 blocks for each of rows"),
     ("row_sums:tile_rows", "entry row_walk and row_sum"),
     ("row_sums:neighbour", "the launch is the same: values of other rows enter")],
)  # fmt: skip
def test_a_cause_is_what_launches_and_machine_code_show(emulated, kernel, cause):
    assert_matches(cause, emulated[kernel][DEPENDS[kernel]]["cause"])


def assert_matches(pattern, text):
    import re

    assert re.search(pattern, text), text


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R5", "adds"),
     ("@P0 RED.E.ADD.F16x2.RN.STRONG.GPU [R2.64], R5", "adds"),
     ("REDG.E.ADD.F64.RN.STRONG.GPU desc[UR4][R2.64], R4", "adds"),
     ("UTMAREDG.1D.ADD.BF16 [UR4], [UR6]", "adds"),
     ("ATOMS.CAST.SPIN.64 R4, [R2], R4, R6", "turns"),
     ("ATOMG.E.EXCH.STRONG.GPU PT, R3, desc[UR4][R2.64], R5", "turns"),
     ("ATOMG.E.ADD.STRONG.GPU PT, R3, desc[UR4][R2.64], R5", "numbers"),
     ("ATOMG.E.ADD.STRONG.GPU PT, RZ, desc[UR4][R2.64], R5", None),
     ("@!P1 ATOMS.POPC.INC.32 RZ, [R4]", None),
     ("REDG.E.MAX.STRONG.GPU desc[UR4][R2.64], R5", None),
     ("REDG.E.ADD.64.STRONG.GPU desc[UR4][R2.64], R4", None),
     ("FADD R2, R3, R4", None)],
)  # fmt: skip
def test_only_some_atomics_depend_on_the_order(instruction, kind):
    assert kind == arrival_kind(instruction)


def a_case(dtype, bitwise=False, **more):
    spec = KernelSpec(
        entry="e",
        arguments=(In("x", "rows cols"), Out("y", "rows cols", dtype), Size("rows")),
        launch=lambda rows: Launch(rows, 1),
        reference=lambda x: x,
        tolerance=exact(),
        workloads={"S0": Workload(rows=2, cols=3)},
        name="k",
        bitwise=bitwise,
        **more,
    )
    return Case(spec, spec.workloads["S0"], "S0")


@pytest.mark.parametrize(
    ("dtype", "before", "after", "ulps"),
    [("float32", 1.0, np.nextafter(np.float32(1), np.float32(2)), 1), ("float64", 1.0, 1.0 + 3 * 2**-52, 3),
     ("float32", 0.0, -0.0, 0), ("float32", 2**-149, -(2**-149), 2), ("float16", 1.0, 1.0 + 2**-9, 2),
     ("float32", 1.0, np.nan, None), ("float32", 1.0, np.inf, None), ("int32", 7, 9, None), ("bool", 0, 1, None),
     ("complex64", 1 + 1j, 1 + 2j, 1 << 23)],
)  # fmt: skip
def test_a_difference_names_the_element_and_its_distance(dtype, before, after, ulps):
    was = np.full((2, 3), before, dtype)
    now = was.copy()
    now[1, 1:] = after
    entry = difference(a_case(dtype), {"y": was}, {"y": now}, np)
    assert ([1, 1], ulps, 2, 6) == (entry["place"], entry["ulps"], entry["differing"], entry["of"])
    assert {} == difference(a_case(dtype), {"y": now}, {"y": now.copy()}, np)


def test_types_that_numpy_lacks_have_their_values():
    was, now = np.full((2, 3), 0x3F80, "uint16"), np.full((2, 3), 0x3F82, "uint16")  # 1 and 1 + 2^-6
    entry = difference(a_case("bfloat16"), {"y": was}, {"y": now}, np)
    assert (1.0, 1.015625, 2) == (entry["expected"], entry["actual"], entry["ulps"])
    assert "y[0, 0] is 1.015625 with load, else 1, 2 ulp apart; 6 of 6 elements differ" == difference_text(
        entry | {"against": "load"}
    )


def test_numbers_that_are_none_have_words():
    entry = {"output": "y", "place": [3], "actual": "nan", "expected": "-inf", "ulps": None, "differing": 1, "of": 9}
    assert "y[3] is nan with n=1, else -inf; 1 of 9 elements differs" == difference_text(entry | {"against": "n=1"})


def test_a_promise_is_held_wherever_outputs_are_verified(planted):
    backend = opened("emulator")
    held, broken = (
        replace(planted[name], spec=replace(planted[name].spec, bitwise=True))
        for name in ("total", "total:atomic_grid")
    )
    assert passed(verify(backend, held))
    assert {"repeated", "order"} == {entry["check"] for entry in verify(backend, held) if "check" in entry}
    entries = verify(backend, broken)
    assert not passed(entries)
    assert_matches("of 1 element differs; bitwise=True is promised; ", complaint(broken, "emulator", entries))
    assert not [entry for entry in verify(backend, planted["total:atomic_grid"]) if "check" in entry], "unpromised"


def test_another_stream_is_at_work_where_a_backend_has_streams(planted, monkeypatch):
    backend = opened("emulator")
    monkeypatch.setattr(backend, "name", "cuda")
    entries = {entry["check"]: entry for entry in checked(backend, planted["total"])}
    assert (True, 16) == (entries["contention"]["same"], entries["contention"]["launches"])


@pytest.mark.parametrize(
    ("behaviour", "same", "left_out"),
    [({}, True, None), ({"skips": True}, False, None), ({"raises": "no kernel"}, None, "RuntimeError: no kernel")],
)
def test_peers_are_checked_on_the_same_inputs(behaviour, same, left_out):
    backend, begun = NullBackend({"k*": {"peers": {"cupy": behaviour, form_name("torch", "compiled"): {}}}}), []
    case = a_case("float32", batch_invariant=("rows",))
    with backend.prepare(case, case.inputs(0)) as runnable:
        entries = list(peer_checks(backend, runnable, 0, begun.append, {}))
    assert ["cupy", ""] == begun, "what torch compiles is left out"
    assert (same, left_out, "peer:cupy") == (entries[0]["same"], entries[0].get("left_out"), entries[0]["subject"])
    assert all(entry["passed"] for entry in entries), "nobody promises anything for a library"
    assert (same is None) == ("batch" not in {entry["check"] for entry in entries})


def test_a_batch_that_reaches_another_shape_is_left_out():
    case = a_case("float32", batch_invariant=("rows",), derived={"ends": lambda rows: rows + 1})
    spec = replace(case.spec, arguments=(*case.spec.arguments, In("offsets", "ends")))
    entries = checked(NullBackend(), Case(spec, spec.workloads["S0"], "S0"))
    (batch,) = [entry for entry in entries if entry["check"] == "batch"]
    assert (None, 0) != (batch["same"], batch["launches"]), "rows=2 itself has the same shape"
    assert "rows=1: the shape of offsets, 'ends', depends on rows in another way" == batch["left_out"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"bitwise": 1}, "k: bitwise is 1; it is True or False"),
     ({"batch_invariant": "rows"}, r"k: batch_invariant is 'rows'; it is a tuple of axes: \('rows',\)"),
     ({"batch_invariant": ("row",)}, "k: batch_invariant names 'row', which is no axis of workload S0: rows, cols"),
     ({"batch_invariant": ("rows",), "workloads": {}}, "which is no axis of workload S0: it has none"),
     ({"batch_invariant": ("cols",), "arguments": (In("x", "rows cols"), Out("y", "rows"))},
      "k: batch_invariant names 'cols', which is in the shape of no output; a batch is a dimension of both"),
     ({"batch_invariant": ("rows",), "variants": {"one": Variant("", arguments=(In("x", "cols"), Out("y", "rows")))}},
      "variant 'one': k: batch_invariant names 'rows', which is in the shape of no input")],
)  # fmt: skip
def test_a_promise_that_cannot_be_is_refused(changes, message):
    with pytest.raises(SpecError, match=message):
        spec = replace(a_case("float32").spec, **changes)
        spec.with_variant("one")


def on_boards(monkeypatch, tmp_path, case, change):
    """The entries of two boards, of which the second one's outputs were changed."""
    backend = NullBackend()
    with backend.prepare(case, case.inputs(0)) as runnable:
        checks = BitChecks(backend, runnable)
        assert [] == checks.on_boards(tmp_path, "GPU-1"), "the first board keeps its own"
        (kept,) = tmp_path.glob("*.npz")
        with np.load(kept) as outputs:
            changed = {name: change(array.copy()) for name, array in outputs.items()}
        np.savez(kept, **changed)
        return checks.on_boards(tmp_path, "GPU-2")


def test_boards_are_compared(monkeypatch, tmp_path):
    def changed(array):
        array.reshape(-1).view("u4")[4] ^= 1
        return array

    case = a_case("float32", bitwise=True)
    (entry,) = on_boards(monkeypatch, tmp_path, case, lambda array: array)
    assert ("boards", True, 1) == (entry["check"], entry["same"], entry["launches"])
    for kept in tmp_path.glob("*.npz"):
        kept.unlink()
    (entry,) = on_boards(monkeypatch, tmp_path, case, changed)
    assert ([1, 1], 1, "board GPU-2", False) == (entry["place"], entry["ulps"], entry["against"], entry["passed"])


def test_a_kernel_without_outputs_has_no_bits():
    case = a_case("float32")
    spec = replace(case.spec, arguments=(In("x", "rows cols"), Size("rows")), reference=lambda x: ())
    (entry,) = checked(NullBackend(), Case(spec, spec.workloads["S0"], "S0"))
    assert (None, "it writes no output") == (entry["same"], entry["left_out"])
