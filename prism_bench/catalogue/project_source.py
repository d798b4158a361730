"""Where a spec's source is, and how its project compiles it: paths relative to the spec, flags of a build."""

import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from prism_bench.compilation.program import compilers, is_prebuilt, marked, toolchain_of
from prism_bench.errors import SpecError
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import Variant

_FIELDS = ("source", "options", "compiler", "compile_commands")
_FOLDER_FLAGS = ("-I", "-isystem", "-iquote", "--include-path")
# Flags of a build that decide a kernel's machine code, by how they begin; nvcc takes all of them.
_DEVICE_FLAGS = (
    "-D", "-U", "-std", "--std", "--use_fast_math", "-use_fast_math", "--ftz", "-ftz", "--fmad", "-fmad", "--prec-",
    "-prec-", "--maxrregcount", "-maxrregcount", "--extra-device-vectorization", "-include", "--pre-include",
)  # fmt: skip
_NVCC_FLAGS = ("--expt-", "-expt-", "--extended-lambda", "-extended-lambda", "-Xptxas", "-Xcudafe", "--diag-", "-diag-")
_WITH_VALUE = (
    "-D",
    "-U",
    "-std",
    "--std",
    "-include",
    "--pre-include",
    "-maxrregcount",
    "--maxrregcount",
    "-Xptxas",
    "-Xcudafe",
)


def placed(spec: KernelSpec, path: Path) -> KernelSpec:
    """Return the spec at `path` with its source found and its options as the compiler gets them, its variants too.

    SpecError where the source, or its entry in `compile_commands`, is missing.
    """
    is_alone = spec.callable is not None and not path.with_suffix(".cu").is_file()
    source = _source_of(spec.source or (path.name if is_alone else None), path)
    options = _options({field: getattr(spec, field) for field in _FIELDS}, source, path)
    variants = {name: _placed_variant(spec, variant, path, source) for name, variant in spec.variants.items()}
    return replace(spec, source=source, options=options, variants=variants)


def _placed_variant(spec: KernelSpec, variant: Variant, path: Path, source: Path) -> Variant:
    own = {field: variant.changes[field] for field in _FIELDS if field in variant.changes}
    if not own or isinstance(own.get("source"), Path) and len(own) == 1 and not spec.compile_commands:
        return variant
    fields = {field: getattr(spec, field) for field in _FIELDS} | own
    found = _source_of(own["source"], path) if "source" in own else source
    changes = {**variant.changes, "source": found, "options": _options(fields, found, path)}
    return Variant(variant.meaning, **changes)


def _source_of(named: Path | str | None, path: Path) -> Path:
    if named is None:
        source = path.with_suffix(".cu")
        if not source.is_file():
            raise SpecError(f"has no source {source.name} next to it")
        return source
    source = named if isinstance(named, Path) and named.is_absolute() else _from(path.parent, named)
    if not source.is_file():
        raise SpecError(f"source '{named}' is no file; it is looked for at {source}, relative to the spec")
    return source


def _from(folder: Path, name: Path | str) -> Path:
    return Path(os.path.normpath(folder / name))


def _options(fields: Mapping[str, Any], source: Path, path: Path) -> tuple[str, ...]:
    """Return the options of the build's entry, then the spec's own, with folders that are relative to the spec."""
    compiler, commands = fields["compiler"], fields["compile_commands"]
    if compiler not in compilers():
        raise SpecError(f"compiler '{compiler}' is none of {', '.join(compilers())}")
    if is_prebuilt(source) and (commands or compiler != "nvrtc"):
        raise SpecError(f"source {source.name} is compiled already: it takes neither compiler nor compile_commands")
    of_build = _build_options(_from(path.parent, commands), source, compiler) if commands else ()
    own = toolchain_of(fields["options"]).options
    return marked(compiler, (*of_build, *_with_folders(own, path.parent)))


def _with_folders(options: Iterable[str], folder: Path) -> list[str]:
    """Return options in which folders of headers are whole paths, each in one word with -I."""
    found: list[str] = []
    words = iter(options)
    for word in words:
        flag = next((one for one in _FOLDER_FLAGS if word.startswith(one)), None)
        if flag is None:
            found.append(word)
        else:
            named = word[len(flag) :].lstrip("=") or next(words, "")
            found.append(f"-I{_from(folder, named)}")
    return found


def _build_options(commands: Path, source: Path, compiler: str) -> list[str]:
    """Return the flags of a source's entry in a `compile_commands.json` that decide its machine code."""
    entry = _entry_of(commands, source)
    folder = _from(commands.parent, str(entry.get("directory", ".")))
    words = entry.get("arguments") or shlex.split(str(entry.get("command", "")))
    kept = _device_flags([str(word) for word in cast("Sequence[object]", words)][1:], compiler)
    return _with_folders(kept, folder)


def _entry_of(commands: Path, source: Path) -> Mapping[str, object]:
    try:
        entries: Any = json.loads(commands.read_text())
    except OSError as error:
        raise SpecError(f"compile_commands: {commands} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise SpecError(f"compile_commands: {commands} is no JSON ({error})") from error
    known = [one for one in entries if isinstance(one, dict) and "file" in one] if isinstance(entries, list) else []
    for one in cast("list[dict[str, object]]", known):
        folder = _from(commands.parent, str(one.get("directory", ".")))
        if _from(folder, str(one["file"])).resolve() == source.resolve():
            return one
    raise SpecError(
        f"compile_commands: {commands} has no entry for {source}; it has {len(known)} other files: build "
        "the target that holds it, or write options= in the spec"
    )


def _device_flags(words: Sequence[str], compiler: str) -> list[str]:
    """Return the words that matter to a device's compiler, flags with a value in the next word joined to it."""
    wanted = _DEVICE_FLAGS + (_NVCC_FLAGS if compiler == "nvcc" else ())
    found: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word in (*_FOLDER_FLAGS, *_WITH_VALUE) and position < len(words):
            found += _joined(word, words[position]) if word in _FOLDER_FLAGS or word.startswith(wanted) else []
            position += 1
        elif word.startswith((*_FOLDER_FLAGS, *wanted)):
            found.append(word)
    return found


def _joined(flag: str, value: str) -> list[str]:
    if flag in (*_FOLDER_FLAGS, "-D", "-U"):
        return [f"{flag}{value}"]
    return [f"{flag}={value}"] if flag in ("-std", "--std", "-maxrregcount", "--maxrregcount") else [flag, value]
