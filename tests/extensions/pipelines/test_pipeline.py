"""Definitions of pipelines: stages that do not fit together are refused with the reason."""

from dataclasses import replace

import pytest

from prism_bench.errors import SpecError, UsageError
from prism_bench.extensions.pipelines.definitions import KNOWN, pipelines
from prism_bench.extensions.pipelines.pipeline import Stage, lanes, placed, together
from prism_bench.spec.case import Device
from prism_bench.spec.workload import Workload
from tests.built_in import CATALOGUE
from tests.extensions.pipelines.toys import TOY, chain, stage


@pytest.mark.parametrize(
    ("pipeline", "reason"),
    [
        (chain(stage("a", x="b.y"), stage("b")), "a.x is fed by b.y, no stage before it"),
        (chain(stage("a"), stage("a")), "two stages have one name"),
        (chain(stage("a"), stage("b", z="a.y")), "b is fed: no 'z' among x"),
        (chain(stage("a"), stage("b", x="a.z")), "a.z feeds: no 'z' among x, y"),
        (chain(stage("a"), results=("a.x",)), "the outputs of a: no 'x' among y"),
        (chain(stage("a"), frame=("b.x",)), "there is no stage 'b'"),
        (chain(stage("a"), carries={"a.x": "a.x"}), "the outputs of a: no 'x' among y"),
        (chain(Stage("a", "relu", lambda m: Workload(n=m))), "workload of a asks for 'm'"),
    ],
)
def test_stages_that_do_not_fit_are_refused(pipeline, reason):
    with pytest.raises(SpecError, match=reason):
        placed(pipeline, "small", CATALOGUE)


def test_an_unknown_label_kernel_or_pipeline_is_a_users_mistake():
    with pytest.raises(UsageError, match="label of pipeline toy 'S7'"):
        placed(TOY, "S7", CATALOGUE)
    with pytest.raises(UsageError, match="unknown kernel 'relo'; did you mean relu"):
        placed(chain(stage("a", "relo")), "small", CATALOGUE)
    with pytest.raises(UsageError, match="unknown pipeline 'imag'; did you mean image"):
        pipelines(["imag"])


def test_every_known_pipeline_fits_together_at_every_size():
    for pipeline in KNOWN.values():
        for label in pipeline.workloads:
            assert len(pipeline.stages) == len(placed(pipeline, label, CATALOGUE))


def numbers(pipeline):
    return [(lane.number, lane.after) for lane in lanes(placed(pipeline, "small", CATALOGUE))]


def test_independent_stages_have_separate_lanes():
    assert [(0, ()), (0, ()), (1, (0,))] == numbers(TOY)


def test_stage_fed_by_two_lanes_continues_the_first_and_waits_for_the_other():
    both = Stage("both", "vector_add", lambda n: Workload(n=n), feeds={"a": "left.y", "b": "right.y"})
    pipeline = chain(*TOY.stages, both, results=("both.c",))
    assert (0, (2,)) == numbers(pipeline)[-1]


def test_a_shared_input_is_no_dependency():
    assert [(0, ()), (1, ())] == numbers(chain(stage("a"), stage("b", x="a.x")))


def test_together_keeps_all_parts_apart():
    both = together("both", "two toys", (TOY, replace(chain(stage("only")), name="other")))
    assert ["toy_first", "toy_left", "toy_right", "other_only"] == [stage.name for stage in both.stages]
    assert (("toy_first.x", "other_only.x"), ("toy_right.y", "other_only.y")) == (both.frame, both.results)
    assert {"small": Workload(n=8), "S0": Workload(n=100)} == both.workloads
    assert 3 == len({number for number, _ in numbers(both)})


def test_stages_use_the_catalogues_choices():
    plain = [(name, stage.case) for name in KNOWN for stage in placed(KNOWN[name], "small", CATALOGUE)]
    name, case = next((name, case) for name, case in plain if case.tunable)
    other = case.configurations(Device())[1].choice
    chosen = placed(KNOWN[name], "small", replace(CATALOGUE, choices={case.name: other}))
    assert other in [stage.case.choice for stage in chosen]
