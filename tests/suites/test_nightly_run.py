"""A nightly run of a project that uses asv: judged, and published under a commit that is its alone."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from prism_bench.extensions.ci.asv_runs import AsvProject, entered_run
from prism_bench.record import store
from tests.suites.planted import plant

pytestmark = pytest.mark.xdist_group("nightly run")  # one worker makes it

pytest.importorskip("asv")


@pytest.fixture(scope="module")
def nightly(tmp_path_factory):
    """A small project after a nightly run of two parts: its folder, and how the run ended."""
    project = plant(tmp_path_factory.mktemp("nightly"))
    for family in ("tensor", "transformer"):  # asv starts a process for each case
        shutil.rmtree(project.newer / "kernels" / family)
    filters = ("--filter", "vector_add", "--filter", "aardvark")
    words = ["nightly", "--workers", "2", "--catalogue", "kernels", "--backend", "null", "--processes", "1", *filters]
    environment = {**project.environment, "PYTHONPATH": str(project.newer)}
    done = subprocess.run(
        [sys.executable, "-m", "prism_bench", *words],
        cwd=project.newer,
        env=environment,
        capture_output=True,
        text=True,
    )
    return project.newer, done


def test_a_run_is_judged_and_published_under_a_commit_of_its_own(nightly):
    folder, done = nightly
    logs = "\n".join(path.read_text() for path in folder.glob(".prism-bench/nightly/logs/*/*.log"))
    assert 0 == done.returncode, done.stdout + done.stderr + logs
    (result,) = folder.glob("reports/asv-nights/*/*-existing-*.json")
    assert re.match(r"[0-9a-f]{8}-", result.name)
    (graph,) = folder.glob("reports/site/nights/graphs/**/branch-*/**/*Cold.track_cold_time.json")
    assert 1 == len(json.loads(graph.read_text()))
    assert all((folder / "reports/site" / name).is_file() for name in ("index.html", "check.md", "check.xml"))
    assert "asv: reports/site/nights/index.html" in done.stdout
    assert [["aardvark"], ["vector_add"]] == sorted(
        part["kernels"] for path in folder.glob("reports/runs/*/*.json.gz") for part in store.read(path).parts
    )


def test_another_run_of_the_same_commit_is_another_one(nightly):
    """Entered again, a run is the same; a second record of the same sources is a second commit after it."""
    folder, _ = nightly
    (path,) = folder.glob("reports/runs/*/*.json.gz")
    second = store.save(replace(store.read(path), created="2099-01-01T00:00:00"), path.with_name("second.json.gz"))
    project = AsvProject(folder, folder / "reports", folder / "reports/site")
    found = [entered_run(project, one) for one in (path, second, path)]
    assert found[0] == found[2] != found[1]
    assert 2 == len(next(folder.glob("reports/nights/*.jsonl")).read_text().splitlines())
