"""Our launch and a language's own launcher, compared: what counts as a difference, and the comparison on a GPU."""

from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from prism_bench.backends import open_backend
from prism_bench.case import Device
from prism_bench.compilation import sass_hash
from prism_bench.errors import BackendUnavailable
from prism_bench.instance import Instance
from prism_bench.languages import build, build_request
from prism_bench.languages.child import real_module
from prism_bench.languages.language import DeviceLaunch, Language, language
from prism_bench.studies.own_launchers import LauncherRow, comparisons
from tests.built_in import CATALOGUE

ONE = (1, 1, 1)
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
        (1.0, "unknown", "other", True),
        (1.0, "other", "other", False),  # another type of an argument, which the launcher chooses
        (None, "unknown", "unknown", False),
    ],
)
def test_the_same_machine_code_takes_the_same_time(ratio, code, outputs, differs):
    assert replace(ROW, ratio=ratio, code=code, outputs=outputs).differs == differs


def test_a_row_is_rounded():
    row = LauncherRow("a", "Triton", "3.6.0", "hot_time", 1.00000000049, 2, 0.123456789, None, None).rounded()
    assert (1.0, 2, 0.12346, None) == (row["ours"], row["own"], row["ratio"], row["lowest"])


def test_a_language_without_a_launcher_that_is_called_names_itself():
    spoken = SimpleNamespace(title="Other")
    with pytest.raises(BackendUnavailable, match="^Other: its own launcher is not called from here$"):
        Language.own_launch(cast("Language", spoken), ModuleType("kernel"), DeviceLaunch(Instance("kernel"), ONE, ONE))


def test_the_cute_dsl_launches_the_machine_code_that_we_do(monkeypatch, tmp_path):
    """Compiled here, for the architecture of our case; only the call needs a device."""
    try:
        language("cute").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    case, device = CATALOGUE.case("vector_add:cute[n=100000]"), Device(compute_capability=90)
    (instance,) = case.plan.instances(device)
    values = [SimpleNamespace(data_ptr=lambda: 256, item=lambda: 1000) for _ in instance.passed]
    launch = DeviceLaunch(instance, (7, 1, 1), (256, 1, 1), values)
    own = language("cute").own_launch(real_module(case.spec.source_file), launch)
    assert [build(build_request(case, device)).sass] == [sass_hash(cubin) for cubin in own.cubins()]


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["triton", "cute", "tile", "numba", "warp"])
def test_both_launch_the_same_kernel(name):
    try:
        language(name).require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    (case,) = CATALOGUE.cases([f"vector_add:{name}"], ("S0",))
    rows = list(comparisons(open_backend("cuda"), [case]))
    assert [""] * len(rows) == [row.problem for row in rows]
    assert {"same"} == {row.outputs for row in rows}
    assert name not in ("triton", "cute") or {"same"} == {row.code for row in rows}
