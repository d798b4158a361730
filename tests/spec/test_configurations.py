"""A case in its configurations: what varies, what is pinned, what is the same, and what its names say."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench import Launch, Out, Rule, Tune, Workload
from prism_bench.catalogue import discover
from prism_bench.errors import SpecError, UsageError
from prism_bench.spec.case import Case, Device, edges_task

TUNABLE = Path(__file__).parents[1] / "tunable"
CATALOGUE = discover(TUNABLE)
SPEC = CATALOGUE.kernel("tripled")


def case(workload=None, spec=SPEC, **more):
    return Case(spec, workload or Workload(n=1000), "S0", **more)


def choices(one, device=None):
    return [each.choice for each in one.configurations(device or Device())]


def test_the_toy_has_no_problems():
    assert () == CATALOGUE.problems


def test_its_default_comes_first_and_every_other_keeps_the_rules():
    others = [{"block": b, "items": i} for b, i in ((128, 2), (64, 1), (64, 2), (256, 1))]
    assert [{}, *others] == choices(case())


def test_configurations_that_launch_the_same_are_one():
    """One element needs one block, however many elements it could take."""
    assert [{}, {"block": 64, "items": 1}, {"block": 256, "items": 1}] == choices(case(Workload(n=1)))


def test_a_choice_reaches_the_launch_and_the_task_and_leaves_the_name_alone():
    chosen = case().configured({"block": 64, "items": 2})
    assert (Launch(grid=8, block=64),) == chosen.plan.steps(Device())
    assert ("tripled[n=1000]", "tripled[n=1000]@block=64,items=2") == (chosen.name, chosen.task)
    assert ("edges:tripled@block=64,items=2", "edges:tripled") == (edges_task(chosen), edges_task(case()))
    assert {"block": 64, "items": 2} == chosen.configuration


def test_without_a_choice_its_task_is_its_name():
    assert "tripled[n=1000]" == case().task
    assert {"block": 128, "items": 1} == case().configuration


def test_what_a_workload_or_a_parameter_pins_does_not_vary():
    assert ("items",) == case(Workload(n=1000, block=64)).tunable
    assert [{}, {"items": 2}] == choices(case(Workload(n=1000, block=64)))
    assert ("block",) == case(spec=replace(SPEC, parameters={"items": 2})).tunable


def test_a_variant_whose_launch_asks_for_nothing_has_one_configuration():
    assert [{}] == choices(case(spec=SPEC.with_variant("plain"), variant="plain"))
    assert {} == case(spec=SPEC.with_variant("plain"), variant="plain").configuration


def test_derived_sizes_may_ask_for_what_is_tuned():
    spec = replace(
        SPEC, arguments=(*SPEC.arguments, Out("sums", "blocks")), derived={"blocks": lambda n, block: -(-n // block)}
    )
    assert (8,) == case(spec=spec).sizes.shape("sums")
    assert (16,) == case(spec=spec).configured({"block": 64}).sizes.shape("sums")


def test_a_rule_may_ask_for_the_device():
    rule = Rule("blocks that fill it", lambda block, device: block <= 64 * device.sm_count)
    spec = replace(SPEC, tune=Tune(block=(64, 128, 256), items=(1,), rules=(rule,)))
    assert [{}, {"block": 128, "items": 1}] == choices(case(spec=spec), Device(sm_count=2))


@pytest.mark.parametrize(
    "choice, complaint",
    [({"block": 100}, "block=100: block is one of 128, 64, 256"), ({"tile": 4}, "tile=4: tile is not to be tuned")],
)
def test_a_choice_that_its_spec_does_not_have_is_refused(choice, complaint):
    with pytest.raises(SpecError, match=complaint):
        case().configured(choice)


def test_a_default_that_breaks_its_own_rule_is_an_impossible_space():
    tune = Tune(block=(128, 64), items=(1,), rules=(Rule("no block at all", lambda block: block < 1),))
    with pytest.raises(SpecError, match="the default block=128,items=1 needs no block at all"):
        case(spec=replace(SPEC, tune=tune)).configurations(Device())


def test_a_default_that_is_no_value_is_refused():
    tune = Tune(block=(128, 64), items=(1,), default={"block": lambda n: n})
    with pytest.raises(SpecError, match="the default block=1000,items=1 needs block among 128, 64"):
        case(spec=replace(SPEC, tune=tune)).plan.require_default()


def test_the_catalogue_finds_a_case_by_its_task():
    assert {"block": 64} == CATALOGUE.case("tripled[n=1000]@block=64").choice
    with pytest.raises(UsageError, match="'block=64' configures a kernel whose spec has no tune="):
        discover(TUNABLE.parent / "toys").case("double[n=1000]@block=64")


def test_anywhere_is_any_other_size():
    found = CATALOGUE.anywhere("tripled:plain[n=77]")
    assert ("tripled:plain[n=77]", "", 77) == (found.name, found.label, found.axes["n"])
    assert {"items": 2} == CATALOGUE.anywhere("tripled[n=77]@items=2").choice
    for wrong in ("tripled[m=77]", "tripled[n=many]", "tripled", "tripled[n=77,m=1]"):
        with pytest.raises(UsageError, match="unknown case"):
            CATALOGUE.anywhere(wrong)


def test_edges_of_a_choice_are_launched_so_where_they_can_be():
    found = CATALOGUE.edges_of("tripled@block=256")
    assert [{"block": 256}] * 3 == [edge.choice for edge in found]
    assert [] == CATALOGUE.edges_of("tripled@block=256,items=2"), "which breaks the rule everywhere"


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("tune=Tune(block=(64,), tile=(1, 2)),", "neither the launch nor a derived size asks for 'tile'"),
        ("tune=Tune(block=()),", "'block' has no value to take"),
        ("tune=Tune(block=(64,), rules=(Rule('peace', lambda block: False),)),", "the default block=64 needs peace"),
    ],
)
def test_a_space_that_cannot_be_is_a_problem_of_its_kernel_alone(tmp_path, line, complaint):
    family = tmp_path / "arith"
    family.mkdir()
    (family / "one.cu").write_text("")
    (family / "one.py").write_text(
        "from prism_bench import KernelSpec, Launch, Rule, Tune, Workload\n"
        "spec = KernelSpec(entry='one', arguments=(), launch=lambda block: Launch(1, block),\n"
        f"    reference=lambda: 1, workloads={{'S0': Workload(n=1)}}, {line})\n"
    )
    (problem,) = discover(tmp_path).problems
    assert complaint in str(problem)


def test_choices_of_a_catalogue_reach_cases_that_others_make():
    chosen = replace(CATALOGUE, choices={"tripled[n=1000]": {"block": 64}})
    assert [{"block": 64}, {}] == [chosen.launched(case(Workload(n=n))).choice for n in (1000, 2000)]
    assert {} == CATALOGUE.launched(case()).choice
