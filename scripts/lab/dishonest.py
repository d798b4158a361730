"""What dishonest and honest kernels and callables get on a device: the outcomes of their tests as one table."""

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from lab import REPOSITORY
from prism_bench.errors import ResultsError
from prism_bench.workflows.compile_table import write_csv

# The tests that plant a kernel or a callable, and hold what must become of it.
TESTS = (
    "tests/run/test_zoo.py",
    "tests/api/test_dishonest_callables.py",
    "tests/api/test_honest_callables.py",
    "tests/run/test_patched_clock.py",
)


@dataclass(frozen=True, order=True)
class Planted:
    """One test of a planted kernel or callable: `what` it holds, `of` which one, and the `outcome`.

    The outcome is `as expected`, `otherwise` or `skipped`; `reason` is why, where it is not the first.
    """

    what: str
    of: str
    outcome: str
    reason: str = ""


def outcomes(junit: Path) -> list[Planted]:
    """Return the tests in pytest's report; a ResultsError where the file is none, or holds no test."""
    try:
        found = [_planted(case) for case in ElementTree.parse(junit).getroot().iter("testcase")]
    except (OSError, ElementTree.ParseError) as error:
        raise ResultsError(f"{junit}: not readable as a report of pytest ({error})") from error
    if not found:
        raise ResultsError(f"{junit}: holds no test; pytest --junitxml writes one")
    return found


def _planted(case: ElementTree.Element) -> Planted:
    what, _, of = case.get("name", "").removeprefix("test_").partition("[")
    outcome, reason = "as expected", ""
    for tag in ("skipped", "error", "failure"):
        for one in case.findall(tag)[:1]:
            outcome = "skipped" if tag == "skipped" else "otherwise"
            reason = " ".join(one.get("message", "").split())[:200]
    return Planted(what.replace("_", " "), of.removesuffix("]"), outcome, reason)


def main() -> int:
    """Run the tests on this device and write the table; return 1 where one got another answer than it must, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", f"--junitxml={report}", *TESTS]
        subprocess.run(command, cwd=REPOSITORY, check=False)
        found = outcomes(report)
    write_csv(sorted(found), chosen.output)
    counts = {word: sum(one.outcome == word for one in found) for word in ("as expected", "otherwise", "skipped")}
    print(f"{', '.join(f'{count} {word}' for word, count in counts.items())}; {chosen.output}")
    return int(counts["otherwise"] > 0)
