"""Identity of what is launched: what leaves it alone, and what makes a choice stale."""

import pytest

from prism_bench.catalogue import discover
from prism_bench.workflows.tuning.choice import launched

SHARED = '''"""What specs share."""

from prism_bench import Launch

WIDTH = 4


def spread(n, block):
    """Return one launch."""
    return Launch(grid=-(-n // (WIDTH * block)), block=block)


def torch_scaled(torch, x):
    return torch.mul(x, FACTOR)


FACTOR = 3
LIMITS = {"high": lambda n: n, "low": lambda n: 1}
'''

SPEC = '''"""y = 3 x."""

from prism_bench import In, KernelSpec, Launch, Out, Rule, Size, Tune, Variant, Workload, exact, uniform

from ..include import sizes
from ..include.shared import LIMITS, spread, torch_scaled

KIND = "float"


def launch(n, block, part):
    """Spread over the blocks."""
    return spread(n, block) if KIND == "float" else Launch(1, sizes.fewest(block))


spec = KernelSpec(
    entry="scaled",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    parameters={"factor": 3},
    derived={"part": lambda n: n // 2, "rest": lambda n: n - 1, "limit": LIMITS["low"]},
    launch=launch,
    tune=Tune(block=(128, 64), rules=(Rule("small", lambda block: block <= 256),)),
    options=("-DWIDE",),
    reference=lambda x: 3 * x,
    tolerance=exact(),
    peers={"torch": torch_scaled, "numpy": lambda numpy, x: numpy.multiply(x, 3)},
    workloads={"S0": Workload(n=1000)},
    edges=(Workload(n=0), Workload(n=1)),
    variants={"plain": Variant("one block", launch=lambda n: Launch(1, 128))},
)
'''

SOURCE = """#include "triple.cuh"
extern "C" __global__ void scaled(const float* x, float* y, int n) { y[0] = tripled(x[0]); }
"""

FILES = {
    "arith/scaled.py": SPEC,
    "arith/scaled.cu": SOURCE,
    "include/shared.py": SHARED,
    "include/sizes.py": "def fewest(block):\n    return block\n\n\ndef most(block):\n    return 2 * block\n",
    "include/triple.cuh": "__device__ float tripled(float x) { return 3.0f * x; }\n",
}


@pytest.fixture
def identity(tmp_path):
    """A function that returns the identity of the kernel, or of a variant, after an edit of one file."""

    def run(file="arith/scaled.py", old="", new="", variant=None):
        for name, text in FILES.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert old in FILES[file]
        (tmp_path / file).write_text(FILES[file].replace(old, new, 1))
        spec = discover(tmp_path).kernel("scaled")
        return launched(spec.with_variant(variant) if variant else spec)

    return run


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("arith/scaled.py", "numpy.multiply(x, 3)", "3 * x"),
        ("arith/scaled.py", "Workload(n=1)", "Workload(n=7), Workload(n=8)"),
        ("arith/scaled.py", '"""Spread over the blocks."""', '"""Spread the elements."""\n    # a comment'),
        ("arith/scaled.py", "def launch(n, block, part):", "def launch(n: int, block: int, part: int) -> Launch:"),
        ("arith/scaled.py", "reference=lambda x: 3 * x", "reference=lambda x: x + x + x"),
        ("arith/scaled.py", "Workload(n=1000)}", 'Workload(n=1000), "S1": Workload(n=2000)}'),
        ("arith/scaled.py", 'In("x", "n")', 'In("x", "n", fill=uniform())'),
        ("arith/scaled.py", 'Variant("one block"', 'Variant("a block"'),
        ("arith/scaled.py", 'KIND = "float"', '\n\n\nKIND = "float"'),
        ("include/shared.py", "torch.mul(x, FACTOR)", "x * FACTOR"),
        ("include/shared.py", "FACTOR = 3", "FACTOR = 3.0"),
        ("include/shared.py", '"high": lambda n: n,', '"high": lambda n: n + 1,'),
        ("include/sizes.py", "2 * block", "3 * block"),
        ("include/triple.cuh", "return 3.0f * x; }\n", "return 3.0f * x; }  // exact\n\n"),
    ],
)
def test_an_edit_of_what_no_launch_uses_keeps_a_choice(identity, file, old, new):
    assert identity() == identity(file, old, new)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("arith/scaled.py", "spread(n, block) if", "spread(n + 1, block) if"),
        ("arith/scaled.py", 'KIND = "float"', 'KIND = "half"'),
        ("arith/scaled.py", "n // 2", "n // 3"),
        ("arith/scaled.py", "n - 1", "n - 2"),
        ("arith/scaled.py", 'LIMITS["low"]', 'LIMITS["high"]'),
        ("arith/scaled.py", '"factor": 3', '"factor": 4'),
        ("arith/scaled.py", 'Out("y", "n")', 'Out("y", "n", dtype="float64")'),
        ("arith/scaled.py", 'entry="scaled"', 'entry="scaled<4>"'),
        ("arith/scaled.py", "(128, 64)", "(128, 64, 32)"),
        ("arith/scaled.py", "block <= 256", "block <= 128"),
        ("arith/scaled.py", "-DWIDE", "-DNARROW"),
        ("include/shared.py", "WIDTH = 4", "WIDTH = 8"),
        ("include/shared.py", "grid=-(-n", "shared=16, grid=-(-n"),
        ("include/sizes.py", "return block", "return block + 1"),
        ("include/triple.cuh", "3.0f * x", "x * 3.0f"),
        ("arith/scaled.cu", "x[0]", "x[n - 1]"),
    ],
)
def test_an_edit_of_the_launch_or_of_the_source_makes_a_choice_stale(identity, file, old, new):
    assert identity() != identity(file, old, new)


def test_a_variant_has_its_own_identity(identity):
    plain = identity(variant="plain")
    assert plain != identity()
    assert plain != identity(old="Launch(1, 128)", new="Launch(2, 128)", variant="plain")
    assert plain == identity(old="spread(n, block) if", new="spread(n + 1, block) if", variant="plain")


def test_the_folder_is_no_part_of_it(identity, tmp_path):
    before = identity()
    (tmp_path / "arith").rename(tmp_path / "other")
    assert before == launched(discover(tmp_path).kernel("scaled"))
