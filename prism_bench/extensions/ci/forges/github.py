"""Comments on pull requests of GitHub, of a repository and of forks."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from prism_bench.errors import ForgeError
from prism_bench.extensions.ci.forges.requests import Api, ApiAnswer

PAGES, PER_PAGE = 30, 100
_Table = dict[str, Any]
OpenApi = Callable[[str, Mapping[str, str]], Api]


class GitHub:
    """The repository and the event of a job, by GitHub's own variables."""

    def __init__(self, environment: Mapping[str, str], open_api: OpenApi) -> None:
        token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN")
        if not token:
            raise ForgeError(
                "no token: set GITHUB_TOKEN to ${{ github.token }} in this step's env, with the permission "
                "pull-requests: write"
            )
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        self._api = open_api(environment.get("GITHUB_API_URL") or "https://api.github.com", headers)
        self._repository = environment["GITHUB_REPOSITORY"]
        self._event = _event(environment.get("GITHUB_EVENT_PATH"))

    def posted(self, text: str, number: int | None) -> str:
        """Write or update the comment; return its address."""
        number = number or self._number()
        found = self._own(number, text.splitlines()[0])
        issues = f"/repos/{self._repository}/issues"
        if found is None:
            answer = self._api.ask("POST", f"{issues}/{number}/comments", {"body": text})
        else:
            answer = self._api.ask("PATCH", f"{issues}/comments/{found}", {"body": text})
        self._require(answer, f"write a comment on pull request {number}")
        return str(answer.json.get("html_url", ""))

    def _number(self) -> int:
        """Return the pull request of the event; of a finished workflow the one whose head it ran."""
        for table in (self._event.get("pull_request"), self._event.get("issue")):
            if isinstance(table, dict) and isinstance(number := cast(_Table, table).get("number"), int):
                return number
        run = self._event.get("workflow_run")
        if isinstance(run, dict):
            return self._number_of_run(cast(_Table, run))
        raise ForgeError("this event has no pull request: run the step on pull_request, or give --pull-request")

    def _number_of_run(self, run: _Table) -> int:
        """Return the open pull request whose head a workflow ran; the event lists none of forks."""
        owner = ((run.get("head_repository") or {}).get("owner") or {}).get("login") or ""
        branch, commit = str(run.get("head_branch") or ""), run.get("head_sha")
        query = f"?state=open&per_page={PER_PAGE}&head={_quoted(f'{owner}:{branch}')}"
        answer = self._api.ask("GET", f"/repos/{self._repository}/pulls{query}")
        self._require(answer, "list pull requests")
        for one in answer.json:
            if one.get("head", {}).get("sha") == commit:
                return int(one["number"])
        raise ForgeError("no open pull request has the commit that was measured: it was closed, or has newer commits")

    def _own(self, number: int, mark: str) -> int | None:
        """Return the id of our comment; one that somebody else wrote could be changed by them later."""
        login = self._login()
        for page in range(1, PAGES + 1):
            path = f"/repos/{self._repository}/issues/{number}/comments?per_page={PER_PAGE}&page={page}"
            answer = self._api.ask("GET", path)
            self._require(answer, f"read the comments of pull request {number}")
            for one in answer.json:
                if str(one.get("body") or "").startswith(mark) and _is_ours(one.get("user") or {}, login):
                    return int(one["id"])
            if len(answer.json) < PER_PAGE:
                break
        return None

    def _login(self) -> str | None:
        """Return whose token it is; None for that of a job, which may not ask and writes as a bot."""
        answer = self._api.ask("GET", "/user")
        return str(answer.json["login"]) if answer.status == 200 else None

    def _require(self, answer: ApiAnswer, deed: str) -> None:
        if answer.status in (200, 201):
            return
        if answer.status in (401, 403, 404):
            raise ForgeError(
                f"{self._api.host}: the token may not {deed} (HTTP {answer.status}): give the job the permission "
                "pull-requests: write; for a fork, post from a workflow_run job"
            )
        raise ForgeError(f"{self._api.host}: could not {deed} (HTTP {answer.status}); see --pull-request and GITHUB_*")


def _is_ours(user: _Table, login: str | None) -> bool:
    return user.get("login") == login if login else user.get("type") == "Bot"


def _quoted(words: str) -> str:
    from urllib.parse import quote

    return quote(words, safe="")


def _event(path: str | None) -> _Table:
    """Return the payload of the job's event; empty without one."""
    try:
        found = json.loads(Path(path).read_text()) if path else {}
    except (OSError, ValueError) as error:
        raise ForgeError(f"GITHUB_EVENT_PATH={path}: not a readable event ({type(error).__name__})") from None
    return cast(_Table, found) if isinstance(found, dict) else {}
