"""Every error with its cause and cure, and every sentence in which it is said."""

import inspect
import re

from docs.generated.markdown import code, joined, plain, prose, table
from docs.generated.said import UNKNOWN, said
from prism_bench import errors
from prism_bench.profilers import failures

ENDS = {0: "all well", 1: "a finding is bad", 2: "it could not do its work", 3: "what it measured cannot be trusted"}
INTERRUPTED = """\
A command that SIGINT (Ctrl-C), SIGTERM or SIGHUP ended exits with 2, whatever it had found by then, after it has
kept and printed what it has; the next check must not take a part for the whole. Further signals change nothing;
SIGKILL ends it at once and costs what was measured since the last save, which comes every 60 seconds
(`PRISM_BENCH_SAVE_SECONDS`). `monitor` and `exporter`, which are ended so, exit with 0. Where results cannot be
kept, on a full disk for example, a command goes on, prints them, says what is not kept, and exits with 2 too."""
LEAD = """\
The program refuses with one line that says where, what, and what would have been right. Search this page for a few
words of yours: what differs from case to case stands in angle brackets. `prism-bench doctor` looks at the machine
itself; its findings are listed at the end."""


def page() -> str:
    """The whole page."""
    kinds = errors.PrismBenchError.__subclasses__()
    kinds = [kind for kind in kinds if kind.__module__ == errors.__name__]
    sentences = list(said({kind.__name__ for kind in kinds}))
    return joined(
        [
            "# Troubleshooting",
            LEAD,
            "## What a command ends with",
            table(("code", "meaning"), ENDS.items()),
            INTERRUPTED,
            *(_section(kind, [one for one in sentences if one.word == kind.__name__]) for kind in kinds),
            "## Failures of a profiler",
            _failures(),
            "## Findings of the doctor",
            _findings(),
        ]
    )


def paragraphs(kind: type) -> dict[str, str]:
    """The paragraphs of an error's docstring by their first word, `Cause` and `Cure`; `""` is the first one."""
    text = inspect.getdoc(kind)
    pieces = re.split(r"(?:^|\n)(Cause|Cure): ", text)
    found = {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}
    return {word: _sentences(piece) for word, piece in found.items()}


def _sentences(text):
    """One line that begins with a capital, as after a heading it must."""
    line = " ".join(text.split())
    return line[:1].upper() + line[1:]


def _section(kind, sentences):
    told = paragraphs(kind)
    rows = sorted({(plain(one.texts[0]), code(one.place)) for one in sentences if _speaks(one)})
    return joined(
        [
            f"## {kind.__name__}",
            f"{prose(told[''])} A command ends with {kind.exit_code}: {ENDS[kind.exit_code]}.",
            f"**Cause.** {prose(told['Cause'])}",
            f"**Cure.** {prose(told['Cure'])}",
            table(("what it says", "said by"), rows),
        ]
    )


def _speaks(one):
    return bool(one.texts) and one.texts[0] != f"<{UNKNOWN}>" and " " in one.texts[0]


def _failures():
    known = (*failures.FAILURES, failures.EMPTY, failures.MISSING, failures.TIMED_OUT, failures.OTHER)
    rows = [(code(one.name), plain(one.cause), plain(one.cure), one.exit_code) for one in known]
    return table(("failure", "cause", "cure", "ends with"), rows)


def _findings():
    """What the doctor calls broken, missing or worth a note; the last two words of each are cause and cure."""
    rows = [
        (plain(one.texts[0]), one.word, plain(one.texts[-2]), plain(one.texts[-1]))
        for one in said({"broken", "missing", "note"}, "doctor")
        if len(one.texts) >= 3
    ]
    return table(("finding", "state", "cause", "cure"), rows)
