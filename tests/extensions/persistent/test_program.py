"""Cases as programs: plans become words, unservable plans are refused with the reason."""

import numpy as np
import pytest

from prism_bench import Launch, Out, Scalar, Scratch, Size, TensorMap, Workload, Zero
from prism_bench.errors import UsageError
from prism_bench.extensions.persistent.queue import ALIGNMENT, program_of, served
from prism_bench.spec.case import Device
from tests.extensions.persistent.toys import COMPLAINING, DOUBLED, TURNED, N, case_of

DEVICE = Device()


def test_a_plan_becomes_stages_over_one_workspace():
    order = served([program_of("empty", None, DEVICE), program_of("turned", TURNED, DEVICE)])
    assert "serve_queue<256, twice, add_turned>" == order.entry
    room = -(-4 * N // ALIGNMENT) * ALIGNMENT
    assert {("turned", "x"): 0, ("turned", "y"): room, ("turned", "z"): 2 * room} == order.offsets
    assert 3 * room == order.workspace_bytes
    first, second = order.table[6:14].tolist(), order.table[14:].tolist()
    assert ([8, 0, 4, 1, 1, 0, room, N], [8, 1, 4, 1, 1, room, 2 * room, N]) == (first, second)


def test_scalar_is_at_the_low_end_of_its_word():
    case = case_of(
        "k",
        (Scalar("a"), Scalar("b", "float64"), Scalar("c", "int32")),
        lambda: Launch(1, 32),
        parameters={"a": 1.5, "b": -2.0, "c": -1},
    )
    scalars = served([program_of("k", case, DEVICE)]).table[-3:]
    assert 1.5 == scalars[:1].view(np.float32)[0]
    assert -2.0 == scalars[1:2].view(np.float64)[0]
    assert 0xFFFFFFFF == scalars[2]


def test_programs_of_one_kernel_share_it_and_have_arrays_of_their_own():
    order = served([program_of(name, DOUBLED, DEVICE) for name in ("one", "other")])
    assert "serve_queue<256, twice>" == order.entry
    assert 4 == len(set(order.offsets.values()))


def test_empty_launch_is_no_stage():
    case = case_of("twice", (Out("y", "n"), Size("n")), lambda n: Launch(n, 256), Workload(n=0))
    assert () == program_of("nothing", case, DEVICE).steps


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (lambda: (Zero("s"), Launch(1, 32)), "its plan fills 's' with zeros between its kernels"),
        (lambda: Launch(1, (16, 16)), r"k has blocks of \(16, 16, 1\); they must have one dimension"),
        (lambda: Launch(1, 32, maps=(TensorMap("s", 64),)), "k copies by tensor maps, which only its own launch has"),
    ],
)
def test_unservable_plan_is_refused_with_its_reason(plan, reason):
    case = case_of("k", (Scratch("s", "1"),), plan)
    with pytest.raises(UsageError, match=r"k\[n=1000\] cannot be served: " + reason):
        program_of("k", case, DEVICE)


def test_kernels_with_blocks_of_other_sizes_are_served_apart():
    small = case_of("small", (Size("n"),), lambda: Launch(1, 32))
    with pytest.raises(UsageError, match=r"blocks of one size, these have not \(complain: 256, small: 32\)"):
        served([program_of(name, case, DEVICE) for name, case in (("a", COMPLAINING), ("b", small))])
