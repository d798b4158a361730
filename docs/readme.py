"""Parts of pages that show records and claims: an answer in the README, peers, claims, fusion's table, verdicts.

    scripts/readme [RECORD]

writes them anew, from the newest record of the machine that the README is about. Tests compare.
"""

import argparse
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from docs import measured
from docs.claims import PAGE, KeptClaims
from prism_bench.analysis.peers import HeadlineRow
from prism_bench.analysis.run_analysis import read
from prism_bench.catalogue import discover
from prism_bench.cli import options
from prism_bench.errors import ResultsError
from prism_bench.io.files import write_atomically
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.report.headline import case_text, headline_text, labels_text, mean_text, times_text
from prism_bench.report.plain import machine_name
from prism_bench.report.terminal.record import summary_view

ROOT = Path(__file__).resolve().parents[1]
RECORDS = Path("reports/runs/nvidia-h200")
BEGIN, END = "<!-- scripts/readme writes the lines from here -->", "<!-- to here -->"
EXPLAINED = "softmax"  # the kernel whose time the README explains
LINES = (("layer_norm", "S1"), ("matmul", "S1"), ("softmax", "S1"), ("vector_add", "S1"))
FUSION = Path("docs/pages/guides/fusion.md")
PEERS = Path("docs/pages/guides/peers.md")
MOST_LARGE = 6  # of the ratios that are named apart; the others are counted
WIDTH = 160  # of the table, which loses its last columns
TERMINAL = 80  # columns of what the README shows
_PART = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)


def newest(folder: Path = ROOT / RECORDS) -> Path:
    """Return the newest record of the machine that the README is about; a ResultsError where there is none."""
    found = max(folder.glob("*.json.gz"), default=None)
    if found is None:
        raise ResultsError(f"{folder} holds no record")
    return found


def with_part(text: str, part: str) -> str:
    """Return the page with a new part; a ResultsError where it does not have the marks around it once."""
    if len(_PART.findall(text)) != 1:
        raise ResultsError(f"the page has to have {BEGIN!r} once, and {END!r} after it")
    return _PART.sub(lambda _: part, text)


def explanation_of(path: Path) -> str:
    """Return the README's part: what `show --why` prints of the record at `path`, a path below the repository."""
    words = ["show", "--why", EXPLAINED, path.as_posix()]
    environment = {**os.environ, "COLUMNS": str(TERMINAL)}
    command = [sys.executable, "-m", "prism_bench", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise ResultsError(f"prism-bench {' '.join(words)}: {done.stderr.strip()}")
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    command_text = f"$ .venv/bin/prism-bench {' '.join(words[:-1])} \\\n    {words[-1]}"
    return "\n".join([BEGIN, "```console", command_text, printed, "```", END])


def against_peers(path: Path, claims: KeptClaims) -> str:
    """Return the part of the page on peers, about the record at `path`, a path below the repository."""
    record = store.read(ROOT / path)
    devices = len(record.uuids)
    count = f"{devices}" if devices > 1 else "one"
    table = _table(record)
    sections = [
        f"These are lines of the newest record of {count} {machine_name(record)} in the repository:",
        f'```bash title="needs a committed record"\nprism-bench show --all {path.as_posix()}\n```',
        "```text\n" + "\n".join(table) + "\n```",
        *_claimed(record, table[1:], claims),
        *_headline(record),
    ]
    return "\n".join([BEGIN, "\n\n".join(sections), END])


def _claimed(record: RunRecord, lines: list[str], claims: KeptClaims) -> list[str]:
    """Return the sentence about the lines that are claims; nothing where none is."""
    names = {(case.kernel, case.label): case.name for case in record.cases if not case.variant}
    shown = {names[line.split()[0], line.split()[1]]: line.split()[-1] for line in lines}
    sentence = claims.sentence(shown)
    return [textwrap.fill(sentence, 120, break_on_hyphens=False)] if sentence else []


def _table(record: RunRecord) -> list[str]:
    """Return the header and the chosen lines as `show` prints them, up to the column of peers."""
    console = options.plain_console(width=WIDTH)
    with console.capture() as captured:
        console.print(summary_view(read(record, discover(), must_be_held=False), everything=True))
    lines = re.sub(r"\x1b\[[\d;]*m", "", captured.get()).splitlines()
    header = next(line for line in lines if re.match(r"kernel +label .* verdict", line))
    chosen = [line for line in lines if tuple(line.split()[:2]) in LINES]
    end, label = header.index(" peer ") + len(" peer "), header.index(" label")
    name = max(len(kernel) for kernel, _ in LINES)
    return [f"{line[:name]} {line[label:end]}".rstrip() for line in (header, *chosen)]


def _headline(record: RunRecord) -> list[str]:
    """Return the headline as Markdown: the table by class, what it means, and the large ratios by name."""
    text = headline_text(read(record).against_peers, brief=True)
    table = ["| workloads | class of peer | cases | mean | below 1.00 | worst |", "|---|---|---|---|---|---|"]
    table += [_markdown(row) for row in text.rows]
    named, more = "; ".join(text.large[:MOST_LARGE]), len(text.large) - MOST_LARGE
    large = [f"{text.large_title}: {named}{f'; {more} more are in the record' if more > 0 else ''}."] if named else []
    return ["\n".join(table), *(textwrap.fill(words, 120) for words in (" ".join(text.notes), *large))]


def _markdown(row: HeadlineRow) -> str:
    worst = f"{times_text(row['worst']['ratio'])} {case_text(row['worst'])}"
    cells = (labels_text(row), row["peers"], row["cases"], mean_text(row), row["below"], worst)
    return f"| {' | '.join(str(cell).replace('~', chr(92) + '~') for cell in cells)} |"


def pages(record: Path) -> dict[Path, str]:
    """Return by path below the repository the text of every page that has such a part."""
    claims = KeptClaims(ROOT, discover())
    chains = f"{BEGIN}\n{claims.chains()}\n{END}"
    measurements = f"{BEGIN}\n\n{measured.measured_part((ROOT / measured.PAGE).parent)}\n\n{END}"
    parts = {
        Path("README.md"): explanation_of(record),
        PEERS: against_peers(record, claims),
        FUSION: chains,
        measured.PAGE: measurements,
    }
    return {PAGE: claims.page(), **{path: with_part((ROOT / path).read_text(), part) for path, part in parts.items()}}


def main() -> None:
    """Write the parts anew and print which record they are of."""
    parser = argparse.ArgumentParser(prog="readme", description="Write what pages show of records and claims.")
    parser.add_argument("record", nargs="?", type=Path, help=f"the record (default: the newest in {RECORDS})")
    chosen: Path | None = parser.parse_args().record
    record = (chosen or newest()).resolve().relative_to(ROOT)
    for path, text in pages(record).items():
        write_atomically(ROOT / path, text.encode())
        print(f"{path}: {record}")


if __name__ == "__main__":
    main()
