"""Rules by which workflows keep strangers' code away from a GPU, a secret and a token that writes."""

import re

import yaml

STRANGERS = ("workflow_run.head_sha", "workflow_run.head_branch", "pull_request.head", "github.head_ref", "refs/pull")
READING = ("read", "none")


def violations(text):
    """Return every rule that a workflow breaks, in words; empty where it keeps all of them."""
    workflow = yaml.safe_load(text)
    triggers = workflow.get(True) or workflow.get("on") or {}
    triggers = {triggers} if isinstance(triggers, str) else set(triggers)
    found = [] if "permissions" in workflow else ["permissions: the workflow sets none, so that tokens may write"]
    if "pull_request_target" in triggers:
        found.append("pull_request_target: a stranger's event with this repository's secrets")
    used = re.findall(r"uses:[ \"']*([^\s\"']+)(.*)", text)
    found += [f"{name}: an action that is not pinned by its commit, with its version in a comment"
              for name, rest in used if not re.search(r"@[0-9a-f]{40}$", name) or "# v" not in rest]  # fmt: skip
    for name, job in workflow["jobs"].items():
        permissions = job.get("permissions", workflow.get("permissions", {}))
        found += [f"{name}: {words}" for words in _of_job(job, permissions, triggers)]
    return found


def _of_job(job, permissions, triggers):
    steps = job["steps"]
    writes = permissions == "write-all" or (
        isinstance(permissions, dict) and any(one not in READING for one in permissions.values())
    )
    if {"pull_request", "pull_request_target", "workflow_run"} & triggers:
        yield from _of_runner(job, triggers)
    if any(_is_strangers(step) for step in steps) or ("pull_request" in triggers and _checks_out(steps)):
        yield from _of_strangers_code(steps, writes)
    if writes and {"pull_request_target", "workflow_run"} & triggers:
        yield from _of_writer(steps)
    checkouts = [step.get("with") or {} for step in steps if _is_checkout(step)]
    if writes and any(settings.get("persist-credentials") is not False for settings in checkouts):
        yield "a token that writes, kept for all steps (persist-credentials)"
    for step in steps:
        if "${{" in step.get("run", ""):
            yield "an expression inside a script: a name of a stranger becomes a command; pass it by env"


def _of_runner(job, triggers):
    if "self-hosted" not in str(job["runs-on"]):
        return
    if "workflow_run" not in triggers:
        yield "a self-hosted runner in a workflow that the pull request can edit"
    if not job.get("environment"):
        yield "a self-hosted runner without an environment that needs approval"


def _of_strangers_code(steps, writes):
    if writes:
        yield "a stranger's code with a token that writes"
    if any("secrets." in str(step) or "github.token" in str(step) for step in steps):
        yield "a stranger's code with a secret"
    if any(step.get("with", {}).get("persist-credentials") is not False for step in steps if _is_checkout(step)):
        yield "a stranger's code with the token that checked it out (persist-credentials)"
    if any(step.get("uses", "").startswith("actions/cache") or "cache" in step.get("with", {}) for step in steps):
        yield "a stranger's code that fills a cache"


def _of_writer(steps):
    if _checks_out(steps):
        yield "a token that writes next to checked-out code"
    if any(step.get("uses", "").startswith("actions/download-artifact") for step in steps):
        yield "an artifact of a stranger without a limit of its size"
    scripts = "\n".join(step.get("run", "") for step in steps)
    if "artifacts" in scripts and scripts.count("head -c") < 2:
        yield "an artifact of a stranger without a limit of its size"
    if re.search(r"pip install [^\n]*(\s\.|-e |-r )", scripts):
        yield "a token that writes next to installed code of the checkout"


def _is_checkout(step):
    return step.get("uses", "").startswith("actions/checkout")


def _checks_out(steps):
    return any(_is_checkout(step) or "git clone" in step.get("run", "") for step in steps)


def _is_strangers(step):
    return _is_checkout(step) and any(word in str(step.get("with", {})) for word in STRANGERS)
