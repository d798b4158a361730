"""Our launch and a language's own launcher, compared: what counts as a difference, and the comparison on a GPU."""

from dataclasses import replace
from types import ModuleType

import pytest

from prism_bench.backends import open_backend
from prism_bench.errors import BackendUnavailable
from prism_bench.instance import Instance
from prism_bench.languages.language import DeviceLaunch, language
from prism_bench.studies.own_launchers import LauncherRow, comparisons
from tests.built_in import CATALOGUE

ROW = LauncherRow("softmax:triton[rows=1,cols=1]", "Triton", "3.6.0", "cold_time", 1e-3, 1e-3, 1.0, 0.99, 1.01, "same",
                  "same")  # fmt: skip


@pytest.mark.parametrize(
    ("ratio", "code", "outputs", "differs"),
    [
        (1.004, "same", "same", False),
        (1.006, "same", "same", True),
        (0.994, "same", "same", True),
        (1.2, "other", "same", False),
        (1.2, "unknown", "same", False),
        (1.0, "same", "other", True),
        (None, "unknown", "unknown", False),
    ],
)
def test_the_same_machine_code_takes_the_same_time(ratio, code, outputs, differs):
    assert replace(ROW, ratio=ratio, code=code, outputs=outputs).differs == differs


def test_a_row_is_rounded():
    row = LauncherRow("a", "Triton", "3.6.0", "hot_time", 1.00000000049, 2, 0.123456789, None, None).rounded()
    assert (1.0, 2, 0.12346, None) == (row["ours"], row["own"], row["ratio"], row["lowest"])


def test_a_language_without_a_launcher_that_is_called_names_itself():
    with pytest.raises(BackendUnavailable, match="^CuTe DSL: its own launcher is not called from here$"):
        language("cute").own_launch(ModuleType("kernel"), DeviceLaunch(Instance("kernel"), (1, 1, 1), (1, 1, 1)))


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["triton", "tile", "numba", "warp"])
def test_both_launch_the_same_kernel(name):
    try:
        language(name).require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    (case,) = CATALOGUE.cases([f"vector_add:{name}"], ("S0",))
    rows = list(comparisons(open_backend("cuda"), [case]))
    assert [""] * len(rows) == [row.problem for row in rows]
    assert {"same"} == {row.outputs for row in rows}
    assert name != "triton" or {"same"} == {row.code for row in rows}
