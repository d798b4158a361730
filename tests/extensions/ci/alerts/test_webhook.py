"""A webhook against a receiver on this machine: taken, tried again, given up; secrets stay secret."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from prism_bench.extensions.ci.alerts import Destination, RetryPolicy, destinations, post

QUICK = RetryPolicy(timeout=5, attempts=3, wait=0.5)
SECRET = "s3cr3t"


@pytest.fixture
def receiver(monkeypatch):
    """A server that answers with the statuses planted in `answers`, the last one for ever, and keeps what it got."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):  # noqa: N802
            server.got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            status, headers = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.answers = [], [(200, {})]
    server.url = f"http://127.0.0.1:{server.server_port}/{SECRET}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def sent(server, url=None, token=None, patience=QUICK):
    """What `post` returned and the waits it asked for."""
    waits = []
    return post(Destination("json", url or server.url, token), {"a": 1}, patience, waits.append), waits


def test_a_message_is_taken(receiver):
    assert (None, []) == sent(receiver, token=SECRET)
    (headers, body), *more = receiver.got
    assert ({"a": 1}, []) == (json.loads(body), more)
    assert ("application/json", f"Bearer {SECRET}") == (headers["Content-Type"], headers["Authorization"])


def test_no_token_no_authorization(receiver):
    sent(receiver)
    assert "Authorization" not in receiver.got[0][0]


def test_the_receivers_trouble_is_waited_out(receiver):
    receiver.answers = [(503, {}), (429, {}), (204, {})]
    assert (None, [0.5, 1.0]) == sent(receiver)


def test_the_receiver_says_how_long_to_wait_within_reason(receiver):
    receiver.answers = [(429, {"Retry-After": "7"}), (429, {"Retry-After": "86400"}), (200, {})]
    assert (None, [7.0, 30.0]) == sent(receiver)


def test_standing_trouble_is_given_up(receiver):
    receiver.answers = [(500, {})]
    assert ("HTTP 500, 3 attempts", [0.5, 1.0]) == sent(receiver)
    assert 3 == len(receiver.got)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_refusal_is_not_asked_again(receiver, status):
    receiver.answers = [(status, {})]
    assert (f"HTTP {status}", []) == sent(receiver)


def test_a_redirect_is_not_followed(receiver):
    receiver.answers = [(302, {"Location": "/elsewhere"}), (200, {})]
    assert ("HTTP 302", []) == sent(receiver, token=SECRET)
    assert 1 == len(receiver.got)


def test_silence_is_not_waited_for(receiver):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/{SECRET}"
        assert ("no answer within 0.05 s, 2 attempts", [0.5]) == sent(receiver, url, patience=RetryPolicy(0.05, 2, 0.5))


def test_nobody_there(receiver):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        reason, waits = sent(receiver, f"http://127.0.0.1:{taken.getsockname()[1]}/{SECRET}")
    assert ("Connection refused, 3 attempts", [0.5, 1.0]) == (reason, waits)


@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "ftp://host/x", "hooks.example.org", "", "http://", "http://[bad", "javascript:0"]
)
def test_only_http_is_spoken(receiver, url):
    reason = post(Destination("json", url), {}, QUICK, pytest.fail)
    assert "not an http or https address" == reason


@pytest.mark.parametrize("token", ["two\nlines", "caf\u20ac"])
def test_a_token_that_no_header_can_hold_is_not_quoted(receiver, token):
    reason, waits = sent(receiver, token=token)
    assert reason and token not in reason and "\n" not in reason
    assert [] == receiver.got


@pytest.mark.parametrize("port", ["notaport", "99999"])
def test_an_impossible_port_is_not_quoted(receiver, port):
    reason, _ = sent(receiver, f"http://127.0.0.1:{port}/{SECRET}")
    assert reason and SECRET not in reason


def test_a_destination_shows_neither_path_nor_password():
    destination = Destination("json", f"https://user:{SECRET}@hooks.example.org/services/{SECRET}", SECRET)
    assert "https://hooks.example.org" == destination.place
    assert SECRET not in repr(destination)


def test_destinations_come_from_the_environment():
    everything = {"PRISM_BENCH_WEBHOOK": "a", "PRISM_BENCH_WEBHOOK_TOKEN": "b", "PRISM_BENCH_SLACK_WEBHOOK": "c"}
    assert [Destination("json", "a", "b"), Destination("slack", "c")] == destinations(everything)
    assert [Destination("json", "a")] == destinations({"PRISM_BENCH_WEBHOOK": "a", "PRISM_BENCH_WEBHOOK_TOKEN": ""})
    assert [] == destinations({"PRISM_BENCH_WEBHOOK": "", "PRISM_BENCH_WEBHOOK_TOKEN": "b"})
