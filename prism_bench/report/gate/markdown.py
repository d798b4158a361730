"""The gate as Markdown for a pull request: what is wrong first, everything else folded away.

The first line is a mark that lets whoever posts it find its own comment again. GitHub takes comments of 65,536
characters: rows that do not fit are counted, never dropped in silence.
"""

import re
from collections.abc import Iterator, Sequence

from prism_bench.analysis.gate.alerts import command
from prism_bench.analysis.gate.checks import Gate, GateCheck, GatePart
from prism_bench.report.gate.words import answers, headline, origin, title
from prism_bench.units import ratio_text

MARK = "<!-- prism-bench check -->"
_LONGEST = 60_000
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$])")


def document(gate: Gate) -> str:
    """Return the Markdown text, ending with a newline."""
    blocks = [MARK, f"## {plain_text(headline(gate))}", plain_text(origin(gate)), _parts(gate)]
    room = _LONGEST - sum(map(len, blocks))
    for heading, rows in (("", _concern_rows(gate)), *_folded(gate)):
        block = _table(heading, rows, room)
        room -= len(block)
        blocks.append(block)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _parts(gate: Gate) -> str:
    rows = [f"| {plain_text(title(part))} | {plain_text(answers(part))} |" for part in gate.parts]
    return "\n".join(["| | |", "|---|---|", *rows])


def _concern_rows(gate: Gate) -> list[str]:
    return [_row(check, f"<br><code>{_html(command(gate.record, check))}</code>") for check in gate.concerns]


def _folded(gate: Gate) -> Iterator[tuple[str, list[str]]]:
    """Yield heading and rows of the other checks with a message, part by part: notes, and good ones."""
    for part in gate.parts:
        others = sorted(_others(part), key=lambda check: check.order)
        if others:
            yield f"{title(part)}: {len(others)} more", [_row(check) for check in others]


def _others(part: GatePart) -> list[GateCheck]:
    return [check for check in part.checks if check.message and not check.grave]


def _row(check: GateCheck, more: str = "") -> str:
    ratio = ratio_text(check.ratio) if check.ratio else ""
    return f"| {plain_text(check.answer)} | {plain_text(check.title)} | {ratio} | {plain_text(check.message)}{more} |"


def _table(heading: str, rows: Sequence[str], room: int) -> str:
    """Return the table of those rows that fit, folded where it has a heading."""
    if not rows:
        return ""
    top = ["| | | ratio | |", "|---|---|---:|---|"]
    fitting = _fitting(rows, room - 400)
    left = [f"\nand {len(rows) - len(fitting)} more: `prism-bench check --json`"] if len(fitting) < len(rows) else []
    table = "\n".join([*(top if fitting else []), *fitting, *left])
    return f"<details><summary>{_html(heading)}</summary>\n\n{table}\n\n</details>" if heading else table


def _fitting(rows: Sequence[str], room: int) -> list[str]:
    fitting = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        fitting.append(row)
    return fitting


def plain_text(words: str) -> str:
    """Return the words escaped for a table's cell: no markup, no second line, no mention of anybody."""
    return _SPECIAL.sub(r"\\\1", " ".join(words.split())).replace("@", "@&#8203;")


def _html(words: str) -> str:
    escaped = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return " ".join(escaped.replace("`", "&#96;").split())
