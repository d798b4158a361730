"""A catalogue kernel as a Python callable."""

from pathlib import Path

import numpy as np
import pytest

import prism_bench
from prism_bench.catalogue import discover
from prism_bench.errors import UsageError
from prism_bench.record import identity
from prism_bench.workflows.tuning.choice import KeptChoices, launched, path_for, write_kept
from prism_bench.workflows.tuning.search import OnlineTuner
from tests.workflows.tuning.choices import choice

TOYS = Path(__file__).parent.parent / "toys"
TUNABLE = TOYS.parent / "tunable"


def prepared(*words, **more):
    return prism_bench.prepare(*words, backend="numpy_reference", catalogue=TOYS, **more)


@pytest.mark.parametrize("name", ["double", "twice"])
def test_called_it_computes(name):
    with prepared(name) as runnable:
        runnable()
        arrays = runnable.arrays(["x", "y"])
    assert np.array_equal(2 * arrays["x"], arrays["y"])


def test_label_variant_and_seed_choose():
    with prepared("double", "S1", variant="by_adding", seed=3) as runnable:
        assert "double:by_adding[n=100000]" == runnable.case.name
        assert runnable.case.inputs(3)["x"].on(np).tobytes() == runnable.arrays(["x"])["x"].tobytes()


@pytest.mark.parametrize(
    ("words", "more", "message"),
    [
        (["tripel"], {}, "unknown kernel 'tripel'; did you mean triple"),
        (["triple", "S1"], {}, "unknown label of triple 'S1'; did you mean S0"),
        (["double", "S7"], {}, "unknown label 'S7'; did you mean S"),
        (["double"], {"variant": "by_ading"}, "unknown variant of double 'by_ading'; did you mean by_adding"),
    ],
)
def test_what_is_not_there_is_named_with_the_nearest(words, more, message):
    with pytest.raises(UsageError, match=message):
        prepared(*words, **more)


def test_it_launches_by_the_choice_kept_here_unless_told_otherwise(tmp_path):
    spec = discover(TUNABLE).kernel("tripled")
    found = choice(workload={"n": 1000}, toolchain={}, source=launched(spec))
    machine = identity.machine({})["id"]
    write_kept(KeptChoices(machine, "no device (scripted times)", "null", (found,)), path_for(machine, tmp_path))
    for tuned, block in ((tmp_path, 64), (False, 128)):
        with prism_bench.prepare("tripled", backend="null", catalogue=TUNABLE, tuned=tuned) as runnable:
            assert block == runnable.case.axes["block"]


def test_it_may_tune_itself():
    tuner = OnlineTuner()
    with prism_bench.prepare("tripled", backend="null", catalogue=TUNABLE, online=tuner) as runnable:
        for _ in range(16):
            runnable()
    assert (1, 5, 16) == tuple(tuner.statistics()[key] for key in ("kernels_tuned", "measurements", "executions"))
