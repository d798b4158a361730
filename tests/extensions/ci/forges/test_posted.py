"""One comment, updated; refusals in one sentence with the cure; bounded waits; and never the token."""

import pytest

from prism_bench.errors import ForgeError
from prism_bench.extensions.ci.forges import Api, posted
from tests.extensions.ci.forges.conftest import OURS, TOKEN

MARK = "<!-- prism-bench comment -->"
FIRST, SECOND = f"{MARK}\n\nfirst\n", f"{MARK}\n\nsecond\n"


def post(text, environment, number=None):
    waits = []
    return posted(text, number, environment, waits.append), waits


def bodies(forge, number="5"):
    return [one["body"] for one in forge.comments[number]]


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_a_second_post_updates_the_first(request, forge, kind):
    environment = request.getfixturevalue(kind)()
    first, _ = post(FIRST, environment)
    second, _ = post(SECOND, environment)
    assert first == second
    assert [SECOND] == bodies(forge)
    assert first.startswith("https://")


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_a_strangers_comment_with_the_mark_is_left_alone(request, forge, kind):
    """Whoever wrote a comment can edit it: ours in theirs could be changed later."""
    stranger = {"login": "stranger", "type": "User", "id": 9}
    forge.comments["5"] = [{"id": 1, "body": FIRST, "user": stranger, "author": stranger}]
    post(SECOND, request.getfixturevalue(kind)())
    assert [FIRST, SECOND] == bodies(forge)


def test_our_comment_is_found_behind_many_others(forge, github):
    other = {"id": 1, "body": "hello", "user": OURS}
    forge.comments["5"] = [{**other, "id": 1000 + number} for number in range(250)]
    forge.comments["5"].append({"id": 2, "body": FIRST, "user": OURS, "html_url": "https://example.org/2"})
    post(SECOND, github())
    assert SECOND == bodies(forge)[-1] and len(bodies(forge)) == 251


def test_the_mark_has_to_begin_a_comment(forge, github):
    forge.comments["5"] = [{"id": 1, "body": f"> {FIRST}", "user": OURS}]
    post(SECOND, github())
    assert 2 == len(bodies(forge))


def test_a_token_of_a_person_updates_that_persons_comment(forge, github):
    forge.forbidden = set()
    forge.comments["5"] = [{"id": 1, "body": FIRST, "user": {**OURS, "login": "other[bot]"}}]
    post(SECOND, github())
    assert [FIRST, SECOND] == bodies(forge)


def fork_event(commit):
    head = {"head_branch": "patch 1", "head_sha": commit, "head_repository": {"owner": {"login": "stranger"}}}
    return {"workflow_run": {**head, "pull_requests": []}}


def test_a_finished_workflow_of_a_fork_finds_its_pull_request(forge, github):
    forge.pulls = [{"label": "stranger:patch 1", "number": 5, "head": {"sha": "abc"}}]
    post(FIRST, github(fork_event("abc")))
    assert [FIRST] == bodies(forge)


def test_newer_commits_get_no_older_comment(forge, github):
    forge.pulls = [{"label": "stranger:patch 1", "number": 5, "head": {"sha": "def"}}]
    with pytest.raises(ForgeError, match="no open pull request has the commit that was measured"):
        post(FIRST, github(fork_event("abc")))
    assert [] == bodies(forge)


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"GITHUB_TOKEN": ""}, r"no token: set GITHUB_TOKEN to \$\{\{ github.token \}\}.*pull-requests: write"),
     ({"GITHUB_EVENT_PATH": ""}, "this event has no pull request: run the step on pull_request"),
     ({"GITHUB_EVENT_PATH": "/nowhere"}, "GITHUB_EVENT_PATH=/nowhere: not a readable event"),
     ({"GITHUB_REPOSITORY": ""}, "this is no job of GitHub or GitLab"),
     ({"GITHUB_API_URL": "http://example.org"}, "has to begin with https://")],
)  # fmt: skip
def test_what_a_job_on_github_lacks_is_named(github, change, problem):
    with pytest.raises(ForgeError, match=problem):
        post(FIRST, github(**change))


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"GITLAB_TOKEN": None}, "no token: set GITLAB_TOKEN, a masked variable"),
     ({"CI_MERGE_REQUEST_IID": None}, "this pipeline has no merge request: run the job for merge_request_event")],
)  # fmt: skip
def test_what_a_job_on_gitlab_lacks_is_named(gitlab, change, problem):
    with pytest.raises(ForgeError, match=problem):
        post(FIRST, gitlab(**change))


@pytest.mark.parametrize(
    ("kind", "cure"), [("github", "for a fork, post from a workflow_run job"), ("gitlab", "set GITLAB_TOKEN")]
)
def test_a_token_without_rights_is_named_with_the_cure(request, forge, kind, cure):
    environment = request.getfixturevalue(kind)()
    forge.forbidden = forge.forbidden | {"write"}
    with pytest.raises(ForgeError, match=rf"may not write a .*\(HTTP 403\).*{cure}") as caught:
        post(FIRST, environment)
    assert TOKEN not in str(caught.value)


def test_a_job_token_of_gitlab_that_may_not_write_says_what_does(forge, gitlab):
    forge.forbidden = {"/user", "write"}
    with pytest.raises(ForgeError, match="set GITLAB_TOKEN, a masked variable with a project access token"):
        post(FIRST, gitlab(GITLAB_TOKEN=None, CI_JOB_TOKEN=TOKEN))
    assert TOKEN == {name.lower(): value for name, value in forge.headers[0].items()}["job-token"]


@pytest.mark.parametrize(("headers", "wait"), [({"Retry-After": "7"}, 7.0), ({"Retry-After": "soon"}, 1.0), ({}, 1.0)])
def test_a_rate_limit_is_waited_for_as_its_header_asks(forge, github, headers, wait):
    forge.faults = [(429, headers)]
    _, waits = post(FIRST, github())
    assert [wait] == waits
    assert [FIRST] == bodies(forge)


def test_a_secondary_limit_is_one_too(forge, github):
    forge.faults = [(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"})]
    _, waits = post(FIRST, github())
    assert [1.0] == waits


def test_a_limit_that_takes_too_long_ends_at_once(forge, github):
    forge.faults = [(429, {"Retry-After": "3600"})]
    with pytest.raises(ForgeError, match="rate limit for 3600 s more; run the command again after that"):
        post(FIRST, github())


def test_a_server_in_trouble_is_tried_four_times(forge, github):
    forge.faults = [(502, {})] * 4
    with pytest.raises(ForgeError, match="HTTP 502, 4 attempts") as caught:
        post(FIRST, github())
    assert 4 == len(forge.log)
    assert TOKEN not in str(caught.value)


def test_a_redirect_takes_no_token_along(forge, github):
    forge.forbidden = set()
    forge.faults = [(302, {"Location": f"{forge.url}/elsewhere"})] * 2
    with pytest.raises(ForgeError, match="could not read the comments"):
        post(FIRST, github())
    assert "/elsewhere" not in {path for _, path in forge.log}


def test_nothing_that_is_printed_holds_the_token(forge, github):
    assert TOKEN not in repr(Api(forge.url, {"Authorization": TOKEN}))
    with pytest.raises(ForgeError, match="no answer") as caught:
        post(FIRST, github(GITHUB_API_URL="http://127.0.0.1:9"))
    assert TOKEN not in str(caught.value) and caught.value.__cause__ is None
