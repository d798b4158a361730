"""What a stage moves and sets aside follows from its plan."""

from dataclasses import replace

from prism_bench import InOut, Launch, Scratch, Size, Zero
from prism_bench.extensions.fusion.benefit.ledger import planned
from prism_bench.spec.case import Case, Device
from tests.extensions.fusion.benefit.toy_chain import SPEC, TOY, N


def plan_of(variant=None, **changes):
    spec = replace(SPEC.with_variant(variant) if variant else SPEC, **changes)
    return planned(Case(spec, spec.workloads["S0"], "S0", variant), TOY, Device())


def steps(*names):
    return lambda: tuple(Launch(1, 1, arguments=one) for one in names)


def test_separate_launches_write_and_read_what_they_hand_on():
    found = plan_of()
    assert (2, 16 * N, 8 * N) == (found.launches, found.bytes, found.least)
    assert (("middle",), 4 * N, 32) == (found.temporaries, found.temporary_bytes, found.workspace_bytes)


def test_one_launch_moves_the_compulsory_bytes_and_sets_nothing_aside():
    found = plan_of("full")
    assert (1, 8 * N, ()) == (found.launches, found.bytes, found.temporaries)
    assert 0 == found.temporary_bytes == found.workspace_bytes


def test_one_launch_moves_what_its_spec_says_where_it_says_so():
    assert 5 == plan_of("full", bytes_moved=lambda: 5).bytes


def test_what_one_launch_alone_is_given_is_its_own():
    found = plan_of(launch=steps(("x", "middle"), ("x", "y")))
    assert ((), 4 * N) == (found.temporaries, found.workspace_bytes)
    assert 12 * N == found.bytes


def test_launches_in_a_row_with_the_same_arguments_are_one_step():
    """A product whose rows are shared, and the sum of its parts: only the parts go out and come back."""
    found = plan_of(launch=steps(("x", "middle", "y"), ("x", "middle", "y")))
    assert (2, (4 + 2 * 4 + 4) * N) == (found.launches, found.bytes)


def test_an_array_in_place_is_read_and_written():
    arguments = (InOut("x", "n"), *SPEC.arguments[1:])
    assert (2 + 1 + 1 + 1) * 4 * N == plan_of(arguments=arguments).bytes


def test_an_empty_launch_is_none_and_a_fill_moves_bytes_without_one():
    launches = (Zero("y"), Launch(0, 1, arguments=("x", "y")), Launch(1, 1, arguments=("x", "y")))
    found = plan_of("full", launch=lambda: launches)
    assert (1, 16 * N) == (found.launches, found.bytes)  # y: filled, read, written


def test_a_launch_that_is_given_nothing_new_works_in_place():
    assert (2 + 3) * 4 * N == plan_of(launch=steps(("x", "y"), ("y", "x"))).bytes


def test_of_several_arrays_in_place_the_smallest_is_written_at_least():
    arguments = (*SPEC.arguments[:3], Scratch("few", "4"), Size("n"))
    launch = steps(("x", "few"), ("x", "y"), ("few", "y"))
    chain = replace(TOY, between=("few",))
    spec = replace(SPEC, arguments=arguments, launch=launch, chains=())
    assert 16 * N + 16 + 16 + 16 == planned(Case(spec, spec.workloads["S0"], "S0"), chain, Device()).bytes
