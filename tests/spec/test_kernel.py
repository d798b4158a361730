"""A KernelSpec refuses what contradicts itself, and its variants are specs of their own."""

from functools import partial
from pathlib import PurePath
from types import MappingProxyType

import numpy
import pytest

from prism_bench import Chain, In, InOut, KernelSpec, Launch, Out, Scratch, Size, Variant, Workload, exact, normalising
from prism_bench.errors import SpecError, UsageError


def spec(**changes):
    plain = {
        "entry": "add",
        "arguments": (In("a", "n"), InOut("b", "n"), Out("c", "n"), Scratch("s", "n"), Size("n")),
        "launch": lambda n: Launch(grid=n, block=1),
        "reference": lambda a, b: (b, a + b),
        "workloads": {"S0": Workload(n=3)},
        "name": "add",
    }
    return KernelSpec(**{**plain, **changes})


def test_inputs_and_outputs_follow_from_the_arguments():
    assert ["a", "b"] == [array.name for array in spec().inputs]
    assert ["b", "c"] == [array.name for array in spec().outputs]
    assert ["a", "b", "c", "s"] == [array.name for array in spec().arrays]


def test_two_arguments_of_one_name_are_refused():
    with pytest.raises(SpecError, match="add: two arguments named a"):
        spec(arguments=(In("a", "n"), Out("a", "n")))


def test_a_label_nobody_knows_is_refused():
    with pytest.raises(SpecError, match="add: workload label S3; labels are S0, S1, S2"):
        spec(workloads={"S3": Workload(n=3)})


def test_a_spec_without_a_name_is_called_by_its_entry():
    with pytest.raises(SpecError, match="spec of 'add': workload label"):
        spec(name="", workloads={"big": Workload(n=3)})


def test_an_argument_is_found_by_name():
    assert "Size" not in str(spec().argument("a"))
    assert "n" == spec().argument("n").name
    with pytest.raises(SpecError, match="add: no argument is called 'd'"):
        spec().argument("d")


def test_a_tolerance_may_be_given_per_output():
    one = spec(tolerance={"b": exact(), "c": normalising()})
    assert ("exact", "normalising") == (one.tolerance_of("b").name, one.tolerance_of("c").name)
    assert "exact" == spec(tolerance=exact()).tolerance_of("c").name


def test_an_output_without_a_tolerance_is_named():
    with pytest.raises(SpecError, match="add: no tolerance for output 'c'"):
        spec(tolerance={"b": exact()}).tolerance_of("c")


def test_a_variant_changes_what_it_says_and_inherits_neither_peers_nor_aliases():
    one = spec(
        peers={"torch": lambda torch, a, b: a + b},
        aliases=("plus",),
        variants={"slow": Variant("one thread", entry="add_slow")},
    )
    slow = one.with_variant("slow")
    assert ("add_slow", {}, (), {}) == (slow.entry, slow.peers, slow.aliases, slow.variants)
    assert (one.arguments, one.workloads) == (slow.arguments, slow.workloads)


def test_a_variant_may_bring_its_own_peers():
    one = spec(variants={"slow": Variant("one thread", peers={"numpy": lambda numpy, a: a})})
    assert ["numpy"] == list(one.with_variant("slow").peers)


def test_an_unknown_variant_comes_with_the_nearest_names():
    one = spec(variants={"slow": Variant("one thread")})
    with pytest.raises(UsageError, match="unknown variant of add 'slwo'; did you mean slow?"):
        one.with_variant("slwo")


def test_a_variant_that_changes_what_no_spec_has_is_refused():
    one = spec(variants={"slow": Variant("one thread", entrie="add_slow")})
    with pytest.raises(SpecError, match="variant 'slow' changes entrie, which no spec has"):
        one.with_variant("slow")


def test_a_variant_that_contradicts_itself_is_refused():
    one = spec(variants={"slow": Variant("one thread", workloads={"S9": Workload(n=1)})})
    with pytest.raises(SpecError, match="add: workload label S9"):
        one.with_variant("slow")


def chained(stages, between=()):
    return spec(variants={"full": Variant("one launch")}, chains=(Chain("c", stages, between),))


def test_a_chain_names_stages_variants_and_what_is_handed_on():
    assert ("s",) == chained({"baseline": None, "full": "full"}, ("s",)).chains[0].between


@pytest.mark.parametrize(
    ("stages", "between", "words"),
    [
        ({"baseline": None, "half": "full"}, (), "there is no stage half"),
        ({"baseline": None, "full": "fuller"}, (), "there is no variant fuller"),
        ({"baseline": None}, ("a", "t"), "there is no scratch array a, t"),
        ({"full": "full"}, (), "it has no baseline"),
    ],
)
def test_a_chain_that_contradicts_its_spec_is_refused(stages, between, words):
    with pytest.raises(SpecError, match=f"add: chain 'c': {words}"):
        chained(stages, between)


def test_a_variant_has_no_chains():
    assert () == chained({"baseline": None}).with_variant("full").chains


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("tune", {"block": (64, 128)}, r"write Tune\(\.\.\.\): Tune\(block="),
        ("edges", Workload(n=1), r"write a tuple of Workload and Edge"),
        ("options", "-O3", "a tuple of texts"),
        ("arguments", In("x", "n"), "a tuple of arguments"),
        ("golden", 3, "a tuple of Golden"),
        ("derived", {"m": 3}, "a dict of functions by name"),
        ("variants", {"slow": {"entry": "x"}}, "a dict of Variant by name"),
        ("peers", ["torch"], "a dict of functions or Peer"),
        ("parameters", 3, "a dict of values by name"),
        ("workloads", Workload(n=1), "a dict of Workload by label"),
        ("launch", Launch(grid=1, block=1), "a function of axes"),
        ("reference", 3, "a function, or the name of one"),
        ("requires", 90, "a Requirement"),
        ("entry", 3, "the name of a function"),
        ("callable", "add", "a function or a KernelCall"),
        ("peer_tolerance", 1e-3, "a Tolerance"),
        ("compile_commands", 3, "a path"),
        ("source", 3, "a path"),
        ("only_labels", 0, "a tuple of labels"),
        ("flops", 3, "a function of axes"),
        ("bytes_moved", 3, "a function of axes"),
        ("traffic_factor", "4", "a number"),
        ("ceiling", 3, "what it measures"),
        ("arithmetic", 3, "the name of a ceiling"),
        ("before", 3, "the name of a kernel"),
        ("workloads", {0: Workload(n=1)}, "a dict of Workload by label"),
        ("peers", {3: lambda torch, a: a}, "a dict of functions or Peer"),
    ],
)
def test_a_field_of_another_kind_is_refused_with_what_to_write(field, value, words):
    with pytest.raises(SpecError, match=f"add: {field} (is|holds) .*; write .*{words.removeprefix('write ')}"):
        spec(**{field: value})
    if field not in ("variants", "peers"):
        with pytest.raises(SpecError, match=f"variant 'odd': add: {field} (is|holds) "):
            spec(variants={"odd": Variant("odd", **{field: value})}).with_variant("odd")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("aliases", {"plus"}),
        ("replaces", frozenset({"plus"})),
        ("options", {"-DWIDTH=4": None}.keys()),
        ("edges", {Workload(n=1)}),
        ("arguments", [In("a", "n"), InOut("b", "n"), Out("c", "n"), Scratch("s", "n"), Size("n")]),
        ("launch", partial(lambda n, block: Launch(grid=n, block=block), block=1)),
        ("reference", numpy.add),
        ("workloads", MappingProxyType({"S0": {"n": numpy.int64(3)}})),
        ("traffic_factor", numpy.float32(4)),
        ("source", PurePath("add.cu")),
    ],
)
def test_a_field_may_hold_any_collection_and_whatever_can_be_called(field, value):
    assert value == getattr(spec(**{field: value}), field)


def test_an_array_in_place_of_a_field_is_shown_on_one_line():
    with pytest.raises(SpecError) as found:
        spec(golden=numpy.ones((30, 30)))
    assert "\n" not in str(found.value)
