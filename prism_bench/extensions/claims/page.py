"""The page of a claim: one HTML file that opens from disk, with the claim itself inside."""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from prism_bench.analysis.compare.comparable import device_of
from prism_bench.analysis.compare.medians import medians
from prism_bench.extensions.claims.derived import OWN, interval_text, timed
from prism_bench.extensions.claims.document import PEER, Claim, ClaimSide
from prism_bench.extensions.claims.inside import written_inside
from prism_bench.extensions.claims.picture import badge, ratios_picture, times_picture
from prism_bench.extensions.claims.replay_document import Replay
from prism_bench.io.files import write_atomically
from prism_bench.record.run_record import RunRecord, decode
from prism_bench.report.cells import times_text
from prism_bench.report.templating import environment
from prism_bench.units import count_text, rate_text, time_text

_OPTIONAL = {"clock": "SM clock", "registers": "Registers", "code": "Code"}  # columns that may be unknown to all rows


def claim_page(claim: Claim, replay: Replay | None = None, file: str = "claim.json") -> str:
    """Return the page; `file` is what the command to replay names, and `replay` an answer to show."""
    records = [decode(plain, f"records[{number}]") for number, plain in enumerate(claim.records)]
    record = records[claim.kernel.record]
    rows = [_row(claim, side, records[side.record]) for side in (*claim.sides, *_peer_sides(claim, record))]
    columns = [(name, title) for name, title in _OPTIONAL.items() if any(row[name] != "-" for row in rows)]
    return environment().get_template("claim.html").render(
        claim=claim, replay=replay, file=file, style=_style(), record=record, device=device_of(record),
        times_chart=times_picture(claim), ratios_chart=ratios_picture(claim, replay),
        rows=rows, interval=interval_text(claim.ratio),
        ratio=times_text(claim.ratio.value), refuted=list(_refuted_by(claim)),
        ceilings=[(name, _ceiling(name, rate)) for name, rate in claim.ceilings.items()],
        sources=list(_listings(claim)), parts=claim.sentence.split(","),
        spread=_spread(claim, [row["processes"] for row in rows[:2]]), columns=columns, inside=written_inside(claim),
        has_sources=claim.origin == OWN, measured_by="Prism Bench" if claim.origin == OWN else claim.origin,
    )  # fmt: skip


def show_claim(claim: Claim, replay: Replay | None, places: tuple[Path | None, Path | None], file: str) -> None:
    """Write the page and the badge of a claim where a place is given for them."""
    page, badge_file = places
    if page:
        write_atomically(page, claim_page(claim, replay, file).encode())
    if badge_file:
        write_atomically(badge_file, badge(claim, replay).encode())


def _style() -> str:
    return files("prism_bench.report").joinpath("templates/style.css").read_text("utf-8")


def _peer_sides(claim: Claim, record: RunRecord) -> Iterator[ClaimSide]:
    """Yield the other peers of the kernel's record as sides, for their rows."""
    case = record.case(claim.kernel.case)
    for peer in claim.peers if case else ():
        subject = f"{PEER}{peer.name}"
        found = case.measurement(claim.metric, subject) if case else None
        side = ClaimSide(peer.name, claim.kernel.record, claim.kernel.case, subject, peer.seconds, None, None)
        yield msgspec.structs.replace(timed(side, medians(found.processes)), seconds=peer.seconds) if found else side


def _row(claim: Claim, side: ClaimSide, record: RunRecord) -> dict[str, Any]:
    """Return a row of the table: times, processes, samples, and what is known of the machine code."""
    result = record.case(side.case)
    found = result.measurement(claim.metric, side.subject) if result else None
    entries = [entry for code in side.code for entry in code.entries.values()]
    return {
        "name": side.name, "is_side": side in claim.sides, "time": time_text(side.seconds),
        "interval": _between(side.low, side.high) if side.low and side.high else "-",
        "processes": len(found.processes) if found else 0, "samples": len(found.samples) if found else 0,
        "clock": rate_text(found.clock, "Hz") if found and found.clock else "-",
        "registers": max((entry.get("registers", 0) for entry in entries), default="-"),
        "code": ", ".join(code.sass for code in side.code) or "-",
    }  # fmt: skip


def _between(low: float, high: float) -> str:
    """Return `16.3 to 16.4 us`, with the unit twice where the ends have different ones."""
    first, last = time_text(low), time_text(high)
    number, _, unit = first.partition(" ")
    return f"{number} to {last}" if last.endswith(f" {unit}") else f"{first} to {last}"


def _spread(claim: Claim, processes: Sequence[int]) -> str:
    """Return where the interval comes from, as a sentence."""
    kernel, baseline = (count_text(count, "process", "processes") for count in processes)
    both = f"{kernel} of each side" if kernel == baseline else f"{kernel} of the kernel and {baseline} of its baseline"
    if claim.ratio.low is None:
        return f"No interval is known: the times are of {both}."
    boards = " and from what boards of one kind differ by" if claim.backend == "cuda" else ""
    return f"The 95 % interval comes from the medians of {both}{boards}."


def _refuted_by(claim: Claim) -> Iterator[str]:
    """Yield what a replay would have to find to refute the claim; nothing where it has no sources to replay."""
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
    """Yield by the names of the sides their files; those of both once."""
    kernel, baseline = (dict(_sources(claim, side)) for side in claim.sides)
    names = [side.name for side in claim.sides]
    parts = (
        (" and ".join(names), [one for one in kernel.items() if baseline.get(one[0]) == one[1]]),
        (f"{names[0]} alone", [one for one in kernel.items() if baseline.get(one[0]) != one[1]]),
        (f"{names[1]} alone", [one for one in baseline.items() if kernel.get(one[0]) != one[1]]),
    )
    yield from ((name, listed) for name, listed in parts if listed)


def _sources(claim: Claim, side: ClaimSide) -> Iterator[tuple[str, str]]:
    for path, key in side.files.items():
        file = claim.files[key]
        yield path, file.content if file.encoding == "text" else f"{len(file.content):,} characters of {file.encoding}"
