"""Notes on merge requests of GitLab."""

from collections.abc import Mapping

from prism_bench.errors import ForgeError
from prism_bench.extensions.ci.forges.github import PAGES, PER_PAGE, OpenApi
from prism_bench.extensions.ci.forges.requests import ApiAnswer

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
        found = self._own(notes, text.splitlines()[0])
        answer = self._api.ask("POST" if found is None else "PUT", notes + (f"/{found}" if found else ""),
                               {"body": text})  # fmt: skip
        self._require(answer, "write a note")
        return f"{self._web}/-/merge_requests/{number}#note_{answer.json['id']}"

    def _own(self, notes: str, mark: str) -> int | None:
        """Return the id of our note; a token that may not ask whose it is has none."""
        user = self._api.ask("GET", "/user")
        if user.status != 200:
            return None
        for page in range(1, PAGES + 1):
            answer = self._api.ask("GET", f"{notes}?per_page={PER_PAGE}&page={page}")
            self._require(answer, "read the notes")
            for one in answer.json:
                is_ours = (one.get("author") or {}).get("id") == user.json["id"]
                if is_ours and str(one.get("body") or "").startswith(mark):
                    return int(one["id"])
            if len(answer.json) < PER_PAGE:
                break
        return None

    def _require(self, answer: ApiAnswer, deed: str) -> None:
        if answer.status in (401, 403, 404):
            raise ForgeError(f"{self._api.host}: the token may not {deed} (HTTP {answer.status}): {_TOKEN}")
        if answer.status not in (200, 201):
            raise ForgeError(f"{self._api.host}: could not {deed} (HTTP {answer.status}); see --pull-request and CI_*")
