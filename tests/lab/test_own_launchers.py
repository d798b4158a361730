"""Our launch and a language's own launcher, compared: what counts as a difference, and the comparison on a GPU."""

from dataclasses import replace
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest
from lab.own_launchers import LauncherRow, _text, comparisons

from prism_bench.backends import open_backend
from prism_bench.compilation import sass_hash
from prism_bench.compilation.languages import build, build_request
from prism_bench.compilation.languages.child import real_module
from prism_bench.compilation.languages.language import DeviceLaunch, Language, language, with_globals
from prism_bench.compilation.languages.loaders import numba as numba_loader
from prism_bench.compilation.languages.loaders import triton as triton_loader
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Array, Launch
from prism_bench.spec.launch import Instance
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


@pytest.mark.parametrize(("code", "programs"), [("other", True), ("same", False), ("unknown", False)])
def test_a_ratio_of_other_machine_code_is_called_one_of_programs(code, programs):
    assert ("two programs are compared" in _text(replace(ROW, code=code))) == programs


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


def _facts_of_triton(function, case, step, instance):
    """Return what Triton's own launcher makes of the launch's arguments: types and facts, without the device."""
    jit, compiler = import_module("triton.runtime.jit"), import_module("triton.compiler.compiler")
    target = import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32)
    backend = compiler.make_backend(target)
    names = step.arguments or tuple(argument.name for argument in case.spec.arguments)
    dtypes = import_module("triton.language")
    values = [_launched_value(case, name, dtypes) for name in names]
    own = [one.name for one in function.params if one.name not in instance.constants and not one.is_constexpr]
    arguments = {**dict(zip(own, values, strict=True)), **instance.constants}
    bound = jit.create_function_from_signature(function.signature, function.params, backend)(**arguments)
    return {one.name: found for one, found in zip(function.params, bound[1], strict=True) if one.name in own}


def _launched_value(case, name, dtypes):
    argument = case.spec.argument(name)
    if isinstance(argument, Array):
        return SimpleNamespace(dtype=getattr(dtypes, argument.dtype), data_ptr=lambda: 256)
    return argument.value(case.axes).item()


@pytest.mark.filterwarnings("ignore")
def test_triton_compiles_the_types_and_facts_that_we_do():
    """Also of scalars of 64 bits, whose type its launcher would choose by their value if the form did not name it."""
    try:
        language("triton").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    device, compared = Device(compute_capability=90), 0
    for case in CATALOGUE.cases([], ("S0", "S1", "S2")):
        launches = case.plan.steps(device) if case.spec.language == "triton" else ()
        for step, instance in ((one, case.plan.instance(one)) for one in launches if isinstance(one, Launch)):
            module = real_module(case.spec.source_file)
            function = triton_loader._jit_function(getattr(module, instance.function), instance.function)
            ours, theirs = (
                triton_loader._signature(function, instance),
                _facts_of_triton(function, case, step, instance),
            )
            places = {one.name: (one.num,) for one in function.params}
            for name, (dtype, fact) in theirs.items():
                assert dtype == ours.types[name], (case.name, name)
                assert dtype == "constexpr" or (fact == "D") == (places[name] in ours.facts), (case.name, name)
                compared += 1
    assert compared > 50


def _launcher_code(case: Case, **changed: bool) -> str:
    """Return the hash of the cubin that Numba's own launcher makes: its steps, without the device that it asks."""
    compiler, nvvm = import_module("numba.cuda.compiler"), import_module("numba.cuda.cudadrv.nvvm")
    (instance,) = case.plan.instances(Device(compute_capability=90))
    options, constants = numba_loader._options_and_constants(instance)
    options |= changed
    function = getattr(real_module(case.spec.source_file), instance.function).py_func
    types = tuple(numba_loader._type(passed) for passed in instance.passed)
    fast = options.get("fastmath", False)
    with numba_loader._device_of((9, 0)):
        made = compiler.compile_cuda(
            with_globals(function, constants), import_module("numba.types").void, types, cc=(9, 0), fastmath=fast,
            lto=options["lto"], nvvm_options={"fastmath": fast, "opt": 3},
        )  # fmt: skip
    kernel = made.library.get_function(made.fndesc.llvm_func_name)
    made.library._entry_name = made.fndesc.llvm_func_name
    compiler.kernel_fixup(kernel, False)
    nvvm.set_launch_bounds(kernel, options.get("launch_bounds"))
    return sass_hash(numba_loader._cubin(made.library.get_cubin(cc=(9, 0))))


@pytest.fixture
def numba(monkeypatch, tmp_path):
    try:
        language("numba").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    numba_loader._numba_cuda()


@pytest.mark.filterwarnings("ignore")  # of Numba about this NumPy
@pytest.mark.usefixtures("numba")
@pytest.mark.parametrize("name", ["vector_add", "softmax", "matmul"])
def test_numba_launches_the_machine_code_that_we_do(name):
    for case in CATALOGUE.cases([f"{name}:numba"], ("S0", "S1")):
        assert build(build_request(case, Device(compute_capability=90))).sass == _launcher_code(case)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("numba")
def test_without_its_linkers_optimiser_numba_launches_other_code():
    (case,) = CATALOGUE.cases(["softmax:numba"], ("S1",))
    device = Device(compute_capability=90)
    (instance,) = case.plan.instances(device)
    other = replace(instance, constants={**instance.constants, "lto": False})
    code = language("numba").compile(real_module(case.spec.source_file), other, "90")
    assert sass_hash(code.cubin) == _launcher_code(case, lto=False) != _launcher_code(case)


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
    assert name not in ("triton", "cute", "numba") or {"same"} == {row.code for row in rows}
