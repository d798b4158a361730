"""Where real output of profilers lies: captures of our own beside this file, others' outside the repository."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CAPTURES = HERE / "captures"
SAMPLES = "PRISM_BENCH_SAMPLES"  # a folder of other people's captures, which are not ours to ship


@pytest.fixture
def samples():
    """The folder of others' captures; the test is skipped where it is absent."""
    folder = Path(os.environ.get(SAMPLES) or HERE.parents[2] / "shared" / "samples")
    if not folder.is_dir():
        pytest.skip(f"no captures at {folder}; {SAMPLES} names their folder")
    return folder
