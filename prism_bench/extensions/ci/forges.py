"""Comments on pull requests of GitHub and merge requests of GitLab."""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

from prism_bench.errors import ForgeError
from prism_bench.io.documents import json_text

# Requests to the API of a forge: with time limits and retries; errors never contain the token.

_TIMEOUT = 20.0  # seconds of one attempt
_ATTEMPTS = 4
_LONGEST_WAIT = 120.0  # seconds in all; a limit that is reset later is an error
_LARGEST = 20_000_000  # bytes of an answer
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ApiAnswer:
    """Answer of the API: its `status`, the parsed JSON, and its headers."""

    status: int
    json: Any = None
    headers: Message = field(default_factory=Message, repr=False)

    @property
    def limited(self) -> bool:
        """Whether a rate limit refused the request."""
        remaining = self.headers.get("X-RateLimit-Remaining") or self.headers.get("RateLimit-Remaining")
        return self.status == 429 or (self.status == 403 and (remaining == "0" or "Retry-After" in self.headers))

    def wait(self, now: float) -> float | None:
        """Return after how many seconds the limit allows the next request; None if no header names a time."""
        after = (self.headers.get("Retry-After") or "").strip()
        if after.isdecimal():
            return float(after)
        reset = (self.headers.get("X-RateLimit-Reset") or self.headers.get("RateLimit-Reset") or "").strip()
        return max(float(reset) - now, 1.0) if reset.isdecimal() else None


class Api:
    """API of a forge at `url`; `headers` hold the token, which leaves this class only in requests."""

    def __init__(self, url: str, headers: Mapping[str, str], sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(url)
        if not parts.hostname or not (parts.scheme == "https" or parts.hostname in _LOCAL):
            raise ForgeError(f"the API's address has to begin with https://, and is {parts.scheme}://{parts.hostname}")
        self._url, self._headers, self._sleep = url.rstrip("/"), dict(headers), sleep
        self.host = parts.hostname

    def __repr__(self) -> str:
        return f"Api({self.host})"

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> ApiAnswer:
        """Return the answer, whatever its status; ForgeError without an answer, or if a limit takes too long."""
        waited, reason = 0.0, ""
        for attempt in range(_ATTEMPTS):
            answer, reason = self._attempt(method, path, body)
            if answer is not None and not answer.limited and answer.status < 500:
                return answer
            wait = (answer.wait(time.time()) if answer is not None and answer.limited else None) or 2.0**attempt
            if waited + wait > _LONGEST_WAIT:
                raise ForgeError(f"{self.host}: rate limit for {wait:.0f} s more; run the command again after that")
            if attempt < _ATTEMPTS - 1:
                self._sleep(wait)
                waited += wait
        raise ForgeError(f"{self.host}: {reason}, {_ATTEMPTS} attempts; run the command again when it answers")

    def _attempt(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[ApiAnswer | None, str]:
        """Return the answer of one attempt and the problem, in a text that cannot contain the token."""
        data = None if body is None else json_text(body).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "prism-bench", **self._headers}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.build_opener(_RedirectsRefused).open(request, timeout=_TIMEOUT) as response:
                return ApiAnswer(response.status, json.loads(response.read(_LARGEST) or b"null"), response.headers), ""
        except urllib.error.HTTPError as error:
            with error:
                answer = ApiAnswer(error.code, None, error.headers)
            return answer, "rate limit" if answer.limited else f"HTTP {error.code}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            return None, f"no answer ({type(error).__name__})"


class _RedirectsRefused(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token along to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_PAGES, _PER_PAGE = 30, 100
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
        comment = self._find_own(number, text.splitlines()[0])
        issues = f"/repos/{self._repository}/issues"
        if comment is None:
            answer = self._api.ask("POST", f"{issues}/{number}/comments", {"body": text})
        else:
            answer = self._api.ask("PATCH", f"{issues}/comments/{comment}", {"body": text})
        self._require(answer, f"write a comment on pull request {number}")
        return str(answer.json.get("html_url", ""))

    def _number(self) -> int:
        """Return the pull request of the event; of a finished workflow, the pull request whose head it ran."""
        for table in (self._event.get("pull_request"), self._event.get("issue")):
            if isinstance(table, dict) and isinstance(number := cast(_Table, table).get("number"), int):
                return number
        run = self._event.get("workflow_run")
        if isinstance(run, dict):
            return self._number_of_run(cast(_Table, run))
        raise ForgeError("this event has no pull request: run the step on pull_request, or give --pull-request")

    def _number_of_run(self, run: _Table) -> int:
        """Return the open pull request whose head a workflow ran; the event does not list those of forks."""
        owner = ((run.get("head_repository") or {}).get("owner") or {}).get("login") or ""
        branch, commit = str(run.get("head_branch") or ""), run.get("head_sha")
        query = f"?state=open&per_page={_PER_PAGE}&head={quote(f'{owner}:{branch}', safe='')}"
        answer = self._api.ask("GET", f"/repos/{self._repository}/pulls{query}")
        self._require(answer, "list pull requests")
        for request in answer.json:
            if request.get("head", {}).get("sha") == commit:
                return int(request["number"])
        raise ForgeError("no open pull request has the commit that was measured: it was closed, or has newer commits")

    def _find_own(self, number: int, mark: str) -> int | None:
        """Return the id of our comment; a comment that somebody else wrote could be changed by them later."""
        token_user = self._api.ask("GET", "/user")
        # A job's token may not ask for its user, and writes as a bot.
        login = str(token_user.json["login"]) if token_user.status == 200 else None
        for page in range(1, _PAGES + 1):
            path = f"/repos/{self._repository}/issues/{number}/comments?per_page={_PER_PAGE}&page={page}"
            answer = self._api.ask("GET", path)
            self._require(answer, f"read the comments of pull request {number}")
            for comment in answer.json:
                user = comment.get("user") or {}
                is_ours = user.get("login") == login if login else user.get("type") == "Bot"
                if is_ours and str(comment.get("body") or "").startswith(mark):
                    return int(comment["id"])
            if len(answer.json) < _PER_PAGE:
                break
        return None

    def _require(self, answer: ApiAnswer, deed: str) -> None:
        if answer.status in (200, 201):
            return
        if answer.status in (401, 403, 404):
            raise ForgeError(
                f"{self._api.host}: the token may not {deed} (HTTP {answer.status}): give the job the permission "
                "pull-requests: write; for a fork, post from a workflow_run job"
            )
        raise ForgeError(f"{self._api.host}: could not {deed} (HTTP {answer.status}); see --pull-request and GITHUB_*")


def _event(path: str | None) -> _Table:
    """Return the payload of the job's event; empty without one."""
    try:
        event = json.loads(Path(path).read_text()) if path else {}
    except (OSError, ValueError) as error:
        raise ForgeError(f"GITHUB_EVENT_PATH={path}: not a readable event ({type(error).__name__})") from None
    return cast(_Table, event) if isinstance(event, dict) else {}


_TOKEN = "set GITLAB_TOKEN, a masked variable with a project access token of scope api and role Reporter"


class GitLab:
    """The project and the merge request of a job, by GitLab's own variables."""

    def __init__(self, environment: Mapping[str, str], open_api: OpenApi) -> None:
        token, job = environment.get("GITLAB_TOKEN"), environment.get("CI_JOB_TOKEN")
        if not token and not job:
            raise ForgeError(f"no token: {_TOKEN}")
        headers = {"PRIVATE-TOKEN": token} if token else {"JOB-TOKEN": job or ""}
        self._api = open_api(environment.get("CI_API_V4_URL") or "https://gitlab.com/api/v4", headers)
        self._project = environment.get("CI_MERGE_REQUEST_PROJECT_ID") or environment.get("CI_PROJECT_ID") or ""
        self._number = environment.get("CI_MERGE_REQUEST_IID") or ""
        self._web = environment.get("CI_MERGE_REQUEST_PROJECT_URL") or environment.get("CI_PROJECT_URL") or ""

    def posted(self, text: str, number: int | None) -> str:
        """Write or update the note; return its address."""
        number = number or (int(self._number) if self._number.isdecimal() else None)
        if number is None or not self._project.isdecimal():
            raise ForgeError(
                "this pipeline has no merge request: run the job for merge_request_event, or give --pull-request"
            )
        notes = f"/projects/{self._project}/merge_requests/{number}/notes"
        note = self._find_own(notes, text.splitlines()[0])
        answer = self._api.ask("POST" if note is None else "PUT", notes + (f"/{note}" if note else ""), {"body": text})
        self._require(answer, "write a note")
        return f"{self._web}/-/merge_requests/{number}#note_{answer.json['id']}"

    def _find_own(self, notes: str, mark: str) -> int | None:
        """Return the id of our note; None if the token may not ask for its user."""
        user = self._api.ask("GET", "/user")
        if user.status != 200:
            return None
        for page in range(1, _PAGES + 1):
            answer = self._api.ask("GET", f"{notes}?per_page={_PER_PAGE}&page={page}")
            self._require(answer, "read the notes")
            for note in answer.json:
                is_ours = (note.get("author") or {}).get("id") == user.json["id"]
                if is_ours and str(note.get("body") or "").startswith(mark):
                    return int(note["id"])
            if len(answer.json) < _PER_PAGE:
                break
        return None

    def _require(self, answer: ApiAnswer, deed: str) -> None:
        if answer.status in (401, 403, 404):
            raise ForgeError(f"{self._api.host}: the token may not {deed} (HTTP {answer.status}): {_TOKEN}")
        if answer.status not in (200, 201):
            raise ForgeError(f"{self._api.host}: could not {deed} (HTTP {answer.status}); see --pull-request and CI_*")


def posted(
    text: str,
    number: int | None = None,
    environment: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Write the comment whose first line is the mark of `text`, or update it; return its address.

    `number` is that of the pull request, by default that of the job's event. Raise ForgeError with the remedy without
    a token, permission, pull request or answer.
    """
    known = os.environ if environment is None else environment
    if known.get("GITLAB_CI"):
        forge = GitLab(known, lambda url, headers: Api(url, headers, sleep))
    elif known.get("GITHUB_REPOSITORY"):
        forge = GitHub(known, lambda url, headers: Api(url, headers, sleep))
    else:
        raise ForgeError(
            "this is no job of GitHub or GitLab: run it there, or set GITHUB_REPOSITORY=owner/name and GITHUB_TOKEN "
            "and give --pull-request"
        )
    return forge.posted(text, number)
