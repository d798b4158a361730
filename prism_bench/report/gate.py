"""The gate's answers for every reader: sentences, Markdown, JUnit XML, GitHub annotations, JSON and webhooks."""

import platform
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from prism_bench.analysis.gate.checks import Gate, GateCheck, GatePart, command, failing, failure, occasion
from prism_bench.analysis.gate.checks import alerts as alerts_of
from prism_bench.catalogue import Catalogue
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.extension import offered
from prism_bench.io.files import path_part, write_atomically
from prism_bench.record.alert import Alert, Occasion
from prism_bench.record.run_record import STATUSES
from prism_bench.report.headline import counted_text
from prism_bench.report.plain import backend_name, backend_text, machine_name
from prism_bench.spec.metric import timed_on
from prism_bench.units import change_text, count_text

# The gate in words that every output shares: one sentence, one line for each part.

PARTS = {
    "run": "The run itself",
    "budgets": "Budgets",
    "baseline": "Against the baseline",
    "last": "Against the last record",
    "trend": "Trend",
}
_COMPARED = ("the last run", "an earlier run", "the baseline")
_THAN = {"last": "when last measured", "baseline": "in the baseline"}  # a case's last run may be an earlier one
_AGAINST = {"last": "the last measurement", "baseline": "the baseline"}
_UNDECIDED = "Undecided"  # leads the sentence of a gate that passes and of which most is open
_SLOWER, _FASTER = ("slower", "degraded"), ("faster",)
_Piece = tuple[str, str]  # the word that leads a sentence which begins with it, and the piece


def headline(gate: Gate) -> str:
    """Return the verdict as one sentence: `Worse: 2 cases slower than when last measured, 3 budgets missed.`, say.

    The gravest comes first. Each comparison is named; a gate that misses budgets and nothing else reports what became
    faster, too, and one without concerns that, or that most of a comparison is undecided.
    """
    if gate.exit_code == 2:
        return f"Nothing was timed: {gate.untimed}." if gate.untimed else "Nothing could be judged."
    wrong, missed = [*_untrusted(gate), *_broken(gate), *_slower(gate)], _missed(gate)
    better = [piece for piece in _well(gate) if piece[0] == "Better"] if missed and not wrong else []
    pieces = [*wrong, *missed, *better] or _well(gate)
    if not pieces:
        return f"No problem: {_passed(gate)}; nothing to compare with yet."
    return f"{pieces[0][0]}: {', '.join(text for _, text in pieces)}."


def is_undecided(gate: Gate) -> bool:
    """Return whether the gate passes while a comparison leaves most of its cases open: that is no good news."""
    return headline(gate).startswith(f"{_UNDECIDED}:")


def _untrusted(gate: Gate) -> list[_Piece]:
    untrusted = [(part, check) for part in gate.parts for check in part.checks if check.gravity == "untrusted"]
    cases = {check.case for _, check in untrusted if check.case}
    against = {_compared_with(part, check) for part, check in untrusted if not check.case}
    pieces = [f"{count_text(len(cases), 'case')} cannot be trusted"] if cases else []
    pieces += [f"the comparison with {record} cannot be trusted" for record in _COMPARED if record in against]
    pieces += ["the run cannot be trusted"] if against - set(_COMPARED) else []
    return [("Untrusted", record) for record in pieces]


def _compared_with(part: GatePart, check: GateCheck) -> str:
    """Return which record the check of a comparison is about; the part's name where it compares none."""
    if part.name != "last":
        return _AGAINST["baseline"] if part.name == "baseline" else part.name
    newest = next((other.against for other in part.checks if other.case), check.against)
    return "the last run" if check.against == newest else "an earlier run"


def _broken(gate: Gate) -> list[_Piece]:
    """Return how many cases did not end well, by status, and how often anything else is bad about the run."""
    bad = Counter(check.answer for part in _words_parts(gate, "run") for check in part.checks if check.gravity == "bad")
    return [
        (
            "Wrong" if word in ("wrong", "failed") else "Broken",
            f"{count_text(count, 'case')} {word}" if word in STATUSES else f"{count} {word}",
        )
        for word, count in bad.most_common()
    ]


def _slower(gate: Gate) -> list[_Piece]:
    texts = [f"{count_text(len(cases), 'case')} slower than {text}" for text, cases in _changed(gate, _SLOWER)]
    steps = sum(check.gravity == "bad" for part in _words_parts(gate, "trend") for check in part.checks)
    shifts = sum(check.gravity == "bad" and check.answer == "shift" for check in gate.checks)
    texts += [f"{count_text(steps, 'step')} for the worse in the trend"] if steps else []
    texts += ["other software made every case slower"] if shifts else []
    return [("Worse", text) for text in texts]


def _missed(gate: Gate) -> list[_Piece]:
    missed = sum(check.gravity == "bad" for part in _words_parts(gate, "budgets") for check in part.checks)
    return [("Below budget", f"{count_text(missed, 'budget')} missed")] if missed else []


def _well(gate: Gate) -> list[_Piece]:
    """Return what became faster, else what was compared and is the same; nothing where nothing was compared."""
    faster = [f"{count_text(len(cases), 'case')} faster than {text}" for text, cases in _changed(gate, _FASTER)]
    if faster:
        undecided = {case for name in _THAN for case in _answered(gate, name, ("inconclusive",))}
        left = undecided - {case for _, cases in _changed(gate, _FASTER) for case in cases}
        more = [f"{len(left)} undecided"] if left else []
        return [("Better", text) for text in [*faster, "none slower", *more]]
    pieces = [piece for name in _THAN if (piece := _same(gate, name))]
    level = any(
        check.answer == "level" and check.answered for part in _words_parts(gate, "trend") for check in part.checks
    )
    pieces += [("No change", "no step in the trend")] if level else []
    return sorted(pieces, key=lambda piece: piece[0] != _UNDECIDED)


def _same(gate: Gate, name: str) -> _Piece | None:
    """Return how many cases are the same as in the record compared with, and how many are undecided.

    A comparison that decides fewer cases than it leaves open shows no change of none: it is undecided. The factor of
    the baseline, which a case keeps as `steady`, decides nothing about a case that statistics leave open.
    """
    undecided = _answered(gate, name, ("inconclusive",))
    same = len(_answered(gate, name, ("same", "steady")) - undecided)
    if len(undecided) > same:
        settled = f", {same} as fast" if same else ""
        return _UNDECIDED, f"{count_text(len(undecided), 'case')} compared with {_AGAINST[name]}{settled}"
    if not same:
        return None
    open_words = f", {len(undecided)} undecided" if undecided else ""
    return "No change", f"{count_text(same, 'case')} as fast as {_THAN[name]}{open_words}"


def _answered(gate: Gate, name: str, answers: Collection[str]) -> set[str]:
    """Return the cases of kernels that have one of the answers in the part of that name."""
    checks = (check for part in _words_parts(gate, name) for check in part.checks)
    ceilings = {case.name for case in gate.record.cases if case.ceiling}
    return {check.case for check in checks if check.case and check.answer in answers} - ceilings


def _changed(gate: Gate, answers: Collection[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield what was compared with and the cases that have one of the answers against it; remarks do not count.

    Two comparisons with the same cases are one: `when last measured and in the baseline`.
    """
    texts: dict[frozenset[str], list[str]] = {}
    for name, text in _THAN.items():
        checks = [check for part in _words_parts(gate, name) for check in part.checks if not check.remark]
        if cases := frozenset(check.case for check in checks if check.case and check.answer in answers):
            texts.setdefault(cases, []).append(text)
    yield from ((" and ".join(compared), set(cases)) for cases, compared in texts.items())


def _passed(gate: Gate) -> str:
    """Return how many checks ended well and how many budgets are met."""
    answers_of = {"check": ("run", "ok"), "budget": ("budgets", "met")}
    counts = {
        word: sum(check.answer == answer for part in _words_parts(gate, name) for check in part.checks)
        for word, (name, answer) in answers_of.items()
    }
    return ", ".join(f"{count_text(count, word)} {answers_of[word][1]}" for word, count in counts.items() if count)


def _words_parts(gate: Gate, name: str) -> list[GatePart]:
    return [part for part in gate.parts if part.name == name]


def origin(gate: Gate) -> str:
    """Return where, when and from which sources the record was measured."""
    record = gate.record
    changed = " with uncommitted changes" if record.dirty else ""
    commit = f"commit {record.commit[:8]}{changed}" if record.commit else "no commit"
    backend = backend_text(backend_name(record))
    return f"{machine_name(record)}, {backend}, {record.created} UTC, {commit}, {gate.path.name}"


def answers(part: GatePart) -> str:
    """Return answers with counts, like `142 met, 3 missed`, the most frequent first, or why nothing was checked."""
    counts = Counter(check.answer for check in part.checks)
    counted = ", ".join(counted_text(count, answer) for answer, count in counts.most_common())
    return "; ".join(text for text in (counted, part.silent) if text) or "nothing to ask"


def title(part: GatePart) -> str:
    """Return the part's name as a heading."""
    return PARTS.get(part.name, part.name.capitalize())


# The gate as GitHub's workflow commands: each concern is shown at the source of its kernel in the pull request.
#
# GitHub shows ten errors and ten warnings of a step and drops the rest: the tenth has the number of those left.
# https://docs.github.com/actions/reference/workflow-commands-for-github-actions

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
    shown = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items() if value)
    return f"::{kind} {shown}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


# The alerts of a gate, delivered to the environment's webhooks; failed deliveries are reported, and no more.

_FAILURES = "failures.json"  # the machine's name is unknown where the gate could not judge anything
Report = Callable[[str], None]


@contextmanager
def failures(folder: Path, report: Report) -> Iterator[None]:
    """Send an alert where the body ends with an error of the package; `report` takes lines about the delivery."""
    try:
        yield
    except PrismBenchError as error:
        _fail(str(error), folder, report)
        raise


def send(passed: Gate, folder: Path, report: Report) -> None:
    """Send the alerts of a gate, and the end of failures before it; a gate that could judge nothing is a failure."""
    if passed.exit_code == 2:
        _fail(headline(passed), folder, report)
        return
    _deliver([], failing(platform.node(), ""), folder / _FAILURES, report, send=False)
    _deliver(
        alerts_of(passed), occasion(passed, headline(passed)), folder / f"{path_part(passed.machine)}.json", report
    )


def _fail(reason: str, folder: Path, report: Report) -> None:
    host = platform.node()
    _deliver([failure(host, reason)], failing(host, reason), folder / _FAILURES, report)


def _deliver(alerts: Sequence[Alert], about: Occasion, path: Path, report: Report, *, send: bool = True) -> None:
    delivery = offered("alert delivery")
    if delivery is None:
        if send:
            report("alerts: none is sent: no extension that delivers them is installed")
        return
    webhooks = delivery()
    if send and not webhooks.has_webhook:
        report("alerts: no webhook; set PRISM_BENCH_WEBHOOK or PRISM_BENCH_SLACK_WEBHOOK")
    for outcome in webhooks.deliver(alerts, about, path, send=send):
        report(str(outcome))


# The gate as JUnit XML: a suite for each part, a test for each check.
#
# A bad answer is a failure, one that cannot be trusted an error, one without a verdict is skipped: a report of tests
# must not count an unmeasured budget among those that passed.

# What XML 1.0 cannot hold, not even escaped (section 2.2).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(gate: Gate) -> str:
    """Return the XML document as text; every part has a suite, also one without any check."""
    root = Xml.Element("testsuites", name="prism-bench check")
    for part in gate.parts:
        root.append(_suite(gate, part))
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _suite(gate: Gate, part: GatePart) -> Xml.Element:
    tests = [_test(gate, part, check) for check in part.checks] or [_silent(part)]
    kinds = Counter(child.tag for test in tests for child in test)
    counts = {"failures": kinds["failure"], "errors": kinds["error"], "skipped": kinds["skipped"]}
    attributes = {"name": f"prism-bench.{part.name}", "tests": len(tests), **counts, "timestamp": gate.record.created}
    suite = Xml.Element("testsuite", {name: _clean(str(value)) for name, value in attributes.items()})
    suite.extend(tests)
    return suite


def _test(gate: Gate, part: GatePart, check: GateCheck) -> Xml.Element:
    test = _named(part, check.title)
    if check.grave:
        tag = "failure" if check.gravity == "bad" else "error"
        body = Xml.SubElement(test, tag, message=_clean(check.message), type=_clean(check.answer))
        body.text = _clean(f"{check.message}\n{command(gate.record, check)}")
    elif check.gravity == "note":
        Xml.SubElement(test, "skipped", message=_clean(f"{check.answer}: {check.message}"))
    return test


def _silent(part: GatePart) -> Xml.Element:
    test = _named(part, "nothing to ask")
    Xml.SubElement(test, "skipped", message=_clean(part.silent or "nothing to ask"))
    return test


def _named(part: GatePart, name: str) -> Xml.Element:
    return Xml.Element("testcase", classname=f"prism-bench.{part.name}", name=_clean(name))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


# The gate as Markdown for a pull request: what is wrong first, everything else folded away.
#
# The first line is a mark by which the poster finds its comment again. GitHub takes comments of 65,536
# characters: rows that do not fit are counted, never dropped in silence.

MARK = "<!-- prism-bench check -->"
_LONGEST = 60_000
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$])")


def gate_markdown(gate: Gate) -> str:
    """Return the Markdown text, ending with a newline."""
    blocks = [MARK, f"## {plain_text(headline(gate))}", plain_text(origin(gate)), _parts(gate)]
    room = _LONGEST - sum(map(len, blocks))
    concerns = [_row(check, f"<br><code>{_html(command(gate.record, check))}</code>") for check in gate.concerns]
    for heading, rows in (("", concerns), *_folded(gate)):
        block = _table(heading, rows, room)
        room -= len(block)
        blocks.append(block)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _parts(gate: Gate) -> str:
    rows = [f"| {plain_text(title(part))} | {plain_text(answers(part))} |" for part in gate.parts]
    return "\n".join(["| | |", "|---|---|", *rows])


def _folded(gate: Gate) -> Iterator[tuple[str, list[str]]]:
    """Yield heading and rows of the other checks with a message, part by part: notes, and good ones."""
    for part in gate.parts:
        others = [check for check in part.checks if check.message and not check.grave]
        others.sort(key=lambda check: check.order)
        if others:
            yield f"{title(part)}: {len(others)} more", [_row(check) for check in others]


def _row(check: GateCheck, more: str = "") -> str:
    ratio = change_text(check.ratio) if check.ratio else ""
    return f"| {plain_text(check.answer)} | {plain_text(check.title)} | {ratio} | {plain_text(check.message)}{more} |"


def _table(heading: str, rows: Sequence[str], room: int) -> str:
    """Return the table of those rows that fit, folded where it has a heading."""
    if not rows:
        return ""
    top = ["| | | change | |", "|---|---|---:|---|"]
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


def plain_text(text: str) -> str:
    """Return the words escaped for a table's cell: no markup, no second line, no mention of anybody."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("@", "@&#8203;")


def _html(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return " ".join(escaped.replace("`", "&#96;").split())


# The gate's answers in files: Markdown for a pull request, JUnit XML for a CI system.


def write_files(gate: Gate, markdown: Path | None, junit: Path | None) -> None:
    """Write the files that are named, each whole or not at all; raise a ResultsError where one cannot be written."""
    for path, document in ((markdown, gate_markdown), (junit, junit_xml)):
        try:
            if path:
                write_atomically(path, document(gate).encode())
        except OSError as error:
            raise ResultsError(f"cannot write {path}: {error.strerror}") from error


# The gate for programs.


def attention(gate: Gate) -> dict[str, Any]:
    """Return what `show` and `run` begin with: the `sentence` of the gate, and what needs `attention`, worst first."""
    concerns = [
        {
            "verdict": check.answer,
            "case": check.case,
            "metric": check.metric,
            "message": check.message,
            "ratio": check.ratio,
            "reproduce": command(gate.record, check),
        }
        for check in gate.concerns
    ]
    return {"sentence": headline(gate), "attention": concerns}


def view(gate: Gate) -> dict[str, Any]:
    """Return `exit_code`, `headline`, the record's facts, and `parts` with their checks; concerns have `reproduce`."""
    record = gate.record
    facts = {name: getattr(record, name) for name in ("created", "commit", "dirty", "backend", "complete")}
    return {
        "exit_code": gate.exit_code,
        "headline": headline(gate),
        "record": str(gate.path),
        "machine": gate.machine,
        **facts,
        "timed": timed_on(record.backend),
        "parts": [
            {
                "name": part.name,
                "silent": part.silent,
                "checks": [
                    {**vars(check), "reproduce": command(gate.record, check) if check.grave else None}
                    for check in part.checks
                ],
            }
            for part in gate.parts
        ],
    }
