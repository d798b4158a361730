"""Cache of what was read of many files; never older than the files.

A file's stamp holds its size, when its content last changed, and a seal of the content: the checksum at the end of a
compressed record, a digest of any other. Neither a new hard link nor a copy that keeps its times changes the stamp. A
kept block counts only while the stamp is the same to the last digit, and all of them only while the code that made them
is the same. The cache may be deleted at any time; a damaged one is made again.
"""

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import Any, TypedDict

import numpy
import orjson

from prism_bench.files import cache_folder, write_atomically
from prism_bench.store.columns import Column, PointBlock, together
from prism_bench.store.points import NUMBERS, WORDS, Facts

_GZIP = b"\x1f\x8b"
_CHECKSUM = 8  # bytes at the end of a gzip file: CRC-32 and size of its content


class PlainBlock(TypedDict):
    """One block in the header of the cache; `rows` are its first row and the one after its last."""

    file: str
    stamp: str
    facts: dict[str, Any] | None
    problem: str | None
    rows: tuple[int, int]


class Header(TypedDict):
    """Header of the cache: a digest of the code that made it, the words of all blocks, and the blocks."""

    maker: str
    vocabulary: dict[str, list[str]]
    blocks: list[PlainBlock]


def stamp_of(path: Path) -> str:
    """Return what changes whenever the file's content does; an OSError where it cannot be read."""
    with path.open("rb") as file:
        return f"{os.fstat(file.fileno()).st_mtime_ns} {_seal(file)}"


def seal_of(path: Path) -> str:
    """Return what changes whenever the content does, wherever the file is; an OSError where it cannot be read."""
    with path.open("rb") as file:
        return _seal(file)


def _seal(file: BufferedReader) -> str:
    """Return the file's size with the checksum of its content, if it is compressed, else with a digest."""
    size = os.fstat(file.fileno()).st_size
    if file.read(len(_GZIP)) == _GZIP:
        file.seek(max(0, size - _CHECKSUM))
        return f"{size} {file.read().hex()}"
    file.seek(0)
    return f"{size} {hashlib.file_digest(file, 'sha256').hexdigest()}"


def place_for(root: Path) -> Path:
    """Return the path of the cache of the records below `root`."""
    return cache_folder("history") / f"{hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]}.npz"


def kept(root: Path) -> dict[str, PointBlock]:
    """Return the kept blocks by file, valid as long as their stamps are still right; none where there is no cache."""
    try:
        with place_for(root).open("rb") as file, numpy.load(file, allow_pickle=False) as stored:
            header: Header = orjson.loads(stored["header"].tobytes())
            if header["maker"] != _maker():
                return {}
            columns: dict[str, Column] = {name: stored[name] for name in (*WORDS, *NUMBERS)}
        return {one["file"]: _block(one, columns, header["vocabulary"]) for one in header["blocks"]}
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return {}


def _block(plain: PlainBlock, columns: Mapping[str, Column], vocabulary: Mapping[str, list[str]]) -> PointBlock:
    start, end = plain["rows"]
    facts = Facts(**plain["facts"]) if plain["facts"] else None
    own = {name: column[start:end] for name, column in columns.items()}
    return PointBlock(plain["file"], plain["stamp"], facts, plain["problem"], own, vocabulary)


def keep(root: Path, blocks: Sequence[PointBlock]) -> None:
    """Keep the blocks for the next time. Where nothing can be kept, the next reading takes longer, and that is all."""
    columns, vocabulary = together(blocks)
    ends = numpy.cumsum([one.rows for one in blocks]).tolist()
    described = [_described(one, end) for one, end in zip(blocks, ends, strict=True)]
    header: Header = {"maker": _maker(), "vocabulary": vocabulary, "blocks": described}
    data = io.BytesIO()
    arrays: dict[str, Any] = {name: columns[name] for name in (*WORDS, *NUMBERS)}
    numpy.savez(data, header=numpy.frombuffer(orjson.dumps(header), "u1"), **arrays)
    try:
        write_atomically(place_for(root), data.getvalue())
    except OSError:
        return


def _described(one: PointBlock, end: int) -> PlainBlock:
    facts = vars(one.facts) if one.facts else None
    rows = (end - one.rows, end)
    return {"file": one.file, "stamp": one.stamp, "facts": facts, "problem": one.problem, "rows": rows}


@cache
def _maker() -> str:
    """Return a digest of the code that makes blocks: another reading makes other points."""
    here = Path(__file__).parent
    readers = ("run_record", "record_schema", "record_check", "record_ranges", "documents")
    sources = [here / "points.py", here / "columns.py", here / "cache.py"]
    sources += [here.parent / f"{name}.py" for name in readers]
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
