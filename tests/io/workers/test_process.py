"""A worker's events are typed; a line that is no event ends its task, and not the run."""

import pytest

from prism_bench.io.workers import NoEvent, WorkerDied, WorkerEnvironment, decode_event, environment, work


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """A worker whose module has the given text."""
    monkeypatch.syspath_prepend(tmp_path)

    def written(text, **more):
        (tmp_path / "toy_worker.py").write_text(f"import sys\nsys.stdin.readline()\n{text}")
        return WorkerEnvironment("toy_worker", **more)

    return written


def test_an_event_keeps_infinities_and_what_other_versions_add():
    event = decode_event(b'{"results": [{"samples": [NaN, Infinity]}], "begin": "a"}\n')
    assert ["nan", "inf"] == [str(sample) for sample in event["results"][0]["samples"]]
    assert {"begin": "a"} == decode_event(b'{"begin": "a", "later": 1}')


@pytest.mark.parametrize(
    "line", [b"", b"raw\n", b"[]", b"3", b'{"begin": 3}', b'{"results": {}}', b'{"facts": []}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_event_is_an_error(line):
    with pytest.raises(NoEvent):
        decode_event(line)


def test_a_line_that_is_no_event_ends_the_task(worker):
    place = worker("print('{\"begin\": \"a\"}', flush=True)\nprint('raw', flush=True)\nsys.stdin.read()")
    events = work({}, 20.0, place)
    assert {"begin": "a"} == next(events)
    with pytest.raises(WorkerDied, match="wrote what is no event: .*raw") as died:
        next(events)
    assert ("a", "crashed") == (died.value.task, died.value.status)


def test_a_cause_of_the_death_is_reported_before_the_last_line(worker):
    text = "print('cause 7', file=sys.stderr)\nprint('last', file=sys.stderr)\nsys.exit(3)"
    with pytest.raises(WorkerDied, match=r"the process ended \(exit status 3\): last"):
        list(work({}, 20.0, worker(text)))
    with pytest.raises(WorkerDied, match="the cause is 7"):
        list(work({}, 20.0, worker(text, explain=lambda words: "the cause is 7" if "cause 7" in words else None)))


def test_a_worker_has_its_variables_and_imports_what_this_process_does(worker):
    text = "import os, json\nprint(json.dumps({'facts': {'who': os.environ['WHO']}, 'end': True}), flush=True)"
    (event,) = work({}, 20.0, worker(text, variables={"WHO": "them"}))
    assert {"who": "them"} == event["facts"]
    assert "WHO" not in environment()


PEER = """
import json
def say(**event): print(json.dumps(event), flush=True)
say(begin="a")
say(peer="torch", within=1.0)
"""


def death(worker, text, timeout=20.0):
    with pytest.raises(WorkerDied) as died:
        list(work({}, timeout, worker(PEER + text)))
    return died.value


def test_a_peer_has_a_limit_of_its_own(worker):
    died = death(worker, "sys.stdin.read()")
    assert ("a", "torch", "timed out") == (died.task, died.peer, died.status)
    assert "no answer within 1 s, so its process was ended" == died.peer_reason


def test_a_limit_of_a_peer_is_never_longer_than_that_of_its_case(worker):
    died = death(worker, "say(peer='torch', within=500.0)\nsys.stdin.read()", timeout=0.5)
    assert ("timed out", "torch") == (died.status, died.peer)


def test_a_peer_that_ends_its_worker_is_named(worker):
    died = death(worker, "sys.exit(3)")
    assert ("torch", "it crashed: the process ended (exit status 3)") == (died.peer, died.peer_reason)


def test_a_worker_reports_that_a_peer_makes_it_end(worker):
    died = death(worker, "say(spoiled='it leaks')\nsys.stdin.read()")
    assert ("a", "torch", "failed", "it leaks") == (died.task, died.peer, died.status, died.peer_reason)


def test_after_the_last_peer_the_case_itself_is_to_blame(worker):
    died = death(worker, "say(peer='')\nsys.exit(3)")
    assert ("a", None) == (died.task, died.peer)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("/usr/lib/python3/site-packages/torch/bin/ptxas", False),
        ("/opt/cuda/bin/ptxas", True),
        ("torch/bin/ptxas", False),
    ],
)
def test_an_assembler_that_torch_chose_for_itself_is_not_handed_on(value, kept, monkeypatch):
    monkeypatch.setenv("TRITON_PTXAS_PATH", value)
    assert ("TRITON_PTXAS_PATH" in environment()) == kept
