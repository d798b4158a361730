"""The digest as Markdown for a channel, and as HTML for mail, which takes neither style sheets nor scripts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prism_bench.report.gate.markdown import plain_text
from prism_bench.report.machine import backend_text
from prism_bench.report.templating import environment, micro, moment
from prism_bench.units import count_text, ratio_text

_MOST = 12  # kernels named for one reason; the rest is counted


def html(digest: Mapping[str, Any]) -> str:
    """Return the digest as an HTML document with its styles in its elements."""
    machines = [{**one, "sections": [(title, items) for title, items in _sections(one) if items]}
                for one in digest["machines"]]  # fmt: skip
    return environment().get_template("digest.html").render(digest=digest, machines=machines)


def markdown(digest: Mapping[str, Any]) -> str:
    """Return the digest as Markdown, ending with a newline; names are text, never markup."""
    lines = [f"# Prism Bench, {digest['since']} to {digest['until']}"]
    for machine in digest["machines"]:
        lines += _machine(machine)
    return "\n".join(lines if digest["machines"] else [*lines, "", "There is no record."]) + "\n"


def _machine(machine: Mapping[str, Any]) -> Iterator[str]:
    nights = count_text(machine["nights"], "run")
    name, backend = plain_text(machine["machine"]), plain_text(backend_text(machine["backend"]))
    yield f"\n## {name}, {backend}: {plain_text(machine['headline'])}\n"
    if not machine["nights"]:
        yield f"Nothing was measured since then; the newest run is of {moment(machine['newest'])}.\n"
    else:
        commit = plain_text((machine["commit"] or "none")[:12])
        yield f"{nights}, the newest of {moment(machine['newest'])}, commit {commit}.\n"
    for title, items in _sections(machine):
        yield from _section(title, items)


def _sections(machine: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield every section's title and its items as text, also of sections without items."""
    yield "Worse", [_moved(one) for one in machine["worse"]]
    yield "Wrong, or a promise broken", [_about(one) for one in machine["wrong"]]
    yield "Cannot be trusted", [_about(one) for one in machine["untrusted"]]
    yield "Better", [_moved(one) for one in machine["better"]]
    yield "The environment changed", [_ground(one) for one in machine["ground"]]
    yield "Unmeasured", [_unmeasured(one) for one in machine["unmeasured"]]
    yield "Budgets near their end", [_ending(one) for one in machine["ending"]]
    yield "Left out", machine["left_out"]


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
