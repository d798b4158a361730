"""A broken spec or source costs its own case alone, and the reason names the file and the line."""

import re

import pytest

from prism_bench.catalogue import discover
from prism_bench.cli import main
from prism_bench.run import Settings, run

pytestmark = pytest.mark.xdist_group("broken specs")  # one worker runs them

SPEC = '''"""A kernel that is broken on purpose."""

from prism_bench import In, KernelSpec, Launch, Out, Scalar, Size, Workload, elementwise


def reference(x, factor):
    {reference}


def launch(n):
    {launch}


{module}
spec = KernelSpec(
    entry="{entry}",
    arguments=(In("x", "n"), Out("y", "n"), Size("n"), Scalar("factor")),
    parameters={{"factor": 2.0}},
    launch=launch,
    reference=reference,
    tolerance=elementwise(),
    workloads={{"S0": Workload(n=1000)}},
    edges=(Workload(n=257),),
)
'''
SOURCE = """{include}
extern "C" __global__ void {name}(const float* x, float* y, int n, float factor) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
"""
GOOD = "if (i < n) y[i] = factor * x[i];"
RECURSION = """__device__ __noinline__ float deep(float v, int d) {
    volatile float a[4096]; a[d & 4095] = v; return d > 1000000 ? a[0] : deep(v + 1, d + 1) + a[d & 4095]; }"""

# What is broken, and what the reason of its case says.
BROKEN = {
    "block_of_text": (
        {"launch": 'return Launch(grid=4, block="256")'},
        r"Launch: block is '256'; it is a whole number of at least 1.* \(block_of_text\.py line 11\)",
    ),
    "grid_of_a_fraction": (
        {"launch": "return Launch(grid=n / 256, block=256)"},
        r"Launch: grid is 1\.00390625; .* \(grid_of_a_fraction\.py line 11\)",
    ),
    "grid_below_zero": ({"launch": "return Launch(grid=-1, block=256)"}, r"grid is -1; .*\.py line 11"),
    "launch_of_a_number": (
        {"launch": "return 7"},
        r"launch_of_a_number\[n=257\]: launch returned 7, which is no Launch and no Zero \(.*\.py line 10\)",
    ),
    "launch_raises": (
        {"launch": 'raise KeyError("[/x] in launch")'},
        r"launch_raises\[n=257\]: KeyError: '\[/x\] in launch' \(launch_raises\.py line 11\)",
    ),
    "reference_raises": (
        {"reference": 'raise ValueError("[/no] such thing")'},
        r"ValueError: \[/no\] such thing \(reference_raises\.py line 7\)",
    ),
    "reference_of_none": (
        {"reference": "return None"},
        r"reference returned NoneType for y, not numbers \(reference_of_none\.py line 6\)",
    ),
    "reference_of_text": ({"reference": 'return "hello"'}, r"reference returned str for y, not numbers"),
    "entry_of_another_name": (
        {"entry": "nothere"},
        r"entry_of_another_name\.cu: no kernel 'nothere', which the spec launches; the source defines "
        r"entry_of_another_name$",
    ),
    "include_of_nothing": (
        {"include": '#include "missing_file.cuh"'},
        r"include_of_nothing\.cu:1:2: error: .*'missing_file\.cuh' is neither in ",
    ),
    "system_include_of_nothing": (
        {"include": "#include <missing_file.cuh>"}, r"system_include_of_nothing\.cu:1:2: error: .*'missing_file\.cuh'",
    ),
    "null_pointer": (
        {"body": "float* z = nullptr; if (i < n) z[i] = factor * x[i];"},
        r"out of bounds: write of 4 bytes far from every buffer \[null_pointer\.cu:4 by block \(0, 0, 0\) thread "
        r"\(0, 0, 0\)\]",
    ),
    "far_overrun": (
        {"body": "if (i < n) y[i + 100000000] = factor * x[i];"},
        r"out of bounds: write of 4 bytes far from every buffer \[far_overrun\.cu:4 by block",
    ),
    "near_overrun": (
        {"body": "if (i <= n) y[i] = factor;"},
        r"out of bounds: write of y\[257\]; y ends at y\[256\] "
        r"\[near_overrun\.cu:4 by block \(1, 0, 0\) thread \(1, 0, 0\)\]\n",
    ),
    "half_written": (
        {"body": "if (2 * i < n) y[i] = factor * x[i];"},
        r"y\[129\] was never written \(128 of 257 elements\)$",
    ),
    "unwritten_shared": (
        {"body": "__shared__ float s[512]; s[threadIdx.x] = 1; if (i < n) y[i] = x[i] + s[threadIdx.x + 256];"},
        r"unwritten shared read: read of byte 1024 of static shared memory, which this block has not written",
    ),
    "no_blocks": (
        {"launch": "return Launch(grid=n // 512, block=256)"},
        r"y\[0\] was never written \(257 of 257 elements\); the grid is 0: no block ran$",
    ),
    "skipped_barrier": (
        {"body": "if (i < n) { __syncthreads(); y[i] = factor * x[i]; }"},
        r"divergent barrier: 1 thread of the block waits at __syncthreads, and 255 went past it to the end of the "
        r"kernel, first thread \(1, 0, 0\); .* \[skipped_barrier\.cu:4 by block \(1, 0, 0\) thread \(0, 0, 0\)\]$",
    ),
    "stack_overflow": (
        {"include": RECURSION.replace("\n", " "), "body": "if (i < n) y[i] = deep(x[i], 0);"},
        r"the kernel crashed \(SIGSEGV\) \[stack_overflow\.cu:1 by block",
    ),
}  # fmt: skip


def plant(folder, name, **changes):
    """Write one pair; `changes` replace parts of the spec (`launch`, `reference`, `entry`, `module`) or the source."""
    plain = {"reference": "return factor * x", "launch": "return Launch(grid=-(-n // 256), block=256)", "module": ""}
    (folder / f"{name}.py").write_text(SPEC.format(**{"entry": name, **plain, **changes}))
    (folder / f"{name}.cu").write_text(SOURCE.format(**{"name": name, "include": "", "body": GOOD, **changes}))


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """The result of each planted kernel's edge, by kernel, all of them verified in one run."""
    folder = tmp_path_factory.mktemp("broken") / "family"
    folder.mkdir()
    plant(folder, "good")
    for name, (changes, _) in BROKEN.items():
        plant(folder, name, **changes)
    catalogue = discover(folder.parent)
    assert () == catalogue.problems
    settings = Settings(processes=1)
    record = run(catalogue, "emulator", catalogue.cases(), settings, timed=False, others=catalogue.kernels)
    return {case.kernel: case for case in record.cases if case.is_edge and case.status != "skipped"}


def test_the_kernels_beside_them_are_verified(edges):
    assert "ok" == edges["good"].status
    assert {*BROKEN, "good"} == set(edges)


@pytest.mark.parametrize("name", BROKEN)
def test_the_reason_names_the_file_and_the_line(edges, name):
    assert edges[name].status in ("failed", "crashed", "wrong")
    assert re.search(BROKEN[name][1], edges[name].reason)


def test_markup_in_an_exception_is_text(tmp_path, monkeypatch, capsys):
    (tmp_path / "family").mkdir()
    plant(tmp_path / "family", "good")
    plant(tmp_path / "family", "shouts", module='raise ValueError("[/x] [bold]no[/bold] :warning:")')
    monkeypatch.setattr("sys.argv", ["prism-bench", "list", "--catalogue", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert 1 == ended.value.code
    assert "good" in said.out
    assert "shouts.py: line 14: ValueError: [/x] [bold]no[/bold] :warning:" in said.err
