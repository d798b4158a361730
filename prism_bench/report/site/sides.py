"""What a record brings to a comparison, as a script file: the page compares any two of them by itself.

Two of a thousand records make half a million pairs, so nothing of a pair is computed beforehand. A record's side holds
what `analysis.compare.comparison` asks of it before it judges: the logs of its processes' medians with their
variances, in seconds and in cycles, what identifies its machine code, and the reasons for what it does not have. A side
is named after its record's content and after the code that makes it: it is made once and kept. Who reads a record
anyway keeps its side in the cache (`keep_side`), from where the next site takes it.
"""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from prism_bench.analysis import rivals
from prism_bench.analysis.build_identity import BuildIdentity
from prism_bench.analysis.compare import comparable, comparison, medians
from prism_bench.analysis.compare.medians import Medians, cycles
from prism_bench.errors import ResultsError
from prism_bench.io.files import cache_folder, write_atomically
from prism_bench.record.run_record import CaseResult, RunRecord, decode
from prism_bench.record.store.cache import seal_of
from prism_bench.record.store.processes import in_processes
from prism_bench.record.store.records import text_at

FOLDER = "data/records"
_ANALYSIS = "prism_bench.analysis"
SIDE, METRIC = "{side}", "{metric}"  # known when two records are compared
_DIGITS = 8  # of a logarithm: a hundred-millionth of the time


def side_name(path: Path) -> str | None:
    """Return the name of the side of the record at `path`; None where there is no file."""
    try:
        return hashlib.sha256(f"{path.parent.name}/{path.name} {seal_of(path)} {_maker()}".encode()).hexdigest()[:10]
    except OSError:
        return None


def file_of(side: str) -> str:
    """Return the file of the side of that name."""
    return f"{FOLDER}/{side}.js"


def side_files(site: Path, sides: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, bytes | None]]:
    """Yield the file of each side, made from its record; None for the content of one that is in `site` already."""
    new = []
    for side, path in sides:
        spooled = _spooled(side)
        if _is_whole(site / file_of(side)):
            yield file_of(side), None
        elif _is_whole(spooled):
            yield file_of(side), spooled.read_bytes()
        else:
            new.append((side, path))
        with suppress(OSError):  # a cache that cannot be written costs time, nothing else
            spooled.unlink(missing_ok=True)
    for (side, _), content in zip(new, in_processes(_content, new), strict=True):
        if content:
            yield file_of(side), content


def keep_side(folders: Sequence[Path], path: Path, text: bytes | bytearray) -> None:
    """Keep the side of the record at `path`, whose JSON is `text`, until a site takes it.

    Nothing is kept where the side is in one of the `folders` already, or where keeping it fails.
    """
    side = side_name(path)
    if side is None or any(_is_whole(folder / file_of(side)) for folder in folders):
        return
    content = _made(side, text, str(path))
    with suppress(OSError):
        if content:
            write_atomically(_spooled(side), content)


def _spooled(side: str) -> Path:
    return cache_folder("sides") / f"{side}.js"


def _is_whole(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-len(_END), 2)
            return file.read() == _END
    except OSError:
        return False


_END = b");\n"


def _content(named: tuple[str, Path]) -> bytes | None:
    """Return the side as a script; None where its record can no longer be read."""
    side, path = named
    try:
        return _made(side, text_at(path), str(path))
    except ResultsError:
        return None


def _made(side: str, text: bytes | bytearray, origin: str) -> bytes | None:
    try:
        side_plain = side_of(decode(text, origin))
    except ResultsError:
        return None
    return b"prism.give(%s, 0, %s%s" % (orjson.dumps(side), orjson.dumps(side_plain), _END)


def side_of(record: RunRecord) -> dict[str, Any]:
    """Return the side of the record as plain values.

    `cases` maps a case to `[metric, seconds, spread, logs, variances, in cycles, resolution, code, build]`, where
    `in cycles` is `[logs, variances]` or null, `code` null where the device's clock did not read it, and `build` what
    `_build` returns; or to `[metric, reason]`.
    `units` maps the kernels of a merged record to the UUIDs of the devices that measured them; of others it is null.
    `boards` maps the cases that another board than their kernel's measured. `host` is whose clock read the times of the
    host's; null where it is unknown, or where there are several.
    """
    protocol = comparable.value_settings(record.protocol)
    hosts = {record.host_of(case) for case in record.cases if case.measurements}
    return {
        "machine": record.machine.get("id"), "backend": record.backend, "device": comparable.device_of(record),
        "uuid": record.machine.get("uuid"), "units": _units(record), "boards": _boards(record),
        "complete": record.complete, "host": hosts.pop() if len(hosts) == 1 else None,
        "settings": comparable.settings_of(record),
        "version": record.protocol.get("version"),
        "protocol": {key: orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode() for key, value in protocol.items()},
        "software": {str(key): str(value) for key, value in record.software.items()},
        "cases": {case.name: _case(case) for case in record.cases if not case.is_edge},
    }  # fmt: skip


def _units(record: RunRecord) -> dict[str, Any] | None:
    kernels = [kernel for part in record.parts for kernel in part.get("kernels", ())]
    return {kernel: record.unit_of(kernel) for kernel in kernels} if record.parts else None


def _boards(record: RunRecord) -> dict[str, str]:
    return {case.name: case.board for case in record.cases
            if not case.is_edge and case.board and case.board != record.unit_of(case.kernel)}  # fmt: skip


def _case(case: CaseResult) -> list[Any]:
    metric = rivals.clock_of(case) if case.measurements else None
    reason = comparison.missing(case, metric or METRIC, SIDE)
    if reason:
        return [metric, reason]
    found = case.measurement(metric) if metric else None
    assert metric and found, "a case that lacks nothing was measured"
    if min(min(process) for process in found.processes if process) <= 0:
        return [metric, f"{SIDE} has a time that is not above zero"]
    times, clocked = medians.medians(found.processes), cycles(found)
    return [
        metric, found.median, found.spread, *_plain(times), _plain(clocked) if clocked else None, times.resolution,
        _code(case) if comparison.on_device(metric) else None, _build(case),
    ]  # fmt: skip


def _plain(one: Medians) -> list[list[float]]:
    return [[round(log, _DIGITS) for log in one.logs], [float(f"{variance:.5g}") for variance in one.variances]]


def _code(case: CaseResult) -> list[str | None] | None:
    """Return a few letters for each thing that makes code and its launches the same.

    A thing that the record does not have is null; all is null where it knows no machine code.
    """
    known = [case.code[name] if name in case.code else None for name in comparison.LAUNCHED]
    return [value if value is None else _letters(value) for value in known] if case.code.get("sass") else None


def _build(case: CaseResult) -> list[str | None] | None:
    """Return the compiler with its version, and letters for what it got and for what it made; null where unknown."""
    known = BuildIdentity.of(case.code)
    if not known.compiler or not case.code.get("sass"):
        return None
    return [known.compiler, _letters(known.source) if known.source else None, _letters(case.code["sass"])]


def _letters(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:8]


@cache
def _maker() -> str:
    """Return a digest of the code that makes sides: another code makes others."""
    sources = sorted(sources_of(__name__), key=str)
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def sources_of(module: str) -> set[Path]:
    """Return the file of `module`, and those of `analysis` that it imports, directly or through one another."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _source(name)
        if path is not None and name not in found:
            found[name] = path
            waiting += [imported for imported in _imported(path) if imported.startswith(_ANALYSIS)]
    return set(found.values())


def _source(name: str) -> Path | None:
    """Return the file of a module; None where the name is something that a module defines."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec and spec.origin else None


def _imported(path: Path) -> Iterator[str]:
    """Yield the dotted name of everything that the file imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
