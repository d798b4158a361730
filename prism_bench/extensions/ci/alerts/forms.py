"""The bodies that a webhook is sent: a plain JSON document, and the form that Slack shows."""

from collections.abc import Sequence
from typing import Any

from prism_bench.record.alert import Alert

VERSION = 1
# Slack refuses a message of more than 50 blocks, or a block of more than 3,000 characters.
_MOST_BLOCKS, _LONGEST_BLOCK = 48, 3000


def plain(heading: str, alerts: Sequence[Alert]) -> dict:
    """`version`, `heading`, and every field of every alert with its `fingerprint`."""
    return {
        "version": VERSION,
        "heading": heading,
        "alerts": [{"fingerprint": alert.fingerprint, **vars(alert)} for alert in alerts],
    }


def slack(heading: str, alerts: Sequence[Alert]) -> dict:
    """One block for the heading and one for each alert; what does not fit is counted in the last."""
    shown = alerts[:_MOST_BLOCKS]
    left = len(alerts) - len(shown)
    texts = [f"*{_escaped(heading)}*", *map(_slack_text, shown), *([f"and {left} more"] if left else [])]
    return {"text": _escaped(heading), "blocks": [_block(text) for text in texts]}


def _slack_text(alert: Alert) -> str:
    subject = f"`{_escaped(alert.subject)}` " if alert.subject else ""
    said = f"*{_escaped(alert.kind)}* {subject}{_escaped(alert.message)}"
    command = f"\n```{_escaped(alert.reproduce)}```" if alert.reproduce else ""
    command = command if len(command) < _LONGEST_BLOCK / 2 else ""
    return said[: _LONGEST_BLOCK - len(command)] + command


def _block(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _escaped(text: str) -> str:
    """Slack's three: a name with `<!channel>` in it must not wake a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


FORMS = {"json": plain, "slack": slack}
