"""What differs from machine to machine, replaced in outputs; and JSON as counts and digests."""

import hashlib
import json
import platform
import re
import socket
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

DIGITS = 6  # of a number with decimals: later ones depend on the processor's vector instructions
SMALL = 1e-13  # numbers below are rounding errors, which differ likewise
SHOWN = 60  # a list or text of more characters is shown as its digest
_STAMP = re.compile(r"\b(20\d\d)-?([01]\d)-?([0-3]\d)(?:[T ]([012]\d):?([0-5]\d)(?::?([0-5]\d)(?:\.\d+)?)?(?:Z|\+00:00)?)?")
_INSTALL = re.compile(r"pip install (?:-e )?(['\"]?)[^\s'\"]+\1")  # how the product itself was installed
_DURATION = re.compile(r"(?<![\w.\[=])\d+(?:\.\d+)? (s|min|h|ms|MB|GB|kB|B)\b")
# Values of a record or report that were measured on this machine, or describe it.
LOCAL = {
    "created", "host", "software", "spent", "duration", "untimed", "timed", "seconds", "preparing", "verifying", "kernel_s",
    "compiling", "compile_seconds", "machine", "version", "python", "release",
}  # fmt: skip


class Normaliser:
    """Replace places, names, versions and present dates of this machine."""

    def __init__(self, places: Mapping[str, str], began: datetime):
        names = {socket.gethostname(): "HOST", platform.node(): "HOST", platform.release(): "KERNEL"}
        ordered = sorted(places.items(), key=lambda pair: -len(pair[0]))
        self._places = [(re.compile(re.escape(place) + r"(?![\w-])"), name) for place, name in ordered if len(place) > 1]
        self._names = [(re.compile(rf"\b{re.escape(name)}\b"), to) for name, to in names.items() if name]
        self._began = began - timedelta(minutes=1)

    def text(self, text: str, *, measured: bool = False) -> str:
        """Return the text without what is local; of a measured one also without durations and sizes."""
        for place, name in self._places:
            text = place.sub(name, text)
        text = _INSTALL.sub("pip install EXTRA", text)
        if measured:
            for host, name in self._names:
                text = host.sub(name, text)
            text = _DURATION.sub(r"# \1", text)
        return _STAMP.sub(self._stamp, text)

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
            return {self.text(name): self.values(one, measured=measured, key=name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.values(one, measured=measured) for one in value]
        if isinstance(value, float):
            return 0.0 if abs(value) < SMALL else float(f"{value:.{DIGITS}g}")
        return self.text(value, measured=measured) if isinstance(value, str) else value


def digest(value: object, depth: int = 2) -> str:
    """Return JSON values as lines: short values whole, longer ones as counts and digests, `depth` levels down."""
    return "\n".join(_lines(value, "", depth))


def _lines(value, name, depth):
    text = json.dumps(value, sort_keys=isinstance(value, dict))
    where = name or "."
    if len(text) <= SHOWN:
        yield f"{where}: {text}"
    elif isinstance(value, dict) and depth and len(value) <= SHOWN:
        for key, one in value.items():
            yield from _lines(one, f"{name}.{key}", depth - 1)
    else:
        yield f"{where}: {_kind(value)} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        if isinstance(value, list) and all(isinstance(one, dict) for one in value) and depth:
            for key in sorted({key for one in value for key in one}):
                column = [one[key] for one in value if key in one]
                yield f"{name}[].{key}: {len(column)} {hashlib.sha256(json.dumps(column, sort_keys=True).encode()).hexdigest()[:8]}"


def _kind(value):
    if isinstance(value, (dict, list)):
        return f"{'object' if isinstance(value, dict) else 'list'} of {len(value)}"
    return f"text of {len(value)}"


def digest_of_text(text: str) -> str:
    """Return the number of lines of a text, its digest, and its first line."""
    first = text.partition("\n")[0][:80]
    return f"{text.count(chr(10))} lines {hashlib.sha256(text.encode()).hexdigest()[:12]} {first}"


def digest_of_file(path: Path, normaliser: Normaliser, *, measured: bool = False) -> str:
    """Return a line on a file: its digest by what it holds."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        import gzip

        content = gzip.decompress(content)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{len(content)} bytes {hashlib.sha256(content).hexdigest()[:12]}"
    try:
        text = json.dumps(normaliser.values(json.loads(text), measured=measured), indent=0)
    except ValueError:
        text = normaliser.text(text, measured=measured)
    return digest_of_text(text)
