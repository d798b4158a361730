"""Every kernel of the catalogue, without being named: paired, consistent, and right by its own reference."""

import re

import numpy as np
import pytest

from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.io.files import spec_file
from prism_bench.run.verification import compare_outputs, complaint, passed, verify
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, Launch, Zero
from prism_bench.spec.launch import COMPILERS_BLOCK
from tests.built_in import CATALOGUE

# Above either, a reference would take seconds on two cores; the GPU's own verification takes the larger cases.
LARGEST_ELEMENTS = 1 << 22
LARGEST_FLOPS = 2_000_000_000


def once(cases):
    """Variants that share reference, arguments, tolerance and data with a case before them say nothing new here."""
    seen = {}
    for case in cases:
        spec = case.spec
        key = (spec.name, spec.reference, spec.arguments, str(spec.tolerance), case.workload, id(case.golden))
        seen.setdefault(key, case)
    return list(seen.values())


SPECS = CATALOGUE.kernels | {
    f"{name}:{v}": spec.with_variant(v) for name, spec in CATALOGUE.kernels.items() for v in spec.variants
}
TIMED, CHECKED = {name: [] for name in SPECS}, {}
for _case in CATALOGUE.cases():
    TIMED[_case.kernel].append(_case)
ALL = [*CATALOGUE.edges(), *CATALOGUE.cases()]
DEVICES = {"small": Device(max_shared_bytes=163 << 10), "large": Device(sm_count=132, max_shared_bytes=227 << 10)}
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def is_small(case):
    """Whether the reference answers within a moment."""
    elements = sum(int(np.prod(case.sizes.shape(array.name), dtype=np.int64)) for array in case.spec.arrays)
    return elements <= LARGEST_ELEMENTS and (case.sizes.flops or 0) <= LARGEST_FLOPS


for _case in once(case for case in ALL if case.label not in ("S1", "S2")):
    if is_small(_case):
        CHECKED.setdefault(_case.kernel, []).append(_case)


def test_the_catalogue_has_kernels_and_no_problems():
    assert [] == [str(problem) for problem in CATALOGUE.problems]
    assert len(CATALOGUE.kernels) >= 15


def launched(cases, *devices):
    return {entry for case in cases for device in devices for entry in case.plan.entries(device)}


WAITS = "    await_last_launch();"


def test_what_is_timed_is_launched_by_an_edge_too():
    """Orders, races and sanitizers look at edges: an entry that none of them launches was never held to them."""
    held = launched(CATALOGUE.edges(), DEVICES["large"], Device())
    timed = {case.name: launched([case], DEVICES["large"]) for cases in TIMED.values() for case in cases}
    assert {} == {name: sorted(entries - held) for name, entries in timed.items() if entries - held}


def entries(name):
    """The functions that the plans of a kernel's or variant's cases launch, without template arguments."""
    cases = [case for case in ALL if case.kernel == name]
    steps = [step for case in cases for device in DEVICES.values() for step in case.plan.steps(device)]
    return {(step.entry or SPECS[name].entry).split("<")[0] for step in steps if isinstance(step, Launch)}


def with_headers(path, seen):
    """The text of a source and of what it includes, directly or not: files beside it and the catalogue's headers."""
    seen.add(path)
    text = path.read_text()
    folders = (path.parent, CATALOGUE.folder / "include")
    headers = [(folder / name).resolve() for name in _INCLUDE.findall(text) for folder in folders]
    return text + "".join(with_headers(one, seen) for one in headers if one.is_file() and one not in seen)


def test_a_launch_that_overlaps_the_one_before_has_a_source_that_waits():
    overlapping = {}
    for case in ALL:
        first, *others = case.plan.steps(DEVICES["large"]) or (None,)
        assert not getattr(first, "overlaps", False), case.name
        if any(getattr(step, "overlaps", False) for step in others):
            overlapping[case.kernel] = case.spec.source
    assert overlapping
    assert {} == {name: path for name, path in overlapping.items() if WAITS not in with_headers(path, set())}


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.language == CUDA])
def test_its_source_defines_every_entry_that_its_plans_launch(name):
    source = re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)", "", with_headers(SPECS[name].source, set()))
    defined = set(re.findall(r"__global__\s+void\s+(\w+)\s*\(", source))
    assert set() == entries(name) - defined


@pytest.mark.parametrize("name", CATALOGUE.kernels)
def test_a_kernel_has_the_documents_size_edges_and_a_docstring(name):
    spec = CATALOGUE.kernels[name]
    assert "S0" in spec.workloads
    assert len(spec.edges) + len(spec.golden) > 0
    assert spec_file(spec.source).read_text().startswith('"""')


@pytest.mark.parametrize("name", TIMED)
def test_its_timed_cases_move_bytes_and_count_operations(name):
    assert TIMED[name]
    for case in TIMED[name]:
        assert case.sizes.bytes_moved > 0 or case.spec.ceiling == "launch", case.name
        assert case.sizes.flops is None or case.sizes.flops > 0, case.name
        assert case.sizes.allocated_bytes >= 0, case.name


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_its_plans_launch_what_the_spec_and_the_device_offer(name, device):
    for case in TIMED[name]:
        steps = case.plan.steps(device)
        assert any(isinstance(step, Launch) for step in steps), case.name
        for step in steps:
            assert_fits(case, step, device)


def assert_fits(case, step, device):
    if isinstance(step, Zero):
        assert case.spec.argument(step.name).writes or case.spec.argument(step.name).scratch, case.name
        return
    grid = step.grid if isinstance(step.grid, tuple) else (step.grid,)
    is_left_open = case.spec.language != CUDA and step.block == COMPILERS_BLOCK
    assert is_left_open or 1 <= np.prod(step.block) <= 1024, case.name
    assert np.prod(grid, dtype=np.int64) > 0, case.name
    assert all(extent <= limit for extent, limit in zip(grid, (2**31 - 1, 65535, 65535), strict=False)), case.name
    assert 0 <= step.shared <= device.max_shared_bytes, case.name
    for argument in step.arguments or ():
        case.spec.argument(argument)


@pytest.mark.parametrize("name", CHECKED)
def test_its_reference_fits_shapes_tolerance_and_golden_data(name):
    backend = NumpyBackend()
    for case in CHECKED[name]:
        entries = verify(backend, case, seeds=(0,))
        assert passed(entries), complaint(case, "numpy_reference", entries)
        compared = case.golden.expected if case.golden and case.golden.expected else case.spec.outputs
        assert len(compared) == len(entries), case.name


@pytest.mark.parametrize("name", [name for name, cases in CHECKED.items() if any(c.label == "S0" for c in cases)])
def test_its_tolerance_notices_a_planted_error(name):
    """One element of each output, moved by its own size and by the output's scale, fails."""
    backend = NumpyBackend()
    for case in [case for case in CHECKED[name] if case.label == "S0"]:
        with backend.prepare(case, case.inputs(0)) as runnable:
            runnable()
            outputs = runnable.arrays([one.name for one in case.spec.outputs])
            for output in case.spec.outputs:
                damaged = compared_with_error(backend, case, outputs, output.name)
                assert not passed(damaged), (case.name, output.name)


def test_every_kernel_has_a_case_that_its_reference_can_answer_here():
    assert set() == set(CATALOGUE.kernels) - {name.partition(":")[0] for name in CHECKED}


def compared_with_error(backend, case, outputs, name):
    damaged = outputs[name].copy()
    flat = damaged.reshape(-1)
    worst = int(np.argmax(np.abs(flat.astype("float64"))))
    flat[worst] = 0 if flat[worst] else 1
    return compare_outputs(backend, case, case.inputs(0), {**outputs, name: damaged}, 0)


def test_no_edge_is_a_timed_case_too():
    assert set() == {case.name for case in CATALOGUE.edges()} & {case.name for case in CATALOGUE.cases()}


@pytest.mark.parametrize("name", CATALOGUE.aliases)
def test_an_alias_leads_to_its_kernel(name):
    spec = CATALOGUE.kernel(name)
    assert name in spec.aliases
    assert isinstance(Case(spec, spec.workloads["S0"], "S0").name, str)
