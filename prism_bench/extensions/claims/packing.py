"""Files of a case as a claim keeps them: by path below a catalogue's folder, and back as a catalogue."""

import base64
import re
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from prism_bench.catalogue import Catalogue, discover
from prism_bench.compilation.program import cuda_files
from prism_bench.compilation.python_source import python_files
from prism_bench.errors import PrismBenchError, ResultsError, UsageError
from prism_bench.extensions.claims.document import ClaimSide, PackedFile, sha256
from prism_bench.io.files import default_folder
from prism_bench.spec.case import Case

_TEXT, _ZLIB = "text", "zlib+base64"
_LARGEST_FILE = 16 << 20  # bytes, unpacked: a cubin holds its PTX as text, and shrinks to a fifth
_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*/){1,6}[A-Za-z0-9_][A-Za-z0-9_.+-]*")
MOST_FILES = 500


def files_of(case: Case, folder: Path) -> dict[str, bytes]:
    """Return spec, sources, headers and shared Python of a case by path below the catalogue `folder`, the spec first.

    A UsageError for a case with a file beyond its catalogue, which no claim can hold.
    """
    spec = case.spec
    python = [spec.file, *(path for path in (spec.source_path, *_neighbours(case)) if path and path.suffix == ".py")]
    device = [path for path in (spec.source_path, *_neighbours(case)) if path and path.suffix != ".py"]
    reached = [one for path in python if path for one in python_files(path)]
    reached += [one for path in device for one in cuda_files(path)]
    reached += [spec.source_file.parent / card.cubin for card in spec.cards if card.cubin]
    return {_name(path, folder, case): path.read_bytes() for path in dict.fromkeys(reached)}


def _neighbours(case: Case) -> list[Path]:
    """Return the source next to the spec of a form in another language, which the spec has to have, too."""
    file = case.spec.file
    beside = [file.with_suffix(".cu"), file.parent / "generated" / f"{file.stem}.cu"] if file else []
    return [path for path in beside if path.is_file()]


def _name(path: Path, folder: Path, case: Case) -> str:
    for root in (folder.resolve(), default_folder().resolve()):
        if path.resolve().is_relative_to(root):
            return path.resolve().relative_to(root).as_posix()
    raise UsageError(f"{case.name}: {path} is not below its catalogue {folder}; a claim holds files of a catalogue")


def packed(content: bytes) -> PackedFile:
    """Return a file as text where it is UTF-8, else compressed by zlib and in base64."""
    try:
        return PackedFile(_TEXT, content.decode())
    except UnicodeDecodeError:
        return PackedFile(_ZLIB, base64.b64encode(zlib.compress(content, 9)).decode())


def unpacked(file: PackedFile, place: str) -> bytes:
    """Return the content of a packed file; a ResultsError where it has none."""
    if file.encoding == _TEXT:
        return file.content.encode("utf-8", "surrogatepass")
    if file.encoding != _ZLIB:
        raise ResultsError(f"{place}: encoding is {file.encoding!r:.40}, not {_TEXT} or {_ZLIB}")
    try:
        inflated = zlib.decompressobj()
        content = inflated.decompress(base64.b64decode(file.content, validate=True), _LARGEST_FILE)
    except (ValueError, zlib.error) as error:
        raise ResultsError(f"{place}: not {_ZLIB} ({error})") from None
    if not inflated.eof or inflated.unused_data:
        raise ResultsError(f"{place}: not one stream of at most {_LARGEST_FILE:,} bytes")
    return content


def require_path(path: str, place: str) -> None:
    """Raise a ResultsError unless the path is plain and below a folder."""
    if not _PATH.fullmatch(path) or ".." in PurePosixPath(path).parts:
        raise ResultsError(f"{place}: {path!r:.80} is no path below a catalogue")


def contents_of(side: ClaimSide, files: Mapping[str, PackedFile]) -> dict[str, bytes]:
    """Return the content of each file of a side by its path; the claim was checked before."""
    return {path: unpacked(files[key], path) for path, key in side.files.items()}


def catalogue_at(folder: Path, contents: Mapping[str, bytes]) -> Catalogue:
    """Write the files into a folder and return the catalogue that they are."""
    for path, content in contents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return discover(folder)


def case_in(catalogue: Catalogue, side: ClaimSide) -> Case:
    """Return the case of a side in the catalogue of its files; a ResultsError names why there is none."""
    try:
        return catalogue.anywhere(side.case).configured(side.choice)
    except PrismBenchError as error:
        problems = "; ".join(problem.message for problem in catalogue.problems)
        raise ResultsError(f"{side.case}: its files do not make this case: {problems or error}") from None


def hashes(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each content."""
    return {path: sha256(content) for path, content in contents.items()}
