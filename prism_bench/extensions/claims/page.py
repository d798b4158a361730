"""Views of claims and replays: HTML page, badge, terminal text and JSON."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.analysis.compare.comparable import device_of
from prism_bench.analysis.compare.estimate import medians
from prism_bench.errors import UsageError
from prism_bench.extensions.claims.document import (
    OWN,
    PEER,
    Claim,
    ClaimRatio,
    ClaimSide,
    interval_text,
    timed,
    written_inside,
)
from prism_bench.extensions.claims.replaying import AnswerWord, Replay
from prism_bench.io.files import write_atomically
from prism_bench.record.run_record import RunRecord, decode
from prism_bench.report.headline import times_text
from prism_bench.report.templating import environment, micro
from prism_bench.units import bytes_text, count_text, rate_text, time_text

_WIDTH, _ROW, _LEFT = 480, 46, 4  # pixels of a picture, of a row of it, and of its margin
_COLOURS: dict[AnswerWord | None, str] = {
    "reproduced": "#1d6b43",
    "not reproduced": "#a8261b",
    "partly reproduced": "#8a5a00",
    "cannot be decided here": "#62656b",
    None: "#1f4e8c",
}
_STYLES: dict[AnswerWord, str] = {
    "reproduced": "green",
    "not reproduced": "red",
    "partly reproduced": "yellow",
    "cannot be decided here": "yellow",
}
_OPTIONAL = {"clock": "SM clock", "registers": "Registers", "code": "Code"}  # columns that all rows may lack


def require_places(places: Sequence[Path | None], operands: Sequence[str]) -> None:
    """Raise a UsageError for a place of `--output` that is a folder or a file that the command reads."""
    inputs = {Path(operand).resolve() for operand in operands if Path(operand).is_file()}
    for place in places:
        if place and place.is_dir():
            raise UsageError(f"--output {place}: it is a folder; name a file in it")
        if place and place.resolve() in inputs:
            raise UsageError(f"--output {place}: the command reads this file; name another one to write")


def show_claim(claim: Claim, replay: Replay | None, places: tuple[Path | None, Path | None], file: str) -> None:
    """Write the page and the badge of a claim to the places that are not None."""
    page, badge_file = places
    if page:
        write_atomically(page, claim_page(claim, replay, file).encode())
    if badge_file:
        write_atomically(badge_file, badge(claim, replay).encode())


def claim_json(claim: Claim) -> dict[str, Any]:
    """Return the claim as plain values, without the contents of files and the records."""
    plain: dict[str, Any] = msgspec.to_builtins(claim)
    return {key: value for key, value in plain.items() if key not in ("files", "records")}


def claim_view(claim: Claim) -> RenderableType:
    """Return the sentence, both sides and the missing parts for a terminal."""
    return Group(Text(claim.sentence, "bold"), *(Text(f"  {line}") for line in _claim_lines(claim)))


def _claim_lines(claim: Claim) -> Iterator[str]:
    for side in claim.sides:
        interval = f", {time_text(side.low)} to {time_text(side.high)}" if side.low and side.high else ""
        yield f"{side.name}: {time_text(side.seconds)}{interval}"
    size = sum(len(file.content) for file in claim.files.values())
    yield (
        f"{claim.metric.replace('_', ' ')}, {count_text(len(claim.files), 'file')} "
        f"of {bytes_text(size)}, {claim.digest}"
    )
    yield from (f"missing: {entry}" for entry in claim.missing)


def replay_json(replay: Replay) -> dict[str, Any]:
    """Return the replay as plain values."""
    return msgspec.to_builtins(replay)


def replay_view(replay: Replay) -> RenderableType:
    """Return the sentence, the answer and the checks for a terminal."""
    head = Text(replay.answer.word, _STYLES[replay.answer.word]) + Text(f": {replay.answer.because}")
    lines = [f"{check.what}: {check.result}{f' ({check.text})' if check.text else ''}" for check in replay.checks]
    if replay.here:
        lines.insert(0, f"here, on {replay.device}: {times_text(replay.here.value)}, {interval_text(replay.here)}")
    return Group(Text(replay.sentence), head, *(Text(f"  {line}") for line in lines))


# The badge, an SVG file


def badge(claim: Claim, replay: Replay | None = None) -> str:
    """Return a badge as an SVG file: the kernel, its ratio and, for a replay, the answer."""
    word = replay.answer.word if replay else None
    left = claim.kernel.name
    right = f"{times_text(claim.ratio.value)} of {claim.baseline.name.partition(' (')[0]}: {word or 'claimed'}"
    widths = [round(_width(text)) + 16 for text in (left, right)]
    whole = sum(widths)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" '
        f'aria-label="{escape(f"{left}: {right}", quote=True)}"><title>{escape(claim.sentence)}</title>'
        f'<rect width="{whole}" height="20" rx="3" fill="{_COLOURS[word]}"/>'
        f'<path d="M3 0h{widths[0] - 3}v20h-{widths[0] - 3}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#33363b"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f"{_badge_text(left, widths[0] / 2, widths[0])}"
        f"{_badge_text(right, widths[0] + widths[1] / 2, widths[1])}</g></svg>\n"
    )


def _width(text: str) -> float:
    """Return the approximate width of a text in Verdana of 11 pixels, in pixels."""
    return sum(4.2 if letter in "ijlftr.,:;'|()[] " else 10.2 if letter in "mwMW" else 7.0 for letter in text)


def _badge_text(text: str, middle: float, width: int) -> str:
    return f'<text x="{middle:g}" y="14" textLength="{width - 16}">{escape(text)}</text>'


# The page, a self-contained HTML file with the claim inside


def claim_page(claim: Claim, replay: Replay | None = None, file: str = "claim.json") -> str:
    """Return the page; its replay command names `file`, and it shows the answer of `replay`."""
    records = [decode(plain, f"records[{number}]") for number, plain in enumerate(claim.records)]
    record = records[claim.kernel.record]
    rows = [_row(claim, side, records[side.record]) for side in (*claim.sides, *_peer_sides(claim, record))]
    columns = [(name, title) for name, title in _OPTIONAL.items() if any(row[name] != "-" for row in rows)]
    return (
        environment()
        .get_template("claim.html")
        .render(
            claim=claim,
            replay=replay,
            file=file,
            style=files("prism_bench.report").joinpath("templates/style.css").read_text("utf-8"),
            record=record,
            device=device_of(record),
            times_chart=_times_chart(claim),
            ratios_chart=_ratios_chart(claim, replay),
            rows=rows,
            interval=interval_text(claim.ratio),
            ratio=times_text(claim.ratio.value),
            refuted=list(_refuted_by(claim)),
            ceilings=[(name, _ceiling(name, rate)) for name, rate in claim.ceilings.items()],
            sources=list(_listings(claim)),
            parts=claim.sentence.split(","),
            spread=_spread(claim, [row["processes"] for row in rows[:2]]),
            columns=columns,
            inside=written_inside(claim),
            has_sources=claim.origin == OWN,
            measured_by="Prism Bench" if claim.origin == OWN else claim.origin,
        )
    )


def _peer_sides(claim: Claim, record: RunRecord) -> Iterator[ClaimSide]:
    """Yield the other peers of the kernel's record as sides, for their rows."""
    case = record.case(claim.kernel.case)
    if case is None:
        return
    for peer in claim.peers:
        subject = f"{PEER}{peer.name}"
        times = case.measurement(claim.metric, subject)
        side = ClaimSide(peer.name, claim.kernel.record, claim.kernel.case, subject, peer.seconds, None, None)
        yield msgspec.structs.replace(timed(side, medians(times.processes)), seconds=peer.seconds) if times else side


def _row(claim: Claim, side: ClaimSide, record: RunRecord) -> dict[str, Any]:
    """Return a row of the table: times, processes, samples, and the known machine code."""
    result = record.case(side.case)
    times = result.measurement(claim.metric, side.subject) if result else None
    entries = [entry for code in side.code for entry in code.entries.values()]
    return {
        "name": side.name,
        "is_side": side in claim.sides,
        "time": time_text(side.seconds),
        "interval": _between(side.low, side.high) if side.low and side.high else "-",
        "processes": len(times.processes) if times else 0,
        "samples": len(times.samples) if times else 0,
        "clock": rate_text(times.clock, "Hz") if times and times.clock else "-",
        "registers": max((entry.get("registers", 0) for entry in entries), default="-"),
        "code": ", ".join(code.sass for code in side.code) or "-",
    }


def _between(low: float, high: float) -> str:
    """Return `16.3 to 16.4 us`, with both units if they differ."""
    first, last = time_text(low), time_text(high)
    number, _, unit = first.partition(" ")
    return f"{number} to {last}" if last.endswith(f" {unit}") else f"{first} to {last}"


def _spread(claim: Claim, processes: Sequence[int]) -> str:
    """Return the origin of the interval as a sentence."""
    kernel, baseline = (count_text(count, "process", "processes") for count in processes)
    both = f"{kernel} of each side" if kernel == baseline else f"{kernel} of the kernel and {baseline} of its baseline"
    if claim.ratio.low is None:
        return f"No interval is known: the times are of {both}."
    boards = " and from what boards of one kind differ by" if claim.backend == "cuda" else ""
    return f"The 95 % interval comes from the medians of {both}{boards}."


def _refuted_by(claim: Claim) -> Iterator[str]:
    """Yield the results of a replay that would refute the claim; nothing for a claim without sources."""
    low, high = claim.ratio.low, claim.ratio.high
    if claim.origin != OWN:
        return
    yield "An output of either side that is further from the reference than its tolerance, on any seed."
    if low is not None and high is not None:
        yield f"A ratio on the same kind of device whose 95 % interval does not meet {interval_text(claim.ratio)}."
    if any(side.code for side in claim.sides):
        yield "Sources that compile to other instructions than the machine code inside, by the same compiler."
    yield f"A faster way to call {claim.baseline.name} that computes the same outputs."


def _ceiling(name: str, rate: float) -> str:
    if name == "launch":
        return time_text(rate)
    return rate_text(rate, "B/s" if name.endswith("bandwidth") else "FLOP/s")


def _listings(claim: Claim) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the files of both sides, of only the kernel, and of only the baseline, under the names of the sides."""
    texts = {
        key: file.content if file.encoding == "text" else f"{len(file.content):,} characters of {file.encoding}"
        for key, file in claim.files.items()
    }
    kernel, baseline = ({path: texts[key] for path, key in side.files.items()} for side in claim.sides)
    names = [side.name for side in claim.sides]
    parts = (
        (" and ".join(names), [(path, text) for path, text in kernel.items() if baseline.get(path) == text]),
        (f"{names[0]} alone", [(path, text) for path, text in kernel.items() if baseline.get(path) != text]),
        (f"{names[1]} alone", [(path, text) for path, text in baseline.items() if kernel.get(path) != text]),
    )
    yield from ((name, listed) for name, listed in parts if listed)


# Pictures of the page: both times, and the ratios, on one axis


@dataclass(frozen=True)
class _Bar:
    """Row of a picture: its text, its value as text, the value with its interval, and its colour."""

    text: str
    value: str
    centre: float
    low: float | None
    high: float | None
    colour: str


def _times_chart(claim: Claim) -> str:
    """Return both medians with their intervals, in seconds from 0, as an `<svg>` element."""
    bars = [
        _Bar(side.name, time_text(side.seconds), side.seconds, side.low, side.high, colour)
        for side, colour in ((claim.kernel, "accent"), (claim.baseline, "third"))
    ]
    return _picture(bars, f"medians of {claim.kernel.name} and {claim.baseline.name}", base=0.0)


def _ratios_chart(claim: Claim, replay: Replay | None) -> str:
    """Return the claimed, expected and replayed ratio, with a line at 1, as an `<svg>` element."""
    bars = [_ratio_bar("claimed", claim.ratio, "accent")]
    if replay and replay.expected != claim.ratio:
        bars.append(_ratio_bar(f"expected on {replay.device}", replay.expected, "second"))
    if replay and replay.here:
        bars.append(_ratio_bar(f"replayed on {replay.device}", replay.here, "warm"))
    return _picture(bars, "claimed and replayed ratios", base=1.0, mark=True)


def _ratio_bar(text: str, ratio: ClaimRatio, colour: str) -> _Bar:
    return _Bar(text, times_text(ratio.value), ratio.value, ratio.low, ratio.high, colour)


def _picture(bars: Sequence[_Bar], label: str, *, base: float, mark: bool = False) -> str:
    """Return bars that begin at `base`, and a line at `base` if it is a `mark`."""
    ends = [base, *(end for bar in bars for end in (bar.centre, bar.low, bar.high) if end is not None)]
    margin = (max(ends) - min(ends)) * 0.04 or 1.0
    low, high = min(ends) - margin * mark, max(ends) + margin
    scale = (_WIDTH - 2 * _LEFT) / (high - low)

    def place(value: float) -> float:
        return round(_LEFT + (value - low) * scale, 1)

    body = "".join(part for number, bar in enumerate(bars) for part in _drawn(bar, number * _ROW, place, base))
    if mark:
        lines = "".join(f"M{place(base)} {number * _ROW + 20}v20" for number in range(len(bars)))
        body += f'<path d="{lines}" stroke="var(--ink)" stroke-dasharray="3 2"/>'
    return (
        f'<svg class="chart" role="img" aria-label="{escape(label, quote=True)}" '
        f'viewBox="0 0 {_WIDTH} {_ROW * len(bars) + 4}">{body}</svg>'
    )


def _drawn(bar: _Bar, top: int, place: Callable[[float], float], base: float) -> Iterator[str]:
    """Yield the elements of a row: its texts, its bar and its interval."""
    text = 'font-size="14" fill="var(--{})"'
    yield f'<text x="{_LEFT}" y="{top + 16}" {text.format("muted")}>{escape(bar.text)}</text>'
    yield (
        f'<text x="{_WIDTH - _LEFT}" y="{top + 16}" {text.format("ink")} text-anchor="end" font-weight="600">'
        f"{escape(micro(bar.value))}</text>"
    )
    left, right = sorted((place(base), place(bar.centre)))
    yield f'<rect x="{left}" y="{top + 24}" width="{max(right - left, 1):g}" height="12" fill="var(--{bar.colour})"/>'
    if bar.low is not None and bar.high is not None:
        y, start, end = top + 30, place(bar.low), place(bar.high)
        path = f"M{start} {y}H{end}M{start} {y - 8}v16M{end} {y - 8}v16"
        yield f'<path d="{path}" stroke="var(--ink)" stroke-width="1.5" fill="none"/>'
