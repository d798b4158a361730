"""The source page of Nsight Compute as CSV, `--page source --print-source cuda,sass`: samples of warps by source line.

A page is one launch: for every file a line `File Path`, one `Function Name`, a header that begins with `Line No` and
has `Source` twice, and rows. A row with a line number and no address is a line of source, those below it with an
address are its instructions. Values of a line are sums over its instructions, so instructions alone are counted here,
each once.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from prism_bench.errors import ResultsError
from prism_bench.io.documents import table_text_of

# Samples of an instruction, as versions of ncu title them.
_SAMPLES = ("Warp Stall Sampling (All Samples)", "Warp Stall Sampling (All Cycles)", "# Samples")
_COUNT = re.compile(r"\d+|\d{1,3}([.,]\d{3})+", re.ASCII)
_STALL, _NOT_ISSUED = "stall_", " (Not Issued)"
_WORKING = ("selected", "not_selected")  # such a warp waits for nothing
# ncu's abbreviations of its stall reasons.
_STALLS = {
    "imc": "IMC miss", "lg": "LG throttle", "long_sb": "long scoreboard", "math": "math pipe throttle",
    "mio": "MIO throttle", "no_inst": "no instruction", "short_sb": "short scoreboard", "sleep": "sleeping",
    "tex": "TEX throttle",
}  # fmt: skip


@dataclass
class SampledLine:
    """A line of source: its file without folders, its number from 1, its text where known, its samples by stall."""

    file: str
    line: int
    text: str | None
    samples: int = 0
    stalls: Counter[str] = field(default_factory=Counter)

    def plain(self) -> dict[str, object]:
        """Return the line as a record holds it, with what most of its waiting warps waited for."""
        stall = max(self.stalls, key=lambda name: self.stalls[name], default=None)
        named = _STALLS.get(stall, stall.replace("_", " ")) if stall else None
        return {"file": self.file, "line": self.line, "samples": self.samples, "text": self.text, "stall": named}


def read(path: Path | str) -> list[SampledLine]:
    """Return the lines of the page in the file that have samples; a ResultsError where it holds no such page."""
    return parse(table_text_of(Path(path), "source page of ncu"), str(path))


def parse(text: str, origin: str) -> list[SampledLine]:
    """Return the lines that have samples, in the order of the page.

    A ResultsError where no table of lines and instructions begins in the text, where one has no column of samples, and
    where samples are no whole number.
    """
    page = _Page(origin)
    try:
        for row in csv.reader(io.StringIO(text.lstrip("\ufeff")), strict=True):
            page.take(row)
    except csv.Error as error:
        raise ResultsError(f"{origin}: the page is cut or no CSV ({error})") from error
    if not page.began:
        raise ResultsError(
            f"{origin}: no page of source lines: no header begins with 'Line No'; ncu prints one with --page source "
            "--print-source cuda,sass, of kernels that were compiled with line information"
        )
    return [line for line in page.lines.values() if line.samples]


def together(launches: Iterable[Sequence[SampledLine]]) -> list[dict[str, object]]:
    """Return the lines of several launches added up, as a record holds them, the one with the most samples first."""
    found: dict[tuple[str, int], SampledLine] = {}
    for one in (line for lines in launches for line in lines):
        line = found.setdefault((one.file, one.line), SampledLine(one.file, one.line, one.text))
        line.samples += one.samples
        line.stalls += one.stalls
    return [line.plain() for line in sorted(found.values(), key=lambda line: (-line.samples, line.file, line.line))]


class _Page:
    """What of a page was read so far."""

    def __init__(self, origin: str) -> None:
        self.lines: dict[tuple[str, int], SampledLine] = {}
        self.began = False
        self._origin, self._file, self._line = origin, "", SampledLine("", 0, None)
        self._columns: _Columns | None = None
        self._seen: set[str] = set()  # addresses: an inlined instruction may be on the page twice

    def take(self, row: Sequence[str]) -> None:
        """Take a row: a file, a header, a line of source or one of its instructions; other rows are ncu's messages."""
        first = row[0].strip() if row else ""
        if first in ("File Path", "Function Name", "Kernel Name"):
            self._columns = None
            self._file = _name(row[1]) if first == "File Path" and len(row) > 1 else self._file
        elif first == "Line No":
            self._columns, self.began = _Columns(row, self._origin), True
        elif self._columns is not None and len(row) > self._columns.address:
            self._value(row, self._columns)

    def _value(self, row: Sequence[str], columns: "_Columns") -> None:
        number, address = row[0].strip(), row[columns.address].strip()
        if address.startswith("0x"):
            if address in self._seen or not self._line.line:
                return
            self._seen.add(address)
            self._line.samples += columns.samples_of(row)
            self._line.stalls.update(columns.stalls_of(row))
        elif number.isascii() and number.isdigit() and int(number):
            key = (self._file, int(number))
            self._line = self.lines.setdefault(key, SampledLine(*key, row[1].strip() or None))


class _Columns:
    """The columns of one header."""

    def __init__(self, header: Sequence[str], origin: str) -> None:
        names = [name.strip() for name in header]
        self._origin = origin
        self.address = self._place(names, ("Address",), "an address")
        self._samples = self._place(names, _SAMPLES, "samples of warps; collect the section SourceCounters")
        self._stalls = _stalls(names)

    def _place(self, names: Sequence[str], wanted: Sequence[str], what: str) -> int:
        found = next((name for name in wanted if name in names), None)
        if found is None:
            raise ResultsError(f"{self._origin}: the page of source lines has no column of {what}")
        return names.index(found)

    def samples_of(self, row: Sequence[str]) -> int:
        """Return the samples of an instruction; a ResultsError where its row ends before them."""
        if len(row) <= self._samples:
            raise ResultsError(f"{self._origin}: the row of instruction {row[self.address]:.40} is cut")
        return self._count(row, self._samples)

    def stalls_of(self, row: Sequence[str]) -> dict[str, int]:
        """Return the samples of an instruction by what the warps waited for."""
        return {name: count for name, place in self._stalls.items() if (count := self._count(row, place))}

    def _count(self, row: Sequence[str], place: int) -> int:
        text = row[place].strip() if place < len(row) else ""
        if text in ("", "-", "n/a"):
            return 0
        if not _COUNT.fullmatch(text):
            raise ResultsError(f"{self._origin}: samples are '{text:.40}', not a whole number")
        return int(text.replace(",", "").replace(".", ""))


def _stalls(names: Sequence[str]) -> Mapping[str, int]:
    """Return the columns of stalls by reason, all samples of each."""
    own = {name.removeprefix(_STALL): place for place, name in enumerate(names)
           if name.startswith(_STALL) and not name.endswith(_NOT_ISSUED)}  # fmt: skip
    return {reason: place for reason, place in own.items() if reason not in _WORKING}


def _name(path: str) -> str:
    """Return the name of a file without its folders, which are of one machine."""
    return (PureWindowsPath if "\\" in path else PurePosixPath)(path.strip()).name
