"""The way of a repository that is not ours: `init`, a line for the reference, `verify`, `compile` and a slowed copy.

`compile --against` finds the machine code that the slowed copy changes. `compare` judges times, which the null backend
takes from a script, since only a GPU has times of kernels.
"""

from pathlib import Path

import pytest
from lab import strangers
from lab.strangers import Project

from prism_bench.catalogue import discover
from prism_bench.io.installation import is_installed

PROJECTS = strangers.projects()
# Kernels of which a person has to write a part: the source does not state it, or a spec cannot pass it.
_DRAFTS = {
    "12_sparse": {"spmv_csr_scalar", "spmv_csr_vector"},
    "15_attention": {"reshape_and_cache"},
    "19_linear_attention": {"chunk_local_cumsum_kernel"},
}
# Kernels that load and are not verified with a line for the reference: it needs what the output had before, or a table
# that the source leaves open.
_UNVERIFIED = {
    "06_stencil": {"conv_constant"},
    "20_rope": {"kv_append_kernel"},
    "24_losses": {"mse_kernel"},
    "25_moe": {"expert_histogram_kernel"},
    "28_scan_sort": {"count_nonzero_kernel"},
    "29_matrix": {"matmul_split_k_kernel"},
}
each_project = pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.folder.name)


def _skip_without_its_packages(project: Project) -> None:
    if project.language == "triton" and not is_installed("triton"):
        pytest.skip("needs Triton")
    if "import torch" in (project.folder / "reference.py").read_text() and not is_installed("torch"):
        pytest.skip("needs torch")


def test_corpus_is_half_cuda_and_half_triton() -> None:
    counts = {
        language: sum(len(project.truths) for project in PROJECTS if project.language == language)
        for language in ("cuda", "triton")
    }
    assert 30 == len(PROJECTS)
    assert all(count >= 60 for count in counts.values()), counts


@each_project
def test_truth_loads(project: Project, tmp_path: Path) -> None:
    catalogue = discover(strangers.write_truth(project, tmp_path) / "right")
    assert () == catalogue.problems
    assert {truth.name.lower() for truth in project.truths.values() if not truth.draft} == set(catalogue.kernels)


@each_project
def test_no_skeleton_has_a_wrong_launch(project: Project, tmp_path: Path) -> None:
    rows = list(strangers.studied(project, tmp_path, verify=False))
    assert set(project.truths) == {row.kernel for row in rows if row.skeleton != "none"}
    assert {} == {row.kernel: row.launch for row in rows if row.launch not in ("", "right")}
    assert [] == [row.kernel for row in rows if row.skeleton == "loads" and not row.outputs]
    assert _DRAFTS.get(project.folder.name, set()) == {row.kernel for row in rows if row.skeleton != "loads"}


def test_judge_sees_a_wrong_launch(tmp_path: Path) -> None:
    project = PROJECTS[0]
    right = discover(strangers.write_truth(project, tmp_path / "right") / "right")
    folder, made = strangers.initialised(project, tmp_path / "other")
    path = folder / made.catalogue / "src" / "sgemv.py"
    path.write_text(path.read_text().replace("block=32", "block=64"))
    (case,) = discover(folder / made.catalogue).cases(["sgemv"], ["S0"])
    assert "block (64, 1, 1) for (32, 1, 1)" == strangers.launch_error(case, right.kernels["sgemv"])


@pytest.mark.thorough
@each_project
def test_flow_from_init_to_a_slowed_copy(project: Project, tmp_path: Path) -> None:
    _skip_without_its_packages(project)
    folder = strangers.write_truth(project, tmp_path)
    kernels = {truth.name.lower() for truth in project.truths.values() if not truth.draft}
    assert dict.fromkeys(sorted(kernels), "ok") == dict(sorted(strangers.verdicts(folder, "right").items()))
    strangers.commit(folder)
    assert set() == strangers.changed_since(folder, "right")
    rows = strangers.compared(*strangers.slowed(project, tmp_path / "slowed"), "null")
    assert {(kernel, "changed", "slower") for kernel in kernels} == {
        (row.kernel, row.code, row.verdict) for row in rows
    }
    strangers.slow_down(folder, project)
    assert dict.fromkeys(sorted(kernels), "ok") == dict(sorted(strangers.verdicts(folder, "right").items()))


@pytest.mark.thorough
@each_project
def test_right_kernel_with_its_reference_is_verified(project: Project, tmp_path: Path) -> None:
    _skip_without_its_packages(project)
    rows = list(strangers.studied(project, tmp_path, verify=True))
    complaints = {row.kernel: row.verified for row in rows if row.skeleton == "loads" and row.verified != "ok"}
    assert _UNVERIFIED.get(project.folder.name, set()) == {*complaints}, complaints
    assert all(text.startswith("failed: ") for text in complaints.values()), complaints
    assert sum(row.skeleton == "loads" for row in rows) == sum(row.hand_written for row in rows)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "kernel", "right", "mistaken"),
    [
        ("09_quantize", "kQuantizeRows", "rintf(A", "truncf(A"),
        ("09_quantize", "kQuantizeRows", "127.0f /", "128.0f /"),
        ("13_losses", "crossentropy_softmax_backward", "dlogits[i] += ", "dlogits[i] = "),
        ("13_losses", "crossentropy_softmax_backward", "? 1.0f : 0.0f", "? 1.001f : 0.0f"),
        ("20_rope", "cos_sin_cache_kernel", "t.to(tl.float32) *", "(t + 1).to(tl.float32) *"),
        ("20_rope", "cos_sin_cache_kernel", "tl.cos(angle)", "tl.cos(angle * 1.0001)"),
        ("21_quant_triton", "_per_token_group_quant_8bit", "(y / y_s)", "(y / y_s * 0.99)"),
    ],
)
def test_proposed_tolerance_calls_a_mistake_wrong(
    name: str, kernel: str, right: str, mistaken: str, tmp_path: Path
) -> None:
    (project,) = (project for project in PROJECTS if project.folder.name == name)
    if project.language == "triton" and not is_installed("triton"):
        pytest.skip("needs Triton")
    source = project.truths[kernel].source
    folder, made = strangers.initialised(project, tmp_path)
    (path,) = (path for name, path in strangers.with_references(folder, project, made).items() if name == kernel)
    code = (folder / source).read_text()
    assert 1 == code.count(right)
    (folder / source).write_text(code.replace(right, mistaken))
    assert strangers.verdicts(folder, made.catalogue)[path.stem].startswith("wrong")
