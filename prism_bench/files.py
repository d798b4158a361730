"""Files are written whole or not at all; JSON of ours says by which schema; and where a catalogue keeps its files."""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import ResultsError

_PACKAGE = Path(__file__).resolve().parent
GENERATED = "generated"  # kernels/<family>/generated: what the fusion generator writes


def family_folder(source: Path) -> Path:
    """The folder of the family that a kernel's file belongs to."""
    return source.parents[1] if source.parent.name == GENERATED else source.parent


def family_of(source: Path) -> str:
    return family_folder(source).name


def default_folder() -> Path:
    """The catalogue that came with the package: inside it when installed, beside it in a checkout."""
    inside = _PACKAGE / "kernels"
    return inside if inside.is_dir() else _PACKAGE.parent / "kernels"


def shared_folders(catalogue: Path) -> tuple[Path, ...]:
    """Where a catalogue's kernels and specs find what they share, first: its own `include/`, then the built-in one."""
    folders = (catalogue / "include", default_folder() / "include")
    return tuple(dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir()))


def shared_with(source: Path) -> tuple[Path, ...]:
    """The shared folders of the catalogue that a kernel's file belongs to."""
    return shared_folders(family_folder(source).parent)


def cache_folder(room: str) -> Path:
    """Where `room` keeps what can be made again: below PRISM_BENCH_CACHE, else below the user's cache."""
    return Path(os.environ.get("PRISM_BENCH_CACHE") or Path.home() / ".cache" / "prism_bench") / room


def write_atomically(path: Path, data: bytes) -> None:
    """Put `data` at `path` so that a reader sees the old file or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def first_in(folders: Iterable[Path], name: str) -> Path | None:
    """The file of that name in the first of the folders that has one."""
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


@dataclass(frozen=True)
class Schema:
    """A kind of JSON file that is kept: what it is in words (`a store of choices`), the `number` of its schema, and the
    `command` that makes one.
    """

    what: str
    number: int
    command: str

    def read(self, path: Path) -> dict | None:
        """The object at `path`, None where there is no such file; a ResultsError names what is none, or of another
        schema.
        """
        try:
            data = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ResultsError(f"{path}: not readable as {self.what} ({error}); '{self.command}' makes one") from error
        found = data.get("schema") if isinstance(data, dict) else None
        if found != self.number:
            raise ResultsError(f"{path}: schema is {found!r}, not {self.number}; '{self.command}' makes it anew")
        return data

    def damaged(self, path: Path, error: Exception) -> ResultsError:
        """What to raise where the object at `path` lacks something, or has it in another form."""
        return ResultsError(f"{path}: damaged as {self.what} ({type(error).__name__}: {error})")

    def write(self, path: Path, plain: Mapping) -> Path:
        """Keep plain values at `path`, whole or not at all; returns the path. A ResultsError where it cannot be."""
        try:
            text = json.dumps({"schema": self.number, **plain}, indent=1, allow_nan=False)
            write_atomically(path, f"{text}\n".encode())
        except OSError as error:
            raise ResultsError(f"cannot write {path}: {error.strerror}") from error
        except ValueError as error:  # a number that JSON has not
            raise ResultsError(f"cannot write {path} as {self.what}: {error}") from error
        return path


def four_digits(value):
    """The value with four digits of every float in it: of a measured time, more would be noise."""
    if isinstance(value, Mapping):
        return {key: four_digits(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [four_digits(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
