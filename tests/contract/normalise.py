"""What differs from machine to machine, replaced in outputs; and JSON as counts and digests."""

import base64
import gzip
import hashlib
import json
import platform
import re
import socket
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

DIGITS = 6  # of a number with decimals: later ones depend on the processor's vector instructions
SMALL = 1e-13  # numbers below are rounding errors, which differ likewise
SHOWN = 60  # a list or text of more characters is shown as its digest
_STAMP = re.compile(
    r"\b(20\d\d)-?([01]\d)-?([0-3]\d)(?:[T ]([012]\d):?([0-5]\d)(?::?([0-5]\d)(?:\.\d+)?)?(?:Z|\+00:00)?)?"
)  # noqa: E501
_INSTALL = re.compile(r"pip\s+install (?:-e )?(?:'[^']+'|\"[^\"]+\"|[^\s'\"]+)")  # how the product itself was installed
_NOTE = re.compile(
    r"^note\s+\S+\s+is\s+on\s+this\s+machine\s+only:\s+what\s+was\s+written\s+installs\s+\S+\n", re.M
)  # of a checkout
_PACKED = re.compile(r'prism\.unpacked\(\d+, "([A-Za-z0-9+/=]+)"\)')  # of a site: DEFLATE, which builds of zlib vary
_CONTENT_HASH = re.compile(r"(?<=[-/\"])[0-9a-f]{10}(?=\.js|\")")  # of such content, in names of files
_MEASURED = (
    (re.compile(r"^(?:nightly: )?\d+ s: .*\n", re.MULTILINE), ""),  # progress, printed by the clock
    (re.compile(r"time of the run:[\s\S]*?\d \w+\s+and\s+\d+ \w+\s+of\s+\d+ \w+"), "time of the run: #"),
    (re.compile(r"(?<![\w.\[=])\d+(?:\.\d+)?(\s)(s|min|h|MB)\b"), r"#\1\2"),
    (re.compile(r"(?<= files of )\d+(?:\.\d+)?(?= kB)"), "#"),  # of a claim, whose samples have more or fewer digits
    (re.compile(r"(?<=backend numpy_reference: ).*"), "CPU"),
    (re.compile(r"\b\d\d:\d\d:\d\d UTC"), "TIME"),
    (re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,64}\b"), "HASH"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
)
# Values of a record or report that were measured on this machine, or describe it.
LOCAL = {
    "created", "host", "machine", "software", "spent", "time_spent", "window_seconds", "duration", "untimed", "timed",
    "seconds", "preparing", "timestamp", "uptime_seconds", "sampler", "verifying", "compiling", "compile_seconds",
}  # fmt: skip


class Normaliser:
    """Replace places, names, versions and present dates of this machine."""

    def __init__(self, places: Mapping[str, str], began: datetime):
        names = {socket.gethostname(): "HOST", platform.node(): "HOST", platform.release(): "KERNEL"}
        ordered = sorted(places.items(), key=lambda pair: -len(pair[0]))
        self._places = [
            (re.compile(re.escape(place) + r"(?![\w-])"), name) for place, name in ordered if len(place) > 1
        ]  # noqa: E501
        self._names = [(re.compile(rf"\b{re.escape(name)}\b"), to) for name, to in names.items() if name]
        self._texts: dict[tuple[str, bool], str] = {}
        self._began = began - timedelta(minutes=1)

    def text(self, text: str, *, measured: bool = False) -> str:
        """Return the text without what is local; of a measured one also without durations and sizes."""
        original = text
        if (original, measured) in self._texts:
            return self._texts[original, measured]
        for place, name in self._places:
            text = place.sub(name, text)
        text = _NOTE.sub("", _INSTALL.sub("pip install EXTRA", text))
        if measured:
            for host, name in self._names:
                text = host.sub(name, text)
            for pattern, replacement in _MEASURED:
                text = pattern.sub(replacement, text)
        self._texts[original, measured] = _STAMP.sub(self._stamp, text)
        return self._texts[original, measured]

    def _stamp(self, match: re.Match[str]) -> str:
        """Return DATE for a date since the tests began; others belong to records."""
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
        try:
            written = datetime(year, month, day, hour, minute, second)
        except ValueError:
            return match[0]
        return "DATE" if written.date() >= self._began.date() and (not match[4] or written >= self._began) else match[0]

    def values(self, value: object, *, measured: bool = False, key: str = "") -> object:
        """Return JSON values without what is local, and with rounded numbers."""
        if measured and key in LOCAL:
            return f"<{key}>"
        if isinstance(value, dict):
            return {self.text(name): self.values(member, measured=measured, key=name) for name, member in value.items()}
        if isinstance(value, list):
            return [self.values(member, measured=measured) for member in value]
        if isinstance(value, float):
            return 0.0 if abs(value) < SMALL else float(f"{value:.{DIGITS}g}")
        return self.text(without_hashes(value), measured=measured) if isinstance(value, str) else value


def digest(value: object, depth: int = 2) -> str:
    """Return JSON values as lines: short values whole, longer ones as counts and digests, `depth` levels down."""
    return "\n".join(_lines(value, "", depth))


def _lines(value, name, depth):
    text = json.dumps(value, sort_keys=isinstance(value, dict))
    where = name or "."
    if len(text) <= SHOWN:
        yield f"{where}: {text}"
    elif isinstance(value, dict) and depth and len(value) <= SHOWN:
        for key, member in value.items():
            yield from _lines(member, f"{name}.{key}", depth - 1)
    else:
        yield f"{where}: {_kind(value)} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        if isinstance(value, list) and all(isinstance(row, dict) for row in value) and depth:
            for key in sorted({key for row in value for key in row}):
                column = [row[key] for row in value if key in row]
                content = json.dumps(column, sort_keys=True).encode()
                yield f"{name}[].{key}: {len(column)} {hashlib.sha256(content).hexdigest()[:8]}"


def _kind(value):
    if isinstance(value, (dict, list)):
        return f"{'object' if isinstance(value, dict) else 'list'} of {len(value)}"
    return f"text of {len(value)}"


def digest_of_text(text: str) -> str:
    """Return the number of lines of a text, and its digest."""
    return f"{text.count(chr(10))} lines {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def digest_of_file(path: Path, normaliser: Normaliser, *, measured: bool = False) -> str:
    """Return a digest of what a file holds, packed or not."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
        if not measured:  # a copy of a committed record
            return f"{len(content)} bytes {hashlib.sha256(content).hexdigest()[:12]}"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{len(content)} bytes {hashlib.sha256(content).hexdigest()[:12]}"
    try:
        text = json.dumps(normaliser.values(json.loads(text), measured=measured))
    except ValueError:
        text = normaliser.text(without_hashes(_PACKED.sub(_unpacked, text)), measured=measured)
    return digest_of_text(text)


def without_hashes(text: str) -> str:
    """Return the text without hashes of packed content."""
    return _CONTENT_HASH.sub("HASH", text)


def _unpacked(match: re.Match[str]) -> str:
    return zlib.decompress(base64.b64decode(match[1]), -zlib.MAX_WBITS).decode()
