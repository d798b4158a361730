"""The gate as GitHub's workflow commands: each concern is shown at the source of its kernel in the pull request.

GitHub shows ten errors and ten warnings of a step and drops the rest: the tenth has the number of those left.
https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from prism_bench.analysis.gate.alerts import command
from prism_bench.analysis.gate.checks import Gate, GateCheck
from prism_bench.catalogue import Catalogue
from prism_bench.report.gate.words import answers, headline, title

_MOST = 10


def lines(gate: Gate, catalogue: Catalogue, root: Path) -> Iterator[str]:
    """Yield a line for each error, each part without an answer, and the headline; paths are relative to `root`."""
    shown = gate.concerns if len(gate.concerns) <= _MOST else gate.concerns[: _MOST - 1]
    for check in shown:
        place = {"file": _source(gate, check, catalogue, root), "title": f"{check.answer}: {check.title}"}
        yield _line("error", place, f"{check.message}\n{command(gate.record, check)}")
    if len(shown) < len(gate.concerns):
        yield _line("error", {"title": headline(gate)}, f"and {len(gate.concerns) - len(shown)} more")
    for part in gate.parts:
        if not part.answered:
            yield _line("warning", {"title": f"{title(part)}: unmeasured"}, answers(part))
    yield _line("notice", {"title": "prism-bench check"}, headline(gate))


def _source(gate: Gate, check: GateCheck, catalogue: Catalogue, root: Path) -> str | None:
    """Return the path of the kernel's source below `root`; None where it is elsewhere or the kernel is unknown."""
    case = gate.record.case(check.case) if check.case else None
    spec = catalogue.kernels.get(case.kernel) if case else None
    source = spec.source_path if spec else None
    return source.relative_to(root).as_posix() if source and source.is_relative_to(root) else None


def _line(kind: str, properties: Mapping[str, str | None], message: str) -> str:
    given = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items() if value)
    return f"::{kind} {given}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
