"""The digest as Markdown for a channel, and as HTML for mail, which takes neither style sheets nor scripts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prism_bench.report.gate.markdown import plain_text
from prism_bench.report.templating import environment, micro, moment
from prism_bench.units import ratio_text

_MOST = 12  # kernels named for one reason; the rest is counted


def html(told: Mapping[str, Any]) -> str:
    """Return the digest as an HTML document with its styles in its elements."""
    machines = [{**one, "sections": [(title, items) for title, items in _sections(one) if items]}
                for one in told["machines"]]  # fmt: skip
    return environment().get_template("digest.html").render(told=told, machines=machines)


def markdown(told: Mapping[str, Any]) -> str:
    """Return the digest as Markdown, ending with a newline; names are text, never markup."""
    lines = [f"# Prism Bench, {told['since']} to {told['until']}"]
    for machine in told["machines"]:
        lines += _machine(machine)
    return "\n".join(lines if told["machines"] else [*lines, "", "There is no record."]) + "\n"


def _machine(told: Mapping[str, Any]) -> Iterator[str]:
    nights = f"{told['nights']} run{'s' if told['nights'] != 1 else ''}"
    yield f"\n## {plain_text(told['machine'])}, {plain_text(told['backend'])}: {plain_text(told['headline'])}\n"
    if not told["nights"]:
        yield f"Nothing was measured since then; the newest run is of {moment(told['newest'])}.\n"
    else:
        commit = plain_text((told["commit"] or "none")[:12])
        yield f"{nights}, the newest of {moment(told['newest'])}, commit {commit}.\n"
    for title, items in _sections(told):
        yield from _section(title, items)


def _sections(told: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield every section's title and its items as text, also of sections without items."""
    yield "Worse", [_moved(one) for one in told["worse"]]
    yield "Wrong, or a promise broken", [_about(one) for one in told["wrong"]]
    yield "Cannot be trusted", [_about(one) for one in told["untrusted"]]
    yield "Better", [_moved(one) for one in told["better"]]
    yield "The environment changed", [_ground(one) for one in told["ground"]]
    yield "Unmeasured", [_unmeasured(one) for one in told["unmeasured"]]
    yield "Budgets near their end", [_ending(one) for one in told["ending"]]
    yield "Left out", told["left_out"]


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"**{title}**\n"
        yield from (f"- {plain_text(micro(item))}" for item in items)
        yield ""


def _moved(one: Mapping[str, Any]) -> str:
    return f"{ratio_text(one['ratio'])} {one['message']}"


def _about(one: Mapping[str, Any]) -> str:
    return f"{one['kind']}: {one['about']}{': ' if one['message'] else ''}{one['message']}"


def _ground(one: Mapping[str, Any]) -> str:
    often = f", {one['times']} times" if one["times"] > 1 else ""
    return f"{one['kind']}: {one['words']}, {one['since'][:10]}{often}"


def _unmeasured(one: Mapping[str, Any]) -> str:
    named = ", ".join(one["kernels"][:_MOST])
    rest = len(one["kernels"]) - _MOST
    return f"{named}{f' and {rest} more' if rest > 0 else ''}: {one['reason']}"


def _ending(one: Mapping[str, Any]) -> str:
    word = "ended" if one["expired"] else "ends"
    return f"{one['case']}, {one['metric']} {one['limit']}: {word} {one['expires']}, {one['owner'] or 'no owner'}"
