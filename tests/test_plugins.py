"""Plugins of pytest that somebody else installed: they must not end our test run."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = """
import warnings
def pytest_configure(config):
    warnings.warn("Benchmarks are automatically disabled because xdist plugin is active.")
"""


def installed_plugin(folder: Path) -> None:
    """Write what an installation of pytest-benchmark leaves in a site folder."""
    information = folder / "pytest_benchmark-5.1.0.dist-info"
    information.mkdir(parents=True)
    (folder / "noisy_plugin.py").write_text(PLUGIN)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-benchmark\nVersion: 5.1.0\n")
    (information / "entry_points.txt").write_text("[pytest11]\nbenchmark = noisy_plugin\n")


def test_a_plugin_that_warns_at_start_does_not_end_the_run(tmp_path):
    installed_plugin(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "tests/test_units.py"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, " passed" in ran.stdout) == (0, True), ran.stdout + ran.stderr
