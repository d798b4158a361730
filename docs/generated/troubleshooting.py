"""Every error with its cause and cure, and its messages."""

import inspect
import re

from docs.generated.markdown import code, joined, plain, prose, table
from docs.generated.said import UNKNOWN, Said, said
from prism_bench import errors
from prism_bench.profilers import tools

EXIT_CODES = {
    0: "all well",
    1: "a finding is bad",
    2: "it could not do its work",
    3: "what it measured cannot be trusted",
}
INTERRUPTED = """\
A command that SIGINT (Ctrl-C), SIGTERM or SIGHUP ended keeps and prints what it has, and exits with 2 whatever it
had found by then, because a part must not pass for the whole. Further signals change nothing. SIGKILL ends it at once
and loses what was measured since the last save; saves are 60 seconds apart (`PRISM_BENCH_SAVE_SECONDS`). `monitor`
exits with 0 after a signal. If results cannot be kept, on a full disk for example, a command goes on, prints
them with a warning, and exits with 2 too."""
LEAD = """\
An error is one line: where, what is wrong, and what would be right. Search this page for a few words of your message;
parts that differ from case to case are in angle brackets. `prism-bench doctor` checks the machine; its findings are at
the end of the page. [Debugging](../debugging.md) shows what to do step by step."""


def page() -> str:
    """Return the whole page."""
    kinds = errors.kinds()
    sentences = list(said({kind.__name__ for kind in kinds}))
    return joined(
        [
            "# Troubleshooting",
            LEAD,
            "## Exit codes",
            table(("code", "meaning"), EXIT_CODES.items()),
            INTERRUPTED,
            *(_section(kind, [one for one in sentences if one.word == kind.__name__]) for kind in kinds),
            "## Failures of a profiler",
            _failures(),
            "## Findings of the doctor",
            _findings(),
        ]
    )


def paragraphs(kind: type) -> dict[str, str]:
    """Return the paragraphs of an error's docstring by their first word, `Cause` and `Cure`; `""` is the first one."""
    text = inspect.getdoc(kind) or ""
    pieces = re.split(r"(?:^|\n)(Cause|Cure): ", text)
    found = {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}
    return {word: _sentences(piece) for word, piece in found.items()}


def _sentences(text: str) -> str:
    """Return one line that begins with a capital."""
    line = " ".join(text.split())
    return line[:1].upper() + line[1:]


def _section(kind: type[errors.PrismBenchError], sentences: list[Said]) -> str:
    found = paragraphs(kind)
    rows = sorted({(plain(one.texts[0]), code(one.place)) for one in sentences if _speaks(one)})
    return joined(
        [
            f"## {kind.__name__}",
            f"{prose(found[''])} The exit code is {kind.exit_code}: {EXIT_CODES[kind.exit_code]}.",
            f"**Cause.** {prose(found['Cause'])}",
            f"**Cure.** {prose(found['Cure'])}",
            table(("message", "file"), rows),
        ]
    )


def _speaks(one: Said) -> bool:
    return bool(one.texts) and one.texts[0] != f"<{UNKNOWN}>" and " " in one.texts[0]


def _failures() -> str:
    known = (*tools.FAILURES, tools.EMPTY, tools.MISSING, tools.TIMED_OUT, tools.OTHER)
    rows = [(code(one.name), plain(one.cause), plain(one.cure), one.exit_code) for one in known]
    return table(("failure", "cause", "cure", "exit code"), rows)


def _findings() -> str:
    """Return what the doctor calls broken, missing or worth a note; the last two words of each are cause and cure."""
    rows = [
        (plain(one.texts[0]), one.word, plain(one.texts[-2]), plain(one.texts[-1]))
        for one in said({"broken", "missing", "note"}, "doctor")
        if len(one.texts) >= 3
    ]
    return table(("finding", "state", "cause", "cure"), rows)
