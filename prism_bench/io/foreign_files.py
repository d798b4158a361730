"""Files that other programs wrote, read whole and within a limit of size; errors name the file and what it is not."""

import re
from pathlib import Path

from prism_bench.errors import ResultsError

LARGEST = 256_000_000  # bytes; a file of a thousand profiled launches with all metrics has some 50 million
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


def bytes_of(path: Path, what: str, largest: int = LARGEST) -> bytes:
    """Return the content of the file; a ResultsError where it cannot be read as `what` or exceeds the limit."""
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        raise ResultsError(f"{path}: not readable as {what}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > largest:
        raise ResultsError(f"{path}: more than {largest / 1e6:.0f} MB, the limit for {what}")
    return data


def text_of(path: Path, what: str) -> str:
    r"""Return the text of the file without its byte order mark; bytes that are no UTF-8 are shown as `\xff`."""
    return bytes_of(path, what).decode("utf-8-sig", "backslashreplace")


def table_text_of(path: Path, what: str) -> str:
    """Return the text of a table; a ResultsError also where its last line has no end: a cell of it may be cut."""
    text = text_of(path, what)
    if text and not text.endswith("\n"):
        raise ResultsError(f"{path}: the last line has no end, so the {what} is cut; export it again")
    return text


def whole_number(text: str, place: str) -> int:
    """Return the number in the text, digits and nothing else; a ResultsError names the place of any other text."""
    if not _WHOLE.fullmatch(text):
        raise ResultsError(f"{place} is {text!r:.40}, not a whole number")
    return int(text)
