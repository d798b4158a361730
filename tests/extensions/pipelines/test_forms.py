"""Forms of a pipeline: equal results, different copies, carried state, checks of planted spots."""

import numpy as np
import pytest

from prism_bench.backends import open_backend
from prism_bench.errors import BackendUnavailable, SpecError, UsageError
from prism_bench.extensions.pipelines import definitions as images
from prism_bench.extensions.pipelines.definitions import KNOWN
from prism_bench.extensions.pipelines.pipeline import Prepared, form
from prism_bench.extensions.pipelines.session import check_results, check_stages
from tests.built_in import CATALOGUE
from tests.extensions.pipelines.toys import TOY, chain, stage


def on_numpy(pipeline, label="small"):
    return Prepared(pipeline, label, CATALOGUE, open_backend("numpy_reference"))


def test_evaluation_equals_numpy():
    with on_numpy(TOY) as prepared:
        prepared.upload()
        form("one_stream", prepared)()
        prepared.download()
        x = prepared.host["first.x"].astype(float)
        assert np.allclose(np.tanh(np.maximum(x, 0)), prepared.host["right.y"], atol=1e-6)


def test_a_call_that_keeps_nothing_on_the_device_copies_every_buffer():
    with on_numpy(TOY) as prepared:
        form("per_call", prepared)()
        moved = prepared.transfers
        assert (3, 96, 3, 96) == (moved.up, moved.up_bytes, moved.down, moved.down_bytes)


def test_other_forms_copy_only_frame_and_results():
    with on_numpy(TOY) as prepared:
        prepared.upload()
        form("streams", prepared)()
        prepared.download()
        assert (1, 1) == (prepared.transfers.up, prepared.transfers.down)


def test_state_is_carried_and_begins_anew():
    with on_numpy(KNOWN["lstm_sequence"]) as prepared:
        evaluate, seen = form("one_stream", prepared), []
        for begins in (True, False, True):
            if begins:
                prepared.begin()
            evaluate()
            prepared.download()
            seen.append(prepared.host["all.y"].copy())
        assert not np.array_equal(seen[0], seen[1])
        assert np.array_equal(seen[0], seen[2])


def test_the_sequence_is_the_steps_one_after_the_other():
    with on_numpy(KNOWN["lstm"]) as steps, on_numpy(KNOWN["lstm_sequence"]) as whole:
        first, last = steps.runnables["step0"], steps.runnables["step15"]
        for name in ("w_ih", "w_hh", "bias"):
            first.put(name, whole.inputs["all"][name].on(np))
        for name in ("h", "c"):
            first.put(name, whole.inputs["all"][name].on(np))
        for number, x in enumerate(whole.inputs["all"]["x"].on(np)):
            steps.runnables[f"step{number}"].put("x", x)
        form("one_stream", steps)()
        form("one_stream", whole)()
        together = whole.runnables["all"].arrays(["c_next"])["c_next"]
        assert np.allclose(last.arrays(["c_next"])["c_next"], together, atol=1e-5)


def test_check_reports_a_missing_spot():
    with on_numpy(KNOWN["image"]) as prepared:
        assert check_results(prepared, "streams")[0]["passed"]
        row, col = images.places(**{k: prepared.axes[k] for k in ("rows", "cols", "spots")})[0]
        prepared.host["smooth.x"][row - 6 : row + 7, col - 6 : col + 7] = images.BACKGROUND
        entry = check_results(prepared, "streams")[0]
        assert (False, "2 components with 0 holes; 3 spots were planted") == (entry["passed"], entry["error"])


def test_wrong_stage_is_named(monkeypatch):
    with on_numpy(TOY) as prepared:
        wrong = prepared.runnables["left"]
        monkeypatch.setattr(
            type(wrong),
            "__call__",
            lambda self: self._results.update(y=self._offered["x"] + 1) if self is wrong else _reference(self),
        )
        failed = [entry["output"] for entry in check_stages(prepared) if not entry["passed"]]
    assert ["left.y"] == failed


def _reference(runnable):
    for name in runnable._shared:
        runnable.put(name, runnable._input(name))
    runnable._results = runnable.case.correctness.reference_outputs(runnable._offered)


def test_buffers_of_other_sizes_are_not_shared():
    with on_numpy(chain(stage("a"))) as small, on_numpy(chain(stage("a")), "S0") as large:
        with pytest.raises(SpecError, match="x holds 8 float32; 'y' of relu.n=100. holds 100 float32"):
            small.runnables["a"].share("x", large.runnables["a"], "y")


def test_unknown_and_unavailable_forms_are_refused():
    with on_numpy(TOY) as prepared:
        with pytest.raises(UsageError, match="unknown form 'grap'; did you mean graph"):
            form("grap", prepared)
        with pytest.raises(BackendUnavailable, match="graphs are captured on a GPU alone"):
            form("graph", prepared)
