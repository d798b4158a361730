"""What is told, what is known, and what a broken ledger or receiver leaves behind."""

import json
from dataclasses import replace

import pytest

from prism_bench.extensions.ci.alerts import Destination, plain, slack, tell
from prism_bench.record.alert import Alert, Occasion

SLOW = Alert(
    "check", "box", "missed", "softmax[rows=32]", "bad", "cold time is 9 us", ("cold_time",), "sass1", 1.5, "run it"
)
JSON, SLACK = Destination("json", "https://one.example.org/x"), Destination("slack", "https://two.example.org/y")


class Night:
    """One ledger and one receiver over many nights."""

    def __init__(self, folder):
        self.path, self.bodies, self.answer = folder / "alerts" / "box.json", [], None

    def __call__(self, *alerts, states=None, to=(JSON,)):
        """How many alerts each destination was sent tonight; None where it took none."""
        occasion = Occasion("check", "a night", states or {})

        def send(destination, body):
            self.bodies.append(body)
            return self.answer

        self.outcomes = tell(alerts, occasion, self.path, to, send)
        return [outcome.sent for outcome in self.outcomes]


@pytest.fixture
def night(tmp_path):
    return Night(tmp_path)


def test_same_code_no_new_evidence_no_second_alert(night):
    assert [1] == night(SLOW)
    assert [0] == night(SLOW)
    assert [0] == night(replace(SLOW, message="cold time is 9.1 us", severity=1.6))
    assert 1 == len(night.bodies)
    assert "alerts: https://one.example.org: 0 sent, 1 known before" == str(night.outcomes[0])


@pytest.mark.parametrize("evidence", [{"state": "sass2"}, {"severity": 1.7}])
def test_new_evidence_is_told(night, evidence):
    night(SLOW)
    assert [1] == night(replace(SLOW, **evidence))
    assert [0] == night(replace(SLOW, **evidence))


@pytest.mark.parametrize(
    "other", [{"machine": "den"}, {"subject": None}, {"identity": ("hot_time",)}, {"kind": "slower"}, {"source": "m"}]
)
def test_another_thing_is_told(night, other):
    night(SLOW)
    assert [1] == night(SLOW, replace(SLOW, **other))


def test_the_same_thing_twice_in_one_night_is_told_once(night):
    assert [1] == night(SLOW, SLOW)
    assert 1 == len(night.bodies[0]["alerts"])


def test_what_a_change_put_right_is_news_when_it_comes_back(night):
    night(SLOW)
    assert [0] == night(states={"softmax[rows=32]": "sass2"})
    assert [1] == night(SLOW, states={"softmax[rows=32]": "sass1"})


def test_what_flickers_in_the_same_state_is_told_once(night):
    night(SLOW)
    night(states={"softmax[rows=32]": "sass1"})
    assert [0] == night(SLOW)


def test_what_was_not_looked_at_is_not_put_right(night):
    night(SLOW)
    night(states={"another[n=1]": "sass9"})
    assert [0] == night(SLOW)


def test_another_source_puts_nothing_right(night):
    hot = replace(SLOW, source="monitor")
    night(hot)
    night(states={"softmax[rows=32]": "sass2"})
    assert [0] == night(hot)


def test_a_message_that_did_not_arrive_is_sent_again(night):
    night.answer = "HTTP 500, 3 attempts"
    assert [0] == night(SLOW)
    assert "alerts: https://one.example.org: 1 not delivered: HTTP 500, 3 attempts" == str(night.outcomes[0])
    night.answer = None
    assert [1] == night(SLOW)


def test_each_destination_is_told_for_itself(night):
    assert [1] == night(SLOW)
    assert [0, 1] == night(SLOW, to=(JSON, SLACK))


def test_nothing_to_tell_sends_nothing(night):
    assert [0] == night()
    assert [] == night.bodies


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"version": 1}', '{"version": 9, "entries": {}}', '{"version": 1, "entries": {"a": {}}}',
     "<<<<<<< ours", '{"version": 1, "entries": {"a": {"source": "check", "kind": "k", "subject": null, "message": "",'
     ' "told": {"json": {"when": "now"}}}}}'],
)  # fmt: skip
def test_an_unreadable_ledger_is_put_aside_and_everything_is_told(night, content):
    night.path.parent.mkdir()
    night.path.write_text(content)
    assert [0, 1] == night(SLOW)
    assert content == night.path.with_name("box.json.unreadable").read_text()
    assert any("put aside" in str(outcome) and str(night.path) in str(outcome) for outcome in night.outcomes)
    assert [0] == night(SLOW)


def test_a_ledger_that_cannot_be_written_fails_nothing(night):
    night.path.parent.write_text("in the way")
    night(SLOW)
    assert 1 == len(night.bodies)
    assert "will be sent again" in str(night.outcomes[-1])


def test_the_plain_form_holds_every_field_and_the_fingerprint():
    body = json.loads(json.dumps(plain("two findings", [SLOW])))
    (alert,) = body["alerts"]
    assert (1, "two findings") == (body["version"], body["heading"])
    assert {"fingerprint": SLOW.fingerprint, "reproduce": "run it", "subject": SLOW.subject} == {
        name: alert[name] for name in ("fingerprint", "reproduce", "subject")
    }


def test_slack_is_told_the_command_and_wakes_no_channel():
    loud = replace(SLOW, message="<!channel> a & b", reproduce="prism-bench run")
    body = slack("<!here>", [loud])
    texts = [block["text"]["text"] for block in body["blocks"]]
    assert "*&lt;!here&gt;*" == texts[0]
    assert "&lt;!channel&gt; a &amp; b" in texts[1] and texts[1].endswith("\n```prism-bench run```")


def test_slack_refuses_nothing_that_we_send():
    body = slack("many", [replace(SLOW, message="x" * 9000, identity=(str(index),)) for index in range(200)])
    assert len(body["blocks"]) <= 50
    assert all(len(block["text"]["text"]) <= 3000 for block in body["blocks"])
    assert "and 152 more" == body["blocks"][-1]["text"]["text"]
