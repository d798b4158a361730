"""The gate's answers in files: Markdown for a pull request, JUnit XML for a CI system."""

from pathlib import Path

from prism_bench.analysis.gate.checks import Gate
from prism_bench.errors import ResultsError
from prism_bench.io.files import write_atomically
from prism_bench.report.gate import junit as xml
from prism_bench.report.gate import markdown as text


def write_files(gate: Gate, markdown: Path | None, junit: Path | None) -> None:
    """Write the files that are named, each whole or not at all; raise a ResultsError where one cannot be written."""
    for path, document in ((markdown, text.document), (junit, xml.document)):
        try:
            if path:
                write_atomically(path, document(gate).encode())
        except OSError as error:
            raise ResultsError(f"cannot write {path}: {error.strerror}") from error
