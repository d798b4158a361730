"""A server on this machine that plays the APIs of GitHub and of GitLab, with faults on request."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

TOKEN = "s3cret-token"
OURS = {"login": "github-actions[bot]", "type": "Bot", "id": 7}


class Forge:
    """What the server knows: `comments` by number of the pull request, `faults` for the next answers, the `log`."""

    def __init__(self):
        self.comments: dict[str, list[dict]] = {"5": []}
        self.faults: list[tuple[int, dict]] = []  # status and headers
        self.forbidden: set[str] = {"/user"}  # a job's token may not ask whose it is
        self.pulls: list[dict] = []
        self.log: list[tuple[str, str]] = []
        self.headers: list[dict] = []

    def answer(self, method, path, query, body):
        parts = path.strip("/").split("/")
        if path in self.forbidden:
            return 403, {}, {"message": "Resource not accessible by integration"}
        if path == "/user":
            return 200, {}, OURS
        if parts[-1] == "pulls":
            return 200, {}, [one for one in self.pulls if one["label"] == query["head"][0]]
        writing = method in ("POST", "PUT", "PATCH")
        if writing and "write" in self.forbidden:
            return 403, {}, {"message": f"no: {TOKEN}"}
        if method in ("PATCH", "PUT"):
            comment = next(one for some in self.comments.values() for one in some if str(one["id"]) == parts[-1])
            comment["body"] = body["body"]
            return 200, {}, comment
        number = parts[-2]
        if number not in self.comments:
            return 404, {}, {"message": "Not Found"}
        if method == "POST":
            found = {"id": 100 + len(self.comments[number]), "body": body["body"], "user": OURS, "author": OURS}
            self.comments[number].append({**found, "html_url": f"https://example.org/{found['id']}"})
            return 201, {}, self.comments[number][-1]
        page, size = int(query["page"][0]), int(query["per_page"][0])
        return 200, {}, self.comments[number][(page - 1) * size : page * size]


@pytest.fixture
def forge():
    """The forge; `url` is where it listens."""
    state = Forge()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self):
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            state.log.append((self.command, parts.path))
            state.headers.append(dict(self.headers))
            if state.faults:
                status, headers, found = *state.faults.pop(0), {"message": TOKEN}
            else:
                status, headers, found = state.answer(self.command, parts.path, parse_qs(parts.query), body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        do_GET = do_POST = do_PATCH = do_PUT = _serve  # noqa: N815

        def log_message(self, *_):
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def github(forge, tmp_path):
    """A function that makes the environment of a job on GitHub for an event."""

    def environment(event=None, **more):
        path = tmp_path / "event.json"
        path.write_text(json.dumps({"pull_request": {"number": 5}} if event is None else event))
        return {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "owner/name", "GITHUB_API_URL": forge.url,
                "GITHUB_TOKEN": TOKEN, "GITHUB_EVENT_PATH": str(path), **more}  # fmt: skip

    return environment


@pytest.fixture
def gitlab(forge):
    """A function that makes the environment of a job on GitLab."""

    def environment(**more):
        found = {"GITLAB_CI": "true", "CI_API_V4_URL": forge.url, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "5",
                 "GITLAB_TOKEN": TOKEN, "CI_PROJECT_URL": "https://gitlab.example/g/p", **more}  # fmt: skip
        return {name: value for name, value in found.items() if value is not None}

    forge.forbidden = set()
    return environment
