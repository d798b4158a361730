"""Workflows for pull requests: strangers' code has no GPU before approval, no secret, and no token that writes."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from prism_bench.extensions.init.project import ProjectFacts, part_files
from prism_bench.io.installation import published_source
from tests.workflow_rules import violations

HOUSE = Path(__file__).resolve().parent.parent
FACTS = ProjectFacts("project")
WORKFLOWS = {one.path.as_posix(): one.text for one in part_files("github", FACTS)} | {
    path.name: path.read_text() for path in (HOUSE / ".github" / "workflows").glob("*.yml")
}
ACTION = yaml.safe_load((HOUSE / ".github" / "actions" / "prism-bench" / "action.yml").read_text())
GPU = next(text for name, text in WORKFLOWS.items() if name.endswith("prism-bench-gpu.yml"))
VERIFY = next(text for name, text in WORKFLOWS.items() if name.endswith("/prism-bench.yml"))


def test_the_workflows_of_a_project_keep_the_rules():
    written = [name for name in WORKFLOWS if name.startswith(".github/workflows/")]
    assert 2 == len(written)
    assert {} == {name: found for name in written if (found := violations(WORKFLOWS[name]))}


def test_our_own_workflows_keep_the_rules_for_runners():
    for name in ("tests.yml", "nightly.yml"):
        assert not [one for one in violations(WORKFLOWS[name]) if "fills a cache" not in one], name


def test_the_nightly_workflow_of_a_project_keeps_the_rules():
    (file,) = part_files("nightly", FACTS)
    assert not violations(file.text)
    kept = file.text.replace("persist-credentials: false", "persist-credentials: true")
    assert ["nightly: a token that writes, kept for all steps (persist-credentials)"] == violations(kept)


NAME = "x'||'1'=='1, *: \"$(touch evil)${{ github.token }}+!#"


def test_names_of_a_branch_and_a_folder_are_data_in_every_file():
    facts = ProjectFacts(NAME, catalogue=NAME, branch=NAME, storage=NAME)
    files = {one.path.as_posix(): one.text for part in ("asv", "github", "gitlab", "nightly")
             for one in part_files(part, facts)}  # fmt: skip
    verify = yaml.safe_load(files[".github/workflows/prism-bench.yml"])
    (pattern,) = verify[True]["push"]["branches"]
    assert NAME == re.sub(r"\\(.)", r"\1", pattern)
    assert not re.findall(r"(?<!\\)[*?+!\[\]]", pattern), "each character stands for itself"
    (env,) = [step["env"] for step in verify["jobs"]["verify"]["steps"] if "CATALOGUE" in step.get("env", {})]
    assert NAME.replace("${{", "${{ '${{' }}") == env["CATALOGUE"]
    jobs = yaml.safe_load(files[".gitlab/prism-bench.yml"])
    assert {"value": NAME, "expand": False} == jobs["prism-bench"]["variables"]["CATALOGUE"]
    for name, text in files.items():
        if name.endswith(".yml"):
            assert "evil" not in str(list(_scripts(yaml.safe_load(text)))), name
    settings = json.loads(re.sub(r"^ *//.*$", "", files["asv.conf.json"], flags=re.MULTILINE))
    assert (NAME, [NAME], f"{NAME}/asv") == tuple(settings[key] for key in ("project", "branches", "results_dir"))


def _scripts(value):
    """Yield the values of `run`, `script` and `if` anywhere below."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        if key in ("run", "script", "if"):
            yield below
        yield from _scripts(below)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ((), "feature"),  # a new repository
        (("commit --allow-empty -m a", "branch main", "switch -c topic"), "main"),
        (("commit --allow-empty -m a", "config init.defaultBranch trunk", "branch trunk", "branch main"), "trunk"),
        (("commit --allow-empty -m a", "update-ref refs/remotes/origin/release/1 HEAD", "branch main",
          "symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/release/1"), "release/1"),
    ],
)  # fmt: skip
def test_the_default_branch_is_not_the_one_that_is_checked_out(tmp_path, before, expected):
    for words in ("init -q -b feature", *before):
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words.split()]
        subprocess.run(command, check=True, capture_output=True)
    assert expected == ProjectFacts.of(tmp_path).branch


PIP = f"      - run: pip install {shlex.quote(published_source()[0].requirement())}\n"
PLANTED = [
    (GPU, "    environment: gpu\n", "", "without an environment that needs approval"),
    (GPU, "on:\n  workflow_run:\n    workflows: [prism-bench]\n    types: [completed]", "on: pull_request",
     "in a workflow that the pull request can edit"),
    (GPU, "on:\n  workflow_run:", "on:\n  pull_request_target:\n  workflow_run:", "pull_request_target: a stranger's"),
    (GPU, "      contents: read\n", "      contents: write\n", "a stranger's code with a token that writes"),
    (GPU, "          persist-credentials: false\n", "", "the token that checked it out"),
    (GPU, "          BRANCH: $", "          KEY: ${{ secrets.KEY }}\n          BRANCH: $",
     "a stranger's code with a secret"),
    (GPU, "          python3 -m venv", "          echo ${{ github.head_ref }}\n          python3 -m venv",
     "an expression inside a script"),
    (GPU, " | head -c 20000000", "", "without a limit of its size"),
    (GPU, PIP, "      - uses: actions/checkout@v4\n", "next to checked-out code"),
    (GPU, PIP, "      - uses: actions/download-artifact@v4\n", "without a limit of its"),
    (GPU, PIP, "      - run: pip install -e .\n", "installed code of the checkout"),
    (GPU, "permissions: {}\n", "", "permissions: the workflow sets none"),
    (VERIFY, "@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2", "@v4", "not pinned by its commit"),
    (VERIFY, "runs-on: ubuntu-latest", "runs-on: [self-hosted, gpu]", "in a workflow that the pull request can edit"),
    (VERIFY, "  contents: read\n", "  contents: write\n", "a stranger's code with a token that writes"),
    (VERIFY, '--against "$BASE"', "--against ${{ github.base_ref }}", "an expression inside a script"),
    (VERIFY, '          python-version: "3.12"', '          python-version: "3.12"\n          cache: pip',
     "fills a cache"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "rule"), PLANTED, ids=[f"{number}" for number in range(len(PLANTED))])
def test_a_planted_violation_is_found(text, old, new, rule):
    assert old in text
    assert any(rule in one for one in violations(text.replace(old, new))), violations(text.replace(old, new))


def test_jobs_that_run_a_strangers_code_wait_for_the_check_of_the_environment():
    jobs = yaml.safe_load(GPU)["jobs"]
    assert "protected" == jobs["measure"]["needs"]
    assert "required_reviewers" in jobs["protected"]["steps"][0]["run"]
    assert {"actions": "read", "pull-requests": "write"} == jobs["comment"]["permissions"]


@pytest.mark.parametrize(
    ("rules", "code"), [("required_reviewers", 0), ("wait_timer required_reviewers", 0), ("wait_timer", 1), ("", 1)]
)
def test_an_environment_without_reviewers_stops_the_workflow(tmp_path, rules, code):
    (step,) = yaml.safe_load(GPU)["jobs"]["protected"]["steps"]
    program(tmp_path, "gh", f"echo '{rules}'")
    done = shell(step["run"], tmp_path, REPOSITORY="o/n")
    assert code == done.returncode
    assert bool(code) == ("with required reviewers" in done.stdout)


def test_an_artifact_is_read_up_to_a_limit(tmp_path):
    """What is behind the limit is not read, and what was read is no comparison."""
    step = next(
        one for one in yaml.safe_load(GPU)["jobs"]["comment"]["steps"] if one.get("name") == "Fetch the comparison"
    )
    program(tmp_path, "gh", 'case "$2" in */zip) echo archive ;; *) echo 7 ;; esac')
    program(tmp_path, "unzip", "head -c 30000000 /dev/zero | tr '\\0' '['")
    done = shell(step["run"], tmp_path, REPOSITORY="o/n", RUN_ID="1")
    assert done.returncode != 0 or (tmp_path / "comparison.json").stat().st_size == 20_000_000
    assert (tmp_path / "comparison.json").stat().st_size <= 20_000_000


def test_gitlab_measures_what_a_member_starts_and_comments_without_the_code():
    jobs = yaml.safe_load(gitlab())
    (rule,) = jobs["prism-bench-gpu"]["rules"]
    assert "manual" == rule["when"]
    assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in rule["if"]
    assert "none" == jobs["prism-bench-comment"]["variables"]["GIT_STRATEGY"]
    assert "TOKEN" not in json.dumps(jobs["prism-bench-gpu"])


def gitlab():
    return next(one.text for one in part_files("gitlab", FACTS) if one.path.name == "prism-bench.yml")


def github_step():
    """The script of the step for pull requests, which gets the base by its environment."""
    steps = yaml.safe_load(VERIFY)["jobs"]["verify"]["steps"]
    (step,) = [one for one in steps if "--against" in one.get("run", "")]
    assert {"BASE": "${{ github.event.pull_request.base.sha }}", "CATALOGUE": FACTS.catalogue} == step["env"]
    assert "github.event_name == 'pull_request'" == step["if"]
    assert 0 == next(one["with"]["fetch-depth"] for one in steps if "checkout" in one.get("uses", ""))
    return step["run"], "BASE"


def gitlab_step():
    job = yaml.safe_load(gitlab())["prism-bench"]
    assert 0 == job["variables"]["GIT_DEPTH"]
    (script,) = [one for one in job["script"] if "--against" in one]
    return script, "CI_MERGE_REQUEST_DIFF_BASE_SHA"


@pytest.mark.parametrize("step", [github_step, gitlab_step])
@pytest.mark.parametrize("code", [0, 1])
def test_machine_code_is_compared_with_the_base_of_a_pull_request(tmp_path, step, code):
    """The code of `compile` is that of the job; a base without the catalogue has nothing to compare with."""
    script, name = step()
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    program(tmp_path, "prism-bench", f'echo "$*" >> log; exit {code}')
    bases = []
    for folder in ("other", FACTS.catalogue):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text("")
        subprocess.run([*git, "add", folder], check=True)
        subprocess.run([*git, "commit", "-q", "-m", folder], check=True)
        bases.append(subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout)
    environments = [{name: base.strip(), "CATALOGUE": FACTS.catalogue} for base in bases]
    assert [0, code] == [shell(script, tmp_path, **environment).returncode for environment in environments]
    assert f"compile --against {bases[1].strip()}\n" == (tmp_path / "log").read_text()


def test_the_page_of_a_comment_is_a_variable_of_the_project():
    """Not the file that a stranger's code wrote."""
    steps = yaml.safe_load(GPU)["jobs"]["comment"]["steps"]
    (step,) = [step for step in steps if "comment comparison.json" in step.get("run", "")]
    assert "${{ vars.PRISM_BENCH_PAGE }}" == step["env"]["PRISM_BENCH_PAGE"]
    assert "prism-bench comment comparison.json --post" == step["run"]
    script = yaml.safe_load(gitlab())["prism-bench-comment"]["script"]
    assert "prism-bench comment comparison.json --post" in script


def test_jobs_that_others_need_run_in_merge_requests_of_gitlab():
    """A job without rules runs in no pipeline of a merge request; needing it there is an error of the whole file."""
    jobs = yaml.safe_load(gitlab())
    for name in {one for job in jobs.values() for one in job.get("needs", [])}:
        assert any("merge_request_event" in rule["if"] for rule in jobs[name]["rules"]), name


@pytest.mark.parametrize(
    "text", [GPU, VERIFY, gitlab(), json.dumps(ACTION["runs"])], ids=["gpu", "verify", "gitlab", "action"]
)
def test_every_command_and_option_of_ours_exists(text):
    from typer.main import get_command

    from prism_bench.cli import app

    commands = get_command(app).commands
    used = re.findall(r"(?:bin/|run: |- |; |then |\\n)prism-bench (\w+)([^\n|>;]*)", text)
    assert used
    for name, words in used:
        known = {option for one in commands[name].params for option in one.opts}
        assert set(re.findall(r"--[\w-]+", words)) <= known, f"{name}{words}"


def test_the_action_puts_no_input_into_a_script():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert "uses" in step or "bash" == step["shell"]
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(ACTION["runs"])))
    assert set(ACTION["inputs"]) == used


@pytest.mark.parametrize(
    ("code", "inputs", "expected"),
    [
        (0, {}, "compare --time-limit 600 --json"),
        (
            1,
            {"base": "abc", "catalogue": "my kernels"},
            "compare --time-limit 600 --json --catalogue my kernels -- abc",
        ),
        (3, {"comment": "false"}, "compare --time-limit 600 --json"),
        (0, {"version": "0.2.0"}, "compare --time-limit 600 --json"),
        (2, {"base": "--evil; rm x"}, "compare --time-limit 600 --json -- --evil; rm x"),
    ],
)
def test_the_steps_of_the_action_compare_comment_and_end_as_the_comparison(tmp_path, code, inputs, expected):
    log = tmp_path / "log"
    program(tmp_path, "python3", f'echo "python3 $*" >> {log}')
    program(tmp_path, "prism-bench", f'echo "$*" >> {log}; [ "$1" = comment ] || {{ echo \'{{}}\'; exit {code}; }}')
    codes = [run_step(step, tmp_path, inputs).returncode for step in ACTION["runs"]["steps"] if applies(step, inputs)]
    lines = log.read_text().splitlines()
    assert code == codes[-1] and not any(codes[:-1])
    place = f"=={inputs['version']}" if "version" in inputs else f" @ file://{HOUSE}"  # the commit of the action itself
    assert f"python3 -m pip install --quiet prism-gpu-bench[cuda13]{place}" == lines[0]
    assert expected == lines[1]
    assert ("comment comparison.json --post" in lines) == (inputs.get("comment") != "false")


def applies(step, inputs):
    return "run" in step and not ("inputs.comment" in step.get("if", "") and inputs.get("comment") == "false")


def run_step(step, folder, inputs):
    """Run one step as a runner does: inputs and outputs of earlier steps reach it by its environment alone."""
    output = folder / "output"
    outputs = dict(re.findall(r"^([\w-]+)=(.*)$", output.read_text(), re.MULTILINE)) if output.exists() else {}
    known = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
    values = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: known[found[1]], text)
        for name, text in step.get("env", {}).items()
    }
    values = {name: re.sub(r"\$\{\{ steps\.compare\.outputs\.exit-code \}\}", outputs.get("exit-code", ""), text)
              for name, text in values.items()}  # fmt: skip
    values["GITHUB_ACTION_PATH"] = str(HOUSE / ".github" / "actions" / "prism-bench")
    return shell(step["run"], folder, GITHUB_OUTPUT=str(output), GITHUB_STEP_SUMMARY=str(folder / "summary"), **values)


def program(folder, name, script):
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
    path.chmod(0o755)


def shell(script, folder, **environment):
    """Run a step's script with the shell's options of a runner, and the programs of the folder first."""
    known = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", **environment}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, timeout=60)
