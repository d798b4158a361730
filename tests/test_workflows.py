"""Workflow files: they call what exists, keep secrets where they belong, and give strangers' code no GPU."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

HOUSE = Path(__file__).resolve().parent.parent
WORKFLOWS = {path.stem: path for path in (HOUSE / ".github" / "workflows").glob("*.yml")}
SHELL = {name: "\n".join(step.get("run", "") for job in yaml.safe_load(path.read_text())["jobs"].values()
                         for step in job["steps"]) for name, path in WORKFLOWS.items()}  # fmt: skip


def triggers(name):
    return yaml.safe_load(WORKFLOWS[name].read_text())[True]  # YAML 1.1 reads `on` as a truth value


def steps(name):
    jobs = yaml.safe_load(WORKFLOWS[name].read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_one_needs_no_gpu_and_one_has_it():
    assert {"tests", "nightly"} == set(WORKFLOWS)
    runners = [
        job["runs-on"] for name in WORKFLOWS for job in yaml.safe_load(WORKFLOWS[name].read_text())["jobs"].values()
    ]
    assert ["self-hosted", "gpu"] in runners and "ubuntu-latest" in runners


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_script_called_is_there(name):
    called = re.findall(r"(?:^|\s)((?:scripts|\.ci)/\w+)", SHELL[name])
    assert called
    assert all((HOUSE / script).is_file() for script in called)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_option_of_ours_exists(name):
    from typer.main import get_command

    from prism_bench.cli import app

    commands = get_command(app).commands
    for line in SHELL[name].splitlines():
        found = re.search(r"prism-bench (?P<command>\w+)(?P<words>.*)", line)
        if found:
            known = {option for one in commands[found["command"]].params for option in one.opts}
            assert set(re.findall(r"--[\w-]+", found["words"])) <= known


def test_a_stranger_gets_no_gpu_and_no_secret():
    assert "pull_request" not in triggers("nightly")
    assert "pull_request_target" not in triggers("tests")
    assert "secrets." not in WORKFLOWS["tests"].read_text()
    assert {"contents": "read"} == yaml.safe_load(WORKFLOWS["tests"].read_text())["permissions"]


def test_secrets_reach_only_the_step_that_tells():
    (step,) = [step for step in steps("nightly") if "secrets." in str(step)]
    assert ".venv/bin/prism-bench nightly" == step["run"]
    from prism_bench.extensions.ci.alerts import destinations

    assert 2 == len(destinations(step["env"]))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_their_commit(name):
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"]) for step in steps(name) if "uses" in step)


def test_every_supported_python_is_tested():
    """All tests on the oldest, a part on each newer one."""
    jobs = yaml.safe_load(WORKFLOWS["tests"].read_text())["jobs"]
    (oldest,) = [
        step["with"]["python-version"] for step in jobs["tests"]["steps"] if "python-version" in step.get("with", {})
    ]
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    supported = [one.split(" :: ")[-1] for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert supported == [oldest, *jobs["quick"]["strategy"]["matrix"]["python"]]
    assert project["requires-python"] == f">={oldest}"


@pytest.mark.parametrize("name", ["bug", "wrong_verdict", "kernel"])
def test_issue_templates_are_forms(name):
    form = yaml.safe_load((HOUSE / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text())
    assert {"name", "description", "labels", "body"} == set(form)
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_commands_of_templates_exist():
    from prism_bench.cli import app

    names = {command.name for command in app.registered_commands}
    folder = HOUSE / ".github"
    templates = [*(folder / "ISSUE_TEMPLATE").glob("*.yml"), folder / "pull_request_template.md"]
    named = {name for path in templates for name in re.findall(r"prism-bench (\w[\w-]*)", path.read_text())}
    assert named and named <= names
