"""`prism-bench init`: written files, unchanged files, and commands on the new project."""

import json
import shutil
import stat
import tomllib
from pathlib import Path

import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.init.project import PARTS, new_project
from prism_bench.io import project

FROM = """
#include <cstdio>
__global__ void scaleIt(const float* in, float* out, float f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f * in[i];
}
template <typename T> __global__ void lonely(T x) {}
void run(float* a, float* b, int n) { scaleIt<<<(n + 255) / 256, 256>>>(a, b, 2.0f, n); printf("hi"); }
"""
OPERATOR = """
import torch

@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor: ...
"""
BASIC = ["prism-bench.toml", "kernels/example/saxpy.cu", "kernels/example/saxpy.py"]


def tree(folder="."):
    return {path.as_posix(): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.fixture
def sources(shell):
    Path("src").mkdir()
    Path("src/scale.cu").write_text(FROM)


def test_empty_folder_gets_configuration_and_valid_example(shell):
    from prism_bench.backends import open_backend

    made = shell("init", "--json")
    assert (0, BASIC) == (made.code, made.json["wrote"])
    assert {"S0", "S1"} == {case["label"] for case in shell("list", "--json").json}
    assert "[]" != shell("list", "saxpy", "--json").out
    try:
        open_backend("emulator")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    verified = shell("verify", "--backend", "emulator")
    assert 0 == verified.code, verified.out


def test_second_init_writes_no_file(shell):
    assert 0 == shell("init", "--with", ",".join(PARTS)).code
    before = tree()
    for part in PARTS:
        again = shell("init", "--with", part, "--json")
        assert (2, []) == (again.code, again.json["wrote"])
        assert "prism-bench.toml" in [left["path"] for left in again.json["left"]]
    assert before == tree()


@pytest.mark.parametrize("part", PARTS)
def test_part_leaves_existing_user_file_unchanged(shell, part):
    wrote = shell("init", "first", "--with", part, "--json").json["wrote"]
    name = next(name for name in wrote if name not in BASIC)
    path = Path("second") / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    made = shell("init", "second", "--with", part, "--json")
    assert 0 == made.code
    assert [{"path": name, "reason": "exists"}] == made.json["left"]
    assert "mine" == path.read_text()


def test_workflows_are_yaml_and_their_commands_exist(shell):
    import typer
    import yaml

    from prism_bench.cli import app

    shell("init", "--with", "github,gitlab,nightly")
    known = typer.main.get_command(app).commands
    paths = [*Path().rglob(".git*/**/*.yml"), Path(".gitlab-ci.yml")]
    assert len(paths) > 3
    for path in paths:
        yaml.safe_load(path.read_text())
        for line in path.read_text().splitlines():
            if line.strip().startswith(("- run: prism-bench ", "- prism-bench ")):
                assert line.partition("prism-bench ")[2].split()[0] in known, line


def test_nightly_workflow_has_no_pull_request_trigger_and_limits_secrets_to_their_steps(shell):
    import yaml

    shell("init", "--with", "nightly")
    workflow = yaml.safe_load(Path(".github/workflows/prism-bench-nightly.yml").read_text())
    assert {"schedule", "workflow_dispatch"} == set(workflow[True])  # YAML 1.1 reads `on` as a truth value
    steps = workflow["jobs"]["nightly"]["steps"]
    assert ["prism-bench nightly"] == [step["run"] for step in steps if "secrets." in str(step)]
    assert ["Fetch the history", "Keep the history"] == [step["name"] for step in steps if "github.token" in str(step)]
    (keep,) = [step for step in steps if step.get("run", "").endswith("prism-bench store keep\n")]
    default = "(github.event_name == 'schedule' || github.ref_name == github.event.repository.default_branch)"
    assert f"always() && {default}" == keep["if"]


def test_pyproject_gets_table_after_its_unchanged_text(shell):
    text = '# mine\n[project]\nname = "a"  # kept\n\n[tool.ruff]\nline-length = 99'
    Path("pyproject.toml").write_text(text)
    made = shell("init", "--json")
    assert "pyproject.toml" in made.json["wrote"]
    now = Path("pyproject.toml").read_text()
    assert now.startswith(text)
    tools = tomllib.loads(now)["tool"]
    assert {**tomllib.loads(text)["tool"], "prism-bench": tools["prism-bench"]} == tools
    assert "kernels" == project.current().keys.catalogue
    assert not Path("prism-bench.toml").exists()


@pytest.mark.parametrize(
    ("files", "arguments", "complaint"),
    [
        ({"pyproject.toml": "broken ["}, (), "pyproject.toml: cannot take [tool.prism-bench] ("),
        ({"pyproject.toml": "tool = {ruff = {}}"}, (), "pyproject.toml: cannot take [tool.prism-bench] ("),
        ({"prism-bench.toml": "catalog = 1"}, (), "prism-bench.toml: unknown key 'catalog'"),
        ({"kernels": ""}, (), "kernels is a file, and kernels/example/saxpy.cu needs a folder there"),
        ({"tests": ""}, ("--with", "pytest"), "tests is a file, and tests/test_kernels.py needs a folder there"),
        ({"place": ""}, ("place",), "place is a file; name the folder of the project"),
        ({}, ("--with", "asw"), "unknown part 'asw'"),
        ({}, (".", "nowhere"), "nowhere does not exist"),
        ({"src/a.cu": "int main() {}"}, (".", "src"), "no CUDA kernel, Triton kernel or PyTorch operator below"),
    ],
)  # fmt: skip
def test_invalid_input_exits_2_with_one_line_and_writes_no_file(shell, files, arguments, complaint):
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    before = tree()
    made = shell("init", *arguments)
    assert (2, 1) == (made.code, made.err.count("\n"))
    assert complaint in made.err
    assert before == tree()


def test_failed_write_removes_all_created_files(shell, monkeypatch):
    from prism_bench.extensions.init import project as writing

    create, seen = writing.create_file, []

    def fails(path, data):
        seen.append(path)
        if len(seen) == 3:
            raise OSError(28, "No space left on device", str(path))
        create(path, data)

    monkeypatch.setattr(writing, "create_file", fails)
    Path("pyproject.toml").write_text("")
    made = shell("init", "new/place", "--with", "github")
    assert 2 == made.code
    assert "No space left on device" in made.err
    assert {"pyproject.toml": b""} == tree()
    assert not Path("new").exists()


def test_specs_are_written_for_kernels_in_files_with_host_code(shell, sources):
    made = shell("init", ".", "src", "--json").json
    assert ["prism-bench.toml", "kernels/src/lonely.py.draft", "kernels/src/scale_it.py"] == sorted(
        made["wrote"], key=lambda name: (name != "prism-bench.toml", name)
    )
    specs = {spec["kernel"]: spec for spec in made["specs"]}
    assert {"scaleIt": True, "lonely": False} == {name: spec["loads"] for name, spec in specs.items()}
    assert "src/scale.cu:3" == specs["scaleIt"]["source"]
    assert specs["lonely"]["open_points"]
    listed = shell("list", "--json")
    assert (0, {"scale_it"}) == (listed.code, {case["kernel"] for case in listed.json})
    text = shell("init", "other", "src").out
    assert [
        "scaleIt  src/scale.cu:3  loads", "lonely   src/scale.cu:7  draft", "  the launch: no file here launches it",
        "2 specs: 1 load, 1 draft; complete a draft and remove its .draft",
    ] == text.splitlines()[2:6]  # fmt: skip


def test_a_kernel_whose_name_is_taken_gets_a_number(shell, sources):
    shutil.copytree("src", "more")
    shell("init", ".", "src")
    assert ["kernels/more/lonely_2.py.draft", "kernels/more/scale_it_2.py"] == sorted(
        shell("init", ".", "more", "--json").json["wrote"]
    )
    assert 0 == shell("list").code
    again = shell("init", ".", "src", "--json")
    assert (2, []) == (again.code, again.json["wrote"])


def test_a_pytorch_operator_gets_a_spec_too(shell):
    Path("src").mkdir()
    Path("src/ops.py").write_text(OPERATOR)
    Path("src/ops.cpp").write_text('TORCH_LIBRARY(mine, m) { m.def("odd", &odd); }\n')
    made = shell("init", ".", "src", "--json").json
    assert ["prism-bench.toml", "kernels/src/twice.py"] == made["wrote"]
    assert ["src/ops.cpp:1: mine::odd: neither a schema nor annotations give its arguments"] == made["without"]
    assert {"twice"} == {case["kernel"] for case in shell("list", "--json").json}
    again = shell("init", ".", "src")
    assert ("left   kernels/src/twice.py" in again.out, OPERATOR) == (True, Path("src/ops.py").read_text())


def test_a_configured_catalogue_is_filled(shell):
    Path("prism-bench.toml").write_text('catalogue = "gpu"')
    Path("gpu").mkdir()
    assert ["gpu/example/saxpy.cu", "gpu/example/saxpy.py"] == shell("init", "--json").json["wrote"]


def test_the_view_fits_a_terminal(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    made = shell("init", "new", "--with", ",".join(PARTS))
    assert "wrote  prism-bench.toml" in made.out
    assert "  cd new\n" in made.out
    assert all(len(line) <= 80 for line in made.out.splitlines())


def test_new_project_returns_written_files(tmp_path):
    made = new_project(tmp_path / "new")
    assert [Path("kernels/example/saxpy.cu"), Path("kernels/example/saxpy.py")] == list(made.kernel_files)
    assert () == made.written.left
    assert not stat.S_IMODE((tmp_path / "new" / "prism-bench.toml").stat().st_mode) & stat.S_IXUSR
    assert json.dumps(project.current(tmp_path / "new").keys.labels) == '["S0", "S1"]'


SCRIPT = "from pathlib import Path\nPath('ran').touch()\nspec = {'a': 1}\n"


def test_foreign_kernels_folder_stays_unchanged(shell):
    Path("kernels/tools").mkdir(parents=True)
    Path("kernels/tools/deploy.py").write_text(SCRIPT)
    Path("kernels/tools/scale.cu").write_text(FROM)
    made = shell("init", ".", "kernels", "--with", "asv,github", "--json")
    assert (0, "prism_kernels") == (made.code, made.json["catalogue"])
    assert "prism_kernels/tools/scale_it.py" in made.json["wrote"]
    assert not [name for name in made.json["wrote"] if name.startswith("kernels/")]
    assert "prism_kernels" == project.current().keys.catalogue
    assert 'CATALOGUE: "prism_kernels"' in Path(".github/workflows/prism-bench.yml").read_text()
    for command in (("list",), ("show", "scale_it"), ("verify", "--backend", "numpy_reference"), ("compile",)):
        shell(*command)
        assert not Path("ran").exists(), command
    assert ["deploy.py", "scale.cu"] == sorted(path.name for path in Path("kernels").rglob("*.*"))


@pytest.mark.parametrize("name", ["spec.py", "empty"])
def test_empty_kernels_folder_or_catalogue_becomes_the_catalogue(shell, name):
    Path("kernels/mine").mkdir(parents=True)
    if name == "spec.py":
        Path("kernels/mine/spec.py").write_text("from prism_bench import KernelSpec\nspec = KernelSpec()\n")
    else:
        Path("kernels/mine").rmdir()
    assert "kernels" == shell("init", "--json").json["catalogue"]
